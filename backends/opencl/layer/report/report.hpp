// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/interface/report.hpp>

#include "../context.hpp"

// What the layer keeps for its report: see docs/decisions/0020-report-at-a-signal.md. All with the device's lock.

namespace swapmm::opencl::layer {

/// True if a report is wanted from this process.
[[nodiscard]] bool reports();

/// Adds what a context has done to the report. Called before its runtime ends.
void count_context(DeviceBudget& device, Core& core);

/// Brings the report's numbers of the device up to date. Called after each command and when memory was taken.
void publish(DeviceBudget& device);

/// Called once, when the layer starts. The report is written when the process ends by exit(), as SWAPMM_REPORT wants
/// it, or by `swapmm run`.
void start_report();

}  // namespace swapmm::opencl::layer
