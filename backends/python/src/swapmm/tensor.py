# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Sequence, Tuple, Union

from . import _memory, errors
from ._native import whole

if TYPE_CHECKING:
    from .manager import Manager


class Tensor:
    """A tensor of a manager. Its value is on the device or on the host; it has an address only in an operation. It is
    destroyed when nothing refers to it any more, or by `destroy()`."""

    __slots__ = ("_owner", "number", "nbytes", "name", "lifetime", "dtype", "shape", "__weakref__")

    def __init__(
        self, owner: "Manager", number: int, nbytes: int, name: str, lifetime: str, dtype: Optional[str], shape: Tuple[int, ...]
    ) -> None:
        self._owner = owner
        #: the swapmm_tensor of the C interface; 0 once it is destroyed
        self.number = number
        self.nbytes = nbytes
        self.name = name
        #: "observed", "transient" or "kept"
        self.lifetime = lifetime
        #: the name of its type of elements; None: bytes
        self.dtype = dtype
        self.shape = shape

    @property
    def manager(self) -> "Manager":
        return self._owner

    def __repr__(self) -> str:
        elements = "" if self.dtype is None else f", {self.dtype}{list(self.shape)}"
        return f"<swapmm tensor {self.name!r}, {self.nbytes} bytes{elements}>"

    def destroy(self) -> None:
        """Destroys the tensor. Does not wait. Any thread may call this at any time."""
        number, self.number = self.number, 0
        self._owner._destroy_tensor(number)

    def __del__(self) -> None:
        try:
            self.destroy()
        except Exception:  # a finalizer has nobody to tell
            pass

    def upload(self, data: Any, offset: Optional[int] = None) -> None:
        """Sets the value, or the bytes from `offset` on. `data` is any object with the buffer protocol (bytes, array,
        NumPy) or with `__dlpack__` in host memory. It is copied before the call returns.

        Without an offset the sizes must be equal. UsageError if `data` has another type of elements than the tensor;
        plain bytes are taken for any type."""
        with _memory.readable(data) as memory:
            self._check("upload", memory, offset)
            owner = self._owner
            owner._check(
                owner._library.tensor_upload(
                    owner._open(), self.number, 0 if offset is None else whole(offset, "offset"), memory.address, memory.size
                )
            )

    def download(
        self,
        out: Any = None,
        *,
        dtype: Any = None,
        shape: Union[Sequence[int], int, None] = None,
        offset: Optional[int] = None,
        nbytes: Optional[int] = None,
    ) -> Any:
        """Waits for the value and returns it.

        `out`: it is written there, an object with the buffer protocol that can be written, and `out` is returned. Else
        a new object is: with a type of elements, that of the tensor or `dtype`, a NumPy array, or a memoryview if NumPy
        is not installed; without one a bytearray. `offset` and `nbytes` take a part of the bytes, which is flat unless
        `shape` says otherwise."""
        begin = 0 if offset is None else whole(offset, "offset")
        if out is not None:
            if dtype is not None or shape is not None or nbytes is not None:
                raise errors.UsageError("download: `out` says how many bytes and of what type; leave dtype, shape and nbytes away")
            with _memory.writable(out) as memory:
                self._check("download", memory, offset)
                self._download(begin, memory)
            return out
        whole_value = offset is None and nbytes is None
        size = max(self.nbytes - begin, 0) if nbytes is None else whole(nbytes, "nbytes")
        if begin + size > self.nbytes:
            raise errors.UsageError(
                f"download: {size} bytes from byte {begin} on of tensor {self.name!r}, which has {self.nbytes} bytes"
            )
        wanted = dtype if dtype is not None else self.dtype
        bytes_ = bytearray(size)
        with _memory.writable(bytes_) as memory:
            self._download(begin, memory)
        if wanted is None:
            if shape is not None:
                raise errors.UsageError("download: a shape needs a dtype")
            return bytes_
        same = wanted is self.dtype and whole_value
        return _shaped(bytes_, _memory.element_type(wanted), self.shape if same and shape is None else shape)

    def _download(self, offset: int, memory: _memory.Memory) -> None:
        owner = self._owner
        owner._check(
            owner._library.tensor_download(owner._open(), self.number, offset, memory.address, memory.size)
        )

    def _check(self, call: str, memory: _memory.Memory, offset: Optional[int]) -> None:
        if offset is None and memory.size != self.nbytes:
            raise errors.UsageError(
                f"{call}: tensor {self.name!r} has {self.nbytes} bytes, the data has {memory.size}; "
                "with an offset a part of it is meant"
            )
        is_object = memory.dtype is not None and "O" in memory.dtype
        if is_object or (self.dtype is not None and memory.dtype not in (None, "uint8", self.dtype)):
            raise errors.UsageError(f"{call}: tensor {self.name!r} is of {self.dtype}, the data of {memory.dtype}")


def _shaped(bytes_: bytearray, type_: _memory.ElementType, shape: Union[Sequence[int], int, None]) -> Any:
    if shape is None:
        shape = (len(bytes_) // type_.size,)
    elif isinstance(shape, int):
        shape = (shape,)
    if _memory.elements_in(shape) * type_.size != len(bytes_):
        raise errors.UsageError(f"download: {len(bytes_)} bytes are not {type_.name}{list(shape)}")
    module = _memory.numpy()
    if type_.name == "bfloat16":
        raise errors.UsageError("download: neither NumPy nor memoryview has bfloat16; give `out`, or take it as uint16")
    if module is not None:
        return module.frombuffer(bytes_, dtype=type_.name).reshape(shape)
    if not type_.format:
        raise errors.UsageError(f"download: {type_.name} needs NumPy")
    return _memory.typed_view(memoryview(bytes_), type_, shape)
