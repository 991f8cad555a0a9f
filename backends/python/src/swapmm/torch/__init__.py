# SPDX-License-Identifier: Apache-2.0
"""PyTorch programs in a part of the memory that they need.

    import swapmm.torch
    swapmm.torch.budget("8GB")            # the rest of the program as it is

Or as traces, for plans without a device:

    trace = swapmm.torch.record(step, inputs=[images, labels], parameters=[network, optimizer])
    plan = swapmm.plan(trace, "50%")

docs/pytorch.md is the manual. record() needs PyTorch 1.13 or newer, budget() 2.4 or newer.
"""

from __future__ import annotations

import re as _re
import threading as _threading
import weakref as _weakref
from typing import TYPE_CHECKING, Any, List, Optional, Union

import torch as _torch

from .. import errors as _errors
from .. import weights as _weights
from .._memory import bytes_of as _bytes_of
from .recording import record
from .report import Report

# The adapter needs PyTorch 2: budget() imports it.
if TYPE_CHECKING:
    from .adapter import Adapter

__all__ = ["Report", "budget", "off", "record", "report", "step", "stream"]


def _require_pytorch_2() -> None:
    found = _re.match(r"(\d+)\.(\d+)", _torch.__version__)
    if found and tuple(map(int, found.groups())) < (2, 4):
        raise _errors.UsageError(f"swapmm.torch.budget() needs PyTorch 2.4 or newer, this is {_torch.__version__}")


class _Session:
    """A budget, and everything that it has changed in PyTorch."""

    def __init__(self, adapter: Adapter) -> None:
        from .interrupts import Interrupts
        from .modes import Dispatch, Looks, Threads, running_module
        from .regions import Graphs
        from .steps import Steps

        self.adapter = adapter
        self.thread = _threading.get_ident()
        self.mode = Dispatch(adapter)
        adapter.where = running_module
        looks = Looks(adapter)
        self.interrupts = Interrupts(adapter)
        self.parts: List[Any] = []
        self.hooks: Any = _weakref.WeakKeyDictionary()  # by model: those whose calls are iterations
        try:
            with adapter.lock:
                self.interrupts.install()
                for part in (looks, Threads(self.mode), Graphs(adapter, looks, self.mode), Steps(adapter)):
                    self.parts.append(part)
                    part.install()
                self.mode.enter_below()
        except BaseException:
            self.close()
            raise

    def watch(self, model: _torch.nn.Module) -> None:
        """Each call of it is an iteration."""
        if model not in self.hooks:
            self.hooks[model] = model.register_forward_hook(_ended)

    def close(self) -> None:
        """Signals wait until all values are in their storages."""
        try:
            with self.adapter.lock:
                for hook in self.hooks.values():
                    hook.remove()
                self.mode.leave()
                for part in reversed(self.parts):
                    part.remove()
                self.adapter.close()
        finally:
            self.interrupts.remove()


_session: Optional[_Session] = None


def budget(size: Union[int, str], device: Any = None, **options: Any) -> None:
    """Keeps everything that PyTorch holds on a device within so many bytes from now on.

    `size`: bytes, or a text such as "8GB", "512MiB"; on CUDA also "50%", of the device's memory.
    `device`: a CUDA device, or "cpu", whose memory plays the device then. None: CUDA if there is one, else "cpu".
    `options`: fields of swapmm_options (docs/options.md), such as `planner`, `observe`, `host_budget`; and `recompute`:
    whether operators may run again instead of copies of what they made (True). A plan takes up to 3 s to find, in which the
    program waits, unless `planning_limit_ms` or `planning_time_ms` say otherwise.

    On CUDA the call must come before the first tensor on the device. A second call ends the first budget.
    """
    _require_pytorch_2()
    from .adapter import Adapter
    from .places import CpuMemory

    if device is None:
        device = "cuda" if _torch.cuda.is_available() else "cpu"
    device = _torch.device(device)
    is_share = isinstance(size, str) and size.strip().endswith("%")
    if device.type == "cuda":
        if not _torch.cuda.is_available():
            raise _errors.UsageError("a budget on CUDA: PyTorch finds no CUDA device")
        if device.index is None:
            device = _torch.device("cuda", _torch.cuda.current_device())
        if is_share:
            total = _torch.cuda.get_device_properties(device).total_memory
            size = int(total * float(str(size).strip()[:-1]) / 100)
    elif device.type != "cpu":
        raise _errors.UsageError(f"swapmm.torch has no backend for {device}")
    elif is_share:
        raise _errors.UsageError(f"a budget of {size}: shares are for CUDA devices, whose memory is known")
    room = _bytes_of(size)
    off()  # what is wrong with the arguments leaves the first budget as it was
    if device.type == "cuda":
        from .cuda import CudaMemory

        memory: Any = CudaMemory(device, room)
    else:
        memory = CpuMemory(room)
        # Copies and operators take turns there, so times tell nothing about a plan: it is kept for the bytes it saves.
        options.setdefault("trial_iterations", 0)
    global _session
    _session = _Session(Adapter(memory, options))


def off() -> None:
    """Ends the budget. All values are in their storages then."""
    global _session
    if _session is not None and _session.thread != _threading.get_ident():
        raise _errors.UsageError("swapmm.torch.off() must be called in the thread that has called budget()")
    session, _session = _session, None
    if session is not None:
        session.close()


def stream(model: _torch.nn.Module, size: Union[int, str, None] = None, device: Any = None, weights: Any = None,
           **options: Any) -> None:
    """For inference: each call of `model` is an iteration, so plans bring weights before the layers that use them. Weights
    do not change, so they are copied out once and from then on only in. With a `size`, calls budget() first.

    `weights`: a file of the format safetensors, several, or a folder with them. What the model has under the same names comes
    from there when it is needed, and is nowhere else: neither all of it nor a second copy is in host memory. The model may
    be on the meta device before. Such weights record no gradients, and nothing may write them. Needs a `size`.

    Calls that record gradients are left to the optimizer's step.
    """
    found = _weights.open_weights(weights) if weights is not None else {}
    if weights is not None:
        if size is None:
            raise _errors.UsageError("stream() with weights from a file makes the budget itself: it needs a size")
        if not found:
            raise _errors.UsageError(f"{weights} has no tensors")
        options["file"] = next(iter(found.values())).file
    if size is not None:
        budget(size, device, **options)
    session = _open_session()
    if found:
        from .constants import take_weights

        try:
            take_weights(session.adapter, model, found)
        except BaseException:
            off()
            raise
    session.watch(model)


def _ended(_module: Any, _inputs: Any, _output: Any) -> None:
    """The hook of models that stream() was called with. It can be pickled with a model."""
    if _session is not None and not _torch.is_grad_enabled() and _session.adapter.open:
        _session.adapter.end_iteration()


def step() -> None:
    """Says that an iteration has ended. Needed only where no optimizer of torch.optim makes a step, as in inference."""
    _adapter().end_iteration()


def report() -> Report:
    """What has happened since budget()."""
    return Report(_adapter())


def _open_session() -> _Session:
    if _session is None:
        raise _errors.UsageError("swapmm.torch.budget() was not called")
    return _session


def _adapter() -> Adapter:
    return _open_session().adapter
