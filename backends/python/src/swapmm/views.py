# SPDX-License-Identifier: Apache-2.0
"""Tensors of a running CUDA operation, as other libraries take them."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple

from . import _memory, _native, errors

if TYPE_CHECKING:
    from .operation import Operation

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))

_NAME = b"dltensor"  # the capsule has only a pointer to it
_LEGACY_STREAM = 1  # of DLPack and of __cuda_array_interface__


def _destroy(capsule: int) -> None:
    if _is_valid(capsule, _NAME):  # nobody has taken what is in it
        _native.library().python_dlpack_destroy(_pointer(capsule, _NAME))


_destroy_capsule = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_destroy)


class View:
    """The memory of a tensor of a running operation on CUDA, with `__dlpack__` and `__cuda_array_interface__`. Both raise
    UsageError once the operation has ended. What a library has made of them before is not recognized: it must not be used
    after the end.

    The work must be on the operation's queue. With PyTorch: `with torch.cuda.stream(torch.cuda.ExternalStream(op.queue)):
    array = torch.from_dlpack(op.view(tensor))`."""

    __slots__ = ("_operation", "_address", "_type", "shape", "_device")

    def __init__(self, operation: "Operation", address: int, dtype: Optional[str], shape: Tuple[int, ...], device: int) -> None:
        self._operation = operation
        self._address = address
        self._type = _memory.element_type(dtype or "uint8")
        self.shape = shape
        self._device = device

    @property
    def dtype(self) -> str:
        """The name of the type of elements; "uint8" for a tensor of bytes."""
        return self._type.name

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        self._operation._require_running()
        if self._type.name == "bfloat16":
            raise errors.UsageError("__cuda_array_interface__ has no bfloat16: use DLPack")
        kind = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}[self._type.code]
        return {
            "shape": self.shape,
            "typestr": f"{'|' if self._type.size == 1 else '<'}{kind}{self._type.size}",
            "data": (self._address, False),
            "strides": None,
            "version": 3,
            "stream": self._operation.queue or _LEGACY_STREAM,
        }

    def __dlpack_device__(self) -> Tuple[int, int]:
        return _memory.CUDA, self._device

    def __dlpack__(self, *, stream: Optional[int] = None, **options: Any) -> Any:
        """A capsule. `stream` is the consumer's stream: that of the operation, or -1 if the consumer orders its work
        itself. BufferError for another one, and for a copy or another device."""
        self._operation._require_running()
        own = self._operation.queue or _LEGACY_STREAM
        if stream not in (-1, own):
            raise BufferError(f"the work must be on the operation's queue, {own}, and the current stream is {stream}")
        if options.get("copy") or options.get("dl_device") not in (None, self.__dlpack_device__()):
            raise BufferError("a view of a tensor is no copy, and on its own device")
        library = _native.library()
        made = ctypes.c_void_p()
        extents = (ctypes.c_int64 * max(len(self.shape), 1))(*self.shape)
        library.check(
            library.python_dlpack_create(
                self._address, _memory.CUDA, self._device, self._type.code, 8 * self._type.size, len(self.shape), extents, made
            )
        )
        return _new_capsule(made, _NAME, ctypes.cast(_destroy_capsule, ctypes.c_void_p))
