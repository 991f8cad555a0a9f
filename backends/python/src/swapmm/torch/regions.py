# SPDX-License-Identifier: Apache-2.0
"""Compiled graphs (torch.compile): each runs as one operation. Its kernels are not PyTorch's operators, and take addresses.

A graph asks for memory in the same order whenever it runs on inputs of the same sizes. So its first run has more room than
it is expected to need; what it asked for, and which of that became its results, is known from then on."""

from __future__ import annotations

import contextlib
import copy
import importlib.abc
import importlib.util
import itertools
import sys
import warnings
import weakref
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Optional, Sequence, Set, Tuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from .. import errors
from .calls import Call
from .kept import ATTRIBUTE
from .modes import COMPILES, Dispatch
from .operators import CHANGE, READ, TENSOR, address_of_text, flat_tensors, kind_of, nbytes_of, storage_of, storage_or_none
from .places import SMALL
from .requests import Requests, current

_MOST_REGIONS = 1000  # of one graph
_MARGIN = 16 << 20
_CONSTANTS = "constants of compiled graphs"
#: CUDA graphs stand for fixed addresses; frozen weights are part of a graph; code in C++ asks for memory unseen.
_LEFT_OUT = {"triton.cudagraphs": False, "freezing": False, "cpp_wrapper": False}


class Region:
    """What is known about a graph on inputs of the same sizes."""

    __slots__ = ("key", "key_at", "sizes", "ordinals", "changed", "room", "is_measured", "is_too_large", "is_tight", "needs_all")

    # What it is to the adapter, which knows operators by their signatures.
    outlives = reshapes = views = has_out = makes_nothing = by_value = repeatable = makes_nested = packs = is_known = in_python = False

    def __init__(self, name: str) -> None:
        self.key = name.encode()
        self.key_at = address_of_text(self.key)
        self.sizes: Optional[Tuple[int, ...]] = None  # of the storages that it makes; None: it has not run yet
        self.ordinals: List[int] = []  # of its requests for the large ones, on CUDA
        self.changed: Optional[FrozenSet[int]] = None  # the inputs that it changes; None: all of them
        self.room = 0  # bytes for what it makes beside them
        self.is_measured = False
        self.is_too_large = False  # for the budget
        self.needs_all = False  # its first run needs more room than was to be expected
        self.is_tight = False  # each run needs all the room that there is

    def operands(self, args: Tuple[Any, ...], _kwargs: Dict[str, Any]) -> Iterator[Tuple[torch.Tensor, int]]:
        """Each tensor among the inputs, and whether its value changes."""
        changed = self.changed
        for position, value in enumerate(args[0]):
            if kind_of(value) == TENSOR:
                yield value, CHANGE if changed is None or position in changed else READ

    def learn(self, graph: Any, inputs: Sequence[Any], results: Any, sizes: Tuple[int, ...]) -> None:
        """After the first run: `inputs` are its inputs' storages, `sizes` those of what it has made."""
        self.sizes = sizes
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
        given = {storage._cdata for storage in map(storage_or_none, flat_tensors([args, kwargs or {}])) if storage is not None}
        for tensor in flat_tensors(results):
            storage = storage_or_none(tensor)
            if storage is not None and tensor.device.type == "cpu" and storage._cdata not in given:
                self._requests.check(nbytes_of(storage))
                self._requests.add(storage)
        return results


class RegionCall(Call):
    """One run of a graph."""

    __slots__ = ("known", "region", "graph", "graphs", "storages", "has_begun", "requests", "in_room", "_counted")

    may_grow = False  # its room is not the pool's

    def __init__(self, known: "Known", region: Region, graph: Any, inputs: List[Any], graphs: "Graphs") -> None:
        super().__init__(region, None, (inputs,), {})
        self.known, self.region, self.graph, self.graphs = known, region, graph, graphs
        self.sizes, self.room, self.is_prepared = region.sizes, region.room, True
        # The graph takes its inputs out of the list.
        self.storages = [storage_of(value) if kind_of(value) == TENSOR else None for value in inputs]
        source = known.source
        # What is random must not run twice, and what has branches not with too little.
        if source is not None and source.most and source.is_the_same and not (region.needs_all or region.is_tight):
            self.most = 2 * source.most + _MARGIN  # so that not everything has to leave for the first run
        self.has_begun = False
        self.requests: List[int] = []  # for its large results
        self.in_room: List[Any] = []  # large results that are not in places of their own
        self._counted: Optional[Requests] = None

    def begin(self, memory: Any, place: int, room: int) -> None:
        """The operation has begun: the graph has this room."""
        self.has_begun = True
        self._counted = memory.open_room(self.region, place, room)

    def run(self) -> Any:
        with self.graphs.within(self._counted):
            return self.graphs.original(self.graph, self.args[0])

    def note(self, memory: Any, placed: List[Any]) -> None:
        self.requests = [memory.request_of(storage) for storage in placed]
        self.in_room = [storage for storage in placed if memory.in_room(storage)]

    def end(self, memory: Any, results: Any, made: List[Any], placed: List[Any], fits: bool) -> List[Tuple[Any, Any]]:
        region = self.region
        memory.measure_room(region, placed)
        if region.sizes is None:
            if not region.is_tight and not self.known.varies:
                sizes = tuple(nbytes_of(storage) for storage in made if nbytes_of(storage) < SMALL or storage in placed)
                region.learn(self.graph, self.storages, results, sizes)
        elif fits:
            region.ordinals = self.requests  # the first run has requests that no other one has
        else:
            region.sizes = None
            self.known.numbers_count = True
        moved = [] if fits else [(storage, memory.take_out(storage)) for storage in self.in_room]
        memory.require_empty_room(region.key.decode())
        memory.close_room()
        return moved


class Source:
    """A graph before it was compiled: PyTorch's operators, which the manager can run one by one."""

    def __init__(self, operators: torch.fx.GraphModule) -> None:
        self.operators = operators
        self.is_the_same = all(map(_is_the_same, operators.graph.nodes))
        # Which of its parts run depends on values.
        self.varies = any(isinstance(node.target, torch._ops.HigherOrderOperator) for node in operators.graph.nodes)
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
    sizes: Dict[int, int] = {}  # of storages
    first: Dict[int, int] = {}  # the node that makes one
    last: Dict[int, int] = {}  # the last node that uses it
    of: Dict[torch.fx.Node, List[int]] = {}
    outer: Set[int] = set()
    for i, node in enumerate(graph.nodes):
        own = of[node] = []
        for value in flat_tensors(node.meta.get("val")):
            if _has_symbols(value):
                return 0, 0
            storage = storage_of(value)
            sizes[storage._cdata] = nbytes_of(storage)
            first.setdefault(storage._cdata, i)
            own.append(storage._cdata)
        used = [key for other in node.all_input_nodes for key in of[other]]
        last.update(dict.fromkeys(own + used, i))
        outer.update(own if node.op == "placeholder" else used if node.op == "output" else ())
    changes = [0] * (len(of) + 1)
    for key, size in sizes.items():
        changes[first[key]] += size
        if key not in outer:
            changes[last[key] + 1] -= size
    return sum(sizes[key] for key in outer), max(itertools.accumulate(changes))


def _has_symbols(value: torch.Tensor) -> bool:
    return any(not isinstance(size, int) for size in (*value.shape, *value.stride(), value.storage_offset()))


def _leave_alone(code: Any) -> None:
    """PyTorch's compiler does not compile this function, nor what it calls, when it runs between compiled parts. Within
    them it goes through it."""
    frames = torch._C._dynamo.eval_frame
    skip = frames._FrameAction.SKIP
    frames.set_code_exec_strategy(code, frames._FrameExecStrategy(skip, skip))


_TRACER, _COMPILER = "torch._dynamo", "torch._inductor.output_code"


class _OnImport(importlib.abc.MetaPathFinder):
    """Calls a function as soon as a module has been imported, which happens within a context."""

    def __init__(self, name: str, around: Callable[[], Any], then: Callable[[], None]) -> None:
        self._name, self._around, self._then = name, around, then

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                with self._around():
                    run(module)
                self._then()

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


#: In the text of what torch_allocator.cpp does not grant.
REFUSED = "beside the manager's places"


class Known:
    """What is known about a graph, for as long as it exists."""

    def __init__(self, reference: Any) -> None:
        self._reference = reference  # ends when the graph does
        self._regions: Dict[Any, Region] = {}
        self._session: Any = None
        self.source: Optional[Source] = None
        self.numbers_count = False  # the inputs that are numbers decide about sizes

    @property
    def varies(self) -> bool:
        return self.source is not None and self.source.varies

    def region(self, session: Any, graph: Any, inputs: Sequence[Any]) -> Region:
        """Where inputs are numbers, sizes are not the same in each run. Each budget has its own ones."""
        if self._session is not session:
            self._session = session
            self._regions.clear()
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


_all_known: Dict[int, Known] = {}  # by the graph's id


def known_of(graph: Any) -> Known:
    number = id(graph)
    known = _all_known.get(number)
    if known is None:
        known = _all_known[number] = Known(weakref.ref(graph, lambda _: _all_known.pop(number, None)))
    return known


def _counting(allocate: Any) -> Any:
    """Inductor's function for its buffers on a CPU. Modules of graphs keep it; it does nothing more without a budget."""

    def counted(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        if not current:
            return allocate(size, stride, dtype)
        requests = current[-1]
        last = 0 if 0 in size else 1 + sum((n - 1) * step for n, step in zip(size, stride))
        requests.check(last * dtype.itemsize)
        tensor = allocate(size, stride, dtype)
        requests.add(storage_of(tensor))
        return tensor

    return counted


class Graphs:
    """Runs the graphs that PyTorch's compiler makes."""

    def __init__(self, adapter: Any, looks: Any, mode: Any) -> None:
        self.adapter, self.looks, self.mode = adapter, looks, mode
        self.original: Any = None  # what graphs do without the adapter
        self._compile: Any = None
        self._allocate: Any = None
        self._packages: List[Tuple[Any, str, Any]] = []
        self._finders: List[Any] = []

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
        self._guard_packages()
        counted = None
        if self.adapter.type == "cpu":
            counted = torch._C._dynamo.guards._empty_strided_cpu = _counting(self._allocate)
        # They take seconds to import, and most programs do not.
        self._when_imported(_TRACER, self.looks.functions_as_before, self._make_table)
        self._when_imported(_COMPILER, contextlib.nullcontext, self._hook)
        if _COMPILER in sys.modules:
            self._take_over(counted)

    def _when_imported(self, name: str, around: Callable[[], Any], then: Callable[[], None]) -> None:
        if name in sys.modules:
            then()
            return
        self._finders.append(_OnImport(name, around, then))
        sys.meta_path.insert(0, self._finders[-1])

    def _make_table(self) -> None:
        """Dynamo has tables of functions that it treats in ways of their own. It makes them once, some when it is imported, and
        finds functions by their identity."""
        from torch._dynamo.variables.torch import TorchInGraphFunctionVariable

        make = getattr(TorchInGraphFunctionVariable, "_get_handlers", None)
        if make is not None:
            with self.looks.functions_as_before():
                make()

    def _hook(self) -> None:
        from torch._inductor import output_code

        self.original = original = output_code.CompiledFxGraph.__call__

        def call(graph: Any, inputs: Any) -> Any:
            adapter = self.adapter
            if not adapter.open:
                return original(graph, inputs)
            with adapter.lock:
                if not adapter.in_operator and self._is_watched():
                    return self._run(graph, inputs)
                if not adapter.in_operator:
                    self._release(inputs)
            return original(graph, inputs)

        output_code.CompiledFxGraph.__call__ = call  # type: ignore[method-assign]

    def remove(self) -> None:
        for finder in self._finders:
            if finder in sys.meta_path:
                sys.meta_path.remove(finder)
        if self._compile is not None:
            torch._TorchCompileInductorWrapper.__call__ = self._compile  # type: ignore[method-assign]
            torch._C._dynamo.guards._empty_strided_cpu = self._allocate
        for kind, name, run in self._packages:
            setattr(kind, name, run)
        if self.original is not None:
            from torch._inductor import output_code

            output_code.CompiledFxGraph.__call__ = self.original  # type: ignore[method-assign]

    def _is_watched(self) -> bool:
        """Whether this thread's operators are the adapter's. Those of threads that began before the budget are not."""
        stack = torch._C._len_torch_dispatch_stack()
        return any(torch._C._get_dispatch_stack_at(i) is self.mode for i in range(stack))

    def _release(self, values: Any) -> None:
        """Something that the manager does not see reads these tensors."""
        for tensor in flat_tensors(values):
            storage = storage_or_none(tensor)
            if storage is not None and getattr(storage, ATTRIBUTE, None) is not None:
                self.adapter.release(storage, "a compiled graph beside the operators", until_step=True)

    def _take_over(self, counted: Any) -> None:
        """Graphs that are there already. What they have as constants must stay."""
        from torch._inductor import codecache

        for module in codecache.PyCodeCache.modules:
            if counted is not None and hasattr(module, "empty_strided_cpu"):
                module.empty_strided_cpu = counted
            self._keep_constants(vars(module).values())

    def _keep_constants(self, values: Any) -> None:
        for tensor in values:
            if isinstance(tensor, torch.Tensor) and self.adapter.is_ours(tensor):
                storage = storage_or_none(tensor)
                if storage is None or not nbytes_of(storage) and not hasattr(storage, ATTRIBUTE):
                    continue
                if getattr(storage, ATTRIBUTE, None) is None:
                    self.adapter.keep(storage, _CONSTANTS)
                else:
                    self.adapter.release(storage, _CONSTANTS, until_step=False)

    def _guard_packages(self) -> None:
        """Packages that were compiled ahead of time run in C++ alone."""
        packages = getattr(torch._C, "_aoti", None)
        for kind in vars(packages).values() if packages is not None else ():
            for name in ("run", "boxed_run"):
                run = getattr(kind, name, None) if isinstance(kind, type) else None
                if run is not None:
                    self._packages.append((kind, name, run))
                    setattr(kind, name, self._outside(run))

    def _outside(self, run: Any) -> Any:
        def outside(package: Any, *args: Any, **kwargs: Any) -> Any:
            if self.adapter.open:
                with self.adapter.lock:
                    self._release([args, kwargs])
            return run(package, *args, **kwargs)

        return outside

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
                    known_of(graph).source = source
                    self._keep_constants((getattr(graph, "constants", None) or {}).values())
                return graph

            # Whole results of an older run would come without their sources. Inputs stay as they are, so that a graph that
            # turns out to be too large can begin again.
            with settings.patch(enable_autograd_cache=False, donated_buffer=False):
                return compile_fx(model, inputs, inner_compile=inner, config_patches={**wrapper.config, **_LEFT_OUT})

        return compile_graph

    def _run(self, graph: Any, inputs: List[Any]) -> Any:
        known = known_of(graph)
        region, source, given = known.region(self, graph, inputs), known.source, list(inputs)
        inputs.clear()  # as the graph does it
        changes = bool(getattr(graph, "mutated_input_idxs", True))
        by_operators = source is not None and source.is_the_same
        room = self.adapter.room()
        fits = source is None or region.sizes is not None or (source.most if changes else source.least) <= room
        while not by_operators or fits and not region.is_too_large:
            call = RegionCall(known, region, graph, list(given), self)
            try:
                with _disable_current_modes():
                    return self.adapter.run_call(call)
            except (errors.BundleTooLarge, errors.OutOfMemory, RuntimeError) as reason:
                if not isinstance(reason, (errors.BundleTooLarge, errors.OutOfMemory)) and REFUSED not in str(reason):
                    raise
                if call.has_begun and not changes and region.sizes is None and call.most is not None and call.most < room:
                    region.needs_all = True
                    continue
                if not call.has_begun and region.sizes is not None:
                    # Peaks of different moments together are too much. It has run in what there is, and does again.
                    region.sizes, region.is_tight = None, True
                    continue
                if not by_operators or call.has_begun and changes:
                    error = type(reason) if isinstance(reason, errors.Error) else errors.OutOfMemory
                    raise error(f"{reason}. If the operation is a compiled graph, compile smaller parts of the model "
                                "by themselves, such as each layer") from reason
            break
        results = source.run(graph, given)  # type: ignore[union-attr]
        if not region.is_too_large:
            region.is_too_large = True
            name = region.key.decode()
            warnings.warn(f"{name} is too large for the budget: its operators run one by one. Compile smaller parts of the "
                          "model by themselves, such as each layer", stacklevel=2)
        return results

    @contextlib.contextmanager
    def within(self, counted: Optional[Requests]) -> Iterator[None]:
        """While a graph runs, nothing in it is an operation of its own."""
        with _disable_current_modes():
            if counted is None:
                yield
            else:
                with _Watch(counted):
                    yield
