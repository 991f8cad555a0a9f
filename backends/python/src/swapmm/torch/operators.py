# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's operators do to the storages of their arguments, by their schemas."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

import torch

#: In-place operators that leave nothing of the old value.
OVERWRITING = {"zero_", "fill_", "copy_", "normal_", "uniform_", "random_", "exponential_", "cauchy_", "log_normal_",
               "geometric_", "bernoulli_", "_foreach_zero_", "_foreach_copy_"}
#: Namespaces of operators that change what their schemas do not mark, and may go on when they have ended.
COLLECTIVES = ("c10d", "_c10d_functional", "c10d_functional")
#: These change arguments that their schemas do not mark.
BATCH_NORMS = {"native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm", "batch_norm_update_stats",
               "batch_norm_gather_stats", "batch_norm_gather_stats_with_counts"}
RUNNING = {"running_mean", "running_var"}
#: They touch no data: they ask, or change the shape alone.
DATALESS = {"is_same_size", "is_pinned", "record_stream", "sym_size", "sym_stride", "sym_numel", "sym_storage_offset",
            "dim", "is_contiguous"}
#: With kernels that may add up in another order in each run.
UNREPEATABLE = {"cumsum", "cumprod", "logcumsumexp", "max_unpool2d", "max_unpool3d", "index_copy", "index_reduce",
                "_unsafe_masked_index_put_accumulate", "index_add", "scatter_add", "scatter_reduce", "_unsafe_index_put", "index_put", "_index_put_impl",
                "put", "histc", "bincount", "kthvalue", "median", "nanmedian", "nll_loss2d_forward", "segment_reduce", "_ctc_loss",
                "_embedding_bag", "_embedding_bag_forward_only", "scatter", "_cudnn_rnn", "miopen_rnn", "multinomial"}
#: Their rules for the meta device tell less than their kernels make: a workspace or sizes for the backward operator, or a
#: loss in the storage of all its terms.
UNDERSTATED = {"mkldnn_rnn_layer", "mkldnn_rnn_layer_backward", "_cudnn_rnn", "miopen_rnn", "cudnn_batch_norm", "_batch_norm_with_update",
               "mse_loss", "smooth_l1_loss", "soft_margin_loss", "binary_cross_entropy", "_embedding_bag", "_embedding_bag_forward_only"}
#: They replace the storage of a tensor, or change its size.
RESHAPING = {"set_", "resize_", "resize_as_", "_resize_output_"}
#: The types of scalars in schemas. They are given for tensors, too.
SCALARS = {f"{prefix}{kind}{suffix}" for kind in ("number", "float", "complex", "Tensor")
           for prefix, suffix in (("", ""), ("Optional[", "]"))}
#: The sizes of their results depend on scalars.
SIZED_BY_SCALARS = {"arange", "range"}

READ, CHANGE, OVERWRITE, LOOK = range(4)

# PyTorch 2 renamed both.
_TensorBase: Any = getattr(torch._C, "TensorBase", None) or torch._C._TensorBase
#: The storage of a tensor, past what the adapter wraps.
storage_of: Callable[[torch.Tensor], Any] = getattr(_TensorBase, "untyped_storage", None) or _TensorBase._storage

# The same for what storages can do themselves.
_StorageBase: Any = getattr(torch._C, "StorageBase", torch.UntypedStorage)
nbytes_of: Callable[[Any], int] = _StorageBase.nbytes
def storage_or_none(tensor: torch.Tensor) -> Any:
    """None: it has none, such as a sparse one, or weights in the layout of a library."""
    try:
        return storage_of(tensor)
    except (NotImplementedError, RuntimeError):
        return None


resize_storage: Callable[[Any, int], Any] = _StorageBase.resize_
address_of: Callable[[Any], int] = _StorageBase.data_ptr
copy_storage: Callable[[Any, Any], Any] = _StorageBase.copy_

#: Classes of tensors that do nothing of their own.
PLAIN = (torch.Tensor, torch.nn.Parameter)

TENSOR, SEQUENCE, OTHER = range(3)
_kinds: Dict[type, int] = {}
_MOST_CLASSES = 10_000  # a program may make classes for ever


def _forget_classes(known: Dict[type, Any]) -> None:
    if len(known) >= _MOST_CLASSES:
        known.clear()


def kind_of(value: Any) -> int:
    """Whether it is a tensor, a list or a tuple, or something else. isinstance() takes long for what is no tensor."""
    try:
        return _kinds[value.__class__]
    except KeyError:
        kind = TENSOR if isinstance(value, torch.Tensor) else SEQUENCE if isinstance(value, (list, tuple)) else OTHER
        _forget_classes(_kinds)
        _kinds[value.__class__] = kind
        return kind


#: Operators that torch.library.custom_op() has made, by name.
_in_python: Any = getattr(getattr(getattr(torch, "_library", None), "custom_ops", None), "OPDEFS", {})


def address_of_text(text: bytes) -> int:
    """Its address, for as long as the text exists."""
    return ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p).value or 0


class Signature:
    """What an operator's schema says about its arguments, and what is known beyond it."""

    def __init__(self, function: Any) -> None:
        schema = function._schema
        namespace, name = schema.name.split("::")
        plain = function.__name__[:-len(".default")] if function.__name__.endswith(".default") else function.__name__
        self.base = name
        self.is_known = namespace in ("aten", "prims")  # of PyTorch's own
        self.in_python = schema.name in _in_python
        # They may go on when the operator has ended, and change what their schemas do not say.
        self.outlives = namespace in COLLECTIVES
        self.name = plain if namespace == "aten" else f"{namespace}.{plain}"
        # A program's own may do anything on the meta device but tell sizes, unless they have a rule for it.
        self.tells_sizes = name not in UNDERSTATED if self.is_known else _has_kernel(_full_name(schema), "Meta")
        self.key = self.name.encode()
        self.key_at = address_of_text(self.key)
        tags = {getattr(tag, "name", "") for tag in getattr(function, "tags", ())}
        # Made of others, and nothing else: some have kernels of their own beside, which round in another way.
        full = _full_name(schema)
        self.composite = _has_kernel(full, "CompositeImplicitAutograd") and not (
            _has_kernel(full, "CPU") or _has_kernel(full, "CUDA")
        )
        self.views = "inplace_view" in tags or _always_views(schema) and not self.composite
        self.dataless = namespace in ("prim", "profiler") or name in DATALESS
        self.reshapes = name in RESHAPING
        self.makes_nested = "nested" in name
        # Its second result has the sizes of batches, which PyTorch reads past the operators.
        self.packs = schema.name == "aten::_pack_padded_sequence"
        self.touches_data = not (self.dataless or self.reshapes or self.views)
        # The sizes of its results depend on values.
        self.returns_tensors = any("Tensor" in str(value.type) for value in schema.returns)
        self.by_value = self.returns_tensors and bool(tags & {"data_dependent_output", "dynamic_output_shape"})
        # It may change the size of a storage that it is given for a result.
        self.has_out = any(value.kwarg_only and value.alias_info is not None and value.alias_info.is_write
                           for value in schema.arguments)
        # All that it returns are operands that it has changed.
        self.makes_nothing = not self.returns_tensors or not self.has_out and all(
            value.alias_info is not None and value.alias_info.is_write for value in schema.returns)
        # Arguments that may be scalars, which do not decide about the sizes of its results.
        self.scalars = frozenset(
            position for position, value in enumerate(schema.arguments) if str(value.type) in SCALARS
        ) if namespace == "aten" and name not in SIZED_BY_SCALARS else frozenset()
        self.lists = name.startswith(("_foreach_", "_fused_", "_amp_foreach_")) and not self.composite
        # It takes a number for each position of its lists out of a tensor.
        self.list_scalars = self.lists and any(value.name == "scalars" and str(value.type) == "Tensor" for value in schema.arguments)
        # Its results have no value yet.
        self.allocates = name.lstrip("_").startswith(("empty", "new_empty"))
        # It makes the same bits from the same operands, and does nothing else. Backward operators are left out: many add
        # up in any order, and what they make is used at once.
        self.dropout: Optional[int] = None  # the argument that is 0 if it draws no random numbers after all
        self.transposes = next((i for i, argument in enumerate(schema.arguments) if argument.name == "transposed"), None)
        # It draws random numbers: from the generator of this argument, or from that of its device.
        self.random = "nondeterministic_seeded" in tags
        self.generator = next((i for i, argument in enumerate(schema.arguments) if argument.name == "generator"), None)
        if self.random:
            self.dropout = next((i for i, argument in enumerate(schema.arguments) if argument.name == "dropout_p"), None)
        aliases = [value.alias_info for value in schema.arguments] + [value.alias_info for value in schema.returns]
        # It changes its first operand, and returns that: relu_, add_.
        self.in_place = name.endswith("_") and aliases[0] is not None and not any(
            alias is not None and alias.before_set != aliases[0].before_set for alias in aliases)
        self.repeatable = (
            namespace == "aten" and self.touches_data and self.returns_tensors
            and not (self.composite or self.by_value or self.lists or self.allocates)
            and not ("_backward" in name or "quantized" in name or "transpose" in name) and name.rstrip("_") not in UNREPEATABLE
            and (self.in_place or not any(aliases))
        )
        for_shape_only = name.endswith("_like") or name.startswith("new_") or self.allocates
        self.training: Optional[int] = None
        self.names: List[str] = []
        self.ways: List[int] = []
        for position, argument in enumerate(schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                way = OVERWRITE if argument.kwarg_only or name in OVERWRITING else CHANGE
            elif self.outlives or name in BATCH_NORMS and argument.name in RUNNING:
                way = CHANGE
            else:
                way = LOOK if for_shape_only else READ
            if argument.name == "training" and name in BATCH_NORMS:
                self.training = position
            self.names.append(argument.name)
            self.ways.append(way)
        # What a batch normalization gives does not depend on its running statistics, if it changes them.
        self.statistics = [self.names.index(name) for name in RUNNING if name in self.names] if name in BATCH_NORMS else []
        self.scalar_names = {self.names[position] for position in self.scalars}
        self.way_of = dict(zip(self.names, self.ways))

    def operands(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Iterator[Tuple[torch.Tensor, int]]:
        """Each tensor among the arguments with the way in which it is used."""
        ways = self.ways
        if self.training is not None and not (
                args[self.training] if self.training < len(args) else kwargs.get("training", True)):
            ways = [READ if way == CHANGE else way for way in ways]
        for way, value in zip(ways, args):
            kind = kind_of(value)
            if kind == TENSOR:
                yield value, way
            elif kind == SEQUENCE:
                for tensor in flat_tensors(value):
                    yield tensor, way
        for name, value in kwargs.items():
            for tensor in flat_tensors(value):
                yield tensor, self.way_of.get(name, READ)


def _has_kernel(name: str, key: str) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(name, key)


def _full_name(schema: Any) -> str:
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name


def _always_views(schema: Any) -> bool:
    aliases = [value.alias_info for value in schema.returns]
    return bool(aliases) and all(alias is not None and not alias.is_write for alias in aliases)


_signatures: Dict[Any, Signature] = {}


def signature_of(function: Any) -> Signature:
    """Made once for each operator."""
    found = _signatures.get(function)
    if found is None:
        found = _signatures[function] = Signature(function)
    return found


_own_dispatch: Dict[type, bool] = {}


def has_own_dispatch(types: Iterable[type]) -> bool:
    """Whether one of these classes of tensors has a dispatch of its own. It comes first: a mode returns NotImplemented, and
    sees the operators that it runs."""
    for kind in types:
        own = _own_dispatch.get(kind)
        if own is None:
            _forget_classes(_own_dispatch)
            own = _own_dispatch[kind] = kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__  # type: ignore[attr-defined]
        if own:
            return True
    return False


def has_nested(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> bool:
    """Whether a nested tensor is among the arguments: composite operators have kernels of their own for these."""
    return any(tensor.is_nested for value in (*args, *kwargs.values()) for tensor in flat_tensors(value))


def flat_tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in a value of any form."""
    kind = kind_of(value)
    if kind == TENSOR:
        yield value
    elif kind == SEQUENCE:
        for element in value:
            yield from flat_tensors(element)
    elif isinstance(value, dict):
        for element in value.values():
            yield from flat_tensors(element)


def covers(tensor: torch.Tensor, storage_bytes: int) -> bool:
    """Whether the elements of the tensor are all bytes of its storage, each once."""
    if tensor.numel() * tensor.element_size() != storage_bytes:
        return False
    if tensor.is_contiguous():
        return True
    expected = 1
    for stride, size in sorted((stride, size) for stride, size in zip(tensor.stride(), tensor.shape) if size != 1):
        if stride != expected:
            return False
        expected *= size
    return True


def in_groups(function: Any, limit: int, args: Tuple[Any, ...], kwargs: Dict[str, Any], scalars: bool = False) -> Any:
    """Calls an operator on lists of tensors for a few positions of the lists at a time: as many as have `limit` bytes
    together, and at least one. So the rest does not have to be there. The arithmetic is the same, because the operator
    treats each position alone. `scalars`: its one tensor beside the lists has a number for each position."""
    lists = [value for value in [*args, *kwargs.values()] if isinstance(value, (list, tuple)) and value]
    tensors = [value for value in lists if isinstance(value[0], torch.Tensor)]
    count = len(tensors[0]) if tensors else 0
    if count < 2 or any(len(value) not in (0, count) for value in lists):
        return function(*args, **kwargs)
    ends, size = [], 0
    for i in range(count):
        added = sum(value[i].numel() * value[i].element_size() for value in tensors)
        if size and size + added > limit:
            ends.append(i)
            size = 0
        size += added
    if not ends:
        return function(*args, **kwargs)

    def part(value: Any, first: int, end: int) -> Any:
        if scalars and isinstance(value, torch.Tensor):
            with torch.utils._python_dispatch._disable_current_modes():
                return value[first:end].clone()  # its bytes are here now, and need not be later
        return list(value[first:end]) if isinstance(value, (list, tuple)) and len(value) == count else value

    calls = [([part(value, first, end) for value in args], {name: part(value, first, end) for name, value in kwargs.items()})
             for first, end in zip([0, *ends], [*ends, count])]
    results = [function(*some, **others) for some, others in calls]
    if results[0] is None:
        return None
    if isinstance(results[0], (list, tuple)) and results[0] and isinstance(results[0][0], (list, tuple)):
        return type(results[0])(sum((list(result[k]) for result in results), []) for k in range(len(results[0])))
    return [tensor for result in results for tensor in result]
