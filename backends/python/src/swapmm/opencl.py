# SPDX-License-Identifier: Apache-2.0
"""The OpenCL backend. It needs an OpenCL loader (libOpenCL.so.1), which is loaded by the first call."""

from __future__ import annotations

import ctypes
from typing import Any, Optional, Tuple, Union

from . import _native, backends, errors
from ._memory import bytes_of
from .devices import Neighbour


def pick(wanted: Optional[str] = None) -> backends.Backend:
    """Makes a backend on a device that is selected by its index or a part of its name. None: the environment variable
    SWAPMM_DEVICE selects it, else the preferred device is used. UsageError with a list of all devices if none or more
    than one matches."""
    library = _native.library("opencl")
    return backends.made(library, "opencl", library.opencl_pick, _native.text(wanted))


def _handle(object_: Any) -> Any:
    handle = getattr(object_, "int_ptr", object_)
    if handle is not None and (isinstance(handle, bool) or not hasattr(handle, "__index__")):
        raise errors.UsageError(f"{object_!r} is no handle of OpenCL: it is a number, or an object with int_ptr")
    return handle


def create(context: Any, device: Any, queue: Any = None) -> backends.Backend:
    """Makes a backend on the program's own context. Handles are numbers (a cl_context, a cl_device_id, a
    cl_command_queue), or objects that have them as `int_ptr`, such as those of PyOpenCL. The queue must be in order;
    operations run on it. None: on a queue of swapmm."""
    library = _native.library("opencl")
    handles = [_handle(handle) for handle in (context, device, queue)]
    return backends.made(library, "opencl", library.opencl_create, *handles)


def neighbour(device: Any, size: Union[int, str], staging: Union[int, str] = 0) -> Neighbour:
    """Memory of up to `size` bytes on a second device of the manager's context, for the option `neighbours`. `device` is a
    cl_device_id as a number, or an object that has it as `int_ptr`. Copies pass through `staging` bytes of page-locked host
    memory, a part of the host budget; 0: 8 MiB."""
    library = _native.library("opencl")
    return Neighbour(library, "opencl", library.opencl_neighbour, _handle(device), bytes_of(size), bytes_of(staging))


def native(backend: backends.Backend) -> Tuple[int, int]:
    """The cl_context and the cl_device_id of a backend, as numbers, to make programs and kernels with. They stay the
    backend's own."""
    if backend.kind != "opencl":
        raise errors.UsageError(f"the backend is not one of OpenCL: it is one of {backend.kind}")
    context, device = ctypes.c_void_p(), ctypes.c_void_p()
    backend._library.check(backend._library.opencl_native(backend._handle, context, device))
    return context.value or 0, device.value or 0
