# SPDX-License-Identifier: Apache-2.0
"""Where the bytes of storages are, on CUDA: at the places that the manager gives, in its own device memory. PyTorch's
requests for memory go to swapmm's allocator (backends/python/native/torch_allocator.cpp), which answers with these
places, and takes everything else from a memory pool with a limit."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import threading
from typing import Any, ContextManager, Dict, Iterator, List, Optional, Sequence, Set, Tuple

import torch

from .. import _native, errors
from .operators import address_of, copy_storage, nbytes_of, resize_storage
from .places import NOTHING_TO_WAIT_FOR, SMALL, Made, Memory, Record

_FUNCTIONS = {
        "swapmm_torch_open": (ctypes.c_int, [ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64]),
        "swapmm_torch_limit": (None, [ctypes.c_uint64]),
        "swapmm_torch_expect": (None, [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p]),
        "swapmm_torch_expect_requests": (None, [ctypes.c_uint64, ctypes.c_void_p]),
        "swapmm_torch_room": (None, [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64]),
        "swapmm_torch_room_peak": (ctypes.c_uint64, []),
        "swapmm_torch_room_live": (ctypes.c_uint64, []),
        "swapmm_torch_request_of": (ctypes.c_int64, [ctypes.c_uint64]),
        "swapmm_torch_raise_by": (None, [ctypes.c_void_p]),
        "swapmm_torch_next": (None, [ctypes.c_uint64]),
        "swapmm_torch_numbers": (None, [ctypes.c_void_p]),
}
_POOL_STEP = 32 << 20
_installed = False


def _install(library: Any) -> None:
    """Makes swapmm's allocator PyTorch's. It stays so for the rest of the process."""
    global _installed
    if _installed:
        return
    try:
        raise_error = ctypes.CDLL("libc10.so")._ZN3c106detail14torchCheckFailEPKcS2_jS2_
    except (OSError, AttributeError) as reason:
        raise errors.UsageError(f"PyTorch {torch.__version__} has no c10::detail::torchCheckFail(): {reason}") from reason
    library.torch_raise_by(ctypes.cast(raise_error, ctypes.c_void_p))
    allocator = torch.cuda.memory.CUDAPluggableAllocator(str(library.path), "swapmm_torch_allocate", "swapmm_torch_free")
    try:
        torch.cuda.memory.change_current_allocator(allocator)
    except RuntimeError as reason:
        raise errors.UsageError("swapmm.torch.budget() must come before the first tensor on a CUDA device: "
                                                        f"{reason}") from reason
    _installed = True


def _answer_statistics(memory: "CudaMemory") -> None:
    """PyTorch has no statistics for an allocator that is not its own, and raises an error instead. Programs print them."""

    def allocated(_device: Any = None) -> int:
        return memory.places.bytes + memory.numbers()["pool_used"]

    def most_allocated(_device: Any = None) -> int:
        return memory.peak()

    def reserved(_device: Any = None) -> int:
        return memory.budget

    def reset(_device: Any = None) -> None:
        memory.places.peak = memory.places.bytes

    answers = {
        "memory_allocated": allocated,
        "max_memory_allocated": most_allocated,
        "memory_reserved": reserved,
        "max_memory_reserved": reserved,
        "reset_peak_memory_stats": reset,
    }
    for name, answer in answers.items():
        for module in (torch.cuda, torch.cuda.memory):
            setattr(module, name, answer)


class CudaMemory(Memory):
    """The manager's device, and PyTorch's allocator for it."""

    type = "cuda"
    counts_kept = False  # what stays is in the pool

    def __init__(self, device: torch.device, budget: int, pool: Optional[int] = None) -> None:
        super().__init__(_native.library("cuda"), device, budget)
        for name, signature in _FUNCTIONS.items():
            self.library.declare(name, signature)
        _install(self.library)
        # A part for work areas and small tensors; it grows when it is too small.
        self.pool_limit = pool if pool is not None else max(2 * _POOL_STEP, budget // 16 // _POOL_STEP * _POOL_STEP)
        if self.pool_limit >= budget:
            raise errors.UsageError(
                f"the budget of {budget} bytes is too small: {self.pool_limit} of them are for work areas"
            )
        status = self.library.torch_open(device.index or 0, budget, self.pool_limit)
        if status:
            raise errors.BackendError(f"a memory pool on {device}: CUDA error {status}")
        _answer_statistics(self)
        self._sizes = (ctypes.c_uint64 * 256)()
        self._numbers = (ctypes.c_uint64 * 4)()
        self._room = (0, 0)  # addresses
        self._with_work_areas: Set[Tuple[int, int]] = set()  # threads and streams

    @property
    def manager_budget(self) -> int:
        return self.budget - self.pool_limit

    def backend(self) -> ctypes.c_void_p:
        backend = ctypes.c_void_p()
        torch.cuda.init()
        self.library.check(self.library.cuda_create_on_stream(self.device.index or 0, None, ctypes.byref(backend)))
        return backend

    def give(self, record: Record, place: int) -> None:
        """The storage is at that place from now on. Its bytes are the manager's business."""
        storage = record.storage()
        if storage is not None and nbytes_of(storage):
            resize_storage(storage, 0)
        self.places.take(record)
        self.places.clear_room(place, record.bytes)
        if storage is not None:
            self.library.torch_next(place)
            resize_storage(storage, record.bytes)
        self.places.put(record, place)

    def adopt(self, record: Record, place: int) -> None:
        """Moves the storage's bytes to that place."""
        self.places.clear_room(place, record.bytes)
        storage = record.storage()
        if storage is not None and address_of(storage) != place:
            self.library.torch_next(place)
            resize_storage(storage, record.bytes)  # allocates and copies, although the size is the same
            if address_of(storage) != place:
                self.library.torch_next(0)
                raise RuntimeError("this version of PyTorch does not move storages")
        self.places.put(record, place)

    def _make_work_areas(self) -> None:
        """Libraries make work areas when a thread first uses them on a stream, and keep them: none of the manager's places
        may become one, even if it has the same size."""
        key = threading.get_ident(), torch._C._cuda_getCurrentRawStream(self.device.index or 0)
        if key in self._with_work_areas:
            return
        for kind in (torch.float32, torch.float16):
            matrix = torch.zeros((64, 64), dtype=kind, device=self.device)
            torch.addmm(matrix[0], torch.mm(matrix, matrix), matrix)
        self._with_work_areas.add(key)

    def expect(self, sizes: Sequence[int], places: Sequence[int], places_at: int) -> None:
        """The running operation makes storages of these sizes at these places."""
        self._make_work_areas()
        super().expect(sizes, places, places_at)
        if len(sizes) > len(self._sizes):
            self._sizes = (ctypes.c_uint64 * (2 * len(sizes)))()
        self._sizes[:len(sizes)] = list(sizes)
        self.library.torch_expect(len(sizes), ctypes.addressof(self._sizes), places_at)

    def expect_nothing(self) -> None:
        self.library.torch_expect(0, None, None)

    def made(self, made: List[Made]) -> None:
        astray = self._astray([storage for _, storage, _ in made], [place for _, _, place in made])
        for record, storage, place in made:
            if storage not in astray:
                self.places.put(record, place)
        for record, storage, place in made:
            if storage in astray:
                self.adopt(record, place)

    def _astray(self, storages: List[Any], places: Sequence[int]) -> List[Any]:
        """Those that are not where they are to be. None of them is where another one is to be: an operator that
        allocates its results in another order gives each the other one's place."""
        astray = [storage for storage, place in zip(storages, places) if address_of(storage) != place]
        if astray:
            self.expect_nothing()
            for storage in astray:
                if address_of(storage) in places:
                    resize_storage(storage, nbytes_of(storage))  # moves it to the pool
        return astray

    def made_again(self, made: List[Made], again: List[Any]) -> None:
        astray = self._astray(again, [place for _, _, place in made])
        for (record, _, place), new in zip(made, again):
            if new not in astray:
                resize_storage(new, 0)  # PyTorch knows one storage for each address
                self.give(record, place)
        for (record, storage, place), new in zip(made, again):
            if new in astray:
                self.give(record, place)
                copy_storage(storage, new)
                resize_storage(new, 0)

    def open_room(self, region: Any, place: int, room: int) -> None:
        self._room = (place, place + room)
        self.library.torch_room(place, room, SMALL)
        if region.ordinals:
            requests = (ctypes.c_int64 * len(region.ordinals))(*region.ordinals)
            self.library.torch_expect_requests(len(requests), ctypes.addressof(requests))

    def measure_room(self, region: Any, results: List[Any]) -> None:
        # Its results are in it the first time, and in their own places the second time.
        peak = self.library.torch_room_peak()
        if not region.is_measured or peak > region.room:
            region.room = peak
        region.is_measured = region.sizes is not None

    def request_of(self, storage: Any) -> int:
        return self.library.torch_request_of(address_of(storage))

    def in_room(self, storage: Any) -> bool:
        return self._room[0] <= address_of(storage) < self._room[1]

    def require_empty_room(self, name: str) -> None:
        for collect in (True, False):
            if not self.library.torch_room_live():
                return
            if collect:
                gc.collect()
        raise errors.UsageError(f"{name} keeps memory beyond its end: leave what does so out of the graph (torch.compiler.disable())")

    def close_room(self) -> None:
        if self._room[1]:
            self.library.torch_room(0, 0, 0)
            self._room = (0, 0)

    def open_for_view(self, storage: Any, size: int, position: int) -> None:
        """Gives the storage its size, and an address that nobody uses."""
        self.library.torch_next(0x1000 * (position + 1))
        resize_storage(storage, size)

    def needs_touch(self, record: Record) -> bool:
        return True

    def keep(self, record: Record) -> None:
        """The storage leaves the manager's memory."""
        storage = record.storage()
        if storage is not None:
            resize_storage(storage, record.bytes)  # moves it to the pool

    def more_pool(self) -> int:
        """How much larger the pool has to be for a request that it has just refused. 0: it refused none."""
        self.library.torch_numbers(ctypes.addressof(self._numbers))
        refused = self._numbers[3]
        if not refused:
            return 0
        # It may also have been refused because of what the pool has of the driver, and nobody uses in one piece.
        has = max(self._numbers[0], self._numbers[2])
        return -(-max(has + refused - self.pool_limit, 0) // _POOL_STEP) * _POOL_STEP + _POOL_STEP

    def close(self) -> None:
        """From now on the pool may have all that the device has: the program may have more than its budget."""
        self.library.torch_limit((1 << 64) - 1)

    def grow_pool(self, by: int) -> None:
        self.pool_limit += by
        self.library.torch_limit(self.pool_limit)

    def peak(self) -> int:
        """Not above this: the most of storages and the most of the pool need not be of the same moment."""
        return min(self.places.peak + int(self.numbers()["pool_peak"]), self.budget)

    def numbers(self) -> Dict[str, int]:
        """Bytes beside the manager's."""
        self.library.torch_numbers(ctypes.addressof(self._numbers))
        used, peak, reserved, _ = self._numbers
        return {"pool_used": used, "pool_peak": peak, "pool_reserved": reserved, "pool_limit": self.pool_limit}

    def in_order(self) -> ContextManager[Any]:
        """What is queued within it is in order with what the manager queues, also on another stream than the manager's: that
        one waits for the manager's first, and the manager's for that one then, also if something was raised."""
        if torch._C._cuda_getCurrentRawStream(self.device.index or 0) == 0:  # the default one, which the manager knows
            return NOTHING_TO_WAIT_FOR
        return self._on(torch.cuda.current_stream(self.device))

    @contextlib.contextmanager
    def _on(self, stream: torch.cuda.Stream) -> Iterator[None]:
        of_manager = torch.cuda.default_stream(self.device)
        stream.wait_stream(of_manager)
        try:
            yield
        finally:
            of_manager.wait_stream(stream)
