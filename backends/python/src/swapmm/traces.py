# SPDX-License-Identifier: Apache-2.0
"""Traces, machines and plans as plain objects, in the formats of docs/formats.md (version 1)."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

from . import errors
from ._ask import ask, size_text, time_text

Path = Union[str, "os.PathLike[str]"]
#: The position of a tensor in a trace, or its name.
TensorRef = Union[int, str]


def _document(text: str, format_: str) -> Dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError as reason:
        raise errors.UsageError(f"this is no JSON: {reason}") from None
    if not isinstance(document, dict) or document.get("format") != format_:
        raise errors.UsageError(f"this is no {format_}")
    if document.get("version") != 1:
        raise errors.UsageError(f"version {document.get('version')!r} of {format_}: the package knows version 1")
    return document


def _compressed(path: Path) -> bool:
    return os.fspath(path).endswith(".gz")


def _read(path: Path) -> str:
    """The text of a file, which is compressed if its name ends with .gz."""
    with gzip.open(path, "rt", encoding="utf-8") if _compressed(path) else open(path, encoding="utf-8") as file:
        return file.read()


def _write(path: Path, text: str) -> None:
    if not _compressed(path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return
    # Without a name and a time in the file: the same text gives the same bytes.
    with open(path, "wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
        packed.write(text.encode("utf-8"))


def _lines(head: Dict[str, Any], lists: Dict[str, List[Dict[str, Any]]]) -> str:
    """A document with one element of its lists a line, as the library writes it."""
    text = json.dumps(head)[:-1]
    for name, elements in lists.items():
        text += f',\n "{name}": [' + ",".join("\n  " + json.dumps(element) for element in elements) + "]"
    return text + "}\n"


@dataclass
class TraceTensor:
    """A tensor of a trace."""

    name: str
    bytes: int
    #: "persistent" (lives on), "input" (the host gives a new value each time) or "transient" (dead at the end)
    kind: str = "transient"
    #: for an input: the operation before which the host gives the value
    available_from: int = 0


@dataclass
class TraceOperation:
    """An operation of a trace. The lists have positions of tensors."""

    name: str
    duration_ns: int
    reads: List[int] = field(default_factory=list)
    writes: List[int] = field(default_factory=list)
    updates: List[int] = field(default_factory=list)


@dataclass
class Trace:
    """One iteration of a program: its tensors, and its operations in order."""

    name: str = "trace"
    tensors: List[TraceTensor] = field(default_factory=list)
    operations: List[TraceOperation] = field(default_factory=list)
    #: pairs of a tensor and the operation after which the host reads its value
    host_reads: List[Tuple[int, int]] = field(default_factory=list)
    #: triples of a tensor, the last use of a value, and the operation until which it may not be lost
    lingering: List[Tuple[int, int, int]] = field(default_factory=list)

    # ---- made in Python

    def tensor(self, name: str, bytes: int, kind: str = "transient", available_from: int = 0) -> int:
        """Adds a tensor, and returns its position."""
        self.tensors.append(TraceTensor(name, bytes, kind, available_from))
        return len(self.tensors) - 1

    def operation(
        self,
        name: str,
        duration_ns: int,
        reads: Iterable[TensorRef] = (),
        writes: Iterable[TensorRef] = (),
        updates: Iterable[TensorRef] = (),
    ) -> int:
        """Adds an operation, and returns its position. Tensors are positions or names."""
        lists = [[self._position(tensor) for tensor in tensors] for tensors in (reads, writes, updates)]
        self.operations.append(TraceOperation(name, duration_ns, *lists))
        return len(self.operations) - 1

    def host_read(self, tensor: TensorRef, after_operation: int) -> None:
        """The host reads the value that the tensor has after an operation."""
        self.host_reads.append((self._position(tensor), after_operation))

    def _position(self, tensor: TensorRef) -> int:
        if not isinstance(tensor, str):
            return tensor
        found = [i for i, other in enumerate(self.tensors) if other.name == tensor]
        if len(found) != 1:
            raise errors.UsageError(f"{len(found) or 'no'} tensors of the trace are called {tensor!r}")
        return found[0]

    # ---- the format

    @classmethod
    def from_json(cls, text: str) -> "Trace":
        """Of a text in the format swapmm-trace. It is checked when it is used."""
        document = _document(text, "swapmm-trace")
        try:
            return cls(
                document["name"],
                [
                    TraceTensor(t["name"], t["bytes"], t["kind"], t.get("available_from", 0))
                    for t in document["tensors"]
                ],
                [
                    TraceOperation(
                        o["name"], o["duration_ns"], o.get("reads", []), o.get("writes", []), o.get("updates", [])
                    )
                    for o in document["operations"]
                ],
                [(r["tensor"], r["after_operation"]) for r in document.get("host_reads", [])],
                [(v["tensor"], v["last_use"], v["until"]) for v in document.get("lingering", [])],
            )
        except (KeyError, TypeError, AttributeError) as reason:
            raise errors.UsageError(f"a trace with a field that is missing or of another type: {reason}") from None

    def to_json(self) -> str:
        """A text in the format swapmm-trace, one tensor or operation a line."""
        tensors = []
        for tensor in self.tensors:
            fields: Dict[str, Any] = {"name": tensor.name, "bytes": tensor.bytes, "kind": tensor.kind}
            if tensor.available_from:
                fields["available_from"] = tensor.available_from
            tensors.append(fields)
        operations = []
        for operation in self.operations:
            fields = {"name": operation.name, "duration_ns": operation.duration_ns}
            for access in ("reads", "writes", "updates"):
                if getattr(operation, access):
                    fields[access] = getattr(operation, access)
            operations.append(fields)
        lists = {"tensors": tensors, "operations": operations}
        if self.host_reads:
            lists["host_reads"] = [{"tensor": t, "after_operation": o} for t, o in self.host_reads]
        if self.lingering:
            lists["lingering"] = [{"tensor": t, "last_use": o, "until": u} for t, o, u in self.lingering]
        return _lines({"format": "swapmm-trace", "version": 1, "name": self.name}, lists)

    @classmethod
    def load(cls, path: Path) -> "Trace":
        """Of a file, compressed if its name ends with .gz."""
        return cls.from_json(_read(path))

    def save(self, path: Path) -> None:
        """Into a file, compressed if its name ends with .gz."""
        _write(path, self.to_json())

    # ---- what the library says about it

    def check(self) -> None:
        """UsageError if the trace breaks a rule of the format, such as a read of a value that was never written."""
        ask("need", {}, self.to_json())

    @property
    def digest(self) -> str:
        """What a plan names its trace by: SHA-256 of tensors and operations without names and durations."""
        return str(ask("need", {}, self.to_json())["digest"])

    def peak_bytes(self, alignment: Union[int, str] = 256) -> int:
        """The largest number of bytes that must be somewhere while one operation runs."""
        return int(ask("need", {"alignment": str(alignment)}, self.to_json())["peak_bytes"])

    def largest_bundle_bytes(self, alignment: Union[int, str] = 256) -> int:
        """The bytes of the largest operation: no plan works with less."""
        return int(ask("need", {"alignment": str(alignment)}, self.to_json())["largest_bundle_bytes"])

    def __str__(self) -> str:
        duration = sum(operation.duration_ns for operation in self.operations)
        size = sum(tensor.bytes for tensor in self.tensors)
        return (
            f"trace {self.name!r}: {len(self.operations)} operations, {time_text(duration)}; "
            f"{len(self.tensors)} tensors, {size_text(size)}"
        )


@dataclass
class Machine:
    """A device with its link to the host, in the format swapmm-machine of version 1."""

    device_budget_bytes: int
    name: str = ""
    alignment_bytes: int = 256
    #: no tensor's bytes cross a multiple of it; None: no limit
    max_allocation_bytes: Optional[int] = None
    h2d_bytes_per_second: int = 15_754_000_000
    d2h_bytes_per_second: int = 15_754_000_000
    h2d_latency_ns: int = 0
    d2h_latency_ns: int = 0
    #: "full", or "half": copies in and out share one engine
    duplex: str = "full"

    @classmethod
    def from_json(cls, text: str) -> "Machine":
        """Of a text in the format swapmm-machine."""
        return cls._of(_document(text, "swapmm-machine"))

    @classmethod
    def _of(cls, document: Dict[str, Any]) -> "Machine":
        try:
            return cls(
                document["device_budget_bytes"],
                document["name"],
                document["alignment_bytes"],
                document.get("max_allocation_bytes"),
                document["h2d"]["bytes_per_second"],
                document["d2h"]["bytes_per_second"],
                document["h2d"]["latency_ns"],
                document["d2h"]["latency_ns"],
                document["duplex"],
            )
        except (KeyError, TypeError) as reason:
            raise errors.UsageError(f"a machine with a field that is missing or of another type: {reason}") from None

    def to_json(self) -> str:
        """A text in the format swapmm-machine."""
        return json.dumps(
            {
                "format": "swapmm-machine",
                "version": 1,
                "name": self.name,
                "device_budget_bytes": self.device_budget_bytes,
                "alignment_bytes": self.alignment_bytes,
                "max_allocation_bytes": self.max_allocation_bytes,
                "h2d": {"bytes_per_second": self.h2d_bytes_per_second, "latency_ns": self.h2d_latency_ns},
                "d2h": {"bytes_per_second": self.d2h_bytes_per_second, "latency_ns": self.d2h_latency_ns},
                "duplex": self.duplex,
            }
        )

    @classmethod
    def load(cls, path: Path) -> "Machine":
        """Of a file."""
        return cls.from_json(_read(path))

    def save(self, path: Path) -> None:
        """Into a file."""
        _write(path, self.to_json())


@dataclass(frozen=True)
class Prediction:
    """What an iteration takes and copies, as the simulator says."""

    iteration_ns: int
    compute_ns: int
    #: no valid plan for this trace and machine is faster
    lower_bound_ns: int
    h2d_bytes: int
    d2h_bytes: int
    peak_bytes: int

    @property
    def seconds(self) -> float:
        """The time of an iteration."""
        return self.iteration_ns / 1e9

    @property
    def bytes_moved(self) -> int:
        """In both directions."""
        return self.h2d_bytes + self.d2h_bytes

    @property
    def over_bound(self) -> Optional[float]:
        """The time of an iteration / the bound; None without a bound."""
        return self.iteration_ns / self.lower_bound_ns if self.lower_bound_ns else None


class Plan:
    """What moves when, in every iteration: the format swapmm-plan of version 1."""

    def __init__(self, text: str, trace: Optional[Trace] = None, summary: Optional[Dict[str, Any]] = None) -> None:
        try:
            self._document = _document(text, "swapmm-plan")
        except errors.UsageError as reason:
            raise errors.PlanRefused(f"plan refused: {reason}") from None
        self._text = text
        #: the trace that it was made for; None if it was read
        self.trace = trace
        #: host memory for values, and the time of planning; None if it was read
        self.host_bytes: Optional[int] = summary["host_bytes"] if summary else None
        self.planning_seconds: Optional[float] = summary["planning_ns"] / 1e9 if summary else None

    @property
    def planner(self) -> str:
        """The name of the planner."""
        return str(self._document["planner"])

    @property
    def trace_digest(self) -> str:
        """`Trace.digest` of its trace."""
        return str(self._document["trace"])

    @property
    def machine(self) -> Machine:
        """The machine that it was made for."""
        return Machine._of(self._document["machine"])

    @property
    def predicted(self) -> Prediction:
        """What an iteration takes, as its planner says."""
        return Prediction(**{name: self._document["predicted"][name] for name in Prediction.__dataclass_fields__})

    @property
    def initial(self) -> List[Dict[str, Any]]:
        """What is on the device when an iteration begins, as in the format."""
        return list(self._document["initial"])

    @property
    def commands(self) -> List[Dict[str, Any]]:
        """The commands, as in the format."""
        return list(self._document["commands"])

    @property
    def seconds(self) -> float:
        """The predicted time of an iteration."""
        return self.predicted.seconds

    def to_json(self) -> str:
        """A text in the format swapmm-plan."""
        return self._text

    @classmethod
    def load(cls, path: Path, trace: Optional[Trace] = None) -> "Plan":
        """Of a file."""
        return cls(_read(path), trace)

    def save(self, path: Path) -> None:
        """Into a file."""
        _write(path, self._text)

    def svg(self, trace: Optional[Trace] = None, width: int = 1200) -> str:
        """A picture of one iteration: bytes on the device, operations and copies over time. `trace` may be left away if
        the plan was made by `plan()`."""
        given = trace if trace is not None else self.trace
        if given is None:
            raise errors.UsageError("a plan that was read needs its trace for a picture")
        return str(ask("picture", {"width": width}, given.to_json(), self._text)["svg"])

    def __str__(self) -> str:
        predicted = self.predicted
        over = predicted.over_bound
        return (
            f"plan by {self.planner} for {size_text(self.machine.device_budget_bytes)}: "
            f"{time_text(predicted.iteration_ns)} an iteration"
            + (f", {over:.3f} x the bound" if over is not None else "")
            + f"; {size_text(predicted.h2d_bytes)} in, {size_text(predicted.d2h_bytes)} out; "
            f"{len(self._document['commands'])} commands"
        )

    def __repr__(self) -> str:
        return f"<swapmm {self}>"

    def _repr_html_(self) -> str:
        from ._html import picture, table

        predicted, machine = self.predicted, self.machine
        rows = [
            ("planner", self.planner),
            ("device memory", size_text(machine.device_budget_bytes)),
            ("iteration", time_text(predicted.iteration_ns)),
            ("computation", time_text(predicted.compute_ns)),
            ("no schedule beats", time_text(predicted.lower_bound_ns)),
            ("copies", f"{size_text(predicted.h2d_bytes)} in, {size_text(predicted.d2h_bytes)} out"),
            ("commands", str(len(self._document["commands"]))),
        ]
        return table(rows) + (picture(self.svg()) if self.trace is not None else "")
