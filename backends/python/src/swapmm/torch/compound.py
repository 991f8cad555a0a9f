# SPDX-License-Identifier: Apache-2.0
"""Tensors that are made of others: sparse, nested and quantized ones."""

from __future__ import annotations

from typing import List

import torch

#: Why the parts of such tensors stay.
COMPOUND_REASON = "parts of sparse, nested or quantized tensors"

_ROWS = (torch.sparse_csr, torch.sparse_bsr)
_COLUMNS = (torch.sparse_csc, torch.sparse_bsc)
_BY_CHANNEL = (torch.per_channel_affine, torch.per_channel_affine_float_qparams)


def parts_of(tensor: torch.Tensor) -> List[torch.Tensor]:
    """Tensors with the storages of a compound one; of another one itself. Those of opaque layouts cannot be told."""
    operators = torch.ops.aten
    layout = tensor.layout
    if layout is torch.strided:
        if tensor.is_nested:
            return [operators.values(tensor), operators._nested_tensor_size(tensor),
                    operators._nested_tensor_strides(tensor), operators._nested_tensor_storage_offsets(tensor)]
        if tensor.is_quantized and tensor.qscheme() in _BY_CHANNEL:
            return [tensor, operators.q_per_channel_scales(tensor), operators.q_per_channel_zero_points(tensor)]
        return [tensor]
    if layout is torch.sparse_coo:
        return [operators._indices(tensor), operators._values(tensor)]
    if layout in _ROWS:
        return [operators.crow_indices(tensor), operators.col_indices(tensor), operators.values(tensor)]
    if layout in _COLUMNS:
        return [operators.ccol_indices(tensor), operators.row_indices(tensor), operators.values(tensor)]
    return []
