# SPDX-License-Identifier: Apache-2.0
"""Weights that stay in their file: constants of the manager. The model gets tensors that have no bytes yet."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

import torch

from .. import errors
from ..weights import Weight

# The format's own names, where PyTorch has others.
_TYPES = {"F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu"}


def _tensors_of(model: torch.nn.Module) -> Iterator[Tuple[str, Dict[str, Any], str, torch.Tensor]]:
    """Each parameter and buffer under each of its names, and where the module keeps it."""
    for prefix, module in model.named_modules(remove_duplicate=False):
        for kind in (module._parameters, module._buffers):
            for key, tensor in kind.items():
                if tensor is not None:
                    yield f"{prefix}.{key}" if prefix else key, kind, key, tensor


def _check(name: str, tensor: torch.Tensor, weight: Weight) -> None:
    type_ = _TYPES.get(weight.dtype, weight.dtype)
    if tuple(tensor.shape) == weight.shape and str(tensor.dtype) == f"torch.{type_}":
        return
    raise errors.UsageError(f"{name} is {str(tensor.dtype)[6:]}{list(tensor.shape)} in the model, and {type_}{list(weight.shape)} "
                            f"in {weight.file.path}")


def take_weights(adapter: Any, model: torch.nn.Module, weights: Dict[str, Weight]) -> None:
    """The model's parameters and buffers of these names become constants. Those that are one in the model stay one."""
    found = list(_tensors_of(model))
    with_weight = [entry for entry in found if entry[0] in weights]
    if not with_weight:
        some = ", ".join(repr(name) for name in list(weights)[:3])
        raise errors.UsageError(f"no tensor of the file has the name of one of the model's; the file has {some}, ...")
    for name, _, _, tensor in with_weight:
        _check(name, tensor, weights[name])
    shared = {id(tensor) for _, _, _, tensor in with_weight}
    missing = [name for name, _, _, tensor in found if tensor.is_meta and id(tensor) not in shared]
    if missing:
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise errors.UsageError(f"no values for {', '.join(missing[:5])}{more}: they are on the meta device, and the file does not "
                                "have them")
    made: Dict[int, torch.Tensor] = {}
    for name, _, _, tensor in with_weight:
        if id(tensor) not in made:
            constant = adapter.constant(weights[name], tensor)
            if isinstance(tensor, torch.nn.Parameter):
                constant = torch.nn.Parameter(constant, requires_grad=False)
            made[id(tensor)] = constant
    kept: List[torch.Tensor] = [tensor for _, _, _, tensor in found]  # so that no id is used twice meanwhile
    for _, kind, key, tensor in found:
        if id(tensor) in made:
            kind[key] = made[id(tensor)]
    del kept
