# SPDX-License-Identifier: Apache-2.0
"""Storages that the manager does not move: they stay where they are. PyTorch's own count against the budget. Memory that
PyTorch does not own, such as a NumPy array's or a file's, is the host's, and is counted beside it."""

from __future__ import annotations

import weakref
from typing import Any, Callable, Dict, List

from .operators import nbytes_of

#: The attribute of a storage that says what it is to the adapter: a Record, or a Kept.
ATTRIBUTE = "_swapmm"
#: Why small storages stay.
SMALL_REASON = "small"
#: Why the sizes of batches of packed sequences stay: PyTorch reads them past the operators.
PACKED_REASON = "the sizes of packed batches"


class Kept:
    """Why a storage stays."""

    __slots__ = ("bytes", "reason", "until_step", "foreign", "seen", "readers")

    def __init__(self, size: int, reason: str, until_step: bool, foreign: bool, seen: bool) -> None:
        self.bytes, self.reason = size, reason
        self.foreign = foreign  # it is not PyTorch's memory: an array's, a file's
        self.until_step = until_step  # it can be moved again when the iteration has ended
        self.seen = seen  # its value changes by operators alone
        self.readers: List[Any] = []  # operators that may run again (repeats.py) and read it


class KeptStorages:
    """All of them. `note(event)` is told of ends: these come in any thread, so whoever is told acts later."""

    def __init__(self, note: Callable[[Any], None]) -> None:
        self._note = note
        self._references: Dict[Any, Kept] = {}
        self.bytes = 0  # of PyTorch's own

    def add(self, storage: Any, reason: str, until_step: bool = False, foreign: bool = False) -> Kept:
        # Bytes that PyTorch does not own, or shares, are the program's, too.
        seen = reason == SMALL_REASON and storage.resizable() and not storage.is_shared()
        kept = Kept(nbytes_of(storage), reason, until_step, foreign, seen)
        setattr(storage, ATTRIBUTE, kept)
        self._references[weakref.ref(storage, self._note)] = kept
        if not foreign:
            self.bytes += kept.bytes
        return kept

    def remove(self, reference: Any) -> None:
        """The storage is gone, or can be moved again."""
        kept = self._references.pop(reference, None)
        if kept is None:
            return
        if not kept.foreign:
            self.bytes -= kept.bytes
        storage = reference()
        if storage is not None and getattr(storage, ATTRIBUTE, None) is kept:
            delattr(storage, ATTRIBUTE)

    def release(self, which: Callable[[Kept], bool]) -> None:
        """The adapter may move these again."""
        for reference, kept in list(self._references.items()):
            if which(kept):
                self.remove(reference)

    def end_of_step(self) -> None:
        self.release(lambda kept: kept.until_step)

    def reasons(self) -> Dict[str, int]:
        """Bytes by reason."""
        found: Dict[str, int] = {}
        for kept in self._references.values():
            found[kept.reason] = found.get(kept.reason, 0) + kept.bytes
        return found

    def clear(self) -> None:
        for reference in list(self._references):
            self.remove(reference)
