// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include <swapmm/interface/options.hpp>

namespace swapmm::opencl::layer {

/// Where the plans of one context outlive the process: files of plan_cache(), named by what they are for. `device` says
/// what the device is, and is called by the first use. An empty text: nothing is looked for, and nothing kept.
[[nodiscard]] PlanStore plans_in_cache(std::function<std::string()> device);

}  // namespace swapmm::opencl::layer
