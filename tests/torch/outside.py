# SPDX-License-Identifier: Apache-2.0
"""Counts the bytes of all storages from outside of the adapter: after each operator, those that the program can reach."""

import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import swapmm.torch

# Past what the adapter wraps.
_storage_of = torch._C.TensorBase.untyped_storage
_nbytes_of = torch._C.StorageBase.nbytes


class Count(TorchDispatchMode):
    """`peak`: the largest sum of sizes. To be entered after the budget, so that it sees each operator first."""

    def __init__(self):
        super().__init__()
        self.known = {}  # weak references to storages
        self.peak = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self._note(args)
        self._note((kwargs or {}).values())
        results = function(*args, **(kwargs or {}))
        self._note((results,))
        self.peak = max(self.peak, self.bytes())
        return results

    def _note(self, values):
        for value in values:
            if isinstance(value, torch.Tensor):
                if value.device.type == "cpu" and value.layout is torch.strided:
                    storage = _storage_of(value)
                    if storage.resizable():
                        self.known.setdefault(storage._cdata, weakref.ref(storage, self._forget(storage._cdata)))
            elif isinstance(value, (list, tuple)):
                self._note(value)

    def _forget(self, key):
        return lambda _: self.known.pop(key, None)

    def bytes(self):
        return sum(_nbytes_of(storage) for storage in (reference() for reference in list(self.known.values())) if
                   storage is not None)


def within(size, program, **options):
    """What program() returns within a budget of so many bytes, the largest sum that was counted, and the report."""
    swapmm.torch.budget(size, "cpu", **options)
    try:
        count = Count()
        with count:
            result = program()
        report = swapmm.torch.report()
    finally:
        swapmm.torch.off()
    return result, count.peak, report
