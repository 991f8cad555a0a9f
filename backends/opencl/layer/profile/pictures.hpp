// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "recording.hpp"

// What SWAPMM_TRACE_OUT and SWAPMM_SVG want: files that show what ran on the device and when. They are written when the
// process ends by exit().

namespace swapmm::opencl::layer {

/// Called once, when the layer starts.
void start_pictures();

/// The recording of a context whose runtime was made; null if no picture is wanted. With the device's lock.
[[nodiscard]] std::unique_ptr<Recording> record_context(Core& core, const Iterations& iterations);

/// Keeps what was recorded of a context that ends. Waits for the device. With the device's lock.
void keep_recording(Recording& recording);

}  // namespace swapmm::opencl::layer
