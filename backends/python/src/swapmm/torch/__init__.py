# SPDX-License-Identifier: Apache-2.0
"""PyTorch programs in a part of the memory that they need.

        import swapmm.torch
        swapmm.torch.budget("8GB")            # the rest of the program as it is
"""

from __future__ import annotations

from typing import Any, Optional

import torch as _torch
from torch.optim.optimizer import register_optimizer_step_post_hook as _register_after_step

from .adapter import Adapter
from .modes import Dispatch, Looks
from .places import CpuMemory


class _Open:
    adapter: Optional[Adapter] = None
    modes: Any = ()
    hook: Any = None


def budget(size: Any, device: Any = None, **options: Any) -> Adapter:
    """Keeps what PyTorch holds within so many bytes from now on."""
    off()
    if device is None:
        device = "cuda" if _torch.cuda.is_available() else "cpu"
    device = _torch.device(device)
    if device.type == "cuda":
        from .cuda import CudaMemory
        memory: Any = CudaMemory(device, int(size))
    else:
        memory = CpuMemory(int(size))
    adapter = Adapter(memory, options)
    _Open.adapter = adapter
    _Open.modes = (Dispatch(adapter), Looks(adapter))
    for mode in _Open.modes:
        mode.__enter__()
    _Open.hook = _register_after_step(lambda *_: adapter.end_iteration())
    return adapter


def off() -> None:
    """Ends it: all values are back in their storages."""
    adapter, _Open.adapter = _Open.adapter, None
    if adapter is None:
        return
    _Open.hook.remove()
    for mode in reversed(_Open.modes):
        mode.__exit__(None, None, None)
    adapter.close()
