# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ctypes
import json
import os
import threading
import weakref
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from . import _memory, _native, errors
from ._memory import bytes_of
from .backends import Backend
from .devices import Neighbour
from .operation import HOW_TO_RECOVER, Operation, Output, Requests, Tensors, _agains, _kernels, forget
from .report import Report
from .tensor import Tensor
from .weights import WeightsFile
from .traces import Plan, Trace


class Numbers(NamedTuple):
    """What a manager has done since it was made: exact counts and bytes."""

    device_budget: int  #: current budget, rounded down to the alignment
    device_used: int  #: bytes taken by the work queued so far
    device_peak: int  #: largest `device_used` so far
    host_used: int  #: host memory for values
    host_peak: int  #: largest `host_used` so far
    pinned_used: int  #: the page-locked part of `host_used`
    tensors: int  #: number of tensors that exist now
    operations: int  #: number of operations run so far
    operations_followed: int  #: operations that a followed plan expected
    iterations_on_demand: int  #: ended iterations that did not follow a plan from begin to end
    iterations_followed: int  #: ended iterations that followed a plan from begin to end
    plan_starts: int  #: how often a plan was begun
    divergences: int  #: how often a plan was left because the program did something else
    swap_ins: int  #: number of copies to the device
    swap_outs: int  #: number of copies to the host
    h2d: int  #: bytes copied to the device
    d2h: int  #: bytes copied to the host
    host_waits: int  #: number of waits of the host for the device
    host_wait_time_ns: int  #: time of these waits, in nanoseconds


class Iteration:
    """One pass of the part that the program repeats: `with manager.iteration("train"):`."""

    __slots__ = ("_owner", "name")

    def __init__(self, owner: "Manager", name: str) -> None:
        self._owner = owner
        self.name = name

    def begin(self) -> "Iteration":
        """Begins the iteration. The call may make a plan, which takes as long as the planner does."""
        owner = self._owner
        handle, name = owner._open(), owner._name(self.name)
        try:
            owner._check(owner._library.iteration_begin(handle, name))
            owner._iterating = True
            return self
        except errors.UsageError as failure:
            if not owner._iterating:
                raise
            raise type(failure)(f"{failure}{HOW_TO_RECOVER}") from None
        except errors.Error:
            raise
        except BaseException:
            # What the library did not refuse has begun, and nobody would end it: Ctrl-C may come after any call.
            self._leave()
            raise

    def end(self) -> None:
        """Ends it."""
        status = None
        handle = self._owner._open()
        try:
            status = self._owner._library.iteration_end(handle)
        finally:
            if status is None:  # Ctrl-C came with it
                self._owner._library.iteration_end(handle)  # no more than an error if it has ended
            self._over()
        self._owner._check(status)

    def _leave(self) -> None:
        """The exception that is under way is the one to see."""
        try:
            self._owner._library.iteration_end(self._owner._open())
        finally:
            self._over()

    def _over(self) -> None:
        self._owner._iterating = False
        forget(_agains, self._owner._again_keys)

    __enter__ = begin  # itself: Ctrl-C could come between two functions

    def __exit__(self, kind: Any, exception: Any, trace: Any) -> None:
        try:
            if kind is None:
                self.end()
        finally:
            if self._owner._iterating and not self._owner.closed:
                self._leave()


_FLAGS = {
    "check_access": _native.CHECK_ACCESS,
    "scrub": _native.SCRUB,
    "undefined_reads": _native.UNDEFINED_READS,
    "identify_by_producer": _native.IDENTIFY_BY_PRODUCER,
}
_SIZES = ("pinned_budget", "host_budget", "codec_staging", "file_staging")
_WHOLE = (
    "queue_depth", "run_ahead", "observe", "max_period", "max_sequences", "planning_time_ms", "planning_limit_ms",
    "sample_every", "trial_iterations",
)  # fmt: skip
_FRACTIONS = ("planning_share", "replan_above")
_HANDLES = ("file", "shared_links")
_CHOICES = {"demand_mode": _native.DEMAND_MODES, "drops": _native.DROP_RULES}


class Manager:
    """Runs a program whose tensors together are larger than the device. It is for one thread at a time.

    `device_budget`: bytes of the device that it may use, a number or a text such as "256MiB"; None: CUDA's default, an
    error elsewhere. The other options have the names of `swapmm_options` in the C interface (swapmm.h), such as `planning_limit_ms`;
    docs/options.md describes most of them at length. Sizes may be texts, `demand_mode` is "foreseen", "least_recently_used" or "per_operation", `drops` is "by_evidence",
    "observed" or "proven", `file` is a WeightsFile, `neighbours` a list of Neighbour, `shared_links` a SharedLinks, and `check_access`, `scrub`, `undefined_reads` and `identify_by_producer` are switches."""

    def __init__(self, backend: Backend, device_budget: Union[int, str, None] = None, **options: Any) -> None:
        self._library = backend._library
        self._backend = backend
        self._names: Dict[str, Optional[bytes]] = {}
        self._requests = Requests()
        self._kernel_errors: List[BaseException] = []
        self._kernel_keys: Set[int] = set()
        self._again_keys: Set[int] = set()
        self._iterating = False
        given = manager_options(self._library, device_budget, options)
        handle = ctypes.c_void_p()
        self._check(self._library.manager_create(backend._handle, given, handle))
        self._life = _Life(handle.value or 0)
        # Also at the end of the process.
        self._finalizer = weakref.finalize(self, _destroy, self._library, self._life, self._kernel_keys, self._again_keys)

    @property
    def backend(self) -> Backend:
        return self._backend

    # ---- its end

    def close(self) -> None:
        """Waits for all queued work, and frees the manager with all of its tensors. Closing it again does nothing. A
        manager that nothing refers to is closed as well, and so are all at the end of the process."""
        self._finalizer()

    @property
    def closed(self) -> bool:
        return self._life.handle is None

    def recover(self) -> None:
        """Ends what runs: an operation, which fails, and an iteration. `with` does so itself, unless a signal's exception,
        such as KeyboardInterrupt, comes at the very moment in which the block ends."""
        handle = self._open()
        for end in (self._library.operation_fail, self._library.iteration_end):
            end(handle)  # an error where nothing runs
        self._iterating = False
        forget(_agains, self._again_keys)

    def __enter__(self) -> "Manager":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<swapmm manager on a {self._backend.kind} device{', closed' if self.closed else ''}>"

    # ---- tensors

    def tensor(
        self,
        size: Union[int, str, Sequence[int]],
        dtype: Any = None,
        name: str = "tensor",
        lifetime: str = "observed",
    ) -> Tensor:
        """Makes a tensor without a value. No memory is taken before the value needs it.

        `size`: without `dtype` a number of bytes, or a text ("4KiB"); with it a shape or a number of elements. `dtype`
        is a name ("float32"), or a type of NumPy or PyTorch. The name appears in errors, traces and reports. `lifetime`:
        "observed" (until the next iteration, unless each observed one begins by writing all of it), "transient" (dead
        at the end of each iteration) or "kept"."""
        nbytes, type_, shape = self._size_of(size, dtype)
        number = ctypes.c_uint64()
        self._check(
            self._library.tensor_create(self._open(), nbytes, self._name(name), self._lifetime(lifetime), number)
        )
        return Tensor(self, number.value, nbytes, name, lifetime, type_, shape)

    def constant(
        self, size: Union[int, str, Sequence[int]], file: WeightsFile, offset: int, dtype: Any = None, name: str = "constant"
    ) -> Tensor:
        """Makes a tensor whose value is in a file for good, from byte `offset` on. It is read when an operation needs it.
        Nothing may write it. The manager needs the option `file`; it may be this one. Sizes as in tensor()."""
        nbytes, type_, shape = self._size_of(size, dtype)
        number = ctypes.c_uint64()
        self._check(
            self._library.tensor_create_constant(
                self._open(), nbytes, self._name(name), file._handle(self._library), _native.whole(offset, "an offset"), number
            )
        )
        return Tensor(self, number.value, nbytes, name, "observed", type_, shape)

    def _size_of(self, size: Any, dtype: Any) -> Tuple[int, Optional[str], Tuple[int, ...]]:
        if dtype is None:
            if isinstance(size, str):
                size = bytes_of(size)
            nbytes = _native.whole(size, "a number of bytes")
            return nbytes, None, (nbytes,)
        type_ = _memory.element_type(dtype)
        extents = (size,) if hasattr(size, "__index__") else tuple(size)
        shape = tuple(_native.whole(extent, "an extent") for extent in extents)
        return _native.whole(_memory.elements_in(shape) * type_.size, "a size"), type_.name, shape

    def _output(self, slot: Any, output: Output) -> Tensor:
        nbytes, type_, shape = self._size_of(output.size, output.dtype)
        return Tensor(self, slot.tensor, nbytes, output.name, output.lifetime, type_, shape)

    def _destroy_tensor(self, number: int) -> None:
        # Called by finalizers, at any time and on any thread, also while this lock is held by the same one.
        with self._life.lock:
            if self._life.handle is not None and number:
                self._check(self._library.tensor_destroy(self._life.handle, number))

    # ---- iterations and operations

    def iteration(self, name: str = "iteration") -> Iteration:
        """One pass of the part that the program repeats, to be used as a `with` block."""
        return Iteration(self, name)

    def operation(
        self,
        name: str = "operation",
        *,
        reads: Tensors = (),
        writes: Tensors = (),
        updates: Tensors = (),
        outputs: Sequence[Output] = (),
        scratch: Union[int, str] = 0,
        takes_waits: bool = False,
        again: Optional[Callable[[Operation], Any]] = None,
    ) -> Operation:
        """A unit operation, to be used as a `with` block, or with its `begin()` and `end()`.

        `reads` are needed and left unchanged. `writes` are given a new value in every byte. `updates` are needed and
        changed, or written in part. `outputs` are tensors that the operation makes and writes. `scratch` is the size of
        a work area in bytes. With `takes_waits` the queue does not wait for the tensors: the work waits for
        `Operation.waits`, and its event goes to `Operation.end()`.

        With `again`, a function that queues the same work once more in the operation that it is given, the operation is
        replayable: the same inputs give the same outputs, bit for bit. A plan may drop what it wrote and call the
        function later in the iteration, where that is cheaper than copies. Not with `takes_waits`."""
        size = bytes_of(scratch) if isinstance(scratch, str) else _native.whole(scratch, "scratch")
        if again is not None and not callable(again):
            raise errors.UsageError(f"operation {name!r}: again is {again!r}, which cannot be called")
        return Operation(self, name, reads, writes, updates, outputs, size, takes_waits, again)

    # ---- the whole manager

    def synchronize(self) -> None:
        """Waits until everything queued so far has ended."""
        self._check(self._library.manager_synchronize(self._open()))

    def set_budget(self, device_budget: Union[int, str]) -> None:
        """Changes the device budget, outside operations and iterations. Waits for all queued work."""
        self._check(self._library.manager_set_budget(self._open(), bytes_of(device_budget)))

    def set_neighbour_budget(self, neighbour: Neighbour, size: Union[int, str]) -> None:
        """Changes the bytes that the manager takes of one of its neighbours, outside operations and iterations. For less, values
        move to other memories first; the neighbour has its memory back when the call returns. Waits for all queued work."""
        handle = neighbour._handle(self._library)
        self._check(self._library.manager_set_neighbour_budget(self._open(), handle, bytes_of(size)))

    def numbers(self) -> Numbers:
        """What the manager has done. Waits for nothing."""
        numbers = _native.Numbers()
        numbers.struct_size = ctypes.sizeof(numbers)
        self._check(self._library.manager_numbers(self._open(), numbers))
        return Numbers(*(getattr(numbers, name) for name in Numbers._fields))

    def report(self) -> Report:
        """The whole report, with plans and the reasons why there is none."""
        return Report(json.loads(self._text(self._library.manager_report)), self)

    def trace(self, iteration: str = "iteration") -> Trace:
        """The trace of the iteration of that name that was observed last. UsageError if none was observed yet: one is when
        its times are known, after the next one at the latest."""
        return Trace.from_json(self.trace_json(iteration))

    def plan(self, iteration: str = "iteration") -> Plan:
        """The plan for that iteration name. UsageError if there is none."""
        return Plan(self.save_plan(iteration))

    def trace_json(self, iteration: str = "iteration") -> str:
        """The same as a text in the format swapmm-trace of docs/formats.md."""
        return self._text(self._library.manager_trace, _native.text(iteration))

    def save_plan(self, iteration: str = "iteration") -> str:
        """The same as a text in the format swapmm-plan of docs/formats.md."""
        return self._text(self._library.manager_save_plan, _native.text(iteration))

    def load_plan(self, plan: Union[str, Plan], iteration: str = "iteration") -> None:
        """Reads a plan for iterations of that name: a text of `save_plan()` or a `Plan`. They follow it from the second
        iteration on."""
        text = plan.to_json() if isinstance(plan, Plan) else plan
        self._check(self._library.manager_load_plan(self._open(), _native.text(iteration), _native.text(text)))

    def _text(self, call: Any, *arguments: Any) -> str:
        text = ctypes.c_void_p()
        self._check(call(self._open(), *arguments, text))
        return self._library.take_text(text)

    # ---- for all of these

    def _open(self) -> int:
        handle = self._life.handle
        if handle is None:
            raise errors.UsageError("the manager is closed")
        return handle

    def _check(self, status: int) -> None:
        if status:
            error = self._library.error(status)
            if isinstance(error, errors.NestedOperation):
                raise errors.NestedOperation(f"{error}{HOW_TO_RECOVER}")
            if isinstance(error, errors.WorkFailed):
                if self._kernel_errors:
                    raise error from self._kernel_errors.pop(0)
                # Python has dropped what came before the kernel's first line.
                if self._backend.kind == "simulated" and "failed after it was queued" in str(error):
                    raise error from KeyboardInterrupt("before a kernel began")
            raise error

    def _name(self, name: str) -> Optional[bytes]:
        try:
            return self._names[name]
        except KeyError:
            if len(self._names) >= 65536:
                self._names.clear()
            self._names[name] = encoded = _native.text(name)
            return encoded

    @staticmethod
    def _lifetime(name: str) -> int:
        try:
            return _native.LIFETIMES[name]
        except KeyError:
            raise errors.UsageError(f"lifetime is {name!r}: it is one of {', '.join(_native.LIFETIMES)}") from None


class _Life:
    """The handle of a manager, for those that may outlive it. `handle` is None from its end on."""

    def __init__(self, handle: int) -> None:
        self.handle: Optional[int] = handle
        self.process = os.getpid()
        self.lock = threading.RLock()  # of the end, and of finalizers on any thread


def _destroy(library: _native.Library, life: _Life, keys: Set[int], again_keys: Set[int]) -> None:
    with life.lock:
        handle, life.handle = life.handle, None
    if os.getpid() != life.process:  # a child of the process has a copy of the handle, and none of the device
        return
    library.manager_destroy(handle)
    forget(_kernels, keys)  # they never ran
    forget(_agains, again_keys)


def _fraction(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise errors.UsageError(f"{name} is {value!r}, which is no number") from None


def manager_options(
    library: _native.Library, device_budget: Union[int, str, None], given: Dict[str, Any]
) -> _native.Options:
    """The options of swapmm_manager_create(), from what Manager() takes."""
    options = _native.Options()
    library.check(library.options_init(options, ctypes.sizeof(options)))
    if device_budget is not None:
        options.device_budget = bytes_of(device_budget)
        if options.device_budget == 0:
            raise errors.UsageError("the device budget is 0")
    for name, value in given.items():
        if name in _FLAGS:
            if isinstance(value, (str, bytes)):
                raise errors.UsageError(f"{name} is {value!r}: it is True or False")
            options.flags = options.flags | _FLAGS[name] if value else options.flags & ~_FLAGS[name]
        elif name in _SIZES:
            setattr(options, name, bytes_of(value))
        elif name in _WHOLE:
            setattr(options, name, _native.whole(value, name))
        elif name in _FRACTIONS:
            setattr(options, name, _fraction(name, value))
        elif name in _HANDLES:
            if value is not None:
                setattr(options, name, value._handle(library))
        elif name == "neighbours":
            handles = [neighbour._handle(library) for neighbour in value]
            options.neighbours = (ctypes.c_void_p * len(handles))(*handles)  # which keeps the array
            options.neighbour_count = len(handles)
        elif name == "planner":
            options.planner = _native.text(value)
        elif name in _CHOICES:
            if value not in _CHOICES[name]:
                raise errors.UsageError(f"{name} is {value!r}: it is one of {', '.join(_CHOICES[name])}")
            setattr(options, name, _CHOICES[name][value])
        else:
            known = ", ".join(sorted((*_FLAGS, *_SIZES, *_WHOLE, *_FRACTIONS, *_CHOICES, *_HANDLES, "neighbours", "planner")))
            raise TypeError(f"Manager has no option {name!r}; there are {known}")
    return options
