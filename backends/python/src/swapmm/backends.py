# SPDX-License-Identifier: Apache-2.0
"""Devices that managers run on."""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

from ._native import Library


class Backend:
    """A device with its queues. Made by `swapmm.simulated.create()`, `swapmm.opencl.pick()`, `swapmm.cuda.pick()` and
    the other functions of these modules. A manager keeps what it needs of it."""

    def __init__(self, library: Library, kind: str, handle: int) -> None:
        self._library = library
        self._handle = handle
        #: "simulated", "opencl" or "cuda"
        self.kind = kind
        self._finalizer = weakref.finalize(self, library.backend_destroy, handle)

    def __repr__(self) -> str:
        return f"<swapmm {self.kind} backend>"


def made(library: Library, kind: str, create: Any, *arguments: Any) -> Backend:
    """A backend that `create(*arguments, &handle)` makes."""
    handle = ctypes.c_void_p()
    library.check(create(*arguments, ctypes.byref(handle)))
    return Backend(library, kind, handle.value or 0)
