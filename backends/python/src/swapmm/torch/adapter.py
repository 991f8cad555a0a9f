# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch's operators as operations of a manager, which decides what the storages hold and when it moves."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import threading
import weakref
from typing import Any, Deque, Dict, Iterator, List, Optional, Set, Tuple

import torch

from .. import _native, errors
from .operators import CHANGE, LOOK, OVERWRITE, READ, Signature, covers, flat_tensors, one_by_one, signature_of
from .outputs import Sizes, new_sizes
from .places import Record

#: Storages below this many bytes stay where they are. They count against the budget.
SMALL = 4096
#: By so many bytes more is reserved for storages that stay.
RESERVE_STEP = 1 << 20
_ATTRIBUTE = "_swapmm"  # of a storage: its Record, or a Kept
_READ, _WRITE, _UPDATE = _native.READ, _native.WRITE, _native.UPDATE


class Kept:
  """A storage that stays where it is, and counts against the budget."""

  __slots__ = ("bytes", "reason")

  def __init__(self, size: int, reason: str) -> None:
    self.bytes, self.reason = size, reason


class Adapter:
  """One budget. Of its functions, only run() is called for each operator."""

  def __init__(self, memory: Any, options: Dict[str, Any]) -> None:
    self.memory = memory
    self.type = memory.type
    self.budget = memory.budget
    self.kept_bytes = 0  # of storages that stay
    self._reserved = 0  # the part of the budget that kept storages have
    self.sizes = Sizes()
    self._kept_references: Dict[Any, int] = {}
    self._dead: Deque[Any] = collections.deque()  # records, and references to kept storages, that are gone
    self._lock = threading.RLock()
    self.in_iteration = False
    self.iterations = 0
    self.operations = 0
    self.unforeseen = 0  # operators whose results had other sizes than expected
    self._library = memory.library
    self._manager = self._open(options)
    self._operation = _native.Operation(struct_size=ctypes.sizeof(_native.Operation))
    self._room = 0
    self._make_room(64)

  # ---- the manager

  def _open(self, options: Dict[str, Any]) -> ctypes.c_void_p:
    library, manager = self._library, ctypes.c_void_p()
    backend = self.memory.backend()
    try:
      settings = _native.Options()
      library.check(library.options_init(ctypes.byref(settings), ctypes.sizeof(settings)))
      settings.device_budget = self.memory.manager_budget
      settings.flags = _native.IDENTIFY_BY_PRODUCER | _native.UNDEFINED_READS
      for name, value in options.items():
        setattr(settings, name, value)
      library.check(library.manager_create(backend, ctypes.byref(settings), ctypes.byref(manager)))
    finally:
      library.backend_destroy(backend)
    return manager

  def close(self) -> None:
    """Brings everything back, and ends."""
    with self._lock:
      self.sweep()
      for record in list(self.memory.records.values()):
        storage = record.storage()
        if storage is None:
          continue
        self._bring_back(record, storage)
        delattr(storage, _ATTRIBUTE)
      self.memory.records.clear()
      if self.in_iteration:
        self._library.iteration_end(self._manager)
        self.in_iteration = False
      self._library.manager_destroy(self._manager)
      self._manager = None

  def _bring_back(self, record: Record, storage: Any) -> None:
    """The storage gets memory of its own, with its value."""
    value = torch.UntypedStorage(record.bytes)
    self._check(self._library.tensor_download(self._manager, record.number, 0, value.data_ptr(), record.bytes))
    self.memory.expect_nothing()
    storage.resize_(0)
    storage.resize_(record.bytes)
    storage.copy_(value)

  def _check(self, status: int) -> None:
    if status == 0:
      return
    failure, self.memory.failure = self.memory.failure, None
    if failure is not None and not isinstance(failure, Exception):
      raise failure  # KeyboardInterrupt in a copy
    raise self._library.error(status) from failure

  def numbers(self) -> _native.Numbers:
    numbers = _native.Numbers(struct_size=ctypes.sizeof(_native.Numbers))
    self._check(self._library.manager_numbers(self._manager, ctypes.byref(numbers)))
    return numbers

  def report_text(self) -> str:
    text = ctypes.c_void_p()
    self._check(self._library.manager_report(self._manager, ctypes.byref(text)))
    return self._library.take_text(text)

  # ---- iterations

  def begin_iteration(self, name: str = "step") -> None:
    self.sweep()
    self._check(self._library.iteration_begin(self._manager, name.encode()))
    self.in_iteration = True

  def end_iteration(self) -> None:
    with self._lock:
      if not self.in_iteration:
        return
      self.in_iteration = False
      self.iterations += 1
      self._check(self._library.iteration_end(self._manager))

  # ---- storages

  def record_of(self, storage: Any) -> Optional[Record]:
    """The storage's record; a new one if it is unknown. None: it stays where it is."""
    known = getattr(storage, _ATTRIBUTE, None)
    if known is None:
      return self._adopt(storage, "input")
    return known if known.__class__ is Record else None

  def _adopt(self, storage: Any, name: str) -> Optional[Record]:
    """A storage that something else has made, with its value."""
    size = storage.nbytes()
    if size < SMALL:
      return self.keep(storage, "small")
    if not storage.resizable() or (self.type == "cpu" and storage.is_shared()):
      return self.keep(storage, "not PyTorch's own memory")
    number = ctypes.c_uint64()
    self._check(self._library.tensor_create(self._manager, size, name.encode(), 0, ctypes.byref(number)))
    record = self._new_record(storage, number.value, size)
    # Its value comes from elsewhere: to the manager, an operation has written it.
    self._touch(record, _WRITE, b"appears", self.memory.adopt)
    return record

  def _touch(self, record: Record, access: int, name: bytes, then: Any) -> None:
    """An operation that uses one storage: then(record, place) is its work."""
    operation = self._operation
    self._uses[0].tensor, self._uses[0].access = record.number, access
    operation.name, operation.use_count, operation.output_count, operation.scratch_bytes = name, 1, 0, 0
    self._check(self._library.operation_begin(self._manager, ctypes.addressof(operation)))
    then(record, self._addresses[0])
    self._check(self._library.operation_end(self._manager, None))

  def _at(self, record: Record, place: int) -> None:
    if record.place != place:
      self.memory.give(record, place)

  def _new_record(self, storage: Any, number: int, size: int) -> Record:
    # The storage's death ends the record: not at once, because it may come in any thread and in the middle of anything.
    dead = self._dead
    record = Record(None, number, size)
    record.storage = weakref.ref(storage, lambda _: dead.append(record))
    setattr(storage, _ATTRIBUTE, record)
    self.memory.records[number] = record
    return record

  def keep(self, storage: Any, reason: str) -> None:
    """Leaves a storage where it is, and takes its bytes out of the manager's budget."""
    size = storage.nbytes()
    kept = Kept(size, reason)
    setattr(storage, _ATTRIBUTE, kept)
    dead = self._dead
    kept_ref = weakref.ref(storage, lambda reference: dead.append(reference))
    self._kept_references[kept_ref] = size
    self.kept_bytes += size
    if self.memory.counts_kept and self.kept_bytes > self._reserved:
      self._reserve()
    return None

  def _reserve(self) -> None:
    wanted = -(-self.kept_bytes // RESERVE_STEP) * RESERVE_STEP
    if wanted >= self.budget:
      raise errors.OutOfMemory(f"storages of {self.kept_bytes} bytes cannot be swapped: the budget is {self.budget}")
    # The budget changes between iterations only; until then the sum of small storages may be above by one step.
    if self.in_iteration:
      return
    self._check(self._library.manager_set_budget(self._manager, self.memory.manager_budget - wanted))
    self._reserved = wanted

  def sweep(self) -> None:
    """Takes note of storages that are gone."""
    dead = self._dead
    while dead:
      gone = dead.popleft()
      if gone.__class__ is Record:
        if gone.number in self.memory.records:
          self.memory.forget(gone)
          self._check(self._library.tensor_destroy(self._manager, gone.number))
      else:
        self.kept_bytes -= self._kept_references.pop(gone)

  def hold(self, storage: Any) -> None:
    """Brings a storage's bytes back. They are there until the next operator."""
    with self._lock:
      self.sweep()
      record = getattr(storage, _ATTRIBUTE, None)
      if record.__class__ is Record and self.memory.needs_touch(record):
        self._touch(record, _READ, b"look", self._at)

  def release(self, storage: Any, reason: str) -> None:
    """The program has the address of the bytes: from now on they stay."""
    with self._lock:
      record = getattr(storage, _ATTRIBUTE, None)
      if record is None:
        record = self.record_of(storage)
      if record.__class__ is Record:
        self.hold(storage)
        self.memory.keep(record)
        self.memory.forget(record)
        self._check(self._library.tensor_destroy(self._manager, record.number))
        self.keep(storage, reason)

  # ---- operators

  def _make_room(self, count: int) -> None:
    """Arrays of C for as many uses and outputs."""
    if count <= self._room:
      return
    self._room = 2 * count
    self._uses = (_native.Use * self._room)()
    self._outputs = (_native.Output * self._room)()
    self._addresses = (ctypes.c_uint64 * (2 * self._room))()
    self._operation.uses = ctypes.addressof(self._uses)
    self._operation.outputs = ctypes.addressof(self._outputs)
    self._operation.addresses = ctypes.addressof(self._addresses)

  def run(self, mode: Any, function: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    """Runs an operator. Its operands' values are in their storages meanwhile."""
    signature = signature_of(function)
    if signature.dataless:
      return function(*args, **kwargs)
    if signature.composite:
      with mode:
        results = function.decompose(*args, **kwargs)
      if results is not NotImplemented:
        return results
    with self._lock:
      if signature.lists:
        return one_by_one(lambda *a, **k: self._run(signature, function, a, k), args, kwargs)
      return self._run(signature, function, args, kwargs)

  def _run(self, signature: Signature, function: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    if self._dead:
      self.sweep()
    # record -> [is read, is changed, all of it is overwritten]
    found: Dict[Record, List[bool]] = {}
    operands = []
    for tensor, way in signature.operands(args, kwargs):
      if tensor.device.type != self.type or tensor.layout is not torch.strided or tensor.is_quantized:
        continue
      storage = tensor.untyped_storage()
      record = getattr(storage, _ATTRIBUTE, None)
      if record is None:
        if storage.nbytes() == 0:
          continue
        if not self.in_iteration:
          self.begin_iteration()
        record = self._adopt(storage, "input")
      if record.__class__ is not Record:
        continue
      operands.append((record, storage))
      if way == LOOK:
        continue
      facts = found.get(record)
      if facts is None:
        facts = found[record] = [False, False, False]
      if way == READ:
        facts[0] = True
      else:
        facts[1] = True
        if way == OVERWRITE and covers(tensor, record.bytes):
          facts[2] = True
    if signature.views:
      return self._view(function, args, kwargs, operands)
    if signature.reshapes:
      return self._reshape(function, args, kwargs, operands)
    key = self.sizes.key(function, args, kwargs)
    sizes = self.sizes.expected(key, signature, function, args, kwargs)
    large = [size for size in sizes if size >= SMALL] if sizes else []
    if not found and not large and sizes is not None:
      results = function(*args, **kwargs)
      self._settle_results(results, key, sizes, [])
      return results
    if not self.in_iteration:
      self.begin_iteration()
    while True:
      try:
        return self._operate(signature, function, args, kwargs, found, key, sizes, large)
      except RuntimeError:
        more = self.memory.more_pool()
        if not more or self.memory.manager_budget - self._reserved - more <= 0:
          raise
      self._grow_pool(more)

  def _grow_pool(self, more: int) -> None:
    """An operator wants a larger work area: the manager's part of the budget becomes smaller."""
    self._library.iteration_end(self._manager)
    self._check(self._library.manager_set_budget(self._manager, self.memory.manager_budget - self._reserved - more))
    self.memory.grow_pool(more)
    self._check(self._library.iteration_begin(self._manager, b"step"))

  def _operate(self, signature: Signature, function: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any],
               found: Dict[Record, List[bool]], key: Any, sizes: Optional[Tuple[int, ...]], large: List[int]) -> Any:
    operation, library, memory = self._operation, self._library, self.memory
    self._make_room(max(len(found), len(large)))
    uses, outputs, addresses = self._uses, self._outputs, self._addresses
    for i, (record, (is_read, is_changed, is_whole)) in enumerate(found.items()):
      use = uses[i]
      use.tensor = record.number
      use.access = _READ if not is_changed else _WRITE if is_whole and not is_read else _UPDATE
    i = len(found)
    for k, size in enumerate(large):
      output = outputs[k]
      output.bytes, output.name, output.lifetime = size, signature.key, 0
    operation.name = signature.key
    operation.use_count, operation.output_count = i, len(large)
    operation.scratch_bytes = 0 if sizes is not None else self._guess(signature, found)
    self._check(library.operation_begin(self._manager, ctypes.addressof(operation)))
    begun = True
    numbers = [outputs[k].tensor for k in range(len(large))]
    try:
      for record, place in zip(found, addresses):
        if record.place != place:
          memory.give(record, place)
      places = addresses[i:i + len(large)]
      memory.expect(large, places, ctypes.addressof(addresses) + 8 * i)
      if operation.scratch_bytes:
        memory.clear_scratch(operation.scratch, operation.scratch_bytes)
      stream = memory.enter()
      results = function(*args, **kwargs)
      memory.leave(stream)
      made = self._new_storages(results)
      expected = [storage for storage in made if storage.nbytes() >= SMALL]
      fits = [storage.nbytes() for storage in expected] == large
      if fits:
        for k, (storage, place) in enumerate(zip(expected, places)):
          record = self._new_record(storage, numbers[k], large[k])
          if not memory.made(record, storage, place):
            memory.adopt(record, place)
      begun = False
      memory.expect_nothing()
      self._check(library.operation_end(self._manager, None))
    except BaseException:
      memory.expect_nothing()
      if begun:
        library.operation_cancel(self._manager)
        for number in numbers:
          if number not in memory.records:
            library.tensor_destroy(self._manager, number)
      raise
    self.operations += 1
    if not fits:
      for number in numbers:
        self._check(library.tensor_destroy(self._manager, number))
    if not fits or len(made) != len(expected):
      self._settle(made, signature.base)
    if not fits and not signature.by_value:
      self.unforeseen += sizes is not None
      self.sizes.learn(key, tuple(storage.nbytes() for storage in made))
    return results

  def _guess(self, signature: Signature, found: Dict[Record, List[bool]]) -> int:
    """Room for results whose sizes are not known."""
    largest = max((record.bytes for record in found), default=0)
    room = self.budget - self._reserved - sum(record.bytes for record in found)
    return max(0, min(2 * largest if signature.by_value else largest, room // 2)) // 64 * 64

  def _new_storages(self, results: Any) -> List[Any]:
    """The storages of the results that are not known yet."""
    made: List[Any] = []
    for tensor in flat_tensors(results):
      if tensor.device.type != self.type or tensor.layout is not torch.strided:
        continue
      storage = tensor.untyped_storage()
      if getattr(storage, _ATTRIBUTE, None) is None and storage.nbytes() and storage not in made:
        made.append(storage)
    return made

  def _settle(self, storages: List[Any], name: str) -> None:
    for storage in storages:
      if getattr(storage, _ATTRIBUTE, None) is None:
        self._adopt(storage, name)

  def _settle_results(self, results: Any, key: Any, sizes: Tuple[int, ...], large: List[int]) -> None:
    """Of an operator that ran beside the manager."""
    made = self._new_storages(results)
    if any(storage.nbytes() >= SMALL for storage in made):
      self.sizes.learn(key, tuple(storage.nbytes() for storage in made))
      if not self.in_iteration:
        self.begin_iteration()
    self._settle(made, "output")

  def _view(self, function: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any], operands: List[Any]) -> Any:
    """Views need no bytes, but PyTorch compares their extent with the storage's size."""
    empty = [(record, storage) for record, storage in operands if record.place is None]
    if not empty:
      return function(*args, **kwargs)
    for position, (record, storage) in enumerate(empty):
      if storage.nbytes() == 0:
        self.memory.open_for_view(storage, record.bytes, position)
    try:
      return function(*args, **kwargs)
    finally:
      for _, storage in empty:
        storage.resize_(0)

  def _reshape(self, function: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any], operands: List[Any]) -> Any:
    """A storage that may get another size is a new one to the manager afterwards."""
    if not self.in_iteration:
      self.begin_iteration()
    for _, storage in operands:
      self.hold(storage)
    results = function(*args, **kwargs)
    for record, storage in operands:
      if storage.nbytes() != record.bytes and record.number in self.memory.records:
        self.memory.forget(record)
        self._check(self._library.tensor_destroy(self._manager, record.number))
        delattr(storage, _ATTRIBUTE)
        self._adopt(storage, "resized")
    self._settle(self._new_storages(results), "resized")
    return results
