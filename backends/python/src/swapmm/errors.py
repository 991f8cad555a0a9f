# SPDX-License-Identifier: Apache-2.0
"""The library's errors as exceptions. docs/errors.md explains each one; the names are the same."""

from __future__ import annotations

from typing import Dict, Type



class Error(RuntimeError):
    """Base of all exceptions of swapmm."""


class UsageError(Error):
    """The program breaks a rule of the library. Nothing was queued."""


class BundleTooLarge(UsageError):
    """The tensors of one operation do not fit the device together."""


class UndefinedValue(UsageError):
    """A value is needed that was never written."""


class ConcurrentUse(UsageError):
    """Another thread is using the manager."""


class NestedOperation(UsageError):
    """An operation has begun and not ended, and the call is not allowed until it has."""


class DroppedValue(Error):
    """A value is needed that a followed plan dropped."""


class PlanRefused(Error):
    """A plan cannot be read, is invalid, or belongs to another program."""


class AccessViolation(Error):
    """With `check_access`: an operation did what it had not declared. It has run."""


class BackendError(Error):
    """A call of the backend's API failed, or the backend is not there."""


class OutOfMemory(Error, MemoryError):
    """The device or the host refused memory."""


class DeviceLost(Error):
    """The device is gone. Each later call raises the same."""


class WorkFailed(Error):
    """Work failed that was queued earlier, and values are lost. If a kernel of the simulated device raised an exception,
    that is the `__cause__`."""


class InternalError(Error):
    """A fault of the library. Please report it."""


#: The exception of each code of the C interface.
of_status: Dict[int, Type[Error]] = {
    1: UsageError,
    2: BundleTooLarge,
    3: UndefinedValue,
    4: ConcurrentUse,
    5: NestedOperation,
    6: DroppedValue,
    7: PlanRefused,
    8: AccessViolation,
    9: BackendError,
    10: OutOfMemory,
    11: DeviceLost,
    12: WorkFailed,
    13: InternalError,
}
