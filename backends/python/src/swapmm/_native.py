# SPDX-License-Identifier: Apache-2.0
"""The C interface by ctypes: its structs, its functions, and the libraries that have them.

There is one library for each backend whose API may be missing, and each is complete in itself. A handle of one library
must not be passed to another one.
"""

from __future__ import annotations

import ctypes
import os
import threading
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_uint8, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from . import errors

#: Names the core's library, or the folder that has all of them, instead of those of the package.
LIBRARY_VARIABLE = "SWAPMM_PYTHON_LIBRARY"

CHECK_ACCESS, SCRUB, UNDEFINED_READS, IDENTIFY_BY_PRODUCER, PROVEN_DROPS = 1, 2, 4, 8, 16
DEMAND_MODES = {"least_recently_used": 0, "per_operation": 1, "foreseen": 2}
DROP_RULES = {"by_evidence": 0, "observed": 1, "proven": 2}
LIFETIMES = {"observed": 0, "transient": 1, "kept": 2}
READ, WRITE, UPDATE = 0, 1, 2


class Options(ctypes.Structure):
    """swapmm_options"""

    _fields_ = [
        ("struct_size", c_uint64),
        ("device_budget", c_uint64),
        ("pinned_budget", c_uint64),
        ("host_budget", c_uint64),
        ("queue_depth", c_uint64),
        ("run_ahead", c_uint64),
        ("demand_mode", c_uint32),
        ("flags", c_uint32),
        ("observe", c_uint64),
        ("planner", c_char_p),
        ("max_period", c_uint64),
        ("max_sequences", c_uint64),
        ("planning_time_ms", c_uint64),
        ("planning_share", c_double),
        ("sample_every", c_uint64),
        ("replan_above", c_double),
        ("trial_iterations", c_uint64),
        ("drops", c_uint64),
        ("codec_staging", c_uint64),
        ("file", c_void_p),
        ("file_staging", c_uint64),
        ("neighbours", POINTER(c_void_p)),
        ("neighbour_count", c_uint64),
        ("shared_links", c_void_p),
        ("planning_limit_ms", c_uint64),
    ]


class Numbers(ctypes.Structure):
    """swapmm_numbers"""

    _fields_ = [
        (name, c_uint64)
        for name in (
            "struct_size device_budget device_used device_peak host_used host_peak pinned_used tensors operations "
            "operations_followed iterations_on_demand iterations_followed plan_starts divergences swap_ins swap_outs "
            "h2d d2h host_waits host_wait_time_ns"
        ).split()
    ]


class Use(ctypes.Structure):
    """swapmm_use"""

    _fields_ = [("tensor", c_uint64), ("access", c_uint64)]


class Output(ctypes.Structure):
    """swapmm_output"""

    _fields_ = [("bytes", c_uint64), ("name", c_char_p), ("lifetime", c_uint64), ("tensor", c_uint64)]


class Operation(ctypes.Structure):
    """swapmm_operation"""

    _fields_ = [
        ("struct_size", c_uint64),
        ("name", c_char_p),
        ("uses", c_void_p),
        ("use_count", c_uint64),
        ("outputs", c_void_p),
        ("output_count", c_uint64),
        ("scratch_bytes", c_uint64),
        ("takes_waits", c_uint64),
        ("addresses", c_void_p),
        ("scratch", c_void_p),
        ("queue", c_void_p),
        ("waits", c_void_p),
        ("wait_count", c_uint64),
        ("again", c_void_p),
        ("again_argument", c_void_p),
        ("follows_plan", c_uint64),
        ("times_again", c_uint64),
    ]


class SimulatedOptions(ctypes.Structure):
    """swapmm_simulated_options"""

    _fields_ = [
        (name, c_uint64)
        for name in "struct_size device_bytes host_bytes h2d_bytes_per_second d2h_bytes_per_second".split()
    ]


Kernel = ctypes.CFUNCTYPE(c_int, c_void_p)
#: How an operation runs again: argument, address of the operation.
Again = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)
#: Of a custom device: context, tensor, place, host memory, bytes.
Copy = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint64, c_void_p, c_void_p, c_uint64)
#: The same for a part: context, tensor, place, offset, host memory, bytes.
CopyPart = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint64, c_void_p, c_uint64, c_void_p, c_uint64)


class CustomDevice(ctypes.Structure):
    """swapmm_custom_device"""

    _fields_ = [
        ("struct_size", c_uint64),
        ("name", c_char_p),
        ("bytes", c_uint64),
        ("alignment", c_uint64),
        ("context", c_void_p),
        ("copy_to_host", Copy),
        ("copy_to_device", Copy),
        ("copy_part_to_host", CopyPart),
        ("copy_part_to_device", CopyPart),
    ]


#: Work that Python does for C: argument, operation, where its status goes.
PythonWork = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_void_p)
PythonProgress = ctypes.CFUNCTYPE(c_int, c_char_p, c_int64, c_int64)

_handle, _text, _count = c_void_p, c_char_p, c_uint64
_Signature = Tuple[Any, List[Any]]  # the type of the result, and those of the parameters

#: The functions of <swapmm/swapmm.h>.
CORE: Dict[str, _Signature] = {
    "swapmm_last_error": (c_char_p, []),
    "swapmm_version": (c_char_p, []),
    "swapmm_text_destroy": (None, [c_void_p]),
    "swapmm_backend_destroy": (None, [_handle]),
    "swapmm_options_init": (c_int, [POINTER(Options), _count]),
    "swapmm_manager_create": (c_int, [_handle, POINTER(Options), POINTER(_handle)]),
    "swapmm_manager_destroy": (None, [_handle]),
    "swapmm_manager_set_budget": (c_int, [_handle, _count]),
    "swapmm_manager_set_neighbour_budget": (c_int, [_handle, c_void_p, _count]),
    "swapmm_manager_synchronize": (c_int, [_handle]),
    "swapmm_manager_numbers": (c_int, [_handle, POINTER(Numbers)]),
    "swapmm_manager_report": (c_int, [_handle, POINTER(c_void_p)]),
    "swapmm_manager_trace": (c_int, [_handle, _text, POINTER(c_void_p)]),
    "swapmm_manager_save_plan": (c_int, [_handle, _text, POINTER(c_void_p)]),
    "swapmm_manager_load_plan": (c_int, [_handle, _text, _text]),
    "swapmm_tensor_create": (c_int, [_handle, _count, _text, c_uint32, POINTER(c_uint64)]),
    "swapmm_tensor_destroy": (c_int, [_handle, c_uint64]),
    "swapmm_file_destroy": (None, [c_void_p]),
    "swapmm_neighbour_destroy": (None, [c_void_p]),
    "swapmm_shared_links_create": (c_int, [c_uint64, c_uint64, c_uint64, POINTER(c_void_p)]),
    "swapmm_shared_links_measure": (c_int, [POINTER(c_void_p), c_uint64, c_uint64, POINTER(c_void_p)]),
    "swapmm_shared_links_destroy": (None, [c_void_p]),
    "swapmm_tensor_create_constant": (c_int, [_handle, c_uint64, _text, c_void_p, c_uint64, POINTER(c_uint64)]),
    "swapmm_tensor_upload": (c_int, [_handle, c_uint64, _count, c_void_p, _count]),
    "swapmm_tensor_download": (c_int, [_handle, c_uint64, _count, c_void_p, _count]),
    "swapmm_iteration_begin": (c_int, [_handle, _text]),
    "swapmm_iteration_end": (c_int, [_handle]),
    # The manager's own struct, whose address is passed as a number.
    "swapmm_operation_begin": (c_int, [_handle, c_void_p]),
    "swapmm_operation_address": (c_int, [_handle, c_uint64, _count, _count, POINTER(c_void_p)]),
    "swapmm_operation_end": (c_int, [_handle, c_void_p]),
    "swapmm_operation_fail": (c_int, [_handle]),
    "swapmm_operation_cancel": (c_int, [_handle]),
    "swapmm_simulated_options_init": (c_int, [POINTER(SimulatedOptions), _count]),
    "swapmm_simulated_create": (c_int, [POINTER(SimulatedOptions), POINTER(_handle)]),
    "swapmm_simulated_neighbour": (c_int, [c_uint64, POINTER(c_void_p)]),
    "swapmm_simulated_launch": (c_int, [_handle, _count, Kernel, c_void_p, POINTER(c_void_p)]),
    "swapmm_simulated_violations": (c_int, [_handle, POINTER(c_uint64)]),
    "swapmm_custom_create": (c_int, [POINTER(CustomDevice), POINTER(_handle)]),
}

#: The functions of <swapmm/c/opencl.h>.
OPENCL: Dict[str, _Signature] = {
    "swapmm_opencl_create": (c_int, [c_void_p, c_void_p, c_void_p, POINTER(_handle)]),
    "swapmm_opencl_pick": (c_int, [_text, POINTER(_handle)]),
    "swapmm_opencl_neighbour": (c_int, [c_void_p, c_uint64, c_uint64, POINTER(c_void_p)]),
    "swapmm_opencl_native": (c_int, [_handle, POINTER(c_void_p), POINTER(c_void_p)]),
}

#: The functions of <swapmm/c/cuda.h>.
CUDA: Dict[str, _Signature] = {
    "swapmm_cuda_create": (c_int, [c_int32, POINTER(_handle)]),
    "swapmm_cuda_create_on_stream": (c_int, [c_int32, c_void_p, POINTER(_handle)]),
    "swapmm_cuda_pick": (c_int, [_text, POINTER(_handle)]),
    "swapmm_cuda_neighbour": (c_int, [c_int32, c_uint64, POINTER(c_void_p)]),
    "swapmm_cuda_device": (c_int, [_handle, POINTER(c_int32)]),
}

#: The functions of <swapmm/c/file.h>. The libraries of the package have those for files of weights.
FILE: Dict[str, _Signature] = {
    "swapmm_weights_open": (c_int, [_text, POINTER(c_void_p)]),
    "swapmm_file_open": (c_int, [_text, c_uint64, POINTER(c_void_p)]),
}
_WEIGHTS = {"swapmm_weights_open": FILE["swapmm_weights_open"]}

#: Those of native/python.h.
PYTHON: Dict[str, _Signature] = {
    "swapmm_python_size": (c_int, [_text, POINTER(c_uint64)]),
    "swapmm_python_ask": (c_int, [_text, _text, _text, _text, PythonProgress, POINTER(c_void_p)]),
    "swapmm_python_set_work": (None, [PythonWork, PythonWork]),
    "swapmm_python_kernel": (c_int, [c_void_p]),
    "swapmm_python_again": (c_int, [c_void_p, c_void_p]),
    "swapmm_python_dlpack_create": (
        c_int,
        [c_void_p, c_int32, c_int32, c_uint8, c_uint8, c_int32, POINTER(c_int64), POINTER(c_void_p)],
    ),
    "swapmm_python_dlpack_destroy": (None, [c_void_p]),
}

_FILES = {
    "core": ("libswapmm_python.so", {**CORE, **PYTHON, **_WEIGHTS}),
    "opencl": ("libswapmm_python_opencl.so", {**CORE, **OPENCL, **_WEIGHTS}),
    "cuda": ("libswapmm_python_cuda.so", {**CORE, **CUDA, **_WEIGHTS}),
}


class Library:
    """A loaded library. Its functions are attributes, without the prefix `swapmm_`."""

    def __init__(self, path: Path, functions: Dict[str, _Signature]) -> None:
        self.path = path
        self._library = ctypes.CDLL(str(path))
        for name, signature in functions.items():
            self.declare(name, signature)

    def declare(self, name: str, signature: _Signature) -> None:
        """Makes a function of the library an attribute."""
        function = getattr(self._library, name)
        function.restype, function.argtypes = signature
        setattr(self, name[len("swapmm_") :], function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{self.path} has no function swapmm_{name}")

    def check(self, status: int) -> None:
        """Raises the exception of a status that is not SWAPMM_OK."""
        if status:
            raise self.error(status)

    def error(self, status: int) -> errors.Error:
        """The exception of the last call, on the same thread."""
        text = (self.last_error() or b"").decode("utf-8", "replace")
        return errors.of_status.get(status, errors.Error)(text)

    def take_text(self, text: c_void_p) -> str:
        """A text that the caller must destroy, as a str."""
        try:
            return ctypes.string_at(text.value or 0).decode("utf-8", "replace") if text.value else ""
        finally:
            self.text_destroy(text)


_loaded: Dict[str, Library] = {}
_loading = threading.Lock()


def path_of(kind: str) -> Path:
    """Where the library of that kind is, or would be."""
    name = _FILES[kind][0]
    given = os.environ.get(LIBRARY_VARIABLE)
    if not given:
        return Path(__file__).resolve().parent / name
    path = Path(given)
    if path.is_dir():
        return path / name
    return path if kind == "core" else path.with_name(name)


def library(kind: str = "core") -> Library:
    """The library of that kind: "core", "opencl" or "cuda". It is loaded when it is first asked for."""
    found = _loaded.get(kind)
    if found is not None:
        return found
    with _loading:
        if kind not in _loaded:
            path = path_of(kind)
            if not path.exists():
                missing = "lacks its library" if kind == "core" else f"has no {kind} backend"
                raise errors.BackendError(f"this installation of swapmm {missing}: {path} does not exist")
            try:
                _loaded[kind] = Library(path, _FILES[kind][1])
            except OSError as reason:
                raise errors.BackendError(f"the {kind} backend of swapmm cannot be loaded: {reason}") from reason
        return _loaded[kind]


def text(value: Optional[str]) -> Optional[bytes]:
    """A text as C takes it."""
    if value is None:
        return None
    encoded = str(value).encode("utf-8")
    if b"\0" in encoded:
        raise errors.UsageError(f"a text with a null character: {value!r}")
    return encoded


def whole(value: object, what: str) -> int:
    """A whole number that C takes, or UsageError. ctypes would cut off what does not fit."""
    try:
        number = int(value.__index__())  # type: ignore[attr-defined]
    except AttributeError:
        raise errors.UsageError(f"{what} is a whole number, not {value!r}") from None
    if not 0 <= number < 1 << 64:
        raise errors.UsageError(f"{what} is {number}: it must be from 0 to 2^64 - 1")
    return number
