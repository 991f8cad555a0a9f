# SPDX-License-Identifier: Apache-2.0
"""Offload of the tensors that autograd saves, as training libraries do it, made with care: what swapmm is compared
with.

    with offload:                # the forward pass: what autograd saves is copied to page-locked host memory
      loss = ...
    loss.backward()              # copied back ahead of its use, in reverse order
    offload.finish()

Copies run on a stream per direction, tied to the compute stream by events; the host waits for nothing. Whole storages
move, once each, however many views of them are saved. All device memory belongs to the compute stream: a block goes
back to the allocator only behind an event which says that the copy from or to it has ended, so no memory is used again
too early and none is held for longer than that. On a CPU the same runs without streams.
"""

import torch
from torch.multiprocessing.reductions import StorageWeakRef

MIB = 1 << 20
_storage_of = getattr(torch.Tensor, "untyped_storage", None) or torch.Tensor._storage


class HostPool:
  """Page-locked memory, given back and used again in equal sizes. In slabs of a power of two: PyTorch's allocator would
  round each block up to one."""

  def __init__(self, pinned, slab=4 << 30):
    self.pinned, self.slab = pinned, slab
    self.rests = []  # of the slabs
    self.free = {}
    self.bytes = 0

  def take(self, size):
    """(buffer, the event behind which it may be written, or None)"""
    if self.free.get(size):
      return self.free[size].pop()
    rounded = -(-size // 512) * 512
    place = next((i for i, rest in enumerate(self.rests) if rest.numel() >= rounded), None)
    if place is None:
      place = len(self.rests)
      taken = max(self.slab, 1 << (rounded - 1).bit_length())
      self.rests.append(torch.empty(taken, dtype=torch.uint8, pin_memory=self.pinned))
      self.bytes += taken
    buffer, self.rests[place] = self.rests[place][:size], self.rests[place][rounded:]
    return buffer, None

  def give(self, buffer, event):
    self.free.setdefault(buffer.numel(), []).append((buffer, event))


class Streams:
  """The two copy streams of a device, or the same without any."""

  def __init__(self, device):
    self.on_cuda = device.type == "cuda"
    self.out = torch.cuda.Stream(device) if self.on_cuda else None
    self.back = torch.cuda.Stream(device) if self.on_cuda else None

  def copy(self, stream, source, target, *events):
    """Behind all that is queued on the compute stream, and the events. Returns the event of its end."""
    if not self.on_cuda:
      target.copy_(source)
      return None
    stream.wait_stream(torch.cuda.current_stream())
    for event in events:
      if event is not None:
        stream.wait_event(event)
    with torch.cuda.stream(stream):
      target.copy_(source, non_blocking=True)
      return stream.record_event()

  @staticmethod
  def compute_waits(event):
    if event is not None:
      torch.cuda.current_stream().wait_event(event)


class Entry:
  """One storage that is saved."""

  def __init__(self, position, handle, flat):
    self.position = position  # in the order of saving
    self.reference = StorageWeakRef(handle)  # keeps the storage's id taken, not its bytes
    self.bytes = handle.nbytes()
    self.device = flat  # all of it, where it is on the device
    self.host = None
    self.copied = None  # the event behind which `host` holds the value
    self.loaded = None  # the event behind which `device` holds it, where that came back
    self.leaves = False
    self.uses = 0  # saved tensors that autograd has yet to ask for


class OverlappedOffload(torch.autograd.graph.saved_tensors_hooks):
  """`lasting`: tensors that live on anyway, parameters and inputs; they are not moved, and what is smaller than
  `smallest` is not. `share`: of the bytes saved in an iteration those saved first leave, that is, the ones needed last.
  `in_flight`: how many bytes may wait for their copy out, how many may be back before they are needed, and how many,
  saved last, stay because the backward pass begins with them. The first iteration, which knows no sum yet, moves all.
  """

  def __init__(self, device, lasting, share=1.0, smallest=MIB, in_flight=1 << 30, streams=None):
    super().__init__(self._pack, self._unpack)
    self.streams = streams or Streams(device)
    self.pool = HostPool(device.type == "cuda")
    self.device_type = device.type
    self.share, self.smallest, self.in_flight = share, smallest, in_flight
    self.lasting = [_storage_of(tensor) for tensor in lasting]
    self.lasting_ids = {handle._cdata for handle in self.lasting}
    self.most_leaving = float("inf")
    self.bytes_out = self.bytes_back = 0
    self._begin()

  def _begin(self):
    self.entries = []  # those that leave
    self.by_storage = {}
    self.sum = 0
    self.leaving, self.leaving_bytes = [], 0  # on their way out, still on the device; oldest first
    self.ahead, self.ahead_bytes = None, 0  # the next one to bring back; what is back and not used up

  # Forward: autograd saves.

  @torch.no_grad()
  def _pack(self, tensor):
    handle = _storage_of(tensor)
    is_here = tensor.device.type == self.device_type
    if not is_here or handle.nbytes() < self.smallest or handle._cdata in self.lasting_ids:
      return None, tensor
    entry = self._entry(tensor, handle)
    if not entry.leaves:
      return None, tensor
    entry.uses += 1
    return entry, (tensor.dtype, tensor.size(), tensor.stride(), tensor.storage_offset())

  def _entry(self, tensor, handle):
    # Autograd refuses what is changed after it was saved; until then a change makes another value.
    key = handle._cdata, tensor._version, tensor.dtype
    entry = self.by_storage.get(key)
    if entry is None:
      flat = tensor.detach().as_strided((handle.nbytes() // tensor.element_size(),), (1,), 0)
      entry = self.by_storage[key] = Entry(len(self.entries), handle, flat)
      entry.leaves = self.sum + entry.bytes <= self.most_leaving
      self.sum += entry.bytes
      if entry.leaves:
        self.entries.append(entry)
        self._send(entry)
      else:
        entry.device = None
    return entry

  def _send(self, entry):
    while self.leaving and self.leaving_bytes + entry.bytes > self.in_flight:
      self._let_go(self.leaving[0])
    buffer, event = self.pool.take(entry.bytes)
    entry.host = buffer
    entry.copied = self.streams.copy(self.streams.out, entry.device, buffer.view(entry.device.dtype), event)
    self.bytes_out += entry.bytes
    self.leaving.append(entry)
    self.leaving_bytes += entry.bytes

  def _let_go(self, entry):
    """Of one on its way out: what is computed next may have its memory, once the copy has ended."""
    self.streams.compute_waits(entry.copied)
    self.leaving.remove(entry)
    self.leaving_bytes -= entry.bytes
    entry.device = None

  # Backward: autograd asks for what it saved.

  @torch.no_grad()
  def _unpack(self, packed):
    entry, view = packed
    if entry is None:
      return view
    self._bring(entry)
    self.streams.compute_waits(entry.loaded)
    tensor = self._view(entry, view)
    entry.uses -= 1
    if entry.uses == 0:
      self._use_up(entry)
    self._bring_ahead(entry.position - 1)
    return tensor

  @staticmethod
  def _view(entry, view):
    dtype, size, stride, offset = view
    return entry.device.view(dtype).as_strided(size, stride, offset)

  def _bring(self, entry):
    if entry.device is not None:
      return
    flat = entry.host.view(torch.uint8)
    entry.device = torch.empty(flat.numel(), dtype=torch.uint8, device=self.device_type)
    entry.loaded = self.streams.copy(self.streams.back, flat, entry.device, entry.copied)
    self.bytes_back += entry.bytes
    self.ahead_bytes += entry.bytes

  def _bring_ahead(self, position):
    self.ahead = position if self.ahead is None else min(self.ahead, position)
    while self.ahead >= 0:
      entry = self.entries[self.ahead]
      if entry.uses > 0 and entry.device is None:
        if self.ahead_bytes and self.ahead_bytes + entry.bytes > self.in_flight:
          return
        self._bring(entry)
      self.ahead -= 1

  def _use_up(self, entry):
    """Autograd has all of its views, and lets go of them behind the operations that use them."""
    if entry in self.leaving:  # it never left the device
      self._let_go(entry)
    else:
      self.ahead_bytes -= entry.bytes
    entry.device = None
    self.pool.give(entry.host, entry.loaded or entry.copied)
    entry.host = None

  def finish(self):
    """Behind the backward pass: what nobody asked for goes, too."""
    for entry in self.entries:
      if entry.host is not None:
        self.streams.compute_waits(entry.copied)
        self.streams.compute_waits(entry.loaded)
        self.pool.give(entry.host, entry.loaded or entry.copied)
    self.most_leaving = min(self.share * self.sum, self.sum - self.in_flight)
    self._begin()


class CountedSaveOnCpu(torch.autograd.graph.save_on_cpu):
  """PyTorch's own, with its bytes counted."""

  def __init__(self, device):
    super().__init__(pin_memory=device.type == "cuda")
    self.bytes_out = self.bytes_back = 0
    pack, unpack = self.pack_hook, self.unpack_hook

    def counted_pack(tensor):
      self.bytes_out += tensor.numel() * tensor.element_size()
      return pack(tensor)

    def counted_unpack(packed):
      tensor = unpack(packed)
      self.bytes_back += tensor.numel() * tensor.element_size()
      return tensor

    self.pack_hook, self.unpack_hook = counted_pack, counted_unpack

  def finish(self):
    pass
