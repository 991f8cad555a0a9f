# SPDX-License-Identifier: Apache-2.0
"""Operators that are written in Python run others, which the manager does not see: their bundle is that of the whole."""

from __future__ import annotations

from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from .. import errors
from .kept import ATTRIBUTE
from .operators import LOOK, has_own_dispatch, signature_of, storage_or_none
from .places import Record


def require_bytes(storage: Any, what: str) -> None:
    """Within an operator: what is none of its operands cannot come back now."""
    record = getattr(storage, ATTRIBUTE, None)
    if record.__class__ is Record and record.place is None:
        raise errors.UsageError(f"{what} of a tensor that is not on the device, within an operator that does not have it as an operand")


class Guard(TorchDispatchMode):
    """Around such an operator. Raises an error instead of reading memory that is not there."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if has_own_dispatch(types):
            return NotImplemented
        signature = signature_of(function)
        if signature.touches_data:
            for tensor, way in signature.operands(args, kwargs or {}):
                if way != LOOK and tensor.numel():
                    require_bytes(storage_or_none(tensor), signature.name)
        return function(*args, **(kwargs or {}))

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Compiled functions in it run as if there were no budget."""
        return True
