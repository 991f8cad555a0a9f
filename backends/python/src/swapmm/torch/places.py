# SPDX-License-Identifier: Apache-2.0
"""Where the bytes of storages are. The manager says which places values have; this keeps the bytes of all storages
within them: a storage has bytes while its value has a place, else none. CpuMemory: PyTorch's own memory of the host."""

from __future__ import annotations

import bisect
import contextlib
import ctypes
import weakref
from typing import Any, ContextManager, Dict, List, Optional, Sequence, Tuple

import torch

from .. import _native
from .kept import KeptStorages
from .operators import address_of, copy_storage, nbytes_of, resize_storage
from .requests import Requests, current


#: Storages below this many bytes stay where they are.
SMALL = 4096
#: See in_order() of the memories.
NOTHING_TO_WAIT_FOR = contextlib.nullcontext()


class RecordReference(weakref.ref):  # type: ignore[type-arg]
    """A reference to the storage of a record."""

    __slots__ = ("number",)
    number: int


class Record:
    """A storage that the manager knows. `storage` returns it, or None when it is gone."""

    __slots__ = ("storage", "number", "bytes", "place", "__weakref__")

    def __init__(self, number: int, size: int) -> None:
        self.storage: Any = None  # set right after
        self.number, self.bytes = number, size
        self.place: Optional[int] = None  # None: the storage has no bytes


def _gone() -> None:
    """The storage of a record that the manager has not any more."""


#: What an operation has made: the storage, and the place that it was to have.
Made = Tuple[Record, Any, int]


class Places:
    """The storages that have bytes, by place. No two overlap, so together they are never larger than the budget, and no
    two have one address."""

    def __init__(self) -> None:
        self._starts: List[int] = []
        self._records: List[Record] = []  # in the order of their places
        self.bytes = 0  # of all storages that have bytes
        self.kept: Optional[KeptStorages] = None  # whose bytes count, too
        self.peak = 0

    def clear_room(self, place: int, size: int) -> None:
        """Takes the bytes of all storages that overlap a place: their values are not needed there any more."""
        starts = self._starts
        first = bisect.bisect_right(starts, place) - 1
        if first < 0 or starts[first] + self._records[first].bytes <= place:
            first += 1
        last = first
        while last < len(starts) and starts[last] < place + size:
            self._empty(self._records[last])
            last += 1
        del starts[first:last], self._records[first:last]

    def put(self, record: Record, place: int) -> None:
        """The storage has its bytes at that place, in which nothing else is."""
        at = bisect.bisect_left(self._starts, place)
        self._starts.insert(at, place)
        self._records.insert(at, record)
        record.place = place
        self.bytes += record.bytes
        self.note()

    def note(self, more: int = 0) -> None:
        """What is in use now, with so many bytes more, may be the most so far."""
        kept = self.kept.bytes if self.kept is not None else 0
        self.peak = max(self.peak, self.bytes + kept + more)

    def take(self, record: Record) -> None:
        """The storage has no place any more, and keeps its bytes."""
        if record.place is not None:
            at = bisect.bisect_left(self._starts, record.place)
            del self._starts[at], self._records[at]
            record.place = None
            self.bytes -= record.bytes

    def _empty(self, record: Record) -> None:
        record.place = None
        self.bytes -= record.bytes
        storage = record.storage()
        if storage is not None:
            resize_storage(storage, 0)


class Memory:
    """What the memories of CPU and CUDA share: the records and places of storages."""

    def __init__(self, library: Any, device: torch.device, budget: int) -> None:
        self.library, self.device, self.budget = library, device, budget
        self.places = Places()
        self.records: Dict[int, Record] = {}  # by the manager's number
        self.failure: Optional[BaseException] = None  # of the last copy that failed

    def expect(self, sizes: Sequence[int], places: Sequence[int], places_at: int) -> None:
        """The running operation makes storages of these sizes at these places."""
        for size, place in zip(sizes, places):
            self.places.clear_room(place, size)

    def clear_scratch(self, place: int, size: int) -> None:
        """A work area holds no storage."""
        self.places.clear_room(place, size)

    def made(self, made: List[Made]) -> None:
        """The running operation has made these storages."""
        raise NotImplementedError

    def made_again(self, made: List[Made], again: List[Any]) -> None:
        """An operation that has run again has put the values into new storages, for these places. They become those of
        the storages that the program knows; the new ones are empty then."""
        raise NotImplementedError

    def open_room(self, region: Any, place: int, room: int) -> Optional[Requests]:
        """Requests for memory get this room, until close_room(): those of a compiled graph (regions.py)."""
        raise NotImplementedError

    def measure_room(self, region: Any, results: List[Any]) -> None:
        """How much room the graph needs. `results`: the large storages that it has made."""
        raise NotImplementedError

    def request_of(self, _storage: Any) -> int:
        """Which request the storage's bytes come from. -1: it does not matter."""
        return -1

    def in_room(self, _storage: Any) -> bool:
        """Whether the storage's bytes are in the room."""
        return False

    def take_out(self, storage: Any) -> Any:
        """Takes a storage's bytes from it. Returns a storage in host memory with them."""
        value = torch.UntypedStorage(nbytes_of(storage))
        copy_storage(value, storage)
        resize_storage(storage, 0)
        return value

    def require_empty_room(self, _name: str) -> None:
        """Raises an error if something keeps bytes of the room beyond the operation's end."""

    def close_room(self) -> None:
        """The operation has ended. There may have been no room."""

    def forget(self, record: Record) -> None:
        """The storage is gone, or is no longer the manager's."""
        self.places.take(record)
        del self.records[record.number]
        record.storage = _gone  # the reference's function knows the record


class CpuMemory(Memory):
    """The custom device of the manager: copies between storages and the host memory that the manager gives."""

    type = "cpu"
    counts_kept = True  # what stays takes room from the manager

    def __init__(self, budget: int) -> None:
        super().__init__(_native.library(), torch.device("cpu"), budget)
        self.manager_budget = budget
        self.requests: Optional[Requests] = None  # of the graph that runs for the first time
        self._callbacks = (_native.Copy(self._copy_to_host), _native.Copy(self._copy_to_device),
                           _native.CopyPart(self._copy_part_to_host), _native.CopyPart(self._copy_part_to_device))

    def backend(self) -> ctypes.c_void_p:
        device = _native.CustomDevice(
            ctypes.sizeof(_native.CustomDevice), b"PyTorch's storages", self.budget, 64, None, *self._callbacks
        )
        backend = ctypes.c_void_p()
        self.library.check(self.library.custom_create(ctypes.byref(device), ctypes.byref(backend)))
        return backend

    def _copy_to_host(self, context: Any, number: int, place: int, to: int, size: int) -> int:
        return self._copy_part_to_host(context, number, place, 0, to, size)

    def _copy_part_to_host(self, _context: Any, number: int, place: int, offset: int, to: int, size: int) -> int:
        try:
            record = self.records.get(number)
            if record is None:
                return 0  # a plan copies what the program has let go
            storage = record.storage()
            if storage is not None:
                if record.place != place:
                    raise RuntimeError(f"a value is expected at {place} and is at {record.place}")
                ctypes.memmove(to, address_of(storage) + offset, size)
            return 0
        except BaseException as reason:  # C cannot take it
            self.failure = reason
            return 1

    def _copy_to_device(self, context: Any, number: int, place: int, source: int, size: int) -> int:
        return self._copy_part_to_device(context, number, place, 0, source, size)

    def _copy_part_to_device(self, _context: Any, number: int, place: int, offset: int, source: int, size: int) -> int:
        try:
            record = self.records.get(number)
            if record is None:
                return 0
            if offset == 0:
                self.give(record, place)
            storage = record.storage()
            if storage is not None:
                ctypes.memmove(address_of(storage) + offset, source, size)
            return 0
        except BaseException as reason:  # C cannot take it
            self.failure = reason
            return 1

    def give(self, record: Record, place: int) -> None:
        """The storage gets bytes at that place."""
        self.places.take(record)
        self.places.clear_room(place, record.bytes)
        storage = record.storage()
        if storage is not None and nbytes_of(storage) != record.bytes:
            resize_storage(storage, record.bytes)
        self.places.put(record, place)

    def adopt(self, record: Record, place: int) -> None:
        """The storage, which has bytes, gets that place."""
        self.places.clear_room(place, record.bytes)
        self.places.put(record, place)

    def expect_nothing(self) -> None:
        """The operation has ended."""

    def made(self, made: List[Made]) -> None:
        for record, _, place in made:
            self.places.put(record, place)

    def made_again(self, made: List[Made], again: List[Any]) -> None:
        for (record, storage, place), new in zip(made, again):
            self.places.take(record)
            resize_storage(storage, 0)
            # By way of host memory, because both together may be more than the budget.
            value = ctypes.string_at(address_of(new), record.bytes)
            resize_storage(new, 0)
            resize_storage(storage, record.bytes)
            ctypes.memmove(address_of(storage), value, record.bytes)
            self.places.put(record, place)

    def open_room(self, region: Any, place: int, room: int) -> Optional[Requests]:
        """The first time, they are counted. Then it is known how many bytes they are."""
        if region.sizes is None:
            self.requests = Requests(region.key.decode(), room, SMALL)
            current.append(self.requests)
        return self.requests

    def measure_room(self, region: Any, results: List[Any]) -> None:
        if self.requests is not None:
            region.room = self.requests.most_beside(results)

    def close_room(self) -> None:
        if self.requests is not None:
            self.requests = None
            current.pop()

    def open_for_view(self, storage: Any, size: int, _position: int) -> None:
        """Gives the storage its size; nobody touches the bytes."""
        resize_storage(storage, size)

    def needs_touch(self, record: Record) -> bool:
        """Whether the value may be elsewhere."""
        return record.place is None

    def keep(self, record: Record) -> None:
        """The storage leaves the manager's places, with its bytes."""

    def more_pool(self) -> int:
        return 0

    def close(self) -> None:
        """PyTorch's storages are its own again."""

    def peak(self) -> int:
        """The most bytes that were in use at once: storages, and work areas of known size."""
        return self.places.peak

    def numbers(self) -> Dict[str, int]:
        """Bytes of storages with a place, now, and peak()."""
        return {"storages": self.places.bytes, "storages_peak": self.places.peak}

    def in_order(self) -> ContextManager[Any]:
        """There are no streams."""
        return NOTHING_TO_WAIT_FOR
