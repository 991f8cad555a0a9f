# SPDX-License-Identifier: Apache-2.0
"""Runs GPU programs whose data does not fit on the GPU. docs/python.md is the manual."""

from . import _native, cuda, opencl, simulated
from .backends import Backend
from .errors import *  # noqa: F403
from .errors import __all__ as _error_names
from .manager import Iteration, Manager, Numbers, bytes_of
from .operation import Operation, Output
from .tensor import Tensor

__version__: str = _native.library().version().decode()

__all__ = [
    *_error_names,
    "Backend",
    "Iteration",
    "Manager",
    "Numbers",
    "Operation",
    "Output",
    "Tensor",
    "bytes_of",
    "cuda",
    "opencl",
    "simulated",
]
