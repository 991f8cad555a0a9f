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

/// All shots, in the memory and with the plans that the options say. Calls `tell` after each shot.
[[nodiscard]] SwappedResult run_with_swapmm(const swapmm::opencl::Backend& backend, const Problem& problem,
                                            const swapmm::Options& memory,
                                            const std::function<void(const ShotReport&)>& tell = {},
                                            const swapmm::SchedulerOptions& plans = {});

}  // namespace wave
