// SPDX-License-Identifier: Apache-2.0
#pragma once

// The host part of <swapmm/kernel.h>: the layouts of tensors as kernels take them.

#include <concepts>
#include <cstddef>
#include <string>

#include <swapmm/kernel.h>
#include <swapmm/error.hpp>
#include <swapmm/tensor.hpp>

namespace swapmm {

/// The layout of a contiguous tensor of that shape. Throws UsageError if it has more than SWAPMM_MAX_RANK dimensions.
[[nodiscard]] inline swapmm_layout layout_of(const Shape& shape) {
  if (shape.rank() > SWAPMM_MAX_RANK) {
    throw UsageError("a kernel's view has at most " + std::to_string(SWAPMM_MAX_RANK) +
                     " dimensions, and this shape has " + std::to_string(shape.rank()) + ": reshape the tensor");
  }
  swapmm_layout layout{};
  layout.rank = static_cast<swapmm_index>(shape.rank());
  swapmm_index stride = 1;
  for (std::size_t d = SWAPMM_MAX_RANK; d-- > 0;) {
    layout.extents[d] = d < shape.rank() ? static_cast<swapmm_index>(shape[d]) : 1;
    layout.strides[d] = d < shape.rank() ? stride : 0;
    if (d < shape.rank()) stride *= layout.extents[d];
  }
  return layout;
}

/// The layout of a tensor or view. Throws UsageError if it has more than SWAPMM_MAX_RANK dimensions.
template <class TensorOrView>
  requires requires(const TensorOrView& tensor) {
    { tensor.shape() } -> std::convertible_to<const Shape&>;
  }
[[nodiscard]] swapmm_layout layout_of(const TensorOrView& tensor) { return layout_of(tensor.shape()); }

}  // namespace swapmm
