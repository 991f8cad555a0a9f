# SPDX-License-Identifier: Apache-2.0
"""Records one steady step of a PyTorch program as a trace.

- A tensor of the trace is a storage; views share it.
- An operation is an operator that touches data, below autograd and autocast. Operators that only make a view, ask for a
  shape or allocate are no operations, nor are copies between host and device.
- Arguments are reads and results are writes. In-place operators have updates, or writes if they overwrite the whole
  storage without reading it.
- Parameters, and storages that live on from step to step, are persistent; storages that the host fills are inputs; all
  others are transient.

examples/pytorch/README.md of the repository has the whole list.
"""

from __future__ import annotations

import statistics
import time
from typing import Any, Callable, Dict, Iterator, List, Set, Tuple

import torch

from .. import errors
from ..traces import Trace
from .operators import storage_of
from .watch import Step, Storage, Storages, Watch

_SLEEP_CYCLES = 200_000  # about 0.1 ms


# ---- What is measured around each operation: before() gives a token, after(token) what values() understands.


class _Nothing:
    def before(self) -> Any:
        return None

    def after(self, token: Any) -> Any:
        return None

    def values(self, measured: List[Any]) -> List[int]:
        return [0 for _ in measured]


class _HostTime(_Nothing):
    def before(self) -> Any:
        return time.perf_counter_ns()

    def after(self, token: Any) -> Any:
        return time.perf_counter_ns() - token

    def values(self, measured: List[Any]) -> List[int]:
        return [value or 0 for value in measured]


class _DeviceTime(_Nothing):
    def before(self) -> Any:
        # The device sleeps while the host queues event, operation and event: the time between the events is the
        # operation's own, not that of the host which is slower.
        torch.cuda._sleep(_SLEEP_CYCLES)
        start = torch.cuda.Event(enable_timing=True)
        start.record()
        return start

    def after(self, token: Any) -> Any:
        end = torch.cuda.Event(enable_timing=True)
        end.record()
        return token, end

    def values(self, measured: List[Any]) -> List[int]:
        torch.cuda.synchronize()
        return [round(pair[0].elapsed_time(pair[1]) * 1e6) if pair else 0 for pair in measured]


class _DeviceScratch(_Nothing):
    """Bytes that are allocated during an operation, and neither before nor after it."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def _allocated(self) -> Dict[str, int]:
        found: Dict[str, int] = torch.cuda.memory_stats_as_nested_dict(self.device)["allocated_bytes"]["all"]
        return found

    def before(self) -> Any:
        torch.cuda.reset_peak_memory_stats(self.device)
        return self._allocated()["current"]

    def after(self, token: Any) -> Any:
        now = self._allocated()
        return now["peak"] - max(token, now["current"])

    def values(self, measured: List[Any]) -> List[int]:
        return [max(value or 0, 0) for value in measured]


# ---- The recording


class _Recorder:
    def __init__(self, device: torch.device, inputs: Any, parameters: Any) -> None:
        self.storages = Storages(device)
        self.inputs, self.parameters = inputs, parameters
        self.steps = 0

    def look_around(self) -> None:
        """Finds the storages that the program has declared: some may be new, such as an optimizer's state."""
        for name, tensor in _named_tensors(self.parameters, "parameter"):
            if self.storages.device.type == "cpu" and name.startswith("step of "):
                self.storages.keep_on_host(storage_of(tensor))  # where it is beside a CUDA device
            self._declare(self.storages.parameters, name, tensor)
        for name, tensor in _named_tensors(self.inputs, "input"):
            self._declare(self.storages.inputs, name, tensor)

    def _declare(self, declared: Set[Storage], name: str, tensor: torch.Tensor) -> None:
        handle = storage_of(tensor)
        if self.storages.on_host(tensor, handle):
            return
        storage = self.storages.find(handle)
        if storage not in declared:
            storage.name = name
            declared.add(storage)

    def run(self, step: Callable[[], object], probe: Any) -> Step:
        self.look_around()
        watched = Step(self.steps)
        self.steps += 1
        with Watch(self.storages, watched, probe):
            step()
        device = self.storages.device
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        if not watched.operations:
            raise errors.UsageError(f"the step ran no operation on {device.type}")
        return watched


def record(
    step: Callable[[], object],
    *,
    inputs: Any = (),
    parameters: Any = (),
    name: str = "pytorch",
    warmup: int = 2,
    repeat: int = 3,
    device: Any = None,
) -> Trace:
    """Records one call of `step()` after `warmup` others. `repeat` further calls give the durations: medians, operation
    by operation.

    `inputs`: tensors that get a new value from the host in each step. `parameters`: what lives on from step to step.
    Both: tensors, modules, optimizers, lists and dicts of them, or functions that return such. `device`: whose tensors
    are recorded; default: that of the first tensor found in them. On the device "meta" tensors need no memory.

    UsageError if a later call runs other operations than the recorded one, or while a budget is active. Costs
    warmup + 1 + repeat steps, of which 2 + repeat are slower by about 0.1 ms per operation. PyTorch 1.13 or newer.
    """
    from . import _session

    if _session is not None:
        raise errors.UsageError("swapmm.torch.record() works without a budget: call swapmm.torch.off() first")
    if repeat < 1:
        raise errors.UsageError("repeat: at least one step gives the durations")
    if device is None:
        declared = [*_named_tensors(parameters, ""), *_named_tensors(inputs, "")]
        device = declared[0][1].device if declared else "cpu"
    recorder = _Recorder(torch.device(device), inputs, parameters)
    for _ in range(warmup - 1):
        step()
    warm = recorder.run(step, _Nothing()) if warmup > 0 else None
    on_cuda = recorder.storages.device.type == "cuda"
    scratch_probe = _DeviceScratch(recorder.storages.device) if on_cuda else _Nothing()
    recorded = recorder.run(step, scratch_probe)
    # What the step accesses and nobody declared or made: this lived on from the step before.
    lasting = {s for s in recorded.lives_in if (s in warm.first_access if warm else not s.reference.expired())}
    recorder.look_around()

    expected, times = recorded.bundles(), []
    for repetition in range(repeat):
        probe = _DeviceTime() if on_cuda else _HostTime()
        again = recorder.run(step, probe)
        _require_equal(expected, again.bundles())
        if repetition == 0:
            lasting |= {storage for storage in again.lives_in if storage.made_in == recorded.number}
        times.append(probe.values([measured for _, _, measured in again.operations]))
    durations = [max(1, round(statistics.median(column))) for column in zip(*times)]
    scratch = scratch_probe.values([measured for _, _, measured in recorded.operations])
    trace = _build(name, recorder.storages, recorded, lasting, durations, scratch)
    trace.check()
    return trace


def _require_equal(expected: List[Any], found: List[Any]) -> None:
    for i, (before, now) in enumerate(zip(expected, found)):
        if before != now:
            raise errors.UsageError(f"the steps differ from operation {i} on: {before} and then {now}")
    if len(expected) != len(found):
        raise errors.UsageError(f"the steps differ: {len(expected)} operations and then {len(found)}")


def _build(
    name: str, storages: Storages, recorded: Step, lasting: Set[Storage], durations: List[int], scratch: List[int]
) -> Trace:
    trace = Trace(name)
    ids: Dict[Storage, int] = {}
    for storage, first in recorded.first_access.items():
        kind, available_from = _kind_of(storage, first, storages, recorded, lasting)
        ids[storage] = trace.tensor(storage.name or f"{kind}.{first}", storage.bytes, kind, available_from)
    for (operation, accesses, _), duration, extra in zip(recorded.operations, durations, scratch):
        lists: Dict[str, List[int]] = {"reads": [], "writes": [], "updates": []}
        for storage, access in accesses:
            lists[access].append(ids[storage])
        if extra > 0:
            lists["writes"].append(trace.tensor(f"{operation}.{len(trace.operations)}.scratch", extra))
        trace.operation(operation, duration, lists["reads"], lists["writes"], lists["updates"])
    # A value that no operation of this step wrote is the one that the step before left.
    last = len(trace.operations) - 1
    reads = {
        (ids[storage], last if at is None else at)
        for storage, at in recorded.host_reads
        if storage in ids and (at is not None or trace.tensors[ids[storage]].kind == "persistent")
    }
    trace.host_reads = sorted(reads, key=lambda read: read[::-1])
    return trace


def _kind_of(
    storage: Storage, first: int, storages: Storages, recorded: Step, lasting: Set[Storage]
) -> Tuple[str, int]:
    """The kind of a tensor, and from which operation on an input has its value."""
    if storage in storages.inputs:
        return "input", recorded.uploads.get(storage, 0)
    if storage in storages.parameters or storage in lasting and storage not in recorded.uploads:
        return "persistent", 0
    if storage in recorded.uploads:
        return "input", recorded.uploads[storage]
    if storage in recorded.lives_in:
        return "input", first  # made in the step, but not by an operation: the host gave it
    return "transient", 0


def _named_tensors(items: Any, prefix: str) -> Iterator[Tuple[str, torch.Tensor]]:
    """(name, tensor) for all tensors of what record() takes as inputs or parameters."""
    leaves = list(_leaves(items, prefix))
    names: Dict[int, str] = {}
    for _, leaf in leaves:
        if isinstance(leaf, torch.nn.Module):
            names.update((id(parameter), name) for name, parameter in leaf.named_parameters())
    for name, leaf in leaves:
        if isinstance(leaf, torch.nn.Module):
            yield from leaf.named_parameters()
            yield from leaf.named_buffers()
        elif isinstance(leaf, torch.optim.Optimizer):
            yield from _tensors_of_optimizer(leaf, names)
        else:
            yield name, leaf


def _tensors_of_optimizer(optimizer: Any, names: Dict[int, str]) -> Iterator[Tuple[str, torch.Tensor]]:
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            owner = names.get(id(parameter), "a parameter")
            yield owner, parameter
            for key, value in optimizer.state.get(parameter, {}).items():
                if isinstance(value, torch.Tensor):
                    yield f"{key} of {owner}", value


def _leaves(items: Any, prefix: str) -> Iterator[Tuple[str, Any]]:
    if isinstance(items, (torch.Tensor, torch.nn.Module, torch.optim.Optimizer)):
        yield prefix, items
    elif callable(items):
        yield from _leaves(items(), prefix)
    elif isinstance(items, dict):
        for key, value in items.items():
            yield from _leaves(value, str(key))
    elif items is not None:
        for position, value in enumerate(items):
            yield from _leaves(value, f"{prefix}.{position}")
