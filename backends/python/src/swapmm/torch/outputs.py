# SPDX-License-Identifier: Apache-2.0
"""The sizes of what an operator returns, before it runs: as seen when it ran on such arguments, and the first time by
running it on the meta device, which has shapes and no data."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, List, Optional, Tuple

import torch

from .operators import SEQUENCE, TENSOR, Signature, flat_tensors, kind_of, nbytes_of, resize_storage, storage_of

_META = torch.device("meta")
_MOST_KEYS = 100_000
#: What a dictionary may raise for a key that cannot be compared, as packed weights of quantized layers.
_NO_KEY = (TypeError, NotImplementedError)


class Sizes:
    """The sizes of new storages, in the order in which the results have them. None: nobody can tell."""

    def __init__(self) -> None:
        self._known: Dict[Any, Optional[Tuple[int, ...]]] = {}

    def key(self, signature: Signature, function: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        """What the sizes depend on. None: it cannot be told."""
        scalars = signature.scalars
        try:
            default = torch.get_default_dtype()
            if scalars:
                return (function, default, tuple([_shape_alone(value) if i in scalars else _shape(value) for i, value in enumerate(args)]),
                         tuple([(name, _shape_alone(value) if name in signature.scalar_names else _shape(value))
                                for name, value in kwargs.items()]) if kwargs else ())
            return (function, default, tuple(map(_shape, args)),
                    tuple([(name, _shape(value)) for name, value in kwargs.items()]) if kwargs else ())
        except RuntimeError:  # a tensor of its kind has no strides
            return None

    def expected(self, key: Any, signature: Signature, function: Any, args: Tuple[Any, ...],
                 kwargs: Dict[str, Any]) -> Optional[Tuple[int, ...]]:
        """The sizes in bytes of the storages that the call will make."""
        if signature.by_value or key is None:
            return None
        try:
            return self._known[key]
        except _NO_KEY:
            return None
        except KeyError:
            found = _on_meta(function, args, kwargs) if signature.tells_sizes else None
            self.learn(key, found)
            return found

    def learn(self, key: Any, sizes: Optional[Tuple[int, ...]]) -> None:
        """What they really were. The key was asked for before."""
        if key is None:
            return
        if len(self._known) >= _MOST_KEYS:
            self._known.clear()
        with contextlib.suppress(*_NO_KEY):
            self._known[key] = sizes


def _shape(value: Any) -> Any:
    kind = kind_of(value)
    if kind == TENSOR:
        return value.shape, value.stride(), value.dtype
    if kind == SEQUENCE:
        return tuple(map(_shape, value))
    # 1, 1.0 and True are equal, and make results of different types.
    return type(value), value


def _shape_alone(value: Any) -> Any:
    return (value.shape, value.stride(), value.dtype) if kind_of(value) == TENSOR else type(value)


def _on_meta(function: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Optional[Tuple[int, ...]]:
    given: Dict[int, torch.Tensor] = {}
    try:
        results = function(*(_moved(value, given) for value in args),
                           **{name: _moved(value, given) for name, value in kwargs.items()})
        return new_sizes(results, {storage_of(base)._cdata for base in given.values()})
    except Exception:  # there is no rule for it, or values decide
        return None


def _moved(value: Any, given: Dict[int, torch.Tensor]) -> Any:
    """The value on the meta device. `given`: the storages there, by those of the originals."""
    if isinstance(value, torch.Tensor):
        storage = storage_of(value)
        base = given.get(storage._cdata)
        if base is None:
            size = max(nbytes_of(storage), 1)
            base = given[storage._cdata] = torch.empty(size, dtype=torch.uint8, device=_META)
        moved = torch.empty(0, dtype=value.dtype, device=_META)
        needed = _bytes_needed(value)
        if nbytes_of(storage_of(base)) < needed:
            resize_storage(storage_of(base), needed)
        return moved.set_(storage_of(base), value.storage_offset(), value.shape, value.stride())
    if isinstance(value, (list, tuple)):
        return type(value)(_moved(element, given) for element in value)
    return _META if isinstance(value, torch.device) else value


def _bytes_needed(tensor: torch.Tensor) -> int:
    if tensor.numel() == 0:
        return 0
    last = tensor.storage_offset() + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return (last + 1) * tensor.element_size()


def new_sizes(results: Any, known: Any) -> Tuple[int, ...]:
    """The sizes of the storages of the results that are not among the known ones, by their `_cdata`."""
    sizes: List[int] = []
    seen = set(known)
    for tensor in flat_tensors(results):
        storage = storage_of(tensor)
        if storage._cdata not in seen:
            seen.add(storage._cdata)
            sizes.append(nbytes_of(storage))
    return tuple(sizes)
