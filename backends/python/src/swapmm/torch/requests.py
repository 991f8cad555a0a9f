# SPDX-License-Identifier: Apache-2.0
"""Requests for memory within an operation, on a CPU."""

from __future__ import annotations

import collections
import weakref
from typing import Any, Deque, Dict, List, Sequence, Tuple

from .. import errors
from .operators import nbytes_of


#: Of the graph that runs for the first time, in whatever session.
current: List["Requests"] = []


class _Request(weakref.ref):  # type: ignore[type-arg]
    """A reference to the storage that has the memory."""

    __slots__ = ("number", "key", "bytes")
    number: int
    key: int
    bytes: int


class Requests:
    """Counts, on a CPU, what a graph asks for in its first run, and refuses what its room does not hold."""

    def __init__(self, name: str, room: int, least: int) -> None:
        self._name, self._room = name, room
        self._least = least  # smaller ones do not count
        self._events: List[Tuple[int, int]] = []  # the number of a request; its bytes, negative when they come back
        self._numbers: Dict[int, Tuple[int, Any]] = {}  # by the storage's `_cdata`: the number, and a reference
        # Ends are noted, no more: they may come in the middle of anything. Not by code of Python, in which a signal's
        # handler could run, and what it raises would be lost.
        self._gone: Deque[_Request] = collections.deque()
        self._count = 0
        self._now = 0

    def check(self, size: int) -> None:
        """Before memory is taken."""
        self._settle()
        if size >= self._least and self._now + size > self._room:
            raise errors.OutOfMemory(
                f"{self._name} needs {self._now + size} bytes at once beside its inputs, and {self._room} are left")

    def add(self, storage: Any) -> None:
        """It has this memory now."""
        self._settle()
        size = nbytes_of(storage)
        if size < self._least or storage._cdata in self._numbers:
            return
        number, key = self._count, storage._cdata
        self._count += 1
        self._now += size
        self._events.append((number, size))
        reference = _Request(storage, self._gone.append)
        reference.number, reference.key, reference.bytes = number, key, size
        self._numbers[key] = number, reference

    def _settle(self) -> None:
        """Counts what has come back."""
        while self._gone:
            gone = self._gone.popleft()
            self._numbers.pop(gone.key, None)
            self._events.append((gone.number, -gone.bytes))
            self._now -= gone.bytes

    def most_beside(self, results: Sequence[Any]) -> int:
        """The most bytes that it had at once, without its results."""
        self._settle()
        kept = {self._numbers[storage._cdata][0] for storage in results if storage._cdata in self._numbers}
        now = most = 0
        for number, size in self._events:
            if number not in kept:
                now += size
                most = max(most, now)
        return most
