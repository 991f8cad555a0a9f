# SPDX-License-Identifier: Apache-2.0
"""The CUDA backend. It needs NVIDIA's driver; the CUDA runtime is in it."""

from __future__ import annotations

import ctypes
from typing import Any, Optional, Union

from . import _native, backends, errors
from ._memory import bytes_of
from .devices import Neighbour


def pick(wanted: Optional[str] = None) -> backends.Backend:
    """Makes a backend on a device that is selected by its index or a part of its name. None: the environment variable
    SWAPMM_DEVICE selects it, else the device with the most memory is used. UsageError with a list of all devices if none
    or more than one matches."""
    library = _native.library("cuda")
    return backends.made(library, "cuda", library.cuda_pick, _native.text(wanted))


def create(device: int = 0, stream: Any = None) -> backends.Backend:
    """Makes a backend on the device with that number. `stream`: operations run on this stream of the program, a
    cudaStream_t as a number (0 is the legacy default stream) or an object that has it as `cuda_stream` (PyTorch) or
    `ptr` (CuPy). None: on a stream of swapmm."""
    library = _native.library("cuda")
    if stream is None:
        return backends.made(library, "cuda", library.cuda_create, device)
    for name in ("cuda_stream", "ptr"):
        stream = getattr(stream, name, stream)
    return backends.made(library, "cuda", library.cuda_create_on_stream, device, stream)


def neighbour(device: int, size: Union[int, str]) -> Neighbour:
    """Memory of up to `size` bytes on the device with that number, for the option `neighbours`."""
    library = _native.library("cuda")
    return Neighbour(library, "cuda", library.cuda_neighbour, device, bytes_of(size))


def device(backend: backends.Backend) -> int:
    """The number of a backend's device in the API's order."""
    if backend.kind != "cuda":
        raise errors.UsageError(f"the backend is not one of CUDA: it is one of {backend.kind}")
    number = ctypes.c_int32()
    backend._library.check(backend._library.cuda_device(backend._handle, number))
    return number.value
