# SPDX-License-Identifier: Apache-2.0
"""Other devices beside a manager's own: their memory, and what all of them share on their way to the host."""

from __future__ import annotations

import ctypes
import threading
import weakref
from typing import Any, Optional, Sequence, Union

from . import _native, backends, errors
from ._memory import bytes_of


class Neighbour:
    """Memory of another device that holds values, for the option `neighbours`: `opencl.neighbour()`, `cuda.neighbour()` and
    `simulated.neighbour()` make it. A manager takes it when it is made."""

    def __init__(self, library: _native.Library, kind: str, make: Any, *arguments: Any) -> None:
        self.kind = kind
        self._library = library
        handle = ctypes.c_void_p()
        library.check(make(*arguments, ctypes.byref(handle)))
        self._pointer = handle
        weakref.finalize(self, library.neighbour_destroy, handle)

    def __repr__(self) -> str:
        return f"<swapmm neighbour on a {self.kind} device>"

    def _handle(self, library: _native.Library) -> ctypes.c_void_p:
        if library is not self._library:
            raise errors.UsageError(f"a neighbour on a {self.kind} device is for managers on such devices")
        return self._pointer


class SharedLinks:
    """What the devices of several managers share on their way to the host, for the option `shared_links`: managers that have
    the same one plan together. In bytes per second, of all copies together, numbers or texts such as "25GB"; None: nothing.
    The managers have backends of one kind. See docs/several_devices.md."""

    def __init__(
        self,
        to_devices: Union[int, str, None] = None,
        from_devices: Union[int, str, None] = None,
        both_ways: Union[int, str, None] = None,
    ) -> None:
        self._rates = [0 if rate is None else bytes_of(rate) for rate in (to_devices, from_devices, both_ways)]
        if not any(self._rates):
            raise errors.UsageError("SharedLinks: all capacities are 0. Devices that share nothing need no shared_links")
        self._library: Optional[_native.Library] = None
        self._pointer: Optional[ctypes.c_void_p] = None
        self._lock = threading.Lock()  # of the first use

    @staticmethod
    def measured(devices: Sequence[backends.Backend], piece: Union[int, str] = "32MiB") -> Optional["SharedLinks"]:
        """Measures it on backends of one kind, which have no manager yet; None if the devices share nothing. Takes a tenth of
        a second or so; meanwhile it uses twice `piece` of device memory and of page-locked host memory for each."""
        if not devices:
            raise errors.UsageError("SharedLinks.measured() needs backends")
        library = devices[0]._library
        if any(device._library is not library for device in devices):
            raise errors.UsageError("SharedLinks.measured() needs backends of one kind")
        handles = (ctypes.c_void_p * len(devices))(*[device._handle for device in devices])
        handle = ctypes.c_void_p()
        library.check(library.shared_links_measure(handles, len(devices), bytes_of(piece), ctypes.byref(handle)))
        if not handle:
            return None
        found = SharedLinks.__new__(SharedLinks)
        found._lock = threading.Lock()
        found._take(library, handle)
        return found

    def __repr__(self) -> str:
        return "<swapmm links that devices share>"

    def _take(self, library: _native.Library, handle: ctypes.c_void_p) -> None:
        self._library, self._pointer = library, handle
        weakref.finalize(self, library.shared_links_destroy, handle)

    def _handle(self, library: _native.Library) -> ctypes.c_void_p:
        with self._lock:
            if self._pointer is None:
                handle = ctypes.c_void_p()
                library.check(library.shared_links_create(*self._rates, ctypes.byref(handle)))
                self._take(library, handle)
        if library is not self._library or self._pointer is None:
            raise errors.UsageError("managers that share links need backends of one kind")
        return self._pointer
