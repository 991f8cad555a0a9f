# SPDX-License-Identifier: Apache-2.0
"""A trace of swapmm as plain data, and its text: format `swapmm-trace` version 1, docs/formats.md.

Standard library alone, so that any program can use it to write traces of its own.
"""

import bisect
import gzip
import hashlib
import io
import json
from dataclasses import dataclass, field
from typing import List

KINDS = ("persistent", "input", "transient")
ACCESSES = ("reads", "writes", "updates")


@dataclass
class Tensor:
  name: str
  bytes: int
  kind: str  # one of KINDS
  available_from: int = 0  # for an input: the operation before which the host gives the value


@dataclass
class Operation:
  """Its bundle is the union of the three lists of ids; a tensor stands in one of them at most."""
  name: str
  duration_ns: int
  reads: List[int] = field(default_factory=list)
  writes: List[int] = field(default_factory=list)
  updates: List[int] = field(default_factory=list)

  def accesses(self):
    """(tensor, access) for all of the bundle: reads, writes, updates."""
    return [(tensor, access) for access in ACCESSES for tensor in getattr(self, access)]


@dataclass
class HostRead:
  tensor: int
  after_operation: int


@dataclass
class Trace:
  """One iteration. A tensor's id is its position."""
  name: str
  tensors: List[Tensor] = field(default_factory=list)
  operations: List[Operation] = field(default_factory=list)
  host_reads: List[HostRead] = field(default_factory=list)

  def check(self):
    """Raises ValueError where swapmm would refuse the trace. The format's limits of size are left to swapmm."""
    if not self.operations:
      raise ValueError("operations: a trace has at least one")
    for i, tensor in enumerate(self.tensors):
      if tensor.kind not in KINDS:
        raise ValueError(f"tensors[{i}].kind: {tensor.kind!r} is not one of {', '.join(KINDS)}")
      if tensor.available_from and (tensor.kind != "input" or tensor.available_from >= len(self.operations)):
        raise ValueError(f"tensors[{i}].available_from: {tensor.available_from} of a {tensor.kind} tensor")
    written = [False] * len(self.tensors)
    for i, operation in enumerate(self.operations):
      if operation.duration_ns < 0:
        raise ValueError(f"operations[{i}].duration_ns: {operation.duration_ns} is below 0")
      bundle = operation.accesses()
      if len({tensor for tensor, _ in bundle}) != len(bundle):
        raise ValueError(f"operations[{i}]: a tensor stands in the bundle twice")
      for t, access in bundle:
        if i < self.tensors[t].available_from:
          raise ValueError(f"operations[{i}].{access}: input {t} has no value yet")
        if access != "writes" and self.tensors[t].kind == "transient" and not written[t]:
          raise ValueError(f"operations[{i}].{access}: transient {t} has no value before it is written")
        written[t] = written[t] or access != "reads"

  def digest_lines(self):
    """What identifies the program: sizes, kinds and bundles, one line each."""
    yield from (f"T {tensor.bytes} {tensor.kind}" for tensor in self.tensors)
    for operation in self.operations:
      lists = [",".join(map(str, sorted(getattr(operation, access)))) for access in ACCESSES]
      yield f"O r{lists[0]} w{lists[1]} u{lists[2]}"

  def digest(self):
    text = "".join(line + "\n" for line in self.digest_lines())
    return hashlib.sha256(text.encode("ascii")).hexdigest()

  def duration_ns(self):
    return sum(operation.duration_ns for operation in self.operations)

  def largest_bundle(self, alignment=256):
    """In bytes: no budget below it can work."""
    sizes = [_round_up(tensor.bytes, alignment) for tensor in self.tensors]
    return max(sum(sizes[t] for t, _ in operation.accesses()) for operation in self.operations)

  def peak_live_bytes(self, alignment=256):
    """The most that must be somewhere while an operation runs: swapmm::Liveness::peak, which says what counts."""
    difference = [0] * (len(self.operations) + 1)
    uses = [[] for _ in self.tensors]
    for i, operation in enumerate(self.operations):
      for t, access in operation.accesses():
        uses[t].append((i, access))
    host_reads = [[] for _ in self.tensors]
    for read in self.host_reads:
      host_reads[read.tensor].append(read.after_operation)
    for t, tensor in enumerate(self.tensors):
      size = _round_up(tensor.bytes, alignment)
      for first, last in _live_runs(uses[t], sorted(host_reads[t]), tensor.kind, len(self.operations)):
        difference[first] += size
        difference[last + 1] -= size
    live = peak = 0
    for change in difference:
      live += change
      peak = max(peak, live)
    return peak

  def dump(self, out):
    """Writes the text, one tensor or operation a line."""
    def line(fields):
      return json.dumps(fields, separators=(", ", ": "))

    def write_list(name, elements):
      out.write(f',\n "{name}": [')
      for i, element in enumerate(elements):
        out.write((",\n  " if i else "\n  ") + line(element))
      out.write("]")

    out.write('{"format": "swapmm-trace", "version": 1, "name": ' + json.dumps(self.name))
    write_list("tensors", (_tensor_fields(tensor) for tensor in self.tensors))
    write_list("operations", (_operation_fields(operation) for operation in self.operations))
    if self.host_reads:
      write_list("host_reads", (vars(read) for read in self.host_reads))
    out.write("}\n")

  def write(self, path):
    """Checks the trace and writes it to a file, compressed where its name ends with .gz."""
    self.check()
    if not str(path).endswith(".gz"):
      with open(path, "w", encoding="utf-8", newline="\n") as out:
        self.dump(out)
      return
    # No name and no time in the file: the same trace is the same bytes.
    with open(path, "wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
      with io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as out:
        self.dump(out)


def _round_up(size, alignment):
  return -(-size // alignment) * alignment


def _tensor_fields(tensor):
  fields = {"name": tensor.name, "bytes": tensor.bytes, "kind": tensor.kind}
  if tensor.available_from:
    fields["available_from"] = tensor.available_from
  return fields


def _operation_fields(operation):
  fields = {"name": operation.name, "duration_ns": operation.duration_ns}
  fields.update((access, getattr(operation, access)) for access in ACCESSES if getattr(operation, access))
  return fields


def _last_host_read(reads, first, end):
  """The last host read of a value that is there after operation `first` and before operation `end`."""
  position = bisect.bisect_left(reads, end)
  return reads[position - 1] if position and reads[position - 1] >= first else None


def _live_until(uses, reads, position, operations):
  """A value lives through where the next use needs it, and else until the host has read it."""
  at = uses[position][0]
  is_last = position + 1 == len(uses)
  if not is_last and uses[position + 1][1] != "writes":
    return uses[position + 1][0] - 1
  read = _last_host_read(reads, at, operations if is_last else uses[position + 1][0])
  return at if read is None else read


def _live_runs(uses, reads, kind, operations):
  """(first, last) for each run of operations during which a tensor's value must be somewhere."""
  for position, (at, _) in enumerate(uses):
    yield at, _live_until(uses, reads, position, operations)
  if kind != "persistent":
    return
  if not uses:
    if reads:
      yield 0, operations - 1
    return
  # From the last use into the next iteration, where something there still wants the value.
  first, access = uses[0]
  read = _last_host_read(reads, 0, first)
  if access == "writes" and read is None:
    return
  counted = _live_until(uses, reads, len(uses) - 1, operations)
  if counted + 1 < operations:
    yield counted + 1, operations - 1
  end = first if access != "writes" else read + 1
  if end > 0:
    yield 0, end - 1
