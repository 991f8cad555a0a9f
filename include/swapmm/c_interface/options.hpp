// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <swapmm/swapmm.h>
#include <swapmm/base/export.hpp>
#include <swapmm/interface/options.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/runtime/core/entrance_options.hpp>

namespace swapmm::c_interface {

/// What a manager is made with.
struct ManagerOptions {
  Options options;
  SchedulerOptions scheduler;
  runtime::EntranceOptions entrance;
};

/// The defaults.
[[nodiscard]] swapmm_options default_options();
/// Throws UsageError if a value is none that the interface knows.
[[nodiscard]] ManagerOptions read_options(const swapmm_options& options);

/// @{
/// The value with that number. Throws UsageError if there is none.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT Lifetime lifetime_of(std::uint64_t number);
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT Access access_of(std::uint64_t number);
/// @}

}  // namespace swapmm::c_interface
