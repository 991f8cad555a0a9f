# SPDX-License-Identifier: Apache-2.0
"""What the adapter runs, and what is known about it before."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import torch

from .. import _native
from .places import Record

_READ, _WRITE, _UPDATE = _native.READ, _native.WRITE, _native.UPDATE


class Use:
    """What an operator does with one storage."""

    __slots__ = ("reads", "changes", "covers")

    def __init__(self) -> None:
        self.reads = self.changes = self.covers = False

    def access(self) -> int:
        if not self.changes:
            return _READ
        return _WRITE if self.covers and not self.reads else _UPDATE


class Call:
    """One operator with its arguments, and what is known before it runs."""

    __slots__ = ("signature", "function", "args", "kwargs", "operands", "uses", "key", "sizes", "large",
                 "is_strange", "compounds", "changes", "changes_kept", "looks", "room", "is_prepared", "most")

    #: Whether it may run again after the pool for work areas has grown.
    may_grow = True

    def __init__(self, signature: Any, function: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        self.signature, self.function, self.args, self.kwargs = signature, function, args, kwargs
        self.operands: List[Tuple[Record, Any]] = []  # with their storages
        self.uses: Dict[Record, Use] = {}
        self.key: Any = None
        self.sizes: Optional[Tuple[int, ...]] = None  # of the storages it makes; None: nobody can tell
        self.large: List[int] = []  # those that the manager places
        self.is_strange = False  # it has an operand that may change unseen, or is of a class that a program has made
        self.compounds: List[Tuple[torch.Tensor, int]] = []  # operands that are made of others, with what it does to them
        self.changes = False  # it changes a storage that the manager has
        self.changes_kept: List[Any] = []  # storages that it changes and the manager does not have
        self.looks = False  # it needs the form of one, and not its value
        self.room = 0  # bytes of a work area, if the sizes are known
        self.is_prepared = False  # the sizes are set
        self.most: Optional[int] = None  # of a work area, if they are not known; None: all there is

    def argument(self, position: int, name: str, default: Any) -> Any:
        return self.args[position] if position < len(self.args) else self.kwargs.get(name, default)

    def run(self) -> Any:
        return self.function(*self.args, **self.kwargs)

    def begin(self, _memory: Any, _place: int, _room: int) -> None:
        """Its operation has begun, with this work area."""

    def note(self, _memory: Any, _placed: List[Any]) -> None:
        """It has run, and made these large storages, which are where it has made them."""

    def end(self, _memory: Any, _results: Any, _made: List[Any], _placed: List[Any], _fits: bool) -> List[Tuple[Any, Any]]:
        """They have their places, if they are those that were expected. Returns those that have lost their bytes, with their
        values in host memory."""
        return []
