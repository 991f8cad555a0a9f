// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../recorder.hpp"

namespace swapmm::opencl::layer::record {

/// What a launch does with a buffer that is an argument, as far as flags and address spaces tell. The one place that
/// decides it.
[[nodiscard]] Access access_of(const KnownKernel::Argument& argument, const KnownMemory& memory);

}  // namespace swapmm::opencl::layer::record
