# SPDX-License-Identifier: Apache-2.0
"""Compiled graphs (torch.compile): each runs as one operation. Its kernels are not PyTorch's operators, and take addresses.

A graph asks for memory in the same order whenever it runs on inputs of the same sizes. So its first run has all the room
that there is; what it asked for, and which of that became its results, is known from then on."""

from __future__ import annotations

import contextlib
import copy
import importlib.abc
import importlib.util
import sys
import warnings
import weakref
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Optional, Sequence, Set, Tuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from .. import errors
from .calls import Call
from .modes import COMPILES, Dispatch
from .operators import CHANGE, READ, TENSOR, flat_tensors, kind_of, nbytes_of, storage_of
from .places import SMALL
from .requests import Requests


_MOST_REGIONS = 1000  # of one graph


class Region:
    """What is known about a graph on inputs of the same sizes."""

    __slots__ = ("key", "sizes", "ordinals", "changed", "room", "is_measured", "is_too_large")

    # What it is to the adapter, which knows operators by their signatures.
    reshapes = views = has_out = makes_nothing = by_value = repeatable = makes_nested = False

    def __init__(self, name: str) -> None:
        self.key = name.encode()
        self.sizes: Optional[Tuple[int, ...]] = None  # of the storages that it makes; None: it has not run yet
        self.ordinals: List[int] = []  # of its requests for the large ones, on CUDA
        self.changed: Optional[FrozenSet[int]] = None  # the inputs that it changes; None: all of them
        self.room = 0  # bytes for what it makes beside them
        self.is_measured = False
        self.is_too_large = False  # for the budget

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

    __slots__ = ("known", "region", "graph", "graphs", "storages", "has_begun", "_requests")

    def __init__(self, known: "Known", region: Region, graph: Any, inputs: List[Any], graphs: "Graphs") -> None:
        super().__init__(region, None, (inputs,), {})
        self.known, self.region, self.graph, self.graphs = known, region, graph, graphs
        self.sizes, self.room, self.is_prepared = region.sizes, region.room, True
        # The graph takes its inputs out of the list.
        self.storages = [storage_of(value) if kind_of(value) == TENSOR else None for value in inputs]
        self.has_begun = False
        self._requests: Optional[Requests] = None

    def begin(self, memory: Any, place: int, room: int) -> None:
        """The operation has begun: the graph has this room."""
        self.has_begun = True
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
            self.known.numbers_count = True
        moved = [] if fits else [(storage, memory.take_out(storage)) for storage in large if memory.in_room(storage)]
        memory.close_room()
        return moved


class Source:
    """A graph before it was compiled: PyTorch's operators, which the manager can run one by one."""

    def __init__(self, operators: torch.fx.GraphModule) -> None:
        self.operators = operators
        self.is_the_same = all(map(_is_the_same, operators.graph.nodes))
        self.least, self.most = _bytes_of(operators.graph)
        for node in operators.graph.nodes:
            node.meta.clear()

    def run(self, graph: Any, inputs: List[Any]) -> Any:
        with torch.no_grad(), torch._C._DisableAutocast():
            return self._run(graph, inputs)

    def _run(self, graph: Any, inputs: List[Any]) -> Any:
        results = list(self.operators(*inputs))
        strides = getattr(graph, "output_strides", None) or []
        # Other graphs were compiled for the strides that the compiled one gives.
        for i, (result, wanted) in enumerate(zip(results, strides)):
            if kind_of(result) != TENSOR or not wanted or not all(str(step).isdigit() for step in wanted):
                continue
            stride = tuple(int(str(step)) for step in wanted)
            if result.stride() != stride and result.numel():
                results[i] = torch.empty_strided(result.shape, stride, dtype=result.dtype, device=result.device).copy_(result)
        return results


def _is_the_same(node: torch.fx.Node) -> bool:
    """Whether it does by itself what it does in a compiled graph. What is random comes out in another way."""
    target = node.target
    if node.op != "call_function":
        return node.op != "call_module"
    return not isinstance(target, torch._ops.HigherOrderOperator) and not any(part in str(target) for part in ("rand", "seed"))


def _bytes_of(graph: torch.fx.Graph) -> Tuple[int, int]:
    """The bytes of a graph's inputs and results, and the most that all its values have at once. 0, 0: not known."""
    last: Dict[int, int] = {}  # the last node that uses a storage
    sizes: Dict[int, int] = {}
    first: Dict[int, int] = {}
    nodes = list(graph.nodes)
    outer: Set[int] = set()
    for i, node in enumerate(nodes):
        own = []
        for value in flat_tensors(node.meta.get("val")):
            size = nbytes_of(storage_of(value)) if not _has_symbols(value) else None
            if size is None:
                return 0, 0
            key = storage_of(value)._cdata
            sizes[key] = size
            first.setdefault(key, i)
            last[key] = i
            own.append(key)
        for used in node.all_input_nodes:
            for key in used.meta.get("_swapmm", ()):
                last[key] = i
        node.meta["_swapmm"] = own
        if node.op == "placeholder":
            outer.update(own)
        if node.op == "output":
            for used in node.all_input_nodes:
                outer.update(used.meta["_swapmm"])
    changes = [0] * (len(nodes) + 1)
    for key, size in sizes.items():
        changes[0 if key in outer and nodes[first[key]].op == "placeholder" else first[key]] += size
        if key not in outer:
            changes[last[key] + 1] -= size
    now = most = 0
    for change in changes:
        now += change
        most = max(most, now)
    return sum(sizes[key] for key in outer), most


def _has_symbols(value: torch.Tensor) -> bool:
    return any(not isinstance(size, int) for size in (*value.shape, *value.stride(), value.storage_offset()))


def _leave_alone(code: Any) -> None:
    """PyTorch's compiler does not compile this function, nor what it calls, when it runs between compiled parts. Within
    them it goes through it."""
    frames = torch._C._dynamo.eval_frame
    skip = frames._FrameAction.SKIP
    frames.set_code_exec_strategy(code, frames._FrameExecStrategy(skip, skip))


_COMPILER = "torch._inductor.output_code"


class _OnImport(importlib.abc.MetaPathFinder):
    """Calls a function as soon as a module has been imported."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self._name, self._then = name, then

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            run, then = spec.loader.exec_module, self._then

            def exec_module(module: Any) -> None:
                run(module)
                then()

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


class Known:
    """What is known about a graph."""

    def __init__(self, reference: Any) -> None:
        self._reference = reference  # ends when the graph does
        self._regions: Dict[Any, Region] = {}
        self.source: Optional[Source] = None
        self.numbers_count = False  # the inputs that are numbers decide about sizes

    def region(self, graph: Any, inputs: Sequence[Any]) -> Region:
        """Where inputs are numbers, sizes are not the same in each run."""
        numbers = [value for value in inputs if kind_of(value) != TENSOR]
        key: Any = None
        if numbers:
            key = tuple([value.shape for value in inputs if kind_of(value) == TENSOR]), tuple(numbers) if self.numbers_count else ()
        region = self._regions.get(key)
        if region is None:
            if len(self._regions) >= _MOST_REGIONS:
                self._regions.clear()
            options = getattr(graph, "fx_kwargs", None) or {}
            way = "backward" if options.get("is_backward") else "forward"
            region = self._regions[key] = Region(f"compiled {way} {options.get('graph_id', 0)}")
        return region


class Graphs:
    """Runs the graphs that PyTorch's compiler makes."""

    def __init__(self, adapter: Any, looks: Any) -> None:
        self.adapter, self.looks = adapter, looks
        self.original: Any = None  # what graphs do without the adapter
        self._allocate: Any = None
        self._counted: Any = None
        self._compile: Any = None
        self._finder: Any = None
        self._known: Dict[int, Known] = {}  # by the graph's id

    def install(self) -> None:
        if not COMPILES:
            return
        try:
            for code in (*self.looks.codes, Dispatch.__torch_dispatch__.__code__):
                _leave_alone(code)
            self._compile = torch._TorchCompileInductorWrapper.__call__
            self._allocate = torch._C._dynamo.guards._empty_strided_cpu
        except AttributeError:  # another version: programs run operator by operator, compiled or not
            Dispatch.compiles = False
            return
        torch._TorchCompileInductorWrapper.__call__ = self._compiling()  # type: ignore[method-assign]
        if self.adapter.type == "cpu":
            self._counted = torch._C._dynamo.guards._empty_strided_cpu = self._counting(self._allocate)
        if _COMPILER in sys.modules:
            self._hook()
            self._exchange(self._allocate, self._counted)
        else:  # it takes seconds to import, and most programs do not
            self._finder = _OnImport(_COMPILER, self._hook)
            sys.meta_path.insert(0, self._finder)

    def _hook(self) -> None:
        from torch._inductor import output_code

        self.original = original = output_code.CompiledFxGraph.__call__

        def call(graph: Any, inputs: Any) -> Any:
            if not self.adapter.open:
                return original(graph, inputs)
            with self.adapter.lock:
                return self._run(graph, inputs)

        output_code.CompiledFxGraph.__call__ = call  # type: ignore[method-assign]

    def remove(self) -> None:
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        if self._compile is not None:
            torch._TorchCompileInductorWrapper.__call__ = self._compile  # type: ignore[method-assign]
        if self._counted is not None:
            torch._C._dynamo.guards._empty_strided_cpu = self._allocate
        if self.original is not None:
            from torch._inductor import output_code

            output_code.CompiledFxGraph.__call__ = self.original  # type: ignore[method-assign]
            self._exchange(self._counted, self._allocate)

    @staticmethod
    def _exchange(old: Any, new: Any) -> None:
        """In the modules of graphs that are there already."""
        from torch._inductor import codecache

        for module in codecache.PyCodeCache.modules if new is not None else ():
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

    def _compiling(self) -> Any:
        """Compiles as before, and keeps what was compiled."""
        before = self._compile

        def compile_graph(wrapper: Any, model: Any, inputs: Any) -> Any:
            from torch._functorch import config as settings
            from torch._inductor import output_code
            from torch._inductor.compile_fx import compile_fx, compile_fx_inner

            if wrapper.compiler_name != "inductor" or not self.adapter.open:
                return before(wrapper, model, inputs)

            def inner(operators: torch.fx.GraphModule, examples: Any, **options: Any) -> Any:
                source = Source(torch.fx.GraphModule(operators, copy.deepcopy(operators.graph)))  # the compiler changes it
                graph = compile_fx_inner(operators, examples, **options)
                if isinstance(graph, output_code.CompiledFxGraph):
                    self._know(graph).source = source
                return graph

            # Graphs of CUDA stand for fixed addresses. Whole results of an older run would come without their sources.
            # Inputs stay as they are, so that a graph that turns out to be too large can begin again.
            with settings.patch(enable_autograd_cache=False, donated_buffer=False):
                return compile_fx(model, inputs, inner_compile=inner, config_patches={**wrapper.config, "triton.cudagraphs": False})

        return compile_graph

    def _know(self, graph: Any) -> "Known":
        number = id(graph)
        known = self._known.get(number)
        if known is None:
            all_known = self._known
            known = all_known[number] = Known(weakref.ref(graph, lambda _: all_known.pop(number, None)))
        return known

    def _run(self, graph: Any, inputs: List[Any]) -> Any:
        known = self._know(graph)
        region, source, given = known.region(graph, inputs), known.source, list(inputs)
        changes = bool(getattr(graph, "mutated_input_idxs", True))
        room = self.adapter.room()
        if source is None or not source.is_the_same or not region.is_too_large and (
                region.sizes is not None or (source.most if changes else source.least) <= room):
            call = RegionCall(known, region, graph, inputs, self)
            try:
                return self.adapter.run_call(call)
            except (errors.BundleTooLarge, errors.OutOfMemory) as reason:
                if source is None or not source.is_the_same or call.has_begun and changes:
                    raise type(reason)(f"{reason}. If the operation is a compiled graph, compile smaller parts of the model "
                                       "by themselves, such as each layer") from reason
        if not region.is_too_large:
            region.is_too_large = True
            name = region.key.decode()
            warnings.warn(f"{name} is too large for the budget: its operators run one by one. Compile smaller parts of the "
                          "model by themselves, such as each layer", stacklevel=2)
        inputs.clear()
        return source.run(graph, given)

    @contextlib.contextmanager
    def within(self, requests: Optional[Requests]) -> Iterator[None]:
        """While a graph runs, nothing in it is an operation of its own."""
        with self.looks.elsewhere(), _disable_current_modes():
            if requests is None:
                yield
            else:
                with _Watch(requests):
                    yield
