# SPDX-License-Identifier: Apache-2.0
"""Operators that a plan runs again, because that is cheaper than to copy what they made."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch
from torch.utils._python_dispatch import _disable_current_modes

from .. import _native
from .kept import ATTRIBUTE, SMALL_REASON, Kept
from .operators import SEQUENCE, TENSOR, copy_storage, kind_of, nbytes_of, storage_of
from .places import SMALL, Record

if TYPE_CHECKING:
    from .adapter import Adapter
    from .calls import Call


class Repeat:
    """How one operator runs again. It holds its storages, those that it made included: a value that another operator
    run again needs is there until then, and one that the program no longer has costs no bytes, because the plan has
    dropped it."""

    __slots__ = ("function", "args", "kwargs", "uses", "made", "sizes", "left", "kept", "settings", "generator", "state")

    def __init__(self, call: Call, times: int, device: torch.device) -> None:
        self.function = call.function
        self.generator = _generator_of(call, device)  # from which it draws random numbers
        with _undispatched():
            self.state = None if self.generator is None else self.generator.get_state()  # as it is when the operator runs first
        self.kept: List[Tuple[Kept, Any, torch.Tensor]] = []  # small operands with their storages, which the manager does not have
        unused = call.signature.statistics if call.changes_kept else ()
        self.args = [None if i in unused else self._alias(value) for i, value in enumerate(call.args)]
        self.kwargs = {name: self._alias(value) for name, value in call.kwargs.items()}
        storages = {record: storage for record, storage in call.operands}
        self.uses = [(record, storages[record]) for record in call.uses]
        self.made: List[Tuple[Record, Any]] = []
        self.sizes = call.large
        self.left = times
        self.settings = _settings()

    def _alias(self, value: Any) -> Any:
        """The same bytes with the shape that they have now: the program may give its tensor another one."""
        kind = kind_of(value)
        if kind == SEQUENCE:
            return type(value)(map(self._alias, value))
        if kind != TENSOR:
            return value
        alias = value.detach()
        storage = storage_of(value)
        kept = getattr(storage, ATTRIBUTE, None)
        if kept.__class__ is Kept:
            self.kept.append((kept, storage, alias))
        return alias

    def preserve(self, changed: Kept) -> Any:
        """Goes on with a copy of a small operand, which is about to change. Returns the storage of the copy."""
        copy = None
        for kept, storage, alias in self.kept:
            if kept is changed:
                if copy is None:
                    copy = torch.UntypedStorage(nbytes_of(storage), device=storage.device)
                    copy_storage(copy, storage)
                alias.set_(copy, alias.storage_offset(), alias.size(), alias.stride())
        self.kept = [entry for entry in self.kept if entry[0] is not changed]
        return copy


class Repeats:
    """Those of the current iteration."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self._known: Dict[int, Repeat] = {}
        self._numbers = itertools.count(1)
        self._function = _native.Again(self._run_for_c)
        self.address = ctypes.cast(self._function, ctypes.c_void_p).value
        self.runs = 0  # of operators that have run again

    @property
    def count(self) -> int:
        """How many operators may run again in this iteration."""
        return len(self._known)

    def number(self) -> int:
        """For the next operator."""
        return next(self._numbers)

    @staticmethod
    def allows(call: Call) -> bool:
        """Whether the operator may run again: all that it reads is the manager's, or is small and changes under our
        eyes; it makes the same bits from that, and does nothing else."""
        signature = call.signature
        if not signature.repeatable or call.sizes is None or call.is_strange or call.looks:
            return False
        if signature.transposes is not None and call.argument(signature.transposes, "transposed", False):
            return False
        if call.changes != signature.in_place or not (call.changes or call.large):
            return False
        # Running statistics are left out when it runs again. They must not be among the keyword arguments.
        if call.changes_kept and (not signature.statistics or len(call.args) <= max(signature.statistics)):
            return False
        return True

    def add(self, number: int, repeat: Repeat, made: List[Tuple[Record, Any]]) -> None:
        """`made`: what the operator has made, in the order of its sizes."""
        repeat.made = made
        self._known[number] = repeat
        for kept, _, _ in repeat.kept:
            if repeat not in kept.readers:
                kept.readers.append(repeat)

    def holds(self, record: Record) -> bool:
        """Whether an operator that may run again uses the storage, or has made it."""
        return any(record is held for repeat in self._known.values() for held, _ in itertools.chain(repeat.uses, repeat.made))

    def clear(self) -> None:
        """Nothing runs again in this iteration any more."""
        while self._known:
            self._forget(next(iter(self._known)))

    def before_change(self, kept: Kept) -> None:
        """The value of a small storage changes, or somebody may change it unseen."""
        readers, kept.readers = kept.readers, []
        with self._adapter.memory.in_order(), _undispatched():
            copies = [repeat.preserve(kept) for repeat in readers]
        for copy in copies:
            self._adapter.keep(copy, SMALL_REASON)

    def _forget(self, number: int) -> None:
        repeat = self._known.pop(number)
        for kept, _, _ in repeat.kept:
            if repeat in kept.readers:
                kept.readers.remove(repeat)

    def _run_for_c(self, number: int, operation: int) -> int:
        try:
            self._run(number, _native.Operation.from_address(operation))
            return 0
        except BaseException as reason:  # C cannot take it
            self._adapter.memory.failure = reason
            return 1

    def _run(self, number: int, operation: Any) -> None:
        self._perform(self._known[number], operation)
        self.runs += 1
        self._known[number].left -= 1
        if self._known[number].left <= 0:
            self._forget(number)
            # What only this operator has held is dead for the plan from here on.
            self._adapter.sweep()

    def _perform(self, repeat: Repeat, operation: Any) -> None:
        memory = self._adapter.memory
        first, count = len(repeat.uses), len(repeat.uses) + len(repeat.made)
        places = (ctypes.c_uint64 * count).from_address(operation.addresses)[:]
        for (record, _), place in zip(repeat.uses, places):
            if record.place != place:
                memory.give(record, place)
        memory.expect(repeat.sizes, places[first:], operation.addresses + 8 * first)
        try:
            with memory.in_order(), _undispatched(), _with_settings(repeat.settings), _with_state(repeat.generator, repeat.state):
                results = repeat.function(*repeat.args, **repeat.kwargs)
                made = [storage for storage in self._adapter.new_storages(results) if nbytes_of(storage) >= SMALL]
                if [nbytes_of(storage) for storage in made] != repeat.sizes:
                    raise RuntimeError(f"{repeat.function} has made results of other sizes when it ran again")
                memory.made_again([(*known, place) for known, place in zip(repeat.made, places[first:])], made)
        finally:
            memory.expect_nothing()


def _switches() -> Iterator[Tuple[Callable[[], Any], Callable[..., Any]]]:
    """What programs may switch between an operator and its next run, and what changes its bits: how it is read, and set."""
    yield torch.get_num_threads, torch.set_num_threads
    yield torch.get_default_dtype, torch.set_default_dtype
    yield (lambda: (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()),
           lambda enabled, warn_only: torch.use_deterministic_algorithms(enabled, warn_only=warn_only))
    get_precision = getattr(torch._C, "_get_fp32_precision_getter", None)
    if get_precision is not None:  # the older switches may not be read once these were set
        for unit in (("generic", "all"), *itertools.product(("cuda", "mkldnn"), ("all", "matmul", "conv", "rnn"))):
            yield functools.partial(get_precision, *unit), functools.partial(torch._C._set_fp32_precision_setter, *unit)
    older = () if get_precision is not None else ("float32_matmul_precision", "cudnn_allow_tf32", "onednn_allow_tf32")
    for name in (*older, "cudnn_enabled", "cudnn_benchmark", "cudnn_deterministic", "mkldnn_enabled", "mkldnn_deterministic",
                 "nnpack_enabled", "blas_preferred_backend", "linalg_preferred_backend", "cublas_allow_fp16_reduced_precision_reduction",
                 "cublas_allow_bf16_reduced_precision_reduction", "cublas_allow_fp16_accumulation",
                 "cpu_allow_fp16_reduced_precision_reduction"):
        get, put = getattr(torch._C, f"_get_{name}", None), getattr(torch._C, f"_set_{name}", None)
        if get is not None and put is not None:
            yield get, put


_SWITCHES = list(_switches())


def _settings() -> List[Any]:
    return [get() for get, _ in _SWITCHES]


def _set(settings: List[Any]) -> None:
    for (get, put), value in zip(_SWITCHES, settings):
        if get() != value:
            put(*value) if isinstance(value, tuple) else put(value)


@contextlib.contextmanager
def _with_settings(wanted: List[Any]) -> Iterator[None]:
    now = _settings()
    if now == wanted:
        yield
        return
    try:
        _set(wanted)
        yield
    finally:
        _set(now)


def _generator_of(call: Call, device: torch.device) -> Optional[torch.Generator]:
    """The generator that an operator draws from; None: it draws no random numbers."""
    signature = call.signature
    if not signature.random or signature.dropout is not None and call.argument(signature.dropout, "dropout_p", 0.0) == 0.0:
        return None
    given = None if signature.generator is None else call.argument(signature.generator, "generator", None)
    if given is not None or device.type != "cuda":
        return given or torch.default_generator
    return torch.cuda.default_generators[torch.cuda.current_device() if device.index is None else device.index]


@contextlib.contextmanager
def _with_state(generator: Optional[torch.Generator], state: Any) -> Iterator[None]:
    """The generator has that state, and its own again afterwards."""
    if generator is None:
        yield
        return
    now = generator.get_state()
    try:
        generator.set_state(state)
        yield
    finally:
        generator.set_state(now)


@contextlib.contextmanager
def _undispatched() -> Iterator[None]:
    """Operators run as they are, wherever a program is: no autograd, no autocast, no modes of any kind."""
    with torch._C.DisableTorchFunction(), _disable_current_modes():
        with torch._C._AutoDispatchBelowAutograd(), torch._C._DisableAutocast():
            yield
