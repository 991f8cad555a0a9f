// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../context.hpp"

// Lines on stderr while the program runs, if SWAPMM_PROGRESS wants them. All with the device's lock.

namespace swapmm::opencl::layer {

/// Writes a line now and then. Called after each command; if it is not time for a line yet, it costs a look at the
/// clock.
void show_progress(DeviceBudget& device);

/// Adds what a context has done. Called before its runtime ends.
void count_for_progress(DeviceBudget& device, Core& core);

}  // namespace swapmm::opencl::layer
