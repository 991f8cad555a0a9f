# SPDX-License-Identifier: Apache-2.0
"""Traces, machines and plans as plain objects, in the formats of docs/formats.md: of version 2 where other ways back than
copies need it."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import asdict, dataclass, field
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

from . import errors
from ._ask import ask, size_text, time_text, whole

Path = Union[str, "os.PathLike[str]"]
#: The position of a tensor in a trace, its name, or a part of one.
TensorRef = Union[int, str, "Part"]


def _document(text: str, format_: str, versions: Tuple[int, ...] = (1,)) -> Dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError as reason:
        raise errors.UsageError(f"this is no JSON: {reason}") from None
    if not isinstance(document, dict) or document.get("format") != format_:
        raise errors.UsageError(f"this is no {format_}")
    if document.get("version") not in versions:
        known = " and ".join(map(str, versions))
        raise errors.UsageError(f"version {document.get('version')!r} of {format_}: the package knows version {known}")
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
        text += f',\n "{name}": [' + ",".join("\n  " + json.dumps(element, default=whole) for element in elements) + "]"
    return text + "}\n"


@dataclass
class Form:
    """An encoding in which a tensor's values can be stored: `bytes` at most, `expected_bytes` usually."""

    name: str
    bytes: int
    expected_bytes: int
    encode_ns: int = 0
    decode_ns: int = 0


@dataclass(frozen=True)
class Part:
    """An access to the bytes [first, first + bytes) of a tensor alone."""

    tensor: int
    first: int
    bytes: int


#: The position of a tensor, or a part of one.
TraceAccess = Union[int, Part]


@dataclass
class TraceTensor:
    """A tensor of a trace."""

    name: str
    bytes: int
    #: "persistent" (lives on), "input" (the host gives a new value each time) or "transient" (dead at the end)
    kind: str = "transient"
    #: for an input: the operation before which the host gives the value
    available_from: int = 0
    #: encodings in which its values can leave the device
    forms: List[Form] = field(default_factory=list)


@dataclass
class TraceOperation:
    """An operation of a trace. The lists have positions of tensors, or parts of tensors."""

    name: str
    duration_ns: int
    reads: List[TraceAccess] = field(default_factory=list)
    writes: List[TraceAccess] = field(default_factory=list)
    updates: List[TraceAccess] = field(default_factory=list)
    #: a plan may run it again: the same inputs give the same outputs
    replayable: bool = False
    #: it works with tensors whose pieces are not next to each other
    in_pieces: bool = False
    #: the engine that runs it; None: the only one. For the command `swapmm` alone
    engine: Optional[str] = None


def _accesses(operation: Dict[str, Any], way: str) -> List[Union[int, Part]]:
    return [Part(**access) if isinstance(access, dict) else access for access in operation.get(way, [])]


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
        *,
        replayable: bool = False,
        in_pieces: bool = False,
    ) -> int:
        """Adds an operation, and returns its position. Tensors are positions or names, or parts of tensors."""
        lists = [
            [access if isinstance(access, Part) else self._position(access) for access in accesses]
            for accesses in (reads, writes, updates)
        ]
        self.operations.append(TraceOperation(name, duration_ns, lists[0], lists[1], lists[2], replayable, in_pieces))
        return len(self.operations) - 1

    def host_read(self, tensor: Union[int, str], after_operation: int) -> None:
        """The host reads the value that the tensor has after an operation."""
        self.host_reads.append((self._position(tensor), after_operation))

    def _position(self, tensor: Union[int, str]) -> int:
        if not isinstance(tensor, str):
            return tensor
        found = [i for i, other in enumerate(self.tensors) if other.name == tensor]
        if len(found) != 1:
            raise errors.UsageError(f"{len(found) or 'no'} tensors of the trace are called {tensor!r}")
        return found[0]

    # ---- the format

    @property
    def version(self) -> int:
        """Of the format: 2 if it has something that version 1 cannot say."""
        fits = all(
            not (o.replayable or o.in_pieces or o.engine)
            and not any(isinstance(access, Part) for access in (*o.reads, *o.writes, *o.updates))
            for o in self.operations
        )
        return 1 if fits and not any(tensor.forms for tensor in self.tensors) else 2

    @classmethod
    def from_json(cls, text: str) -> "Trace":
        """Of a text in the format swapmm-trace. It is checked when it is used."""
        document = _document(text, "swapmm-trace", (1, 2))
        is_2 = document["version"] == 2  # version 1 ignores what it does not know
        try:
            return cls(
                document["name"],
                [
                    TraceTensor(
                        t["name"],
                        t["bytes"],
                        t["kind"],
                        t.get("available_from", 0),
                        [Form(**form) for form in t.get("forms", [])] if is_2 else [],
                    )
                    for t in document["tensors"]
                ],
                [
                    TraceOperation(
                        o["name"],
                        o["duration_ns"],
                        _accesses(o, "reads"),
                        _accesses(o, "writes"),
                        _accesses(o, "updates"),
                        is_2 and o.get("replayable", False),
                        is_2 and o.get("in_pieces", False),
                        o.get("engine") if is_2 else None,
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
            if tensor.forms:
                fields["forms"] = [asdict(form) for form in tensor.forms]
            tensors.append(fields)
        operations = []
        for operation in self.operations:
            fields = {"name": operation.name, "duration_ns": operation.duration_ns}
            for name in ("engine", "replayable", "in_pieces"):
                if getattr(operation, name):
                    fields[name] = getattr(operation, name)
            for way in ("reads", "writes", "updates"):
                accesses = getattr(operation, way)
                if accesses:
                    fields[way] = [asdict(access) if isinstance(access, Part) else access for access in accesses]
            operations.append(fields)
        lists = {"tensors": tensors, "operations": operations}
        if self.host_reads:
            lists["host_reads"] = [{"tensor": t, "after_operation": o} for t, o in self.host_reads]
        if self.lingering:
            lists["lingering"] = [{"tensor": t, "last_use": o, "until": u} for t, o, u in self.lingering]
        return _lines({"format": "swapmm-trace", "version": self.version, "name": self.name}, lists)

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


def _device_and_links(document: Dict[str, Any]) -> Tuple[Dict[str, Any], Tuple[Dict[str, Any], Dict[str, Any]]]:
    """Of a machine of version 2: the memory that is not the host's, and the links to it and from it."""
    try:
        host = document["host"]
        devices = [memory for memory in document["memories"] if memory["name"] != host]
        if len(devices) != 1:
            raise errors.UsageError(f"the machine has {len(devices)} memories besides the host's: only the command knows such")
        device = devices[0]
        to = next(link for link in document["links"] if link["to"] == device["name"])
        back = next(link for link in document["links"] if link["from"] == device["name"])
        return device, (to, back)
    except (KeyError, TypeError, StopIteration) as reason:
        raise errors.UsageError(f"a machine with a field that is missing or of another type: {reason}") from None


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

    @classmethod
    def _of_version_2(cls, document: Dict[str, Any]) -> "Machine":
        device, (h2d, d2h) = _device_and_links(document)
        return cls(
            device["bytes"],
            document.get("name", ""),
            device.get("alignment_bytes", 1),
            device.get("max_allocation_bytes"),
            h2d["bytes_per_second"],
            d2h["bytes_per_second"],
            h2d.get("latency_ns", 0),
            d2h.get("latency_ns", 0),
            "half" if h2d.get("engine") is not None and h2d.get("engine") == d2h.get("engine") else "full",
        )

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
    """What moves when, in every iteration: the format swapmm-plan, of version 2 if values come back in other ways than by
    copies."""

    def __init__(self, text: str, trace: Optional[Trace] = None, summary: Optional[Dict[str, Any]] = None) -> None:
        try:
            self._document = _document(text, "swapmm-plan", (1, 2))
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
    def version(self) -> int:
        """Of the format."""
        return int(self._document["version"])

    @property
    def machine(self) -> Machine:
        """The machine that it was made for. UsageError if that is not one device and one host."""
        document = self._document["machine"]
        return Machine._of(document) if self.version == 1 else Machine._of_version_2(document)

    @property
    def predicted(self) -> Prediction:
        """What an iteration takes, as its planner says."""
        predicted = self._document.get("predicted", {})
        if self.version == 2:
            device, links = _device_and_links(self._document["machine"])
            moved = {entry["link"]: entry["bytes"] for entry in predicted.get("links", [])}
            peaks = {entry["memory"]: entry["peak_bytes"] for entry in predicted.get("memories", [])}
            predicted = {
                **predicted,
                "h2d_bytes": moved.get(links[0]["name"], 0),
                "d2h_bytes": moved.get(links[1]["name"], 0),
                "peak_bytes": peaks.get(device["name"], 0),
            }
        return Prediction(**{name: predicted.get(name, 0) for name in Prediction.__dataclass_fields__})

    @property
    def runs_again(self) -> int:
        """How many operations run again in an iteration."""
        return sum(command["kind"] == "run" for command in self._document["commands"])

    @property
    def decodes(self) -> int:
        """How many values are decoded in an iteration."""
        return sum(command["kind"] == "decode" for command in self._document["commands"])

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
            + (f"; {self.runs_again} operations run again" if self.runs_again else "")
            + (f"; {self.decodes} values are decoded" if self.decodes else "")
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
        if self.runs_again:
            rows.append(("operations that run again", str(self.runs_again)))
        if self.decodes:
            rows.append(("values that are decoded", str(self.decodes)))
        return table(rows) + (picture(self.svg()) if self.trace is not None else "")
