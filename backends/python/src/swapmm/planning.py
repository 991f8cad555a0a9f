# SPDX-License-Identifier: Apache-2.0
"""What the command `swapmm` answers about traces and plans, as functions. The figures are the same."""

from __future__ import annotations

import numbers
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Type, Union

from . import _html, errors
from ._ask import Progress, ProgressChoice, ask, size_text, time_text
from .traces import Machine, Plan, Prediction, Trace

__all__ = [
    "Comparison",
    "ComparisonRow",
    "Explanation",
    "Fit",
    "Progress",
    "Simulation",
    "Stall",
    "Violation",
    "bound",
    "compare",
    "explain",
    "fit",
    "plan",
    "planners",
    "simulate",
    "validate",
]

#: A number, or a text with a unit as the command reads it: "8GB", "15.754GB/s", "10us". A budget may be a share of the
#: trace's peak of live bytes: "50%" or 0.5.
Quantity = Union[int, float, str]


def _text(value: Optional[Quantity]) -> Optional[str]:
    if value is None or isinstance(value, str):
        return value
    # Those of NumPy are registered as such numbers.
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        return repr(float(value))
    raise errors.UsageError(f"{value!r} is neither a number nor a text")


def _latency(value: Optional[Quantity]) -> Optional[str]:
    return value if value is None or isinstance(value, str) else f"{_text(value)}ns"


def _limit(seconds: Optional[float]) -> Optional[str]:
    if seconds is None:
        return None
    if not isinstance(seconds, numbers.Real) or not 0 < seconds < 1e9:
        raise errors.UsageError(f"seconds is {seconds!r}: a number above 0 and below 10^9")
    return f"{round(float(seconds) * 1e9)}ns"


def _json_of(given: Any, kind: Type[Union[Trace, Plan, Machine]]) -> str:
    if not isinstance(given, kind):
        name = kind.__name__
        raise errors.UsageError(f"{given!r} is no swapmm.{name}: {name}.load() reads one from a file")
    return given.to_json()


def _name_of(planner: Union[str, PlannerName]) -> str:
    return planner.name if isinstance(planner, PlannerName) else planner


def _each(values: Any) -> List[Any]:
    """A single one is a list of one."""
    return [values] if isinstance(values, (str, numbers.Real, PlannerName)) else list(values)


def _figures(
    budget: Optional[Quantity],
    machine: Optional[Machine],
    bandwidth: Optional[Quantity],
    bandwidth_in: Optional[Quantity],
    bandwidth_out: Optional[Quantity],
    latency: Optional[Quantity],
    alignment: Optional[Quantity],
    max_allocation: Optional[Quantity],
    half_duplex: bool,
) -> Dict[str, Any]:
    return {
        "budget": _text(budget),
        "machine": None if machine is None else _json_of(machine, Machine),
        "bandwidth": _text(bandwidth),
        "bandwidth_in": _text(bandwidth_in),
        "bandwidth_out": _text(bandwidth_out),
        "latency": _latency(latency),
        "alignment": _text(alignment),
        "max_allocation": _text(max_allocation),
        "half_duplex": bool(half_duplex),
    }


def _prediction(answer: Dict[str, Any]) -> Prediction:
    return Prediction(**{name: answer[name] for name in Prediction.__dataclass_fields__})


# ---- plan


def plan(
    trace: Trace,
    budget: Optional[Quantity] = None,
    *,
    machine: Optional[Machine] = None,
    planner: str = "best",
    ways: Optional[str] = None,
    seconds: Optional[float] = None,
    bandwidth: Optional[Quantity] = None,
    bandwidth_in: Optional[Quantity] = None,
    bandwidth_out: Optional[Quantity] = None,
    latency: Optional[Quantity] = None,
    alignment: Optional[Quantity] = None,
    max_allocation: Optional[Quantity] = None,
    half_duplex: bool = False,
    progress: ProgressChoice = None,
) -> Plan:
    """Makes a plan, as `swapmm plan` does. BundleTooLarge if the trace does not fit.

    `budget`: device memory, "8GB", 8 * 10**9, or a share of the trace's peak of live bytes, "50%" or 0.5. `machine`: its
    figures are replaced by the budget and the others that are given. `ways`: those in which values may come back, such as
    "swap,recompute"; None: all that the trace allows ("swap,recompute,compress,pieces"). `seconds`: how long a planner that searches
    goes on, unless it proves earlier that no plan is better; None: a set number of steps, so that the same trace gives the same plan. Ctrl-C ends the search."""
    options = _figures(
        budget, machine, bandwidth, bandwidth_in, bandwidth_out, latency, alignment, max_allocation, half_duplex
    )
    options.update(planner=_name_of(planner), ways=ways, time_limit=_limit(seconds))
    answer = ask("plan", options, _json_of(trace, Trace), progress=progress)
    return Plan(answer["plan"], trace, answer)


class PlannerName(NamedTuple):
    """A planner of the library."""

    name: str
    summary: str


def planners() -> List[PlannerName]:
    """The planners of the library, simplest first."""
    return [PlannerName(entry["name"], entry["summary"]) for entry in ask("planners", {})["planners"]]


# ---- fit


class Stall(NamedTuple):
    """An operation that waits."""

    operation: int
    operation_name: str
    time_ns: int
    waits_for: Optional[str]  #: "swap_in" or "room"; None if no copy is known
    tensor_name: Optional[str]

    def __str__(self) -> str:
        reason = {"swap_in": " to come in", "room": " to leave"}.get(self.waits_for or "", "")
        waits = f" waits for {self.tensor_name!r}{reason}" if reason else " waits"
        return f"{time_text(self.time_ns)}  operation {self.operation} {self.operation_name!r}{waits}"


def _stalls(answer: Dict[str, Any]) -> List[Stall]:
    return [
        Stall(s["operation"], s["operation_name"], s["time_ns"], s.get("waits_for"), s.get("tensor_name"))
        for s in answer["stalls"]
    ]


class Fit:
    """Whether a program fits into a budget, and what it costs. True if it fits."""

    def __init__(self, answer: Dict[str, Any]) -> None:
        #: the whole answer, as `swapmm fit --json` prints it
        self.data = answer
        self.fits: bool = answer["fits"]
        #: why it does not fit
        self.problem: Optional[str] = answer.get("problem")
        self.trace_name: str = answer["trace"]
        self.budget_bytes: int = answer["machine"]["device_budget_bytes"]
        self.peak_bytes: int = answer["needs"]["peak_bytes"]
        self.largest_bundle_bytes: int = answer["needs"]["largest_bundle"]["bytes"]
        #: what the largest bundle lacks; 0 if it fits
        self.shortfall_bytes: int = answer.get("shortfall_bytes", 0)
        #: None if it does not fit
        self.predicted: Optional[Prediction] = _prediction(answer["predicted"]) if self.fits else None
        self.host_bytes: Optional[int] = answer.get("host_bytes")
        end = answer.get("stalls_end")
        #: the budget at which swapping costs no time any more; None if there is none, or if it was not looked for
        self.stalls_end_bytes: Optional[int] = end["budget_bytes"] if end else None
        #: the longest stalls, and how many there are
        self.stalls: List[Stall] = _stalls(answer) if self.fits else []
        self.stalls_found: int = answer.get("stalls_found", 0)

    def __bool__(self) -> bool:
        return self.fits

    def _rows(self) -> Iterator[Sequence[str]]:
        yield "fits", f"yes, with planner {self.data['planner']}" if self.fits else f"no: {self.problem}"
        yield "budget", size_text(self.budget_bytes)
        yield "needs", f"{size_text(self.peak_bytes)} live at the peak"
        yield "largest bundle", size_text(self.largest_bundle_bytes)
        if self.predicted is not None:
            yield "computation", time_text(self.predicted.compute_ns)
            yield "no schedule beats", time_text(self.predicted.lower_bound_ns)
            yield "this plan", time_text(self.predicted.iteration_ns)
            yield "copies", f"{size_text(self.predicted.h2d_bytes)} in, {size_text(self.predicted.d2h_bytes)} out"
            yield "host memory", size_text(self.host_bytes or 0)
        ways = self.data.get("ways", {})
        if ways.get("again"):
            yield "run again", f"{ways['again']} operations, {time_text(ways['again_ns'])}"
        if ways.get("decoded"):
            yield "decoded", f"{ways['decoded']} values, {time_text(ways['coding_ns'])} with their encoding"
        if self.stalls_end_bytes is not None:
            yield "stalls end at", size_text(self.stalls_end_bytes)
        if self.shortfall_bytes:
            yield "short of", size_text(self.shortfall_bytes)

    def __str__(self) -> str:
        lines = [f"  {name:<20}{value}" for name, value in self._rows()]
        lines += [f"  {stall}" for stall in self.stalls]
        return "\n".join([self.trace_name, *lines])

    def __repr__(self) -> str:
        return f"<swapmm fit of {self.trace_name!r} into {size_text(self.budget_bytes)}: {'yes' if self.fits else 'no'}>"

    def _repr_html_(self) -> str:
        return _html.table(self._rows())


def fit(
    trace: Trace,
    budget: Optional[Quantity] = None,
    *,
    machine: Optional[Machine] = None,
    planner: str = "best",
    ways: Optional[str] = None,
    seconds: Optional[float] = None,
    bandwidth: Optional[Quantity] = None,
    bandwidth_in: Optional[Quantity] = None,
    bandwidth_out: Optional[Quantity] = None,
    latency: Optional[Quantity] = None,
    alignment: Optional[Quantity] = None,
    max_allocation: Optional[Quantity] = None,
    half_duplex: bool = False,
    top: int = 5,
    this_budget_only: bool = False,
    progress: ProgressChoice = None,
) -> Fit:
    """Whether a program fits, what it costs and what stands in the way, as `swapmm fit` says. Other arguments are those
    of `plan()`. With `this_budget_only` the budget at which stalls end is not looked for, which takes some eight plans
    more."""
    options = _figures(
        budget, machine, bandwidth, bandwidth_in, bandwidth_out, latency, alignment, max_allocation, half_duplex
    )
    options.update(planner=_name_of(planner), ways=ways, time_limit=_limit(seconds), top=top, this_budget_only=bool(this_budget_only))
    return Fit(ask("fit", options, _json_of(trace, Trace), progress=progress))


# ---- simulate


class Simulation:
    """The steady state of a plan."""

    def __init__(self, answer: Dict[str, Any]) -> None:
        #: the whole answer, as `swapmm simulate --json` prints it
        self.data = answer
        self.iteration_ns: int = answer["iteration_ns"]
        self.compute_ns: int = answer["compute_ns"]
        self.h2d_bytes: int = answer["h2d_bytes"]
        self.d2h_bytes: int = answer["d2h_bytes"]
        self.peak_bytes: int = answer["peak_bytes"]
        disturbed = answer.get("disturbed")
        #: the times of an iteration in each draw; empty if nothing varies
        self.draws_ns: List[int] = [draw["iteration_ns"] for draw in disturbed["draws"]] if disturbed else []
        self.mean_ns: Optional[int] = disturbed["mean_ns"] if disturbed else None
        self.worst_ns: Optional[int] = disturbed["worst_ns"] if disturbed else None

    @property
    def seconds(self) -> float:
        """The time of an iteration."""
        return self.iteration_ns / 1e9

    def _rows(self) -> Iterator[Sequence[str]]:
        yield "computation", time_text(self.compute_ns)
        yield "iteration", time_text(self.iteration_ns)
        yield "copies", f"{size_text(self.h2d_bytes)} in, {size_text(self.d2h_bytes)} out"
        yield "device memory used", size_text(self.peak_bytes)
        if self.mean_ns is not None and self.worst_ns is not None:
            yield "disturbed, mean", time_text(self.mean_ns)
            yield "disturbed, worst", time_text(self.worst_ns)

    def __str__(self) -> str:
        return "\n".join(f"{name:<20}{value}" for name, value in self._rows())

    def __repr__(self) -> str:
        return f"<swapmm simulation: {time_text(self.iteration_ns)} an iteration>"

    def _repr_html_(self) -> str:
        return _html.table(self._rows())


def simulate(
    trace: Trace,
    plan: Plan,
    *,
    noise: Optional[Quantity] = None,
    slow_link: Optional[str] = None,
    seed: int = 1,
    draws: int = 16,
    progress: ProgressChoice = None,
) -> Simulation:
    """The time of a plan's iteration in the steady state, as `swapmm simulate` says. PlanRefused if the plan is not
    valid for the trace.

    `noise`: every duration is off by up to that share, "25%" or 0.25. `slow_link`: "50%@20%" is half the speed for a
    fifth of the iteration. `draws`: how many iterations with other noise."""
    options = {"noise": _text(noise), "slow_link": slow_link, "seed": seed, "draws": draws}
    return Simulation(ask("simulate", options, _json_of(trace, Trace), _json_of(plan, Plan), progress))


# ---- compare


class ComparisonRow(NamedTuple):
    """What one planner made of one trace on one machine. Figures are None if it made no plan."""

    trace: str
    compute_scale: float
    budget_bytes: int
    peak_bytes: int
    h2d_bytes_per_second: int
    d2h_bytes_per_second: int
    planner: str
    planning_ns: int
    predicted: Optional[Prediction]
    lower_bound_ns: Optional[int]  #: the best of all planners on this trace and machine
    fraction_of_ideal: Optional[float]  #: computation / iteration
    gap: Optional[float]  #: iteration / bound, less 1
    problem: Optional[str]


class Comparison(Sequence[ComparisonRow]):
    """Planners side by side: a sequence of rows."""

    def __init__(self, rows: List[Dict[str, Any]]) -> None:
        #: the rows as `swapmm compare --json` prints them
        self.data = rows
        self._rows = [
            ComparisonRow(
                row["trace"],
                row["compute_scale"],
                row["machine"]["device_budget_bytes"],
                row["peak_bytes"],
                row["machine"]["h2d_bytes_per_second"],
                row["machine"]["d2h_bytes_per_second"],
                row["planner"],
                row["planning_ns"],
                _prediction(row["predicted"]) if "predicted" in row else None,
                row.get("lower_bound_ns"),
                row.get("fraction_of_ideal"),
                row.get("gap"),
                row.get("problem"),
            )
            for row in rows
        ]

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    _header = ("trace", "compute x", "budget", "planner", "iteration", "of ideal", "gap", "in", "out", "planned in")

    def _cells(self) -> Iterator[Sequence[str]]:
        for row in self._rows:
            first = (row.trace, f"{row.compute_scale:g}", size_text(row.budget_bytes), row.planner)
            if row.predicted is None:
                yield (*first, "no plan", "", "", "", "", "")
                continue
            yield (
                *first,
                time_text(row.predicted.iteration_ns),
                "n/a" if row.fraction_of_ideal is None else f"{row.fraction_of_ideal:.3f}",
                "n/a" if row.gap is None else f"{100 * row.gap:.1f} %",
                size_text(row.predicted.h2d_bytes),
                size_text(row.predicted.d2h_bytes),
                time_text(row.planning_ns),
            )

    def __str__(self) -> str:
        table = [self._header, *self._cells()]
        widths = [max(len(line[i]) for line in table) for i in range(len(self._header))]
        return "\n".join(
            "  ".join(cell.rjust(width) if i else cell.ljust(width) for i, (cell, width) in enumerate(zip(line, widths)))
            for line in table
        )

    def __repr__(self) -> str:
        return f"<swapmm comparison of {len(self._rows)} plans>"

    def _repr_html_(self) -> str:
        return _html.table(self._cells(), self._header)


def compare(
    traces: Union[Trace, Iterable[Trace]],
    budgets: Iterable[Quantity] = (0.9, 0.7, 0.5),
    *,
    planners: Optional[Iterable[str]] = None,
    bandwidths: Iterable[Quantity] = (),
    compute_scales: Iterable[Quantity] = (1,),
    seconds: Optional[float] = None,
    bandwidth: Optional[Quantity] = None,
    bandwidth_in: Optional[Quantity] = None,
    bandwidth_out: Optional[Quantity] = None,
    latency: Optional[Quantity] = None,
    alignment: Optional[Quantity] = None,
    max_allocation: Optional[Quantity] = None,
    half_duplex: bool = False,
    progress: ProgressChoice = None,
) -> Comparison:
    """Planners side by side, over traces, budgets, bandwidths and speeds of computation, as `swapmm compare` says.
    `planners`: names; None: all. Other arguments are those of `plan()`."""
    options = _figures(
        None, None, bandwidth, bandwidth_in, bandwidth_out, latency, alignment, max_allocation, half_duplex
    )
    options.update(
        planners=None if planners is None else [_name_of(planner) for planner in _each(planners)],
        budgets=[_text(budget) for budget in _each(budgets)],
        bandwidths=[_text(rate) for rate in _each(bandwidths)],
        compute_scales=[_text(float(scale) if isinstance(scale, int) else scale) for scale in _each(compute_scales)],
        time_limit=_limit(seconds),
    )
    rows: List[Dict[str, Any]] = []
    for trace in [traces] if isinstance(traces, Trace) else traces:
        rows += ask("compare", options, _json_of(trace, Trace), progress=progress)["rows"]
    return Comparison(rows)


# ---- the others


class Violation(NamedTuple):
    """A rule of docs/formats.md that a plan breaks."""

    rule: int
    name: str
    message: str


def validate(trace: Trace, plan: Plan) -> List[Violation]:
    """What makes a plan invalid for a trace, as `swapmm check` says; empty if it is valid."""
    answer = ask("check", {}, _json_of(trace, Trace), _json_of(plan, Plan))
    return [Violation(v["rule"], v["name"], v["message"]) for v in answer["violations"]]


class Explanation:
    """Which operations of a plan wait and why, and which tensors are out and when."""

    def __init__(self, answer: Dict[str, Any]) -> None:
        #: the whole answer, as `swapmm explain --json` prints it
        self.data = answer
        self.predicted = _prediction(answer["predicted"])
        self.stalls: List[Stall] = _stalls(answer)
        self.stalls_found: int = answer["stalls_found"]
        #: tensors that are on the host alone between two uses, the longest first
        self.absences: List[Dict[str, Any]] = answer["absences"]
        self.absences_found: int = answer["absences_found"]

    def __str__(self) -> str:
        lines = [f"{self.stalls_found} operations wait", *(f"  {stall}" for stall in self.stalls)]
        lines.append(f"{self.absences_found} times a tensor is on the host alone between two uses")
        lines += [f"  {time_text(a['time_ns'])}  {a['tensor_name']!r} ({size_text(a['tensor_bytes'])})" for a in self.absences]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<swapmm explanation: {self.stalls_found} stalls, {self.absences_found} absences>"

    def _repr_html_(self) -> str:
        stalls = _html.table(
            [(s.operation, s.operation_name, time_text(s.time_ns), s.waits_for or "", s.tensor_name or "") for s in self.stalls],
            ("operation", "name", "waits", "for", "tensor"),
        )
        absences = _html.table(
            [(a["tensor_name"], size_text(a["tensor_bytes"]), time_text(a["time_ns"])) for a in self.absences],
            ("tensor", "size", "out for"),
        )
        return stalls + absences


def explain(trace: Trace, plan: Plan, *, top: int = 10) -> Explanation:
    """Why a plan takes longer than its operations, as `swapmm explain` says; at most `top` of each."""
    return Explanation(ask("explain", {"top": top}, _json_of(trace, Trace), _json_of(plan, Plan)))


def bound(
    trace: Trace,
    budget: Optional[Quantity] = None,
    *,
    machine: Optional[Machine] = None,
    bandwidth: Optional[Quantity] = None,
    bandwidth_in: Optional[Quantity] = None,
    bandwidth_out: Optional[Quantity] = None,
    latency: Optional[Quantity] = None,
    alignment: Optional[Quantity] = None,
    max_allocation: Optional[Quantity] = None,
    half_duplex: bool = False,
) -> int:
    """A time in nanoseconds such that no valid plan has a shorter iteration. BundleTooLarge if the trace does not
    fit. Arguments are those of `plan()`."""
    options = _figures(
        budget, machine, bandwidth, bandwidth_in, bandwidth_out, latency, alignment, max_allocation, half_duplex
    )
    return int(ask("bound", options, _json_of(trace, Trace))["lower_bound_ns"])
