// SPDX-License-Identifier: Apache-2.0
#pragma once

// Internal to the backend; not for programs.

#include <string_view>

namespace swapmm::opencl::detail {

/// The text of backends/codec/zero_kernels.h, which includes <swapmm/kernel.h>.
extern const std::string_view zero_kernels;
/// The text of backends/codec/zero_element_kernels.h, to be compiled once for each size of an element.
extern const std::string_view zero_element_kernels;

}  // namespace swapmm::opencl::detail
