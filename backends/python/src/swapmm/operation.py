# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ctypes
import functools
import itertools
import threading
import traceback
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from . import _memory, _native, cuda, errors
from .tensor import Tensor
from .views import View

if TYPE_CHECKING:
    from .manager import Manager

HOW_TO_RECOVER = "; Manager.recover() ends what Ctrl-C or another signal has left running"
#: Statuses of operation_end() after which the operation is still running: mistakes of the program.
_MISTAKES = range(1, 6)
#: One tensor, or several.
Tensors = Union[Tensor, Iterable[Tensor]]


class Output(NamedTuple):
    """A tensor that an operation makes and writes. The arguments are those of `Manager.tensor()`."""

    size: Union[int, str, Sequence[int]]
    dtype: Any = None
    name: str = "tensor"
    lifetime: str = "observed"


class Operation:
    """A unit operation. It has begun inside `with manager.operation(...) as op:`, where the program queues its work; an
    exception that leaves the block fails it. `begin()` and `end()` do the same without a block."""

    __slots__ = (
        "_owner", "name", "_tensors", "_accesses", "_wanted", "_made", "_scratch_bytes", "_takes_waits", "_begun", "_running",
        "_addresses", "scratch", "queue", "waits", "wait_count", "_event", "_again", "_again_key",
    )  # fmt: skip

    def __init__(
        self,
        owner: "Manager",
        name: str,
        reads: Tensors,
        writes: Tensors,
        updates: Tensors,
        outputs: Sequence[Output],
        scratch: int,
        takes_waits: bool,
        again: Optional[Callable[["Operation"], Any]] = None,
    ) -> None:
        self._owner = owner
        self.name = name
        read = (reads,) if isinstance(reads, Tensor) else tuple(reads)
        write = (writes,) if isinstance(writes, Tensor) else tuple(writes)
        update = (updates,) if isinstance(updates, Tensor) else tuple(updates)
        self._tensors: Tuple[Tensor, ...] = read + write + update
        self._accesses = (len(read), len(write), len(update))
        for tensor in self._tensors:
            if tensor._owner is not owner:
                raise errors.UsageError(f'operation "{name}": tensor "{tensor.name}" belongs to another manager')
        self._wanted = outputs
        self._made: Tuple[Tensor, ...] = ()
        self._scratch_bytes = scratch
        self._takes_waits = takes_waits
        self._begun = self._running = False
        self._addresses: List[int] = []
        # These three exist while it runs.
        #: address of the work area; None if there is none
        self.scratch: Optional[int]
        #: the API's own queue, a cl_command_queue or a cudaStream_t as a number; None on the simulated device
        self.queue: Optional[int]
        #: with `takes_waits`: the address of an array of native events, which the work waits for; None if it is empty
        self.waits: Optional[int]
        self.wait_count = 0
        self._event: Optional[int] = None
        self._again = again
        self._again_key = 0

    # ---- begin and end

    def begin(self) -> "Operation":
        """Brings the tensors to the device and makes the queue wait for them."""
        owner = self._owner
        if self._begun:
            raise errors.UsageError(f'operation "{self.name}" has begun before: make another one')
        request = owner._requests.mine
        if request.is_busy:
            raise errors.ConcurrentUse("the manager is in use by the kernel that makes this call")
        has_called = False
        try:
            request.is_busy = True
            tensors, c = self._tensors, request.operation
            count, made = len(tensors), len(self._wanted)
            request.make_room(count, made)
            read, written, updated = self._accesses
            numbers = [tensor.number for tensor in tensors]
            request.set_uses(numbers, read, written)
            c.name = owner._name(self.name)
            c.use_count = count
            c.output_count = made
            for slot, output in zip(request.outputs, self._wanted):
                slot.bytes, _, _ = owner._size_of(output.size, output.dtype)
                slot.name = owner._name(output.name)
                slot.lifetime = owner._lifetime(output.lifetime)
            c.scratch_bytes = self._scratch_bytes
            c.takes_waits = self._takes_waits
            self._again_key = 0 if self._again is None else next(_keys)
            c.again, c.again_argument = (_entries().again, self._again_key) if self._again_key else (None, None)
            handle = owner._open()
            has_called = True
            owner._check(owner._library.operation_begin(handle, request.address))
            self._running = self._begun = True
            self._addresses = request.addresses[: count + made]
            self.scratch = c.scratch
            self.queue = c.queue
            self.waits = c.waits
            self.wait_count = c.wait_count
            if made:
                self._made = tuple(owner._output(slot, output) for slot, output in zip(request.outputs, self._wanted))
            if self._again_key:
                _agains[self._again_key] = _Again(self)
                owner._again_keys.add(self._again_key)
            return self
        except BaseException as failure:
            # What the library did not refuse has begun, and nobody would end it: Ctrl-C may come after any call.
            if has_called and not isinstance(failure, errors.Error):
                self._over()
                owner._library.operation_cancel(owner._life.handle)
            raise
        finally:
            request.is_busy = False

    def end(self, event: Optional[int] = None) -> None:
        """All work is queued. `event`: with `takes_waits` the API's event for the end of the work, as a number; without
        one the work must be on `queue`. On the simulated device `launch()` has made it."""
        self._require_running()
        owner = self._owner
        status = None
        try:
            status = owner._library.operation_end(owner._life.handle, self._event if event is None else event)
        finally:
            # After a usage error of this call the operation is still running. Without a status, Ctrl-C came with it.
            if status is None or status not in _MISTAKES:
                self._over()
            if status is None:
                owner._library.operation_fail(owner._life.handle)  # no more than an error if it has ended
        owner._check(status)

    def fail(self) -> None:
        """Ends the operation, whose work could not be queued in full. What it was to write has no value then."""
        self._require_running()
        try:
            self._owner._check(self._owner._library.operation_fail(self._owner._life.handle))
        finally:
            self._over()

    def cancel(self) -> None:
        """Ends the operation, of which nothing was queued. All values are as before."""
        self._require_running()
        try:
            self._owner._check(self._owner._library.operation_cancel(self._owner._life.handle))
        finally:
            self._over()

    __enter__ = begin  # itself: Ctrl-C could come between two functions

    def __exit__(self, kind: Any, exception: Any, trace: Any) -> None:
        if not self._running:  # the block has ended it itself
            return
        try:
            if kind is None:
                self.end()
        finally:
            if self._running:
                try:  # the exception that leaves the block is the one to see
                    self._owner._library.operation_fail(self._owner._life.handle)
                finally:
                    self._over()

    def _over(self) -> None:
        self._running = False
        if self._again_key and not self._owner._iterating:  # plans run it again only inside an iteration
            forget(_agains, self._owner._again_keys)
        # What an ended operation refers to would live until the variable of the block has another one.
        self._tensors = self._made = ()
        self._addresses = []
        self.scratch = self.queue = self.waits = None
        del self.scratch, self.queue, self.waits
        self._event = None
        self.wait_count = 0

    def _require_running(self) -> None:
        if not self._running:
            raise errors.UsageError(f'operation "{self.name}" is not running: it has not begun, or has ended')

    def __getattr__(self, name: str) -> Any:
        if name in ("scratch", "queue", "waits"):
            self._require_running()
        raise AttributeError(f"an operation has no {name!r}")

    # ---- what the block uses

    @property
    def running(self) -> bool:
        """Whether it has begun and not ended."""
        return self._running

    @property
    def outputs(self) -> Tuple[Tensor, ...]:
        """The tensors that the operation has made, in the order of `outputs`. Take them before it ends: an operation that
        has ended does not keep them."""
        self._require_running()
        return self._made

    @property
    def addresses(self) -> List[int]:
        """The addresses of reads, writes, updates and outputs, in this order."""
        self._require_running()
        return list(self._addresses)

    def __getitem__(self, tensor: Tensor) -> int:
        """The address of a tensor of the operation, until it ends: a `cl_mem`, a device pointer, or on the simulated
        device a pointer that only a kernel may use."""
        self._require_running()
        for i, used in enumerate(self._tensors):
            if used is tensor:
                return self._addresses[i]
        for i, used in enumerate(self._made):
            if used is tensor:
                return self._addresses[len(self._tensors) + i]
        return self.address(tensor)

    def address(self, tensor: Tensor, offset: int = 0, nbytes: Optional[int] = None) -> int:
        """The address of a part of a tensor. On OpenCL this is a sub-buffer, and `offset` must be a multiple of the
        device's CL_DEVICE_MEM_BASE_ADDR_ALIGN."""
        self._require_running()
        owner = self._owner
        if tensor._owner is not owner:
            raise errors.UsageError(f'operation "{self.name}": tensor "{tensor.name}" belongs to another manager')
        size = max(tensor.nbytes - offset, 0) if nbytes is None else nbytes
        found = ctypes.c_void_p()
        owner._check(
            owner._library.operation_address(
                owner._life.handle, tensor.number, _native.whole(offset, "offset"), _native.whole(size, "nbytes"), found
            )
        )
        return found.value or 0

    def view(self, tensor: Tensor) -> View:
        """On CUDA: the tensor's memory for other libraries, by DLPack and `__cuda_array_interface__`, until the operation
        ends. The queue must wait for the tensors: not with `takes_waits`."""
        address = self[tensor]
        backend = self._owner.backend
        if backend.kind != "cuda":
            raise errors.UsageError(f"a view needs a manager on CUDA: this one is on a device of {backend.kind}")
        if self._takes_waits:
            raise errors.UsageError("with takes_waits the queue does not wait for the tensor: use its address")
        return View(self, address, tensor.dtype, tensor.shape, cuda.device(backend))

    # ---- the simulated device

    def launch(self, function: Callable[..., Any], *arguments: Any, nanoseconds: int = 0) -> None:
        """Queues a kernel of the simulated device: a Python function, which takes `nanoseconds` of virtual time. It runs
        later, inside another call of the manager, and must not call the manager itself.

        Tensors of the operation among the arguments become their memory: NumPy arrays if they have a type of elements
        and NumPy is installed, else memoryviews. They must not be kept; a kernel that does fails. If the function raises
        an exception, the work fails, and a later call raises WorkFailed with the exception as its cause."""
        self._require_running()
        places = [
            _Place(self[argument], argument.nbytes, argument.dtype, argument.shape)
            if isinstance(argument, Tensor)
            else argument
            for argument in arguments
        ]
        owner = self._owner
        key = next(_keys)
        _kernels[key] = _Kernel(function, places, owner._kernel_errors, owner._kernel_keys)
        owner._kernel_keys.add(key)
        event = ctypes.c_void_p()
        status = owner._library.simulated_launch(
            owner._life.handle, _native.whole(nanoseconds, "nanoseconds"), _entries().kernel, key, event
        )
        if status:
            owner._kernel_keys.discard(key)
            del _kernels[key]
            owner._check(status)
        self._event = event.value


# ---- kernels of the simulated device


class _Place(NamedTuple):
    """A tensor as a kernel sees it. It does not keep the tensor: when kernels run depends on the device."""

    address: int
    nbytes: int
    dtype: Optional[str]
    shape: Tuple[int, ...]

    def view(self, memory: Any) -> Any:
        view = memoryview(memory).cast("B")
        if self.dtype is None:
            return view
        type_, module = _memory.element_type(self.dtype), _memory.numpy()
        if module is not None and type_.name != "bfloat16":
            return module.asarray(view).view(type_.name).reshape(self.shape)
        return _memory.typed_view(view, type_, self.shape)


class _Kernel(NamedTuple):
    function: Callable[..., Any]
    arguments: List[Any]
    failures: List[BaseException]
    keys: Set[int]  # of the manager's kernels that have not run


_kernels: Dict[int, _Kernel] = {}
_keys = itertools.count(1)


def _run(kernel: _Kernel) -> None:
    memories: List[Any] = []
    arguments: List[Any] = []
    argument = None
    for argument in kernel.arguments:
        if isinstance(argument, _Place):
            memory = (ctypes.c_ubyte * argument.nbytes).from_address(argument.address)
            memories.append(weakref.ref(memory))
            argument = argument.view(memory)
            del memory
        arguments.append(argument)
    kernel.function(*arguments)
    del arguments, argument
    if any(memory() is not None for memory in memories):
        raise errors.UsageError("a kernel has kept memory of a tensor: it is valid only while the kernel runs")


def _status_of(run: Callable[..., None], argument: Any, failures: List[BaseException]) -> int:
    """Calls `run` for C: no exception may pass through it."""
    try:
        run(argument)
    except BaseException as failure:
        traceback.clear_frames(failure.__traceback__)  # they refer to the memory
        failures.append(failure)
        return 1
    return 0


def _run_by_number(key: int, _operation: None, status: int) -> None:
    kernel = _kernels.pop(key, None)
    if kernel is None:  # the manager was closed while a call used it
        ctypes.c_int.from_address(status).value = 1
        return
    kernel.keys.discard(key)
    ctypes.c_int.from_address(status).value = _status_of(_run, kernel, kernel.failures)


# ---- operations that run again


class _Again:
    """How an operation runs again, until the iteration ends. It does not keep the tensors: one that is gone is not needed."""

    def __init__(self, operation: Operation) -> None:
        assert operation._again is not None
        self.owner = weakref.ref(operation._owner)
        self.failures = operation._owner._kernel_errors
        self.name, self.function = operation.name, operation._again
        self.tensors = [weakref.ref(tensor) for tensor in operation._tensors + operation._made]

    def run(self, c: Any) -> None:
        owner = self.owner()
        if owner is None:
            raise errors.UsageError("the manager is gone")
        replay = Operation(owner, self.name, (), (), (), (), c.scratch_bytes, False)
        tensors: Any = tuple(tensor() for tensor in self.tensors)
        replay._tensors = tensors
        replay._begun = replay._running = True
        replay._addresses = (ctypes.c_uint64 * len(tensors)).from_address(c.addresses)[:]
        replay.scratch, replay.queue, replay.waits = c.scratch, c.queue, None
        try:
            self.function(replay)
        finally:
            replay._over()


_agains: Dict[int, _Again] = {}


def forget(known: Dict[int, Any], keys: Set[int]) -> None:
    """What has these keys is not called any more."""
    for key in keys:
        known.pop(key, None)
    keys.clear()


def _run_again(key: int, operation: int, status: int) -> None:
    again = _agains[key]
    ctypes.c_int.from_address(status).value = _status_of(again.run, _native.Operation.from_address(operation), again.failures)


class _Entries(NamedTuple):
    """What C calls: functions of the library, which call Python and know whether it has run."""

    kernel: Any
    again: Optional[int]


_work = (_native.PythonWork(_run_by_number), _native.PythonWork(_run_again))


@functools.lru_cache(None)
def _entries() -> _Entries:
    library = _native.library()
    library.python_set_work(*_work)
    kernel, again = (ctypes.cast(f, ctypes.c_void_p).value for f in (library.python_kernel, library.python_again))
    return _Entries(_native.Kernel(kernel or 0), again)


class Requests(threading.local):
    """Those of a manager, one for each thread."""

    def __init__(self) -> None:
        self.mine = Request()


class Request:
    """The C structs of an operation."""

    def __init__(self) -> None:
        self.is_busy = False  # a kernel that begins an operation runs within a call that uses them
        self.operation = _native.Operation()
        self.operation.struct_size = ctypes.sizeof(_native.Operation)
        self.address = ctypes.addressof(self.operation)
        self._uses = 0
        self._outputs = 0
        self.make_room(16, 4)

    def make_room(self, uses: int, outputs: int) -> None:
        """For that many."""
        if uses <= self._uses and outputs <= self._outputs:
            return
        self._uses, self._outputs = max(uses, 2 * self._uses), max(outputs, 2 * self._outputs)
        self.uses = (ctypes.c_uint64 * (2 * self._uses))()
        self.outputs = (_native.Output * self._outputs)()
        self.addresses = (ctypes.c_uint64 * (self._uses + self._outputs))()
        self.operation.uses = ctypes.addressof(self.uses)
        self.operation.outputs = ctypes.addressof(self.outputs)
        self.operation.addresses = ctypes.addressof(self.addresses)

    def set_uses(self, numbers: List[int], read: int, written: int) -> None:
        """Pairs of number and access: first what is read, then what is written, then what is updated."""
        count = len(numbers)
        accesses = _accesses.get((read, written, count))
        if accesses is None:
            accesses = [_native.READ] * read + [_native.WRITE] * written + [_native.UPDATE] * (count - read - written)
            _accesses[(read, written, count)] = accesses
        flat: List[Any] = [0] * (2 * count)
        flat[0::2], flat[1::2] = numbers, accesses
        self.uses[: 2 * count] = flat


_accesses: Dict[Tuple[int, int, int], List[int]] = {}
