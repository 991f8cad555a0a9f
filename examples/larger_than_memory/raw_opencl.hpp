// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/opencl/handle.hpp>

#include "larger_than_memory/wave.hpp"

namespace wave {

/// The same without swapmm: every field and checkpoint has a buffer of its own, for which there must be memory. Throws
/// swapmm::BackendError, of the kind out_of_device_memory where there is none.
[[nodiscard]] Result run_raw_opencl(cl_context context, cl_device_id device, const Problem& problem);

}  // namespace wave
