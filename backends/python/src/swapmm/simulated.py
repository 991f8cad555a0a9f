# SPDX-License-Identifier: Apache-2.0
"""A simulated device for tests. It runs on plain memory in virtual time, so results do not depend on the machine. Its
kernels are Python functions: see `Operation.launch()`."""

from __future__ import annotations

import ctypes
from typing import Optional, Union

from . import _native, backends, errors
from ._memory import bytes_of
from .devices import Neighbour


def create(
    device_bytes: Optional[int] = None,
    *,
    host_bytes: Optional[int] = None,
    h2d_bytes_per_second: Optional[int] = None,
    d2h_bytes_per_second: Optional[int] = None,
) -> backends.Backend:
    """Makes a simulated device. `host_bytes` limits the host memory; 0: no limit."""
    library = _native.library()
    options = _native.SimulatedOptions()
    library.check(library.simulated_options_init(options, ctypes.sizeof(options)))
    given = {
        "device_bytes": device_bytes,
        "host_bytes": host_bytes,
        "h2d_bytes_per_second": h2d_bytes_per_second,
        "d2h_bytes_per_second": d2h_bytes_per_second,
    }
    for name, value in given.items():
        if value is not None:
            setattr(options, name, _native.whole(value, name))
    return backends.made(library, "simulated", library.simulated_create, options)


def neighbour(size: Union[int, str]) -> Neighbour:
    """Memory of a second simulated device, for the option `neighbours`."""
    library = _native.library()
    return Neighbour(library, "simulated", library.simulated_neighbour, bytes_of(size))


def violations(backend: backends.Backend) -> int:
    """The number of violations that the device's checker has found, such as an access beyond the end of a tensor. It is 0
    unless the program or the library has a fault."""
    if backend.kind != "simulated":
        raise errors.UsageError(f"the backend is not one of the simulated device: it is one of {backend.kind}")
    count = ctypes.c_uint64()
    backend._library.check(backend._library.simulated_violations(backend._handle, count))
    return count.value
