# SPDX-License-Identifier: Apache-2.0
"""Watches the operators of a PyTorch program below autograd, and notes what each does to which storage."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Set, Tuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from .compound import parts_of
from .operators import CHANGE, LOOK, OVERWRITE, READ, Signature, covers, flat_tensors, has_own_dispatch, nbytes_of, signature_of, storage_of


class Storage:
    """One storage for as long as it exists. The weak reference keeps PyTorch's object for the storage, not its bytes:
    until the recording ends no other storage has its id, even if the allocator places new bytes at its address."""

    __slots__ = ("reference", "bytes", "name", "made_in", "has_value")

    def __init__(self, handle: Any, made_in: Optional[int]) -> None:
        self.reference = StorageWeakRef(handle)
        self.bytes: int = nbytes_of(handle)
        self.name = ""
        self.made_in = made_in  # the step in which an operation returned it; None: it came from elsewhere
        self.has_value = made_in is None


class Storages:
    """All storages of a recording, on one device, and what the program has declared about them."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.known: Dict[int, Storage] = {}  # by id
        self.host_handles: Dict[int, Any] = {}  # on this device, but the host's by nature; by id
        self.inputs: Set[Storage] = set()
        self.parameters: Set[Storage] = set()

    def find(self, handle: Any, made_in: Optional[int] = None) -> Storage:
        """`made_in`: the step that made it, if it is new."""
        found = self.known.get(handle._cdata)
        if found is None:
            found = self.known[handle._cdata] = Storage(handle, made_in)
        found.bytes = max(found.bytes, nbytes_of(handle))  # resize_ and out= make it grow
        return found

    def keep_on_host(self, handle: Any) -> None:
        """Counts the storage as the host's."""
        self.host_handles[handle._cdata] = handle  # which keeps its id taken

    def on_host(self, tensor: torch.Tensor, handle: Any) -> bool:
        """Whether the tensor is the host's, or another device's."""
        return tensor.device.type != self.device.type or handle._cdata in self.host_handles


#: A storage, and how an operation accesses it: "reads", "writes" or "updates".
Access = Tuple[Storage, str]
#: A tensor among the arguments with its storage, and the way in which it is used.
Operand = Tuple[torch.Tensor, Any, int]


class Step:
    """What one step did, in order."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.operations: List[Tuple[str, List[Access], Any]] = []  # name, accesses, what the probe measured
        self.first_access: Dict[Storage, int] = {}  # the operation, in the order of first accesses
        self.last_write: Dict[Storage, int] = {}
        self.lives_in: Set[Storage] = set()  # storages that this step accesses and did not make
        self.uploads: Dict[Storage, int] = {}  # the operation before which the host gave it a value
        # with the operation that wrote the value; None: an earlier step did
        self.host_reads: List[Tuple[Storage, Optional[int]]] = []

    def add(self, name: str, accesses: List[Access], measured: Any) -> None:
        """Adds an operation."""
        position = len(self.operations)
        for storage, access in accesses:
            if storage not in self.first_access:
                self.first_access[storage] = position
                if storage.made_in != self.number:
                    self.lives_in.add(storage)
            if access != "reads":
                self.last_write[storage] = position
                storage.has_value = True
        self.operations.append((name, accesses, measured))

    def bundles(self) -> List[Tuple[str, List[Tuple[int, str]]]]:
        """The sequence without identities: equal for two steps of the same program."""
        ids = {storage: i for i, storage in enumerate(self.first_access)}
        return [
            (name, [(ids[storage], access) for storage, access in accesses]) for name, accesses, _ in self.operations
        ]


class Watch(TorchDispatchMode):
    """Sees each operator of one step below autograd, backward included, and notes what it does to storages."""

    def __init__(self, storages: Storages, step: Step, probe: Any) -> None:
        super().__init__()
        self.storages, self.step, self.probe = storages, step, probe

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if has_own_dispatch(types):
            return NotImplemented
        kwargs = kwargs or {}
        signature = signature_of(function)
        if not signature.touches_data:
            return function(*args, **kwargs)
        operands = [(part, storage_of(part), way) for tensor, way in signature.operands(args, kwargs)
                    for part in parts_of(tensor)]
        token = self.probe.before()
        results = function(*args, **kwargs)
        measured = self.probe.after(token)
        made = [(part, storage_of(part)) for tensor in flat_tensors(results) for part in parts_of(tensor)]
        if not self._crosses(signature, operands, made):
            self._note(signature, operands, made, measured)
        return results

    def _crosses(self, signature: Signature, operands: List[Operand], made: List[Tuple[torch.Tensor, Any]]) -> bool:
        """True for copies between host and device, which are no operations; what they say about values is noted."""
        on_host = self.storages.on_host
        if signature.base in ("_local_scalar_dense", "item"):
            self._host_read(*operands[0][:2])
            return True
        if signature.base == "copy_" and len(operands) == 2:
            (target, target_handle, _), (source, source_handle, _) = operands
        elif len(operands) == 1 and len(made) == 1:
            (source, source_handle, _), (target, target_handle) = operands[0], made[0]
        else:
            return False
        from_host, to_host = on_host(source, source_handle), on_host(target, target_handle)
        if to_host:
            self._host_read(source, source_handle)
        elif from_host:
            return self._upload(target, target_handle, signature.base != "copy_")
        return to_host

    def _host_read(self, tensor: torch.Tensor, handle: Any) -> None:
        if self.storages.on_host(tensor, handle) or tensor.numel() == 0:
            return
        storage = self.storages.find(handle)
        if storage.has_value:
            self.step.host_reads.append((storage, self.step.last_write.get(storage)))

    def _upload(self, tensor: torch.Tensor, handle: Any, fresh: bool) -> bool:
        """The host gives a whole new value to a storage that this step has not touched: an input. Any other copy is an
        operation."""
        storage = self.storages.find(handle, self.step.number if fresh else None)
        if (
            storage in self.step.first_access
            or storage in self.storages.parameters
            or not covers(tensor, nbytes_of(handle))
        ):
            return False
        self.step.uploads[storage] = len(self.step.operations)
        storage.has_value = True
        return True

    def _note(
        self, signature: Signature, operands: List[Operand], made: List[Tuple[torch.Tensor, Any]], measured: Any
    ) -> None:
        storages, number = self.storages, self.step.number
        known = {handle._cdata for _, handle, _ in operands}
        fresh = [(tensor, handle) for tensor, handle in made if handle._cdata not in known]
        changes = any(way in (CHANGE, OVERWRITE) for _, _, way in operands)
        if made and not fresh and not changes:
            return  # a view
        if signature.allocates:
            for tensor, handle in fresh:
                if not storages.on_host(tensor, handle):
                    storages.find(handle, number)
            return
        found: Dict[Storage, List[bool]] = {}  # is read, is changed, all of it is overwritten
        for tensor, handle, way in operands:
            if way == LOOK or tensor.numel() == 0 or storages.on_host(tensor, handle):
                continue
            facts = found.setdefault(storages.find(handle), [False, False, False])
            facts[0] |= way == READ
            facts[1] |= way != READ
            facts[2] |= way == OVERWRITE and covers(tensor, nbytes_of(handle))
        for tensor, handle in fresh:
            if tensor.numel() != 0 and not storages.on_host(tensor, handle):
                found.setdefault(storages.find(handle, number), [False, True, True])
        if not found:
            return
        accesses = []
        for storage, (is_read, is_changed, is_whole) in found.items():
            access = "reads" if not is_changed else "writes" if is_whole and not is_read else "updates"
            if not storage.has_value:
                # Nobody needs what an allocation left there: whatever is written first is the whole value. What is read
                # without having been written gets an operation that stands for the undefined bytes.
                if access == "reads":
                    self.step.add("uninitialised", [(storage, "writes")], None)
                else:
                    access = "writes"
            accesses.append((storage, access))
            if not storage.name and access == "writes":
                storage.name = f"{signature.name}.{len(self.step.operations)}"
        self.step.add(signature.name, accesses, measured)
