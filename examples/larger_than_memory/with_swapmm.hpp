// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include <swapmm/base/bytes.hpp>
#include <swapmm/opencl/backend.hpp>
#include <swapmm/options.hpp>
#include <swapmm/report.hpp>

#include "larger_than_memory/wave.hpp"

namespace wave {

struct SwappedResult {
  Result result;
  swapmm::Report report;
};

/// All shots, with at most `budget` bytes on the device, and plans as the options say. Calls `tell` after each shot.
[[nodiscard]] SwappedResult run_with_swapmm(const swapmm::opencl::Backend& backend, const Problem& problem,
                                            swapmm::Bytes budget,
                                            const std::function<void(const ShotReport&)>& tell = {},
                                            const swapmm::SchedulerOptions& plans = {});

}  // namespace wave
