# SPDX-License-Identifier: Apache-2.0
"""Where the bytes of storages are, on the CPU: in the storage while its value is on the "device", else nowhere. The
manager says which places values have; this keeps the bytes of all storages within them."""

from __future__ import annotations

import bisect
import ctypes
from typing import Any, Dict, List, Optional


class Record:
  """A storage that the manager knows. `storage` returns it, or None when it is gone."""

  __slots__ = ("storage", "number", "bytes", "place", "__weakref__")

  def __init__(self, storage: Any, number: int, size: int) -> None:
    self.storage, self.number, self.bytes = storage, number, size
    self.place: Optional[int] = None  # None: the storage has no bytes


class Places:
  """The storages that have bytes, by place. No two overlap, so together they are never larger than the budget."""

  def __init__(self) -> None:
    self._starts: List[int] = []
    self._records: List[Record] = []  # in the order of their places
    self.bytes = 0  # of all storages that have bytes
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
    self.peak = max(self.peak, self.bytes)

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
      storage.resize_(0)


class CpuMemory:
  """The custom device of the manager: copies between storages and the host memory that the manager gives."""

  def __init__(self) -> None:
    self.places = Places()
    self.records: Dict[int, Record] = {}  # by the manager's number
    self.failure: Optional[BaseException] = None  # of the last copy that failed

  def copy_to_host(self, _context: Any, number: int, place: int, to: int, size: int) -> int:
    try:
      record = self.records[number]
      storage = record.storage()
      if storage is not None:
        assert record.place == place, (record.place, place)
        ctypes.memmove(to, storage.data_ptr(), size)
      return 0
    except BaseException as reason:  # C cannot take it
      self.failure = reason
      return 1

  def copy_to_device(self, _context: Any, number: int, place: int, source: int, size: int) -> int:
    try:
      record = self.records[number]
      self.give(record, place)
      storage = record.storage()
      if storage is not None:
        ctypes.memmove(storage.data_ptr(), source, size)
      return 0
    except BaseException as reason:  # C cannot take it
      self.failure = reason
      return 1

  def give(self, record: Record, place: int) -> None:
    """The storage gets bytes at that place."""
    self.places.take(record)
    self.places.clear_room(place, record.bytes)
    storage = record.storage()
    if storage is not None and storage.nbytes() != record.bytes:
      storage.resize_(record.bytes)
    self.places.put(record, place)

  def forget(self, record: Record) -> None:
    """The storage is gone, or is no longer the manager's."""
    self.places.take(record)
    del self.records[record.number]
