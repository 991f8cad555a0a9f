#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records one steady step of a PyTorch program as a trace of swapmm (format `swapmm-trace`, docs/formats.md).

    trace = record(step, inputs=batch, parameters=(model, optimizer), name="mine")
    trace.write("mine.json")

    record.py MODEL [--preset tiny|gpu] [--device cpu|cuda|meta] [--batch N] [--size KEY=VALUE,...] --out FILE
    record.py --all --preset gpu --out-dir DIR

Needs torch 1.13 or newer and nothing else. README.md beside this file says what becomes an operation and what a tensor.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import torch

import models
from swapmm_trace import ACCESSES, HostRead, Operation, Tensor, Trace
from watch import Step, Storages, Watch, storage_of

SLEEP_CYCLES = 200_000  # about 0.1 ms


# ---- What is measured around each operation: before() gives a token, after(token) what values() understands. ---------


class _Nothing:
  def before(self):
    return None

  def after(self, token):
    return None

  def values(self, measured):
    return [0 for _ in measured]


class _HostTime(_Nothing):
  def before(self):
    return time.perf_counter_ns()

  def after(self, token):
    return time.perf_counter_ns() - token

  def values(self, measured):
    return [value or 0 for value in measured]


class _DeviceTime(_Nothing):
  def before(self):
    # The device sleeps while the host queues event, operation and event: the time between the events is the
    # operation's own, not that of the host which is slower.
    torch.cuda._sleep(SLEEP_CYCLES)
    start = torch.cuda.Event(enable_timing=True)
    start.record()
    return start

  def after(self, token):
    end = torch.cuda.Event(enable_timing=True)
    end.record()
    return token, end

  def values(self, measured):
    torch.cuda.synchronize()
    return [round(pair[0].elapsed_time(pair[1]) * 1e6) if pair else 0 for pair in measured]


class _DeviceScratch(_Nothing):
  """Bytes that were taken during an operation and are taken neither before nor behind it."""

  def __init__(self, device):
    self.device = device

  def _allocated(self):
    return torch.cuda.memory_stats_as_nested_dict(self.device)["allocated_bytes"]["all"]

  def before(self):
    torch.cuda.reset_peak_memory_stats(self.device)
    return self._allocated()["current"]

  def after(self, token):
    now = self._allocated()
    return now["peak"] - max(token, now["current"])

  def values(self, measured):
    return [max(value or 0, 0) for value in measured]


# ---- The recording -------------------------------------------------------------------------------------------------


class _Recorder:
  def __init__(self, device, inputs, parameters):
    self.storages = Storages(device)
    self.inputs, self.parameters = inputs, parameters
    self.steps = 0

  def look_around(self):
    """Whose storages are whose: some may have come since the last look, as an optimizer's state does."""
    for name, tensor in _named_tensors(self.parameters, "parameter"):
      if self.storages.device.type == "cpu" and name.startswith("step of "):
        self.storages.keep_on_host(storage_of(tensor))  # where it is beside a CUDA device
      self._declare(self.storages.parameters, name, tensor)
    for name, tensor in _named_tensors(self.inputs, "input"):
      self._declare(self.storages.inputs, name, tensor)

  def _declare(self, declared, name, tensor):
    handle = storage_of(tensor)
    if self.storages.on_host(tensor, handle):
      return
    storage = self.storages.find(handle)
    if storage not in declared:
      storage.name = name
      declared.add(storage)

  def run(self, step, probe):
    self.look_around()
    watched = Step(self.steps)
    self.steps += 1
    with Watch(self.storages, watched, probe):
      step()
    device = self.storages.device
    if device.type == "cuda":
      torch.cuda.synchronize(device)
    if not watched.operations:
      raise ValueError(f"the step ran no operation on {device.type}")
    return watched


def record(step, *, inputs=(), parameters=(), name="pytorch", warmup=2, repeat=3, device=None):
  """Records one call of `step()` behind `warmup` others as a Trace; `repeat` further calls give the durations (medians,
  operation by operation).

  `inputs`: tensors that get a new value from the host in each step. `parameters`: what lives on from step to step.
  Both: tensors, modules, optimizers, lists and dicts of them, or functions that return such. `device`: whose tensors
  are recorded; default: that of the first tensor found in them.

  Raises ValueError where a later call runs other operations than the recorded one. Costs 3 + repeat steps, each about
  0.1 ms per operation slower than without.
  """
  if repeat < 1:
    raise ValueError("repeat: at least one step gives the durations")
  if device is None:
    declared = [*_named_tensors(parameters, ""), *_named_tensors(inputs, "")]
    device = declared[0][1].device if declared else "cpu"
  recorder = _Recorder(torch.device(device), inputs, parameters)
  for _ in range(warmup - 1):
    step()
  warm = recorder.run(step, _Nothing()) if warmup > 0 else None
  on_cuda = recorder.storages.device.type == "cuda"
  scratch_probe = _DeviceScratch(recorder.storages.device) if on_cuda else _Nothing()
  recorded = recorder.run(step, scratch_probe)
  # Of what the step accesses and nobody declared or made: this lived on from the step before.
  lasting = {s for s in recorded.lives_in if (s in warm.first_access if warm else not s.reference.expired())}
  recorder.look_around()

  expected, times = recorded.bundles(), []
  for repetition in range(repeat):
    probe = _DeviceTime() if on_cuda else _HostTime()
    again = recorder.run(step, probe)
    _require_equal(expected, again.bundles())
    if repetition == 0:
      lasting |= {storage for storage in again.lives_in if storage.made_in == recorded.number}
    times.append(probe.values([measured for _, _, measured in again.operations]))
  durations = [max(1, round(statistics.median(column))) for column in zip(*times)]
  scratch = scratch_probe.values([measured for _, _, measured in recorded.operations])
  trace = _build(name, recorder.storages, recorded, lasting, durations, scratch)
  trace.check()
  return trace


def _require_equal(expected, found):
  for i, (before, now) in enumerate(zip(expected, found)):
    if before != now:
      raise ValueError(f"the steps differ from operation {i} on: {before} and then {now}")
  if len(expected) != len(found):
    raise ValueError(f"the steps differ: {len(expected)} operations and then {len(found)}")


def _build(name, storages, recorded, lasting, durations, scratch):
  trace = Trace(name)
  ids = {}
  for storage, first in recorded.first_access.items():
    kind, available_from = "transient", 0
    if storage in storages.inputs:
      kind, available_from = "input", recorded.uploads.get(storage, 0)
    elif storage in storages.parameters or storage in lasting and storage not in recorded.uploads:
      kind = "persistent"
    elif storage in recorded.uploads:
      kind, available_from = "input", recorded.uploads[storage]
    elif storage in recorded.lives_in:
      kind, available_from = "input", first  # made in the step, but not by an operation: the host gave it
    ids[storage] = len(trace.tensors)
    trace.tensors.append(Tensor(storage.name or f"{kind}.{first}", storage.bytes, kind, available_from))
  for (operation, accesses, _), duration, extra in zip(recorded.operations, durations, scratch):
    lists = {access: [] for access in ACCESSES}
    for storage, access in accesses:
      lists[access].append(ids[storage])
    if extra > 0:
      lists["writes"].append(len(trace.tensors))
      trace.tensors.append(Tensor(f"{operation}.{len(trace.operations)}.scratch", extra, "transient"))
    trace.operations.append(Operation(operation, duration, **lists))
  # A value that no operation of this step wrote is the one that the step before left.
  last = len(trace.operations) - 1
  reads = {(ids[s], last if at is None else at) for s, at in recorded.host_reads if s in ids and
           (at is not None or trace.tensors[ids[s]].kind == "persistent")}
  trace.host_reads = [HostRead(tensor, at) for tensor, at in sorted(reads, key=lambda read: read[::-1])]
  return trace


def _named_tensors(items, prefix):
  """(name, tensor) for all tensors of what record() takes as inputs or parameters."""
  leaves = list(_leaves(items, prefix))
  names = {}
  for _, leaf in leaves:
    if isinstance(leaf, torch.nn.Module):
      names.update((id(parameter), name) for name, parameter in leaf.named_parameters())
  for name, leaf in leaves:
    if isinstance(leaf, torch.nn.Module):
      yield from leaf.named_parameters()
      yield from leaf.named_buffers()
    elif isinstance(leaf, torch.optim.Optimizer):
      for group in leaf.param_groups:
        for parameter in group["params"]:
          owner = names.get(id(parameter), "a parameter")
          yield owner, parameter
          for key, value in leaf.state.get(parameter, {}).items():
            if isinstance(value, torch.Tensor):
              yield f"{key} of {owner}", value
    else:
      yield name, leaf


def _leaves(items, prefix):
  if isinstance(items, (torch.Tensor, torch.nn.Module, torch.optim.Optimizer)):
    yield prefix, items
  elif callable(items):
    yield from _leaves(items(), prefix)
  elif isinstance(items, dict):
    for key, value in items.items():
      yield from _leaves(value, str(key))
  elif items is not None:
    for position, value in enumerate(items):
      yield from _leaves(value, f"{prefix}.{position}")


# ---- The command line ----------------------------------------------------------------------------------------------


def _sizes(text):
  """KEY=VALUE,KEY=VALUE: whole numbers."""
  try:
    return {key: int(value) for key, value in (pair.split("=") for pair in text.split(",") if pair)}
  except ValueError:
    raise argparse.ArgumentTypeError(f"{text!r} is not KEY=NUMBER,...")


def _arguments(arguments):
  parser = argparse.ArgumentParser(description="Records a training step of a PyTorch model as a trace of swapmm.")
  parser.add_argument("model", nargs="?", choices=list(models.PRESETS))
  parser.add_argument("--all", action="store_true", help="all models, each in a process of its own, and a table")
  parser.add_argument("--preset", choices=("tiny", "gpu"), default="tiny")
  parser.add_argument("--device", help="cpu, cuda, or meta: sizes without memory and without times; "
                      "default: cuda with the preset gpu, else cpu")
  parser.add_argument("--batch", type=int)
  parser.add_argument("--size", type=_sizes, default={}, metavar="KEY=NUMBER,...",
                      help="sizes that differ from the preset")
  parser.add_argument("--autocast", action="store_true", help="compute in bfloat16 where autocast does")
  parser.add_argument("--warmup", type=int, default=2)
  parser.add_argument("--repeat", type=int, default=3, help="timed steps")
  parser.add_argument("--out", help="the file; compressed where its name ends with .gz")
  parser.add_argument("--out-dir", help="with --all: the folder")
  parser.add_argument("--json", action="store_true", help="print the row of the table as JSON")
  options = parser.parse_args(arguments)
  if options.all == bool(options.model) or not (options.out_dir if options.all else options.out):
    parser.error("either MODEL and --out FILE, or --all and --out-dir DIR")
  options.device = options.device or ("cuda" if options.preset == "gpu" else "cpu")
  if options.batch is not None:
    options.size["batch"] = options.batch
  return options


def _record_model(options):
  case = models.build(options.model, options.preset, options.device, options.size, options.autocast)
  trace = record(case.step, inputs=[case.inputs, case.targets], parameters=[case.network, case.optimizer],
                 name=case.name, warmup=options.warmup, repeat=options.repeat, device=options.device)
  trace.write(options.out)
  row = {"name": trace.name, "operations": len(trace.operations), "tensors": len(trace.tensors),
         "peak_live_bytes": trace.peak_live_bytes(), "largest_bundle_bytes": trace.largest_bundle(),
         "duration_ns": trace.duration_ns(), "allocated_bytes": None, "file": options.out}
  if options.device.startswith("cuda"):
    # Without the watch: what PyTorch itself takes at the most.
    torch.cuda.reset_peak_memory_stats()
    case.step()
    row["allocated_bytes"] = torch.cuda.max_memory_allocated()
  return row


HEADING = ("| trace | operations | tensors | peak live GB | largest bundle GB | allocated by PyTorch GB | ms |\n"
           "|---|---|---|---|---|---|---|")


def _table_row(row):
  def gigabytes(size):
    return "-" if size is None else f"{size / 1e9:.3g}"

  cells = [row["name"], row["operations"], row["tensors"], gigabytes(row["peak_live_bytes"]),
           gigabytes(row["largest_bundle_bytes"]), gigabytes(row["allocated_bytes"]), f"{row['duration_ns'] / 1e6:.1f}"]
  return "| " + " | ".join(map(str, cells)) + " |"


def _record_all(options):
  """An error of one model, out of memory above all, does not end the others. Returns how many failed."""
  os.makedirs(options.out_dir, exist_ok=True)
  rows, failed = [], 0
  for name in models.PRESETS:
    path = os.path.join(options.out_dir, f"{name}.json.gz")
    command = [sys.executable, __file__, name, "--preset", options.preset, "--device", options.device, "--warmup",
               str(options.warmup), "--repeat", str(options.repeat), "--out", path, "--json"]
    command += ["--autocast"] if options.autocast else []
    command += ["--batch", str(options.batch)] if options.batch is not None else []
    print(f"{name} ...", file=sys.stderr, flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode == 0:
      rows.append(_table_row(json.loads(done.stdout.splitlines()[-1])))
    else:
      failed += 1
      last = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
      rows.append(f"| {name} | failed: {last[:200]} |")
  print(HEADING, *rows, sep="\n")
  return failed


def main(arguments=None):
  options = _arguments(arguments)
  if options.all:
    return 1 if _record_all(options) else 0
  try:
    row = _record_model(options)
  except (ValueError, OSError, RuntimeError) as error:
    print(f"record.py: {error}", file=sys.stderr)
    return 1
  print(json.dumps(row) if options.json else HEADING + "\n" + _table_row(row))
  return 0


if __name__ == "__main__":
  sys.exit(main())
