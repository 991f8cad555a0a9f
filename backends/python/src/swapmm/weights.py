# SPDX-License-Identifier: Apache-2.0
"""Files of weights, which are only read: their tensors are constants of a manager, and take no host memory."""

from __future__ import annotations

import ctypes
import json
import os
import weakref
from typing import Any, Dict, Iterable, List, NamedTuple, Tuple, Union

from . import _native, errors
from ._memory import ELEMENT_TYPES

_LARGEST_HEAD = 100 << 20  # as the format's own library has it
_TYPES = {"BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "U16": "uint16", "I32": "int32", "U32": "uint32",
          "I64": "int64", "U64": "uint64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
          "C64": "complex64"}  # fmt: skip
_OTHER_SIZES = {"F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1}


class WeightsFile:
    """A file that is only read, for Manager.constant() and the option `file`. It may be used by several managers. A file that
    becomes shorter while it is used is an error of the operation that needs the missing bytes."""

    def __init__(self, path: Union[str, "os.PathLike[str]"]) -> None:
        self.path = os.fspath(path)
        self._handles: Dict[int, ctypes.c_void_p] = {}  # of each library, by its id

    def __repr__(self) -> str:
        return f"<file of weights {self.path!r}>"

    def _handle(self, library: _native.Library) -> ctypes.c_void_p:
        handle = self._handles.get(id(library))
        if handle is None:
            handle = ctypes.c_void_p()
            library.check(library.weights_open(os.fsencode(self.path), ctypes.byref(handle)))
            self._handles[id(library)] = handle
            weakref.finalize(self, library.file_destroy, handle)
        return handle


class Weight(NamedTuple):
    """A tensor in a file."""

    name: str
    dtype: str  #: "float32", "bfloat16", ...; another type of the format by its own name
    shape: Tuple[int, ...]
    file: WeightsFile
    offset: int  #: of its first byte, from the beginning of the file
    nbytes: int


def read_safetensors(path: Union[str, "os.PathLike[str]"]) -> Dict[str, Weight]:
    """The tensors of a file of the format safetensors, by name. Reads its head alone. UsageError that says why, for a file of
    another format, and for one whose tensors lie beyond its end, overlap, or have other sizes than their shapes.

    Source: https://github.com/huggingface/safetensors."""
    file = WeightsFile(path)
    try:
        with open(file.path, "rb") as opened:
            size = os.fstat(opened.fileno()).st_size
            length = int.from_bytes(opened.read(8), "little")
            if size < 8 or length > min(size - 8, _LARGEST_HEAD):
                raise _wrong(file, f"its head would have {length} bytes, and the file has {size}")
            text = opened.read(length)
    except OSError as reason:
        raise errors.BackendError(f"opening {file.path}: {reason.strerror}") from reason
    try:
        head = json.loads(text.decode("utf-8"), object_pairs_hook=_without_repeats)
        if not isinstance(head, dict):
            raise ValueError("its head is no object")
        found = [_weight(name, entry, file, 8 + length, size) for name, entry in head.items() if name != "__metadata__"]
    except (ValueError, TypeError, KeyError, RecursionError) as reason:
        raise _wrong(file, str(reason) if not isinstance(reason, KeyError) else f"no {reason}") from reason
    end, last = 8 + length, "the head"
    for weight in sorted(found, key=lambda weight: (weight.offset, weight.nbytes)):
        if weight.offset < end and weight.nbytes:
            raise _wrong(file, f"{weight.name!r} overlaps with {last!r}")
        end, last = max(end, weight.offset + weight.nbytes), weight.name
    return {weight.name: weight for weight in found}


def _wrong(file: WeightsFile, why: str) -> errors.UsageError:
    return errors.UsageError(f"{file.path} is no file of the format safetensors: {why}")


def _without_repeats(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name stands twice")
    return made


def _weight(name: str, entry: Any, file: WeightsFile, begin: int, size: int) -> Weight:
    type_, shape, (first, last) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
    if not all(isinstance(number, int) and not isinstance(number, bool) and number >= 0 for number in (*shape, first, last)):
        raise ValueError(f"{name!r} has a size that is no number")
    count = 1
    for extent in shape:
        count *= extent
    if not first <= last <= size - begin:
        raise ValueError(f"{name!r} has the bytes from {first} to {last}, and the file has {size - begin}")
    known = _TYPES.get(type_)
    bytes_each = ELEMENT_TYPES[known].size if known is not None else _OTHER_SIZES.get(type_, 0)
    if bytes_each and last - first != bytes_each * count:
        raise ValueError(f"{name!r} has {last - first} bytes, and its shape {list(shape)} of {type_} needs {bytes_each * count}")
    return Weight(name, known or str(type_), shape, file, begin + first, last - first)


def open_weights(paths: Union[str, "os.PathLike[str]", Iterable[Any]]) -> Dict[str, Weight]:
    """The tensors of one file or of several, or of all files `*.safetensors` of a folder. UsageError if two have one name."""
    if isinstance(paths, (str, os.PathLike)):
        path = os.fspath(paths)
        if os.path.isdir(path):
            paths = sorted(os.path.join(path, name) for name in os.listdir(path) if name.endswith(".safetensors"))
            if not paths:
                raise errors.UsageError(f"{path} has no files *.safetensors")
        else:
            paths = [path]
    found: Dict[str, Weight] = {}
    for each in paths:
        for name, weight in read_safetensors(each).items():
            if name in found:
                raise errors.UsageError(f"{name!r} is in {found[name].file.path} and in {weight.file.path}")
            found[name] = weight
    return found
