# SPDX-License-Identifier: Apache-2.0
"""A plugin for pytest: PyTorch's own tests below the adapter, or below a mode that does nothing. run.py says which."""

import os

import pytest
from torch.utils._python_dispatch import TorchDispatchMode

import swapmm.torch
from swapmm.torch import places
from swapmm.torch.operators import has_own_dispatch

UNDER = os.environ["SWAPMM_UPSTREAM"]
# Their tensors are small. Those of a few numbers stay, because PyTorch's own code reads such results past the operators.
places.SMALL = 64


class Nothing(TorchDispatchMode):
    """Some tests fail below any mode: those of names, profiles and Python objects."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if has_own_dispatch(types):
            return NotImplemented
        return function(*args, **(kwargs or {}))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    if UNDER == "nothing":
        with Nothing():
            yield
        return
    swapmm.torch.budget("6GiB", "cpu", demand_mode="per_operation")  # for the largest of them
    try:
        yield
    finally:
        swapmm.torch.off()
