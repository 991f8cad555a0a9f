// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "support/program/runner.hpp"
#include "support/test_program.hpp"

namespace swapmm::test {

/// What each printed program begins with: includes, and how it writes and checks bytes.
[[nodiscard]] std::string_view cpp_prelude();

/// Statements that set up `device_options`, and those that set up `manager_options` and `scheduler_options`: of each
/// option that is not the default.
[[nodiscard]] std::string cpp_device_options(const simulated::Options& device);
[[nodiscard]] std::string cpp_manager_options(const Options& manager);
[[nodiscard]] std::string cpp_scheduler_options(const SchedulerOptions& scheduler);

/// What follows main()'s device options.
[[nodiscard]] std::string_view cpp_closing();

}  // namespace swapmm::test
