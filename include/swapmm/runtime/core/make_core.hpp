// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/interface/options.hpp>
#include <swapmm/runtime/book/program_book.hpp>
#include <swapmm/runtime/core/core.hpp>
#include <swapmm/runtime/core/entrance_options.hpp>
#include <swapmm/runtime/values/messages.hpp>

namespace swapmm::runtime {

/// Throws OutOfMemory if a device has less memory than a budget. Drivers promise more than there is, or end the
/// process.
inline void require_on_device(Bytes budget, const Capabilities& can, const std::string& what) {
  if (!can.device_memory || budget <= *can.device_memory) return;
  throw OutOfMemory(what + " a device budget of " + std::to_string(budget.value) + " bytes: the device has " +
                        std::to_string(can.device_memory->value),
                    "device", {.need = budget, .in_use = {}, .budget = *can.device_memory});
}

/// Throws UsageError if options are invalid for a device, and OutOfMemory if their budget is.
inline void check_options(const Options& options, const Capabilities& can) {
  if (options.device_budget.value == 0) {
    throw UsageError("Options::device_budget is 0: say how many bytes of the device the manager may use");
  }
  if (options.device_budget < can.alignment) {
    throw UsageError("Options::device_budget of " + std::to_string(options.device_budget.value) +
                     " bytes is below the device's alignment of " + std::to_string(can.alignment.value));
  }
  require_on_device(options.device_budget, can, "making a manager with");
  if (options.demand_mode > DemandMode::foreseen) throw UsageError("Options::demand_mode is none of DemandMode");
  if (options.file != nullptr && options.file_staging > options.host_budget) {
    throw UsageError("Options::file_staging of " + std::to_string(options.file_staging.value) +
                     " bytes is more than Options::host_budget of " + std::to_string(options.host_budget.value));
  }
  if (options.queue_depth < 8) throw UsageError("Options::queue_depth must be at least 8");
  if (options.queue_depth > std::size_t{1} << 30U) throw UsageError("Options::queue_depth must be at most 2^30");
  if (options.run_ahead < 1 || options.run_ahead > 3) throw UsageError("Options::run_ahead must be 1, 2 or 3");
}

/// Sets a program's budget. Throws UsageError if it is too small for the device, and OutOfMemory if it is too large.
template <Backend B>
void set_budget(Core<B>& core, Bytes bytes) {
  const Bytes alignment = core.backend().capabilities().alignment;
  if (bytes < alignment) {
    throw UsageError("a device budget of " + std::to_string(bytes.value) +
                     " bytes is below the device's alignment of " + std::to_string(alignment.value));
  }
  require_on_device(bytes, core.backend().capabilities(), "setting");
  core.set_budget(bytes);
}

/// Makes the implementation of a manager, for its facade or for another entrance. Allocates the device budget at once.
/// Throws UsageError for invalid options, and OutOfMemory if the device refuses the budget.
template <Backend B>
[[nodiscard]] std::shared_ptr<Core<B>> make_core(B backend, Options options, std::shared_ptr<ProgramBook> book,
                                                 const EntranceOptions& entrance = {}) {
  if constexpr (requires { backend.default_device_budget(); }) {
    if (options.device_budget.value == 0) options.device_budget = backend.default_device_budget();
  }
  check_options(options, backend.capabilities());
  try {
    return std::make_shared<Core<B>>(std::move(backend), options, std::move(book), entrance);
  } catch (const BackendError& error) {
    const std::string text = "making a manager with a device budget of " + std::to_string(options.device_budget.value) +
                             " bytes: " + error.what();
    if (error.kind == BackendError::Kind::device_lost) throw DeviceLost(text, {}, error.code);
    if (error.kind == BackendError::Kind::failed) throw BackendError(error, text, {});
    throw memory_refused(text, error, {});
  }
}

}  // namespace swapmm::runtime
