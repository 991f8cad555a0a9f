# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch's operators as operations of a manager, which decides what the storages hold and when it moves."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import weakref
from typing import Any, Deque, Dict, Iterator, List, Optional, Sequence, Tuple

import torch
from torch.utils._python_dispatch import _disable_current_modes

from .. import _native, errors
from ..manager import manager_options
from ..weights import Weight
from .calls import Call, Use
from .compound import COMPOUND_REASON, parts_of
from .guard import Guard
from .interrupts import Lock
from .kept import ATTRIBUTE, PACKED_REASON, SMALL_REASON, Kept, KeptStorages
from .operators import LOOK, OVERWRITE, PLAIN, READ, Signature, address_of, copy_storage, covers, flat_tensors, has_nested, in_groups, nbytes_of, resize_storage, signature_of, storage_of
from .outputs import Sizes
from .places import SMALL, Record, RecordReference
from .repeats import Repeat, Repeats

_READ, _WRITE, _UPDATE = _native.READ, _native.WRITE, _native.UPDATE


class Adapter:
    """One budget. run() is called for each operator."""

    def __init__(self, memory: Any, options: Dict[str, Any]) -> None:
        self.memory = memory
        self.type = memory.type
        self.index = memory.device.index  # of several devices of that type; None: there is one
        self.budget = memory.budget
        self.sizes = Sizes()
        self._dead: Deque[Any] = collections.deque()
        self.kept = KeptStorages(self._dead.append)
        self._reserve_step = max(32 << 10, min(1 << 20, self.budget >> 7))
        self._reserved = 0  # the part of the budget that kept storages have
        self._most_kept = 0  # bytes of these, in this iteration
        self._most_kept_before: Deque[int] = collections.deque(maxlen=4)  # in the last ones
        if memory.counts_kept:
            memory.places.kept = self.kept
        self.lock = Lock()
        self.open = True
        self.in_child = False  # of a fork
        self.in_iteration = False
        self.iterations = 0
        self.operations = 0
        self.unforeseen = 0  # operators whose results had other sizes than expected
        # With check_access no plan is followed.
        recompute = options.pop("recompute", True)
        if not isinstance(recompute, bool):
            raise errors.UsageError(f"recompute is True or False, not {recompute!r}")
        recompute = recompute and not options.get("check_access")
        self.repeats: Optional[Repeats] = Repeats(self) if recompute else None
        self._running = False  # the last operation has not ended yet
        self._keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, memory.type.upper()))
        self.in_operator = False  # what runs now is the operator's own business
        self._compound_results = False  # the operator may have made compound tensors
        self.where: Any = lambda: ""  # the module that runs, for messages
        self._library = memory.library
        self._manager = self._open(options)
        self._operation = _native.Operation(struct_size=ctypes.sizeof(_native.Operation))
        self._operation_at = ctypes.addressof(self._operation)
        self._room = 0
        self._make_room(64)
        self._reserve()

    # ---- the manager

    def _open(self, options: Dict[str, Any]) -> ctypes.c_void_p:
        library, manager = self._library, ctypes.c_void_p()
        backend = self.memory.backend()
        try:
            try:
                settings = manager_options(library, self.memory.manager_budget, options)
            except TypeError as reason:  # it names the option
                raise errors.UsageError(str(reason)) from None
            settings.flags |= _native.IDENTIFY_BY_PRODUCER | _native.UNDEFINED_READS | _native.PROVEN_DROPS
            library.check(library.manager_create(backend, ctypes.byref(settings), ctypes.byref(manager)))
        finally:
            library.backend_destroy(backend)
        return manager

    def close(self) -> None:
        """Brings everything back, and ends. If the device has no room for all of it, those that are left are empty."""
        with self.lock:
            self.sweep()
            self._finish()
            failure: Optional[BaseException] = None
            tries = 2 * self.repeats.count + 2 if self.repeats is not None else 1
            while self.in_iteration and tries > 0:  # each operator that is to run again, and fails, is tried twice
                tries -= 1
                try:
                    self._end_iteration()
                except BaseException as reason:
                    failure = reason
            if not self.in_iteration and isinstance(failure, Exception):
                failure = None  # what is lost is told of below
            try:
                # All values are on the host then, and the manager's memory is free for PyTorch.
                self._set_budget(SMALL)
                self.memory.close()
                for record in list(self.memory.records.values()):
                    storage = record.storage()
                    if storage is not None:
                        try:
                            self._bring_back(record, storage)
                        except Exception as reason:  # it is lost, and the others are not; PyTorch's refusals are RuntimeErrors
                            failure = failure or reason
                        self._drop(record, storage)
            finally:
                self.kept.clear()
                self._library.manager_destroy(self._manager)
                self._manager, self.open = ctypes.c_void_p(), False
            if failure is not None:
                raise failure

    def _bring_back(self, record: Record, storage: Any) -> None:
        """The storage gets memory of PyTorch's, with its value."""
        if self.type == "cpu":
            resize_storage(storage, record.bytes)
            value = storage
        else:
            value = torch.UntypedStorage(record.bytes)
        self._check(self._library.tensor_download(self._manager, record.number, 0, value.data_ptr(), record.bytes))
        if value is not storage:
            resize_storage(storage, record.bytes)
            copy_storage(storage, value)

    def _check(self, status: int) -> None:
        if status == 0:
            return
        failure, self.memory.failure = self.memory.failure, None
        if failure is not None and not isinstance(failure, Exception):
            raise failure  # KeyboardInterrupt in a copy
        error = self._library.error(status)
        text, where = str(error), self.where()
        if where:
            text += f", in {where}"
        if self._reserved and isinstance(error, (errors.BundleTooLarge, errors.OutOfMemory)):
            text += f"; {self._reserved} bytes more of the {self.budget} are for what cannot be swapped"
            if self.kept.bytes > self._reserve_step:
                text += f", which has {self.kept.bytes}: {self.kept.reasons()}"
        raise type(error)(text) from failure

    def numbers(self) -> _native.Numbers:
        """The manager's numbers."""
        with self.lock:
            self._finish()
            numbers = _native.Numbers(struct_size=ctypes.sizeof(_native.Numbers))
            self._check(self._library.manager_numbers(self._manager, ctypes.byref(numbers)))
            return numbers

    def report_json(self) -> str:
        """The manager's report."""
        with self.lock:
            self._finish()
            made = ctypes.c_void_p()
            self._check(self._library.manager_report(self._manager, ctypes.byref(made)))
            return self._library.take_text(made)

    # ---- iterations

    def _need_iteration(self) -> None:
        if not self.in_iteration:
            self._check(self._library.iteration_begin(self._manager, b"step"))
            self.in_iteration = True

    def _end_iteration(self) -> None:
        """What was dropped to be made again later in the iteration is made now. If that fails, it has not ended."""
        self._check(self._library.iteration_end(self._manager))
        self.in_iteration = False
        if self.repeats is not None:
            self.repeats.clear()

    def end_iteration(self) -> None:
        """What follows belongs to the next iteration."""
        with self.lock:
            if self.in_child or not self.open:
                return
            self.sweep()
            self._finish()
            if self.in_iteration:
                self._end_iteration()
                self.iterations += 1
            self.kept.end_of_step()
            self._settle_reserve()

    def _between_iterations(self, change: Any) -> None:
        """Changes something that may not change within an iteration: a running one is cut in two."""
        self._finish()
        cut = self.in_iteration
        if cut:
            self._end_iteration()
        try:
            change()
        finally:
            if cut:
                self._need_iteration()

    def _settle_repeats(self, record: Optional[Record] = None) -> None:
        """Makes all values now that were dropped to be made again later, if one of them needs the storage."""
        repeats = self.repeats
        if repeats is not None and repeats.count and (record is None or repeats.holds(record)):
            self._between_iterations(lambda: None)

    def _before_change(self, kept: Kept) -> None:
        if self.repeats is not None and kept.readers:
            self.repeats.before_change(kept)

    # ---- storages

    def _adopt(self, storage: Any, name: bytes) -> Optional[Record]:
        """A storage that something else has made, with its value. None: it stays where it is."""
        size = nbytes_of(storage)
        if size < SMALL:
            self.keep(storage, SMALL_REASON)
            return None
        if not storage.resizable() or (self.type == "cpu" and storage.is_shared()):
            self.keep(storage, "memory that PyTorch does not own", foreign=True)
            return None
        self._need_iteration()
        record = self._create(storage, size, name)
        try:
            # Its value comes from elsewhere: to the manager, an operation has written it.
            self._touch(record, _WRITE, b"appears", self.memory.adopt)
        except BaseException:
            self._drop(record, storage)
            raise
        return record

    def _create(self, storage: Any, size: int, name: bytes) -> Record:
        """The manager has a tensor for the storage, which has no value yet."""
        self._finish()
        number = ctypes.c_uint64()
        self._check(self._library.tensor_create(self._manager, size, name, 0, ctypes.byref(number)))
        return self._new_record(storage, number.value, size)

    def _adopt_value(self, storage: Any, value: Any, name: bytes) -> None:
        """A storage that has no bytes, with a value in host memory."""
        size = nbytes_of(value)
        record = self._create(storage, size, name)
        try:
            self._check(self._library.tensor_upload(self._manager, record.number, 0, value.data_ptr(), size))
        except BaseException:
            self._drop(record, storage)
            raise

    def constant(self, weight: Weight, like: torch.Tensor) -> torch.Tensor:
        """A tensor on the device with a weight of a file. It has no bytes until an operator needs them."""
        device = self.memory.device
        if weight.nbytes < SMALL:
            with open(weight.file.path, "rb") as file:
                file.seek(weight.offset)
                value = bytearray(file.read(weight.nbytes))
            if len(value) != weight.nbytes:
                raise errors.BackendError(f"{weight.file.path} ends within {weight.name!r}")
            flat = torch.frombuffer(value, dtype=like.dtype) if value else torch.empty(0, dtype=like.dtype)
            return flat.reshape(weight.shape).to(device, copy=True)
        with self.lock, _disable_current_modes():
            self._finish()
            number, name = ctypes.c_uint64(), _native.text(weight.name)
            self._check(self._library.tensor_create_constant(
                self._manager, weight.nbytes, name, weight.file._handle(self._library), weight.offset, ctypes.byref(number)))
            tensor = torch.empty(0, dtype=like.dtype, device=device)
            storage = storage_of(tensor)
            self._new_record(storage, number.value, weight.nbytes)
            self.memory.open_for_view(storage, weight.nbytes, 0)
            tensor.set_(storage, 0, weight.shape)
            resize_storage(storage, 0)
            return tensor

    def _new_record(self, storage: Any, number: int, size: int) -> Record:
        record = Record(number, size)
        # The storage's end is noted, no more: it may come in any thread and in the middle of anything. Not by code of
        # Python, in which a signal's handler could run, and what it raises would be lost.
        reference = RecordReference(storage, self._dead.append)
        reference.number = number
        record.storage = reference
        setattr(storage, ATTRIBUTE, record)
        self.memory.records[number] = record
        return record

    def _drop(self, record: Record, storage: Any = None) -> None:
        """The manager no longer has the storage."""
        self.memory.forget(record)
        if storage is not None:
            delattr(storage, ATTRIBUTE)
        self._check(self._library.tensor_destroy(self._manager, record.number))

    def _touch(self, record: Record, access: int, name: bytes, work: Any) -> None:
        """An operation that uses one storage. Its work is work(record, place). The next operation ends it: until then the
        value stays, and whatever reads it meanwhile belongs to this operation."""
        self._touch_all((record,), access, name, work)

    def _touch_all(self, records: Sequence[Record], access: int, name: bytes, work: Any) -> None:
        """The same for several storages at once."""
        self._finish()
        self._make_room(len(records))
        operation, fields = self._operation, self._uses
        for at, record in enumerate(records):
            fields[2 * at], fields[2 * at + 1] = record.number, access
        operation.name, operation.use_count, operation.output_count, operation.scratch_bytes = name, len(records), 0, 0
        operation.again = None
        self._begin()
        try:
            with self.memory.in_order():  # PyTorch copies on its own stream
                for record, place in zip(records, self._addresses):
                    work(record, place)
        except BaseException:
            self._library.operation_cancel(self._manager)
            raise
        self._running = True

    def _begin(self) -> None:
        """Begins the operation. If it has no room, what is set aside for kept storages that are gone may be enough."""
        status = self._library.operation_begin(self._manager, self._operation_at)
        if status != 0 and self.memory.failure is None and self._reserved > self.kept.bytes + 3 * self._reserve_step:
            if isinstance(self._library.error(status), (errors.BundleTooLarge, errors.OutOfMemory)):
                self._set_aside(self.kept.bytes)
                status = self._library.operation_begin(self._manager, self._operation_at)
        self._check(status)

    def _finish(self) -> None:
        """Ends the last operation. Storages that have died since then are known to be dead."""
        if self._running:
            self._running = False
            self._check(self._library.operation_end(self._manager, None))

    def _at(self, record: Record, place: int) -> None:
        if record.place != place:
            self.memory.give(record, place)

    def keep(self, storage: Any, reason: str, until_step: bool = False, foreign: bool = False) -> None:
        """Leaves a storage where it is. Its bytes are taken from the manager's part of the budget."""
        kept = self.kept.add(storage, reason, until_step, foreign)
        try:
            self._reserve()
        except BaseException:
            self.kept.release(lambda other: other is kept)
            raise
        self.memory.places.note()

    def _reserve(self) -> None:
        """Takes the bytes of kept storages out of the manager's budget, if there are more than ever."""
        self._most_kept = max(self._most_kept, self.kept.bytes)
        if self.memory.counts_kept and self.kept.bytes > self._reserved - self._reserve_step // 2:
            self._set_aside(self.kept.bytes)

    def _settle_reserve(self) -> None:
        """At the end of an iteration: the manager has back what the last ones did not need for kept storages. Within one, a
        change would cut it in two, each time that many come and go."""
        self._most_kept_before.append(self._most_kept)
        self._most_kept = self.kept.bytes
        most = max(self._most_kept_before)
        if self.memory.counts_kept and most < self._reserved - 3 * self._reserve_step:
            self._set_aside(most)
        self._reserve()

    def _set_aside(self, size: int) -> None:
        """For kept storages of so many bytes, with one step more for those to come."""
        step = self._reserve_step
        wanted = (size // step + 2) * step
        if wanted >= self.memory.manager_budget:
            reasons = ", ".join(f"{bytes} of them because of {reason}" for reason, bytes in self.kept.reasons().items())
            raise errors.OutOfMemory(
                f"the budget of {self.budget} bytes is too small: {wanted} are for what cannot be swapped, which has "
                f"{self.kept.bytes} bytes" + (f" ({reasons})" if reasons else "")
            )
        left = self.memory.manager_budget - wanted
        self._between_iterations(lambda: self._set_budget(left))
        self._reserved = wanted

    def _set_budget(self, size: int) -> None:
        self._check(self._library.manager_set_budget(self._manager, size))
        self.memory.places.clear_room(0, 1 << 63)  # all values are on the host

    def sweep(self) -> None:
        """Acts on what has ended."""
        dead = self._dead
        while dead:
            gone = dead.popleft()
            if gone.__class__ is RecordReference:
                record = self.memory.records.get(gone.number)
                if record is not None and record.storage is gone:
                    self._drop(record)
            else:
                self.kept.remove(gone)

    def hold(self, storage: Any) -> None:
        """Brings a storage's bytes back. They are there until the next operator."""
        with self.lock:
            record = getattr(storage, ATTRIBUTE, None)
            if record.__class__ is not Record or not self.open or self.in_operator:
                return
            if self.in_child:
                return self._restore_in_child([(record, storage)])
            self.sweep()
            if self.memory.needs_touch(record):
                self._need_iteration()
                self._touch(record, _READ, b"look", self._at)

    @contextlib.contextmanager
    def all_held(self) -> Iterator[None]:
        """The bytes of all storages are there meanwhile, by one operation. What runs is not the adapter's business. An error,
        before anything moves, if they do not fit the budget together."""
        with self.lock:
            self.sweep()
            held = [(record, record.storage()) for record in self.memory.records.values()]
            held = [(record, storage) for record, storage in held if storage is not None]
            if self.in_child:
                self._restore_in_child(held)
            elif held:
                self._need_iteration()
                self._touch_all([record for record, _ in held], _READ, b"look at all", self._at)
            self.in_operator = True
            try:
                yield
            finally:
                self.in_operator = False

    def change(self, storage: Any) -> None:
        """Brings a storage's bytes back, which change now, before the next operator."""
        with self.lock:
            known = getattr(storage, ATTRIBUTE, None)
            if not self.open or self.in_operator or known is None:
                return
            if self.in_child:
                return self.hold(storage)
            self.sweep()
            if known.__class__ is Record:
                self._settle_repeats(known)
                self._need_iteration()
                self._touch(known, _UPDATE, b"change", self._at)
            else:
                self._before_change(known)

    def release(self, storage: Any, reason: str, until_step: bool) -> None:
        """The program has the address of the bytes: they stay until the next iteration, or for good."""
        with self.lock:
            if not self.open or self.in_operator:
                return
            if self.in_child:
                return self.hold(storage)
            if getattr(storage, ATTRIBUTE, storage) is None:  # a copy in host memory
                return
            self.sweep()
            known = getattr(storage, ATTRIBUTE, None)
            if known is None:
                known = self._adopt(storage, b"input")
            if known.__class__ is Record:
                self._settle_repeats(known)
                self.hold(storage)
                with self.memory.in_order():
                    self.memory.keep(known)  # before the operation ends: then something else may come to its place
                self._drop(known, storage)
                self.keep(storage, reason, until_step)
            else:
                known = getattr(storage, ATTRIBUTE)
                known.seen = False
                self._before_change(known)
                known.until_step = known.until_step and until_step

    # ---- operators

    def _make_room(self, count: int) -> None:
        """Arrays of C for as many uses and outputs."""
        if count <= self._room:
            return
        self._room = 2 * count
        arrays = [(kind * self._room)() for kind in (_native.Use, _native.Output, ctypes.c_uint64 * 2)]
        # As numbers of 8 bytes: structures of ctypes take longer.
        self._uses, self._outputs, self._addresses = (memoryview(array).cast("B").cast("Q") for array in arrays)
        self._addresses_at = ctypes.addressof(arrays[2])
        self._operation.uses, self._operation.outputs = ctypes.addressof(arrays[0]), ctypes.addressof(arrays[1])
        self._operation.addresses = self._addresses_at

    def run(self, mode: Any, function: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        """Runs an operator. Its operands' values are in their storages meanwhile."""
        signature = signature_of(function)
        if signature.dataless:
            return function(*args, **kwargs)
        if signature.composite and not has_nested(args, kwargs):
            with mode:
                results = function.decompose(*args, **kwargs)
            if results is not NotImplemented:
                return results
        with self.lock:
            if self.in_operator:  # an operator that is made of others, and lets the mode see them
                return function(*args, **kwargs)
            if signature.lists:
                if signature.list_scalars:
                    for value in (*args, *kwargs.values()):
                        if isinstance(value, torch.Tensor) and self.is_ours(value):
                            self.hold(storage_of(value))
                return in_groups(lambda *a, **k: self._run(Call(signature, function, a, k)), self.budget >> 6, args, kwargs, signature.list_scalars)
            return self._run(Call(signature, function, args, kwargs))

    def run_call(self, call: Call) -> Any:
        """The same, for anything that is one operation."""
        with self.lock:
            return self._run(call)

    def _run(self, call: Call) -> Any:
        if self._dead and not self.in_child:
            self.sweep()
        if call.signature.outlives and not self.in_child:
            self._keep_in_place(call.signature, flat_tensors((call.args, tuple(call.kwargs.values()))))
        self._find_operands(call)
        if self.in_child:
            self._restore_in_child(call.operands)
            return call.run()
        if call.compounds:
            self._keep_operands_parts(call)
        results = self._run_here(call)
        if call.signature.outlives:
            self._keep_in_place(call.signature, flat_tensors(results))
        if call.signature.has_out:
            for storage in (*call.changes_kept, *(storage for _, storage in call.operands)):
                self.resized(storage)
        if self._compound_results or call.compounds:
            self._keep_results_parts(call, results)
        if call.signature.packs and self.type == "cpu":
            self.release(storage_of(results[1]), PACKED_REASON, until_step=False)
        return results

    def _keep_in_place(self, signature: Signature, tensors: Iterator[torch.Tensor]) -> None:
        """Until the next iteration: a collective may read and write them after its operator has ended."""
        for tensor in tensors:
            if self.is_ours(tensor) and nbytes_of(storage_of(tensor)):
                self.release(storage_of(tensor), f"the program called {signature.name}()", until_step=True)

    def _run_here(self, call: Call) -> Any:
        signature = call.signature
        if signature.reshapes:
            return self._reshape(call)
        if signature.views:
            return self._view(call)
        if call.is_prepared:
            pass
        elif signature.makes_nothing or ((call.kwargs or not call.operands) and not self._makes_ours(call)):
            call.sizes = ()
        else:
            call.key = self.sizes.key(signature, call.function, call.args, call.kwargs)
            call.sizes = self.sizes.expected(call.key, signature, call.function, call.args, call.kwargs)
        if call.sizes:
            call.large = [size for size in call.sizes if size >= SMALL]
        if not call.uses and not call.large and call.sizes is not None and not call.room:
            with self.memory.in_order():  # what runs again may read what it changes, on the manager's stream
                results = self._perform(call)
            self._settle(call, self.new_storages(results), [])
            return results
        self._need_iteration()
        return self._operate_or_grow(call)

    def _makes_ours(self, call: Call) -> bool:
        """Whether its results are the device's: as it is told, or as its operands are."""
        device = call.kwargs.get("device")
        if isinstance(device, torch.device):
            if device.index is None and device.type == self.type == "cuda":
                return torch.cuda.current_device() == self.index
            return self.has(device)
        if call.operands or call.compounds:
            return True
        there = [self.has(tensor.device) for tensor, _ in call.signature.operands(call.args, call.kwargs)]
        return any(there) if there else self.type == "cpu"

    def _find_operands(self, call: Call) -> None:
        for tensor, way in call.signature.operands(call.args, call.kwargs):
            try:
                storage = storage_of(tensor)
                record = getattr(storage, ATTRIBUTE, None)
            except (NotImplementedError, RuntimeError):  # it has none
                record = None
            # The manager has no storage of another device, and none of what compound tensors are made of.
            if record.__class__ is not Record and not self.is_ours(tensor):
                call.is_strange = True
                if self.has(tensor.device):
                    call.compounds.append((tensor, way))
                continue
            if tensor.__class__ not in PLAIN:
                call.is_strange = True
            if record is None:
                if self.in_child or nbytes_of(storage) == 0:
                    continue
                if tensor._is_zerotensor():  # of zeros, without bytes
                    call.is_strange = True
                    continue
                self._adopt(storage, b"input")
                record = getattr(storage, ATTRIBUTE)
            if record.__class__ is not Record:
                if not record.seen:
                    call.is_strange = True
                if way not in (READ, LOOK):
                    call.changes_kept.append(storage)
                    self._before_change(record)
                continue
            call.operands.append((record, storage))
            if way == LOOK:
                call.looks = True
                continue
            use = call.uses.get(record)
            if use is None:
                use = call.uses[record] = Use()
            if way == READ:
                use.reads = True
            else:
                use.changes = call.changes = True
                if way == OVERWRITE and covers(tensor, record.bytes):
                    use.covers = True

    def has(self, device: torch.device) -> bool:
        """Whether it is the device with the budget."""
        return device.type == self.type and (self.index is None or device.index == self.index)

    def is_ours(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor has a storage of the device, and is nothing else. Sparse, quantized and nested ones are made
        of others (compound.py)."""
        return (self.has(tensor.device) and tensor.layout is torch.strided
                and not tensor.is_quantized and not tensor.is_nested)

    def _keep_parts(self, compound: torch.Tensor) -> bool:
        """What a compound tensor is made of stays where it is: PyTorch reads it past the operators. True if the manager
        had some of it."""
        had = False
        for part in parts_of(compound):
            if not self.has(part.device):
                continue
            storage = storage_of(part)
            known = getattr(storage, ATTRIBUTE, None)
            if known is None:
                if nbytes_of(storage) != 0:
                    self.keep(storage, COMPOUND_REASON)
            else:
                had = had or known.__class__ is Record
                self.release(storage, COMPOUND_REASON, until_step=False)
        return had

    def _keep_operands_parts(self, call: Call) -> None:
        had = [self._keep_parts(tensor) for tensor, _ in call.compounds]
        if any(had):  # these are no longer the manager's
            call.compounds.clear()
            call.operands.clear()
            call.uses.clear()
            self._find_operands(call)

    def _keep_results_parts(self, call: Call, results: Any) -> None:
        compounds = [tensor for tensor in flat_tensors(results)
                     if self.has(tensor.device) and not self.is_ours(tensor)]
        self._compound_results = False
        for tensor in compounds:
            self._keep_parts(tensor)
        for tensor, way in call.compounds:
            if way not in (READ, LOOK):
                self._keep_parts(tensor)

    def _operate_or_grow(self, call: Call) -> Any:
        try:
            return self._operate(call)
        except RuntimeError as reason:
            if isinstance(reason, errors.Error):
                raise  # not the operator's
            more = self.memory.more_pool()
            if not more or not call.may_grow or self.memory.manager_budget - self._reserved - more <= 0:
                raise
            self._between_iterations(lambda: self._grow_pool(more))
            # What has changed its operands must not run twice.
            if any(use.access() == _UPDATE for use in call.uses.values()):
                raise
        return self._operate(call)

    def _grow_pool(self, more: int) -> None:
        """An operator wants a larger work area: the manager's part of the budget becomes smaller."""
        self._set_budget(self.memory.manager_budget - self._reserved - more)
        self.memory.grow_pool(more)

    def _operate(self, call: Call) -> Any:
        operation, library, memory = self._operation, self._library, self.memory
        signature, uses, large = call.signature, call.uses, call.large
        shared: List[Any] = []
        first = len(uses)
        self._make_room(max(first, len(large)))
        addresses = self._addresses
        at, fields = 0, self._uses
        for record, use in uses.items():
            fields[at], fields[at + 1] = record.number, use.access()
            at += 2
        name = signature.key
        at, fields = 0, self._outputs  # bytes, name, lifetime, tensor
        for size in large:
            fields[at], fields[at + 1], fields[at + 2] = size, signature.key_at, 0
            at += 4
        operation.name, operation.use_count, operation.output_count = name, first, len(large)
        operation.scratch_bytes = call.room if call.sizes is not None else self._guess(call)
        repeats, again = self.repeats, 0
        operation.again = None
        if repeats is not None and repeats.allows(call):
            again = repeats.number()
            operation.again, operation.again_argument = repeats.address, again
        self._finish()
        self._begin()
        numbers = self._outputs[3:4 * len(large):4].tolist()
        try:
            if repeats is not None and not operation.follows_plan and repeats.count:
                repeats.clear()  # the plan was left, and what was missing is made
            for record, place in zip(uses, addresses):
                if record.place != place:
                    memory.give(record, place)
            places = addresses[first:first + len(large)].tolist()
            memory.expect(large, places, self._addresses_at + 8 * first)
            if operation.scratch_bytes:
                memory.clear_scratch(operation.scratch, operation.scratch_bytes)
                if call.sizes is not None:
                    memory.places.note(sum(large) + operation.scratch_bytes)
            repeat = Repeat(call, operation.times_again, memory.device) if again and operation.times_again else None
            call.begin(memory, operation.scratch or 0, operation.scratch_bytes)
            with memory.in_order():
                results = self._perform(call)
                made = self.new_storages(results)
                placed = [storage for storage in made if nbytes_of(storage) >= SMALL]
                if not signature.is_known:  # it may have made arrays of them
                    placed = [storage for storage in placed if storage.resizable()]
                    shared = [storage for _, storage in call.operands if not storage.resizable()]
                call.note(memory, placed)
                fits = [nbytes_of(storage) for storage in placed] == large
                if fits:
                    records = list(map(self._new_record, placed, numbers, large))
                    memory.made(list(zip(records, placed, places)))
                    if repeat is not None and repeats is not None:
                        repeats.add(again, repeat, list(zip(records, placed)))
                moved = call.end(memory, results, made, placed, fits)
            memory.expect_nothing()
        except BaseException:
            memory.close_room()
            memory.expect_nothing()
            if any(use.changes for use in uses.values()):  # some of it may have been done
                library.operation_end(self._manager, None)
            else:
                library.operation_cancel(self._manager)
            for number in numbers:
                if number not in memory.records:
                    library.tensor_destroy(self._manager, number)
            if operation.times_again:
                with contextlib.suppress(errors.Error):
                    self._between_iterations(lambda: None)  # the plan counts on it
            raise
        self._running = True
        self.operations += 1
        if not fits:
            for number in numbers:
                self._check(library.tensor_destroy(self._manager, number))
            if repeat is not None:
                self._between_iterations(lambda: None)  # the plan counts on it
        for storage, value in moved:
            self._adopt_value(storage, value, name)
        if len(made) != len(placed) or not fits:
            self._settle(call, made, None if fits else large)
        for storage in shared:
            self.release(storage, "memory that an operator has shared with an array", until_step=False)
        return results

    def _perform(self, call: Call) -> Any:
        """Runs it. What it does within itself is not the adapter's business."""
        self.in_operator = True
        try:
            if call.signature.in_python and call.operands:
                with Guard():
                    return call.function.redispatch(self._keys, *call.args, **call.kwargs)
            return call.run()
        finally:
            self.in_operator = False

    def room(self) -> int:
        """The largest sum of what one operation may use."""
        return self.memory.manager_budget - self._reserved

    def _guess(self, call: Call) -> int:
        """Room for results whose sizes are not known: all there is, unless the operands bound them."""
        room = self.room()
        room -= sum(-(-record.bytes // 512) * 512 for record in call.uses)
        if call.most is not None:
            room = min(room, call.most)
        if call.signature.by_value:
            # At most an index for each dimension of each element, and the elements once more.
            room = min(
                room,
                sum(
                    tensor.numel() * (8 * max(tensor.dim(), 1) + tensor.element_size())
                    for tensor, _ in call.signature.operands(call.args, call.kwargs)
                ),
            )
        return max(0, room) // 512 * 512

    def new_storages(self, results: Any) -> List[Any]:
        """The storages of the results that are not known yet."""
        made: List[Any] = []
        for tensor in (results,) if results.__class__ is torch.Tensor else flat_tensors(results):
            if not self.is_ours(tensor):
                self._compound_results = True
                continue
            storage = storage_of(tensor)
            if getattr(storage, ATTRIBUTE, None) is None and nbytes_of(storage) and storage not in made:
                if not tensor._is_zerotensor():
                    made.append(storage)
        return made

    def _settle(self, call: Call, made: List[Any], expected: Optional[List[int]]) -> None:
        """Takes over what the operator has made without a place. `expected`: the sizes of large ones; None: it is known that
        they were as expected."""
        if expected is not None and [nbytes_of(storage) for storage in made if nbytes_of(storage) >= SMALL] != expected:
            self.unforeseen += call.sizes is not None
            self.memory.places.note(sum(map(nbytes_of, made)))  # the operator has made them beside all others
            if not call.signature.by_value:
                self.sizes.learn(call.key, tuple(nbytes_of(storage) for storage in made))
        for storage in made:
            if getattr(storage, ATTRIBUTE, None) is None:
                self._adopt(storage, call.signature.key)

    def _view(self, call: Call) -> Any:
        """Views need no bytes, but PyTorch compares their extent with the storage's size."""
        self._compound_results = call.signature.makes_nested
        empty = [(record, storage) for record, storage in call.operands if record.place is None]
        if not empty:
            return call.run()
        for position, (record, storage) in enumerate(empty):
            if nbytes_of(storage) == 0:
                self.memory.open_for_view(storage, record.bytes, position)
        try:
            return call.run()
        finally:
            for _, storage in empty:
                resize_storage(storage, 0)

    def _reshape(self, call: Call) -> Any:
        """A storage that gets another size is a new one to the manager afterwards."""
        for record, _ in call.operands:
            self._settle_repeats(record)
        given = [value for value in call.args if isinstance(value, torch.UntypedStorage)]
        storages = [storage for _, storage in call.operands] + given
        for storage in reversed(storages):  # the first one, whose size changes, stays in any case
            self.hold(storage)
        results = call.run()
        for storage in (*storages, *call.changes_kept):
            self.resized(storage)
        for storage in self.new_storages(results):
            self._adopt(storage, b"resized")
        return results

    def resized(self, storage: Any) -> None:
        """A storage may have another size than it had. It is a new one then."""
        known, size = getattr(storage, ATTRIBUTE, None), nbytes_of(storage)
        if known is None or size == known.bytes or self.in_child or not self.open or self.in_operator:
            return
        with self.lock:
            if known.__class__ is Record:
                if size == 0 and known.place is None:
                    return  # it has left
                self._drop(known, storage)
                if size:
                    self._adopt(storage, b"resized")
                return
            self.kept.release(lambda other: other is known)
            if size and known.reason == SMALL_REASON:
                self._adopt(storage, b"resized")
            elif size:
                self.keep(storage, known.reason, known.until_step, known.foreign)

    # ---- forks

    def before_fork(self) -> None:
        """No thread is within the manager when the process forks, and no operation runs."""
        self.lock.acquire()
        if not self.in_child and not self.in_operator:
            self.sweep()
            self._finish()
            self._settle_repeats()

    def after_fork(self) -> None:
        self.lock.release()
        self.lock.send_again()

    def after_fork_in_child(self) -> None:
        """The child has the parent's values, those on the host included, and no budget."""
        self.in_child, self.in_operator = True, False
        self.lock = Lock()

    def _restore_in_child(self, operands: List[Tuple[Record, Any]]) -> None:
        for record, storage in operands:
            if record.place is None:
                resize_storage(storage, record.bytes)
                self._check(
                    self._library.tensor_download(self._manager, record.number, 0, address_of(storage), record.bytes)
                )
                record.place = 0
