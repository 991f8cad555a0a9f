# SPDX-License-Identifier: Apache-2.0
"""Compiled graphs (torch.compile): each runs as one operation. Its kernels are not PyTorch's operators, and take addresses.

A graph asks for memory in the same order whenever it runs on inputs of the same sizes. So its first run has all the room
that there is; what it asked for, and which of that became its results, is known from then on."""

from __future__ import annotations

import contextlib
import weakref
from typing import Any, Dict, FrozenSet, Iterator, List, Optional, Sequence, Tuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from .. import errors
from .calls import Call
from .operators import CHANGE, READ, TENSOR, flat_tensors, kind_of, nbytes_of, storage_of
from .places import SMALL
from .requests import Requests

#: PyTorch can leave a mode alone while it compiles, since 2.8.
SUPPORTED = hasattr(TorchDispatchMode, "ignore_compile_internals")


class Region:
    """What is known about a graph on inputs of the same sizes."""

    __slots__ = ("key", "sizes", "ordinals", "changed", "room", "is_measured")

    # What it is to the adapter, which knows operators by their signatures.
    reshapes = views = has_out = makes_nothing = by_value = repeatable = makes_nested = False

    def __init__(self, name: str) -> None:
        self.key = name.encode()
        self.sizes: Optional[Tuple[int, ...]] = None  # of the storages that it makes; None: it has not run yet
        self.ordinals: List[int] = []  # of its requests for the large ones, on CUDA
        self.changed: Optional[FrozenSet[int]] = None  # the inputs that it changes; None: all of them
        self.room = 0  # bytes for what it makes beside them
        self.is_measured = False

    def operands(self, args: Tuple[Any, ...], _kwargs: Dict[str, Any]) -> Iterator[Tuple[torch.Tensor, int]]:
        """Each tensor among the inputs, and whether its value changes."""
        changed = self.changed
        for position, value in enumerate(args[0]):
            if kind_of(value) == TENSOR:
                yield value, CHANGE if changed is None or position in changed else READ

    def learn(self, graph: Any, inputs: Sequence[Any], results: Any, made: Sequence[Any], ordinals: List[int]) -> None:
        """After the first run: `inputs` are its inputs' storages, `made` those that it has made."""
        self.sizes = tuple(nbytes_of(storage) for storage in made)
        self.ordinals = ordinals
        mutated = getattr(graph, "mutated_input_idxs", None)
        if mutated is None:
            return
        # Inputs that nobody needs any more may have become results.
        returned = {storage_of(tensor)._cdata for tensor in flat_tensors(results)}
        self.changed = frozenset(mutated) | {
            position for position, storage in enumerate(inputs) if storage is not None and storage._cdata in returned}


class _Watch(TorchDispatchMode):
    """Sees PyTorch's operators within a graph, which ask for memory themselves."""

    def __init__(self, requests: Requests) -> None:
        super().__init__()
        self._requests = requests

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        results = function(*args, **(kwargs or {}))
        given = {storage_of(tensor)._cdata for tensor in flat_tensors([args, kwargs or {}])}
        for tensor in flat_tensors(results):
            storage = storage_of(tensor)
            if tensor.device.type == "cpu" and storage._cdata not in given:
                self._requests.check(nbytes_of(storage))
                self._requests.add(storage)
        return results


class RegionCall(Call):
    """One run of a graph."""

    __slots__ = ("region", "graph", "graphs", "storages", "_requests")

    def __init__(self, region: Region, graph: Any, inputs: List[Any], graphs: "Graphs") -> None:
        super().__init__(region, None, (inputs,), {})
        self.region, self.graph, self.graphs = region, graph, graphs
        self.sizes, self.room, self.is_prepared = region.sizes, region.room, True
        # The graph takes its inputs out of the list.
        self.storages = [storage_of(value) if kind_of(value) == TENSOR else None for value in inputs]
        self._requests: Optional[Requests] = None

    def begin(self, memory: Any, place: int, room: int) -> None:
        """The operation has begun: the graph has this room."""
        self._requests = memory.open_room(self.region, place, room)

    def run(self) -> Any:
        with self.graphs.within(self._requests):
            return self.graphs.original(self.graph, self.args[0])

    def end(self, memory: Any, results: Any, made: List[Any], fits: bool) -> List[Tuple[Any, Any]]:
        # What it has made is still in its room, unless it had places.
        region, large = self.region, [storage for storage in made if nbytes_of(storage) >= SMALL]
        memory.measure_room(region, large)
        if region.sizes is None:
            region.learn(self.graph, self.storages, results, made, [memory.request_of(storage) for storage in large])
        elif not fits:
            region.sizes = None
        moved = [] if fits else [(storage, memory.take_out(storage)) for storage in large if memory.in_room(storage)]
        memory.close_room()
        return moved


class Graphs:
    """Runs the graphs that PyTorch's compiler makes."""

    def __init__(self, adapter: Any, looks: Any) -> None:
        self.adapter, self.looks = adapter, looks
        self.original: Any = None  # what graphs do without the adapter
        self._allocate: Any = None
        self._counted: Any = None
        self._regions: Dict[int, Tuple[Any, Dict[Any, Region]]] = {}  # by the graph's id

    def install(self) -> None:
        if not SUPPORTED:
            return
        from torch._inductor import codecache, output_code

        self.original = original = output_code.CompiledFxGraph.__call__

        def call(graph: Any, inputs: Any) -> Any:
            adapter = self.adapter
            if not adapter.open:
                return original(graph, inputs)
            with adapter.lock:
                region = self._region(graph, inputs)
                try:
                    return adapter.run_call(RegionCall(region, graph, inputs, self))
                except (errors.BundleTooLarge, errors.OutOfMemory) as reason:
                    raise type(reason)(f"{reason}. If the operation is a compiled graph, compile smaller parts of the model "
                                       "by themselves, such as each layer") from reason

        output_code.CompiledFxGraph.__call__ = call  # type: ignore[method-assign]
        if self.adapter.type == "cpu":
            guards = torch._C._dynamo.guards
            self._allocate = guards._empty_strided_cpu
            self._counted = guards._empty_strided_cpu = self._counting(self._allocate)
            self._exchange(codecache, self._allocate, self._counted)

    def remove(self) -> None:
        if self.original is None:
            return
        from torch._inductor import codecache, output_code

        output_code.CompiledFxGraph.__call__ = self.original  # type: ignore[method-assign]
        if self._allocate is not None:
            torch._C._dynamo.guards._empty_strided_cpu = self._allocate
            self._exchange(codecache, self._counted, self._allocate)

    @staticmethod
    def _exchange(codecache: Any, old: Any, new: Any) -> None:
        """In the modules of graphs that are there already."""
        for module in codecache.PyCodeCache.modules:
            if getattr(module, "empty_strided_cpu", None) is old:
                module.empty_strided_cpu = new

    def _counting(self, allocate: Any) -> Any:
        memory = self.adapter.memory

        def counted(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
            requests = memory.requests
            if requests is None:
                return allocate(size, stride, dtype)
            last = 0 if 0 in size else 1 + sum((n - 1) * step for n, step in zip(size, stride))
            requests.check(last * dtype.itemsize)
            tensor = allocate(size, stride, dtype)
            requests.add(storage_of(tensor))
            return tensor

        return counted

    def _region(self, graph: Any, inputs: Sequence[Any]) -> Region:
        """Sizes depend on the inputs that are numbers."""
        number = id(graph)
        found = self._regions.get(number)
        if found is None:
            regions = self._regions
            reference = weakref.ref(graph, lambda _: regions.pop(number, None))
            found = regions[number] = reference, {}
        key = tuple([value for value in inputs if kind_of(value) != TENSOR])
        region = found[1].get(key)
        if region is None:
            options = getattr(graph, "fx_kwargs", None) or {}
            way = "backward" if options.get("is_backward") else "forward"
            region = found[1][key] = Region(f"compiled {way} {options.get('graph_id', 0)}")
        return region

    @contextlib.contextmanager
    def within(self, requests: Optional[Requests]) -> Iterator[None]:
        """While a graph runs, nothing in it is an operation of its own."""
        with self.looks.elsewhere(), _disable_current_modes():
            if requests is None:
                yield
            else:
                with _Watch(requests):
                    yield
