# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from . import _html, errors
from ._ask import ask, size_text, time_text

if TYPE_CHECKING:
    from .manager import Manager


class PlanReport(NamedTuple):
    """A plan of a manager: what it predicts, and what was measured. Times are for one cycle, in nanoseconds."""

    iteration: str
    planner: str
    state: str  #: "on_trial", "settled" or "left": not followed, because swapping on demand is faster
    operations: int
    iterations_per_cycle: int
    predicted_ns: int
    lower_bound_ns: int
    predicted_h2d: int
    predicted_d2h: int
    measured_ns: int  #: 0: not known
    on_demand_ns: int  #: the same without a plan; 0: not known
    stalls: List[Tuple[str, int]]  #: the longest: what waits, and how long
    devices: int = 1  #: planned together: see the option `shared_links`


class OnDemandReport(NamedTuple):
    """An iteration name without a plan, and the reason."""

    iteration: str
    reason: str
    why: str  #: for a person


class Report:
    """What a manager has done. Each number of the format swapmm-manager-report (docs/formats.md) is an attribute, such as
    `report.h2d`. In a notebook it is shown with a timeline of each plan."""

    def __init__(self, data: Dict[str, Any], manager: "Manager") -> None:
        #: the whole report, as in the format
        self.data = data
        self.plans: List[PlanReport] = [
            PlanReport(
                **{name: plan[name] for name in PlanReport._fields if name != "stalls"},
                stalls=[(stall["what"], stall["ns"]) for stall in plan["stalls"]],
            )
            for plan in data["plans"]
        ]
        self.on_demand: List[OnDemandReport] = [
            OnDemandReport(entry["iteration"], entry["reason"], entry["why"]) for entry in data["on_demand"]
        ]
        #: why plans were refused, not made or left
        self.notes: List[str] = list(data["notes"])
        self._manager = manager

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self.data:
            return self.data[name]
        raise AttributeError(f"a report has no {name!r}; it has plans, on_demand, notes, {', '.join(self.data)}")

    def __dir__(self) -> List[str]:
        return sorted({*super().__dir__(), *self.data})

    def _rows(self) -> Iterator[Sequence[str]]:
        data = self.data
        yield "device", data["device"]
        yield "device memory", f"{size_text(data['device_peak'])} at most, of a budget of {size_text(data['device_budget'])}"
        yield "host memory", f"{size_text(data['host_peak'])} at most"
        yield "operations", f"{data['operations']}, of these {data['operations_followed']} as planned"
        yield "iterations", f"{data['iterations_followed']} with a plan, {data['iterations_on_demand']} on demand"
        yield "copies", (
            f"{data['swap_ins']} in ({size_text(data['h2d'])}), {data['swap_outs']} out ({size_text(data['d2h'])})"
        )
        yield "host waits", f"{data['host_waits']}, {time_text(data['host_wait_time_ns'])}"
        if data["divergences"]:
            yield "plans left", f"{data['divergences']} times; last: {data['last_divergence']}"

    _header = ("iteration", "planner", "state", "predicted", "measured", "on demand", "no schedule beats", "in", "out")

    def _plan_cells(self) -> Iterator[Sequence[str]]:
        for plan in self.plans:
            yield (
                plan.iteration,
                plan.planner,
                plan.state,
                time_text(plan.predicted_ns),
                time_text(plan.measured_ns) if plan.measured_ns else "not known",
                time_text(plan.on_demand_ns) if plan.on_demand_ns else "not known",
                time_text(plan.lower_bound_ns),
                size_text(plan.predicted_h2d),
                size_text(plan.predicted_d2h),
            )

    def __str__(self) -> str:
        lines = [f"{name:<16}{value}" for name, value in self._rows()]
        for cells in self._plan_cells():
            lines.append("plan            " + ", ".join(f"{name} {cell}" for name, cell in zip(self._header, cells)))
        lines += [f"on demand       {entry.iteration}: {entry.why}" for entry in self.on_demand]
        lines += [f"note            {note}" for note in self.notes]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<swapmm report: {self.data['operations']} operations, {len(self.plans)} plans>"

    def timelines(self, width: int = 1200) -> List[Tuple[str, str]]:
        """For each plan the name of its iteration, and a picture of one predicted iteration as SVG: bytes on the device,
        operations and copies. They are drawn from what the manager knows now. A plan is left out if the manager is
        closed, or if its cycle has several iterations."""
        found = []
        for plan in self.plans:
            if self._manager.closed or plan.iterations_per_cycle != 1:
                continue
            try:
                trace, text = self._manager.trace_json(plan.iteration), self._manager.save_plan(plan.iteration)
                found.append((plan.iteration, str(ask("picture", {"width": width}, trace, text)["svg"])))
            except errors.Error:  # the iteration was another one since
                continue
        return found

    def _repr_html_(self) -> str:
        parts = [_html.table(self._rows())]
        if self.plans:
            parts.append(_html.table(self._plan_cells(), self._header))
        parts += [_html.picture(svg) for _, svg in self.timelines()]
        if self.on_demand:
            parts.append(_html.table(((e.iteration, e.why) for e in self.on_demand), ("on demand", "why")))
        if self.notes:
            parts.append(_html.table(((note,) for note in self.notes), ("notes",)))
        return "".join(parts)
