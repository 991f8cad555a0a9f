// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the benchmarks' main functions share.

#include <chrono>
#include <iostream>
#include <string>
#include <string_view>

#include <boost/json.hpp>

#include <swapmm/cuda/backend.hpp>
#include <swapmm/cuda/devices.hpp>

#include "neural/arguments.hpp"

namespace swapmm::bench {

/// Runs on the device that --device names, else on the best one. Without any it says "skipped: " and why, and is
/// content: where there is nothing to measure nothing is wrong.
template <class Run>
int run_on_cuda(const neural::Arguments& arguments, Run&& run) {
  const cuda::DeviceList list = cuda::devices();
  if (list.devices.empty()) {
    std::cout << "skipped: " << list.why_none << '\n';
    return 0;
  }
  return run(cuda::Backend::pick(arguments.text("--device"), std::cout));
}

/// What stands in each file of results.
[[nodiscard]] inline boost::json::object describe_machine(const cuda::Backend& backend) {
  int driver = 0;
  int runtime = 0;
  (void)cudaDriverGetVersion(&driver);
  (void)cudaRuntimeGetVersion(&runtime);
  return {{"device", backend.capabilities().device_name},
          {"copy_engines", backend.capabilities().copy_engines},
          {"cuda_driver", driver},
          {"cuda_runtime", runtime}};
}

[[nodiscard]] inline std::string text_or(const neural::Arguments& arguments, std::string_view name,
                                         std::string_view otherwise) {
  const std::string text = arguments.text(name);
  return text.empty() ? std::string(otherwise) : text;
}

/// Seconds since it was made.
class Clock {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace swapmm::bench
