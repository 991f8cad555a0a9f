# SPDX-License-Identifier: Apache-2.0
"""Runs GPU programs whose data does not fit on the GPU. docs/python.md is the manual."""

from . import _native, cuda, opencl, simulated
from ._memory import bytes_of
from .backends import Backend
from .devices import Neighbour, SharedLinks
from .errors import (
    AccessViolation,
    BackendError,
    BundleTooLarge,
    ConcurrentUse,
    DeviceLost,
    DroppedValue,
    Error,
    InternalError,
    NestedOperation,
    OutOfMemory,
    PlanRefused,
    UndefinedValue,
    UsageError,
    WorkFailed,
)
from .manager import Iteration, Manager, Numbers
from .operation import Operation, Output
from .planning import (
    Comparison,
    ComparisonRow,
    Explanation,
    Fit,
    Progress,
    Simulation,
    Stall,
    Violation,
    bound,
    compare,
    explain,
    fit,
    plan,
    planners,
    simulate,
    validate,
)
from .report import OnDemandReport, PlanReport, Report
from .tensor import Tensor
from .traces import Form, Machine, Part, Plan, Prediction, Trace, TraceOperation, TraceTensor
from .views import View
from .weights import Weight, WeightsFile, open_weights, read_safetensors

__version__: str = _native.library().version().decode()

__all__ = [
    "AccessViolation",
    "Backend",
    "BackendError",
    "BundleTooLarge",
    "Comparison",
    "ComparisonRow",
    "ConcurrentUse",
    "DeviceLost",
    "DroppedValue",
    "Error",
    "Explanation",
    "Fit",
    "Form",
    "InternalError",
    "Iteration",
    "Machine",
    "Manager",
    "Neighbour",
    "NestedOperation",
    "Numbers",
    "OnDemandReport",
    "Operation",
    "OutOfMemory",
    "Output",
    "Part",
    "Plan",
    "PlanRefused",
    "PlanReport",
    "Prediction",
    "Progress",
    "Report",
    "SharedLinks",
    "Simulation",
    "Stall",
    "Tensor",
    "Trace",
    "TraceOperation",
    "TraceTensor",
    "UndefinedValue",
    "UsageError",
    "View",
    "Violation",
    "Weight",
    "WeightsFile",
    "WorkFailed",
    "bound",
    "bytes_of",
    "compare",
    "cuda",
    "explain",
    "fit",
    "open_weights",
    "opencl",
    "plan",
    "planners",
    "read_safetensors",
    "simulate",
    "simulated",
    "validate",
]
