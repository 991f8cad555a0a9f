# SPDX-License-Identifier: Apache-2.0
"""The bytes of Python objects: the buffer protocol and DLPack, without NumPy; element types by their names; sizes as people
write them."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple, Union

from . import _native, errors


def bytes_of(size: Union[int, str]) -> int:
    """A size as people write it, in bytes: 8GB is 8 * 10^9, 8GiB 8 * 2^30, and a number is bytes."""
    if not isinstance(size, str):
        return _native.whole(size, "a size")
    library = _native.library()
    found = ctypes.c_uint64()
    library.check(library.python_size(_native.text(size), found))
    return found.value


class ElementType(NamedTuple):
    """A type of elements. `format` is that of the buffer protocol, "" if it has none."""

    name: str
    size: int
    format: str
    code: int  # DLDataTypeCode


def _types() -> Dict[str, ElementType]:
    types = [ElementType("bool", 1, "?", 6), ElementType("bfloat16", 2, "", 4)]
    types += [ElementType(f"int{8 * size}", size, format_, 0) for size, format_ in ((1, "b"), (2, "h"), (4, "i"), (8, "q"))]
    types += [ElementType(f"uint{8 * size}", size, format_, 1) for size, format_ in ((1, "B"), (2, "H"), (4, "I"), (8, "Q"))]
    types += [ElementType(f"float{8 * size}", size, format_, 2) for size, format_ in ((2, "e"), (4, "f"), (8, "d"))]
    types += [ElementType("complex64", 8, "", 5), ElementType("complex128", 16, "", 5)]
    return {type_.name: type_ for type_ in types}


ELEMENT_TYPES = _types()
_BY_FORMAT = {type_.format: type_.name for type_ in ELEMENT_TYPES.values() if type_.format}
_BY_FORMAT.update({"l": "int64", "L": "uint64", "Zf": "complex64", "Zd": "complex128"})  # C's long, of 8 bytes here
_BY_DLPACK = {(type_.code, 8 * type_.size): type_.name for type_ in ELEMENT_TYPES.values()}


def element_type(dtype: Any) -> ElementType:
    """Of a name ("float32"), of a NumPy type, or of anything whose text ends with such a name, as PyTorch's types do."""
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    found = ELEMENT_TYPES.get(str(name).rsplit(".", 1)[-1])
    if found is not None and getattr(dtype, "byteorder", "=") == ">":
        raise errors.UsageError(f"{dtype!r} has the bytes of its elements in the other order: this machine's is little-endian")
    if found is None:
        raise errors.UsageError(f"{dtype!r} is no type of elements; there are {', '.join(ELEMENT_TYPES)}")
    return found


@functools.lru_cache(maxsize=None)
def numpy() -> Any:
    """NumPy, or None if it is not installed. Looking for what is not there takes long."""
    try:
        import numpy as module  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return None
    return module


def typed_view(view: Any, type_: ElementType, shape: Sequence[int]) -> Any:
    """A memoryview of elements; of bytes if the buffer protocol has no such type."""
    if not type_.format:
        return view
    return view.cast(type_.format, list(shape)) if shape else view.cast(type_.format)


def elements_in(shape: Sequence[int]) -> int:
    """The product of the extents."""
    product = 1
    for extent in shape:
        product *= extent
    return product


# ---- the buffer protocol


class _PyBuffer(ctypes.Structure):
    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
        ("internal", ctypes.c_void_p),
    ]


_WRITABLE, _FORMAT, _C_CONTIGUOUS = 0x1, 0x4, 0x38
_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int]
_get_buffer.restype = ctypes.c_int
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes = [ctypes.POINTER(_PyBuffer)]
_release_buffer.restype = None


class Memory:
    """The bytes of an object, while the `with` block runs."""

    def __init__(self, address: int, size: int, dtype: Optional[str], release: Any) -> None:
        self.address = address
        self.size = size
        #: name of the element type, or the format of one that swapmm does not know; None: plain bytes
        self.dtype = dtype
        self._release = release

    def __enter__(self) -> "Memory":
        return self

    def __exit__(self, *exception: object) -> None:
        self._release()


def _exported(data: Any, flags: int) -> Memory:
    view = _PyBuffer()
    _get_buffer(data, view, flags)  # raises what the object raises
    return Memory(view.buf or 0, view.len, _named((view.format or b"B").decode()), lambda: _release_buffer(view))


def _named(format_: str) -> Optional[str]:
    """The type of elements of a format of the buffer protocol, on a machine with little-endian numbers; None for bytes."""
    plain = format_.lstrip("@=<>!")
    if plain == "c":
        return None
    name = _BY_FORMAT.get(plain)
    if name is None:
        return f"elements of format {format_!r}"
    return f"big-endian {name}" if format_[0] in ">!" and ELEMENT_TYPES[name].size > 1 else name


def _has_buffer(data: Any) -> bool:
    try:
        memoryview(data).release()
    except TypeError:
        return False
    except BufferError:
        pass
    return True


def readable(data: Any) -> Memory:
    """The bytes of an object with the buffer protocol or `__dlpack__`, in C's order. What lies otherwise is copied."""
    if _has_buffer(data):
        try:
            return _exported(data, _C_CONTIGUOUS | _FORMAT)
        except (BufferError, ValueError):  # NumPy raises the latter
            view = memoryview(data)
            copied = _exported(view.tobytes(), _C_CONTIGUOUS | _FORMAT)
            copied.dtype = _named(view.format)
            return copied
    if hasattr(data, "__dlpack__"):
        return _from_dlpack(data)
    raise errors.UsageError(f"{type(data).__name__} has neither the buffer protocol nor __dlpack__")


def writable(out: Any) -> Memory:
    """The memory of an object with the buffer protocol, to be written."""
    try:
        return _exported(out, _C_CONTIGUOUS | _FORMAT | _WRITABLE)
    except (BufferError, TypeError, ValueError) as reason:
        raise errors.UsageError(f"{type(out).__name__} is no contiguous memory that can be written: {reason}") from None


# ---- DLPack


class DLTensor(ctypes.Structure):
    """Of dlpack.h"""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class DLManagedTensor(ctypes.Structure):
    """Of dlpack.h"""


Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(DLManagedTensor))
DLManagedTensor._fields_ = [("tensor", DLTensor), ("manager_ctx", ctypes.c_void_p), ("deleter", Deleter)]

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # DLDeviceType

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_capsule_pointer.restype = ctypes.c_void_p


def _is_dense(shape: Tuple[int, ...], strides: Optional[Tuple[int, ...]]) -> bool:
    if strides is None or 0 in shape:
        return True
    expected = 1
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True


def _from_dlpack(data: Any) -> Memory:
    device, _ = data.__dlpack_device__()
    if device not in (CPU, CUDA_HOST):
        raise errors.UsageError("an upload takes what lies in host memory: copy it there first, or write the tensor in an operation")
    # The object keeps the capsule's contents alive. A capsule that nobody renames is destroyed with what it has.
    capsule = data.__dlpack__()
    tensor = ctypes.cast(_capsule_pointer(capsule, b"dltensor"), ctypes.POINTER(DLManagedTensor)).contents.tensor
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else None
    if not _is_dense(shape, strides):
        raise errors.UsageError(f"an array of shape {shape} with strides {strides}: make it contiguous first")
    size = elements_in(shape) * ((tensor.bits * tensor.lanes + 7) // 8)
    dtype = _BY_DLPACK.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if dtype is None:
        dtype = f"elements of DLPack's type {tensor.code} with {tensor.bits} bits in {tensor.lanes} lanes"
    keep = [capsule]
    return Memory((tensor.data or 0) + tensor.byte_offset, size, dtype, keep.clear)
