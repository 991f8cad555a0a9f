// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "context.hpp"

namespace swapmm::opencl::layer {

/// Adds what a context has done to the report. Called before its runtime ends.
void count_context(Core& core);

/// Writes the report, as SWAPMM_REPORT wants it, when the process ends. Called once, when the layer starts.
void report_at_exit();

}  // namespace swapmm::opencl::layer
