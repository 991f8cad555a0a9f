# SPDX-License-Identifier: Apache-2.0
"""What the adapter has done, for people and programs."""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING, Any, Dict, List, Tuple

if TYPE_CHECKING:
    from .adapter import Adapter


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"


class Report:
    """A snapshot. `manager` is the manager's whole report (swapmm-manager-report of docs/formats.md) as a dictionary."""

    def __init__(self, adapter: Adapter) -> None:
        numbers = adapter.numbers()
        self.device = adapter.type
        self.budget: int = adapter.budget
        self.peak: int = adapter.memory.peak()  # bytes in use at once, at most: what the program needs in a large budget
        self.room_peak: int = numbers.device_peak  # the most that was set aside at once, for results of unknown size, too
        self.kept: Dict[str, int] = adapter.kept.reasons()  # bytes that stay where they are, by reason
        self.host_bytes: int = numbers.host_used
        self.operations: int = adapter.operations
        self.iterations: int = adapter.iterations
        self.iterations_followed: int = numbers.iterations_followed
        self.divergences: int = numbers.divergences
        self.copied_in: int = numbers.h2d
        self.copied_out: int = numbers.d2h
        self.unforeseen: int = adapter.unforeseen
        self.run_again: int = adapter.repeats.runs if adapter.repeats is not None else 0  # operators that ran again
        self.memory: Dict[str, int] = adapter.memory.numbers()
        self.manager: Dict[str, Any] = json.loads(adapter.report_json())

    def _lines(self) -> List[Tuple[str, str]]:
        kept = ", ".join(f"{_mib(size)} {reason}" for reason, size in self.kept.items()) or "none"
        return [
            ("budget", f"{_mib(self.budget)} on {self.device}"),
            ("largest use", _mib(self.peak)),
            ("cannot be swapped", kept),
            ("in host memory", _mib(self.host_bytes)),
            ("iterations", f"{self.iterations}, {self.iterations_followed} by plan, {self.divergences} left their plan"),
            ("operators", f"{self.operations}, and {self.run_again} run again to save copies"),
            ("copied in, out", f"{_mib(self.copied_in)}, {_mib(self.copied_out)}"),
            ("results of another size than expected", str(self.unforeseen)),
        ]

    def __str__(self) -> str:
        return "\n".join(f"{name}: {value}" for name, value in self._lines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
            for name, value in self._lines()
        )
        return f"<table>{rows}</table>"
