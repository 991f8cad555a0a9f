// SPDX-License-Identifier: Apache-2.0
#pragma once

// What must hold of budgets, counters and addresses while a program runs.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/memory_manager.hpp>

#include "support/program/addresses.hpp"
#include "support/program/calls.hpp"
#include "support/program/device.hpp"
#include "support/program/limits.hpp"

namespace swapmm::test {

/// Judges the state behind actions and iterations; what does not hold becomes the failure of the run.
template <ProgramDevice D>
class ProgramChecks {
 public:
  using Manager = MemoryManager<typename D::Backend>;

  ProgramChecks(const D& device, const Options& options, ProgramCalls& calls, const ProgramLimits& limits)
      : device_(device), options_(options), calls_(calls), limits_(limits), most_budget_(limits.budget) {}

  /// The manager has that much of the device beside the budget.
  void after_start(Bytes staging) { staging_ = staging; }
  /// So much was asked for: no less may be there, for a time.
  void budget_asked(Bytes budget) { most_budget_ = std::max(most_budget_, budget); }

  /// Budgets and counters, which hold behind each action.
  void after_action(const Manager& manager) {
    check_report(manager.report());
    check_taken();
  }

  void check_report(const Report& report) {
    Options options = options_;
    options.device_budget = most_budget_ + report.codec_staging;
    const Bytes budget = limits_.budget + staging_;
    if (report.device_budget != budget) calls_.fail("another budget than the one that was set");
    if (report.device_used > budget || report.device_peak > options.device_budget) {
      calls_.fail("the device budget is exceeded");
    }
    if (report.host_peak > options.host_budget) calls_.fail("the host budget is exceeded");
    if (report.neighbours_used > report.neighbours_budget) calls_.fail("the neighbours' budget is exceeded");
    if (report.pinned_used > options.pinned_budget) calls_.fail("the pinned budget is exceeded");
    if (const std::string excess = device_.excess(report, options); !excess.empty()) calls_.fail(excess);
  }

  /// A followed plan gives each operation the addresses that it had before.
  void after_iteration(const Manager& manager, AddressHistory& addresses, std::string_view iteration) {
    const std::string moved = addresses.check(manager.report(), iteration);
    if (!moved.empty()) calls_.fail(moved);
  }

  /// What BundleTooLarge said of an operation that needs these sizes at once.
  void check_too_large(const std::string& operation, const std::vector<Bytes>& sizes) {
    Bytes need;
    for (const Bytes size : sizes) need += limits_.padded(size);
    says({"operation \"" + operation + "\" needs " + text(need), text(limits_.budget)});
    for (const Bytes size : sizes) says({"\" (" + text(size) + ")"});
  }

 private:
  static std::string text(Bytes bytes) { return std::to_string(bytes.value) + " bytes"; }

  void says(std::initializer_list<std::string> parts) {
    std::size_t at = 0;
    for (const std::string& part : parts) {
      at = calls_.refusal().find(part, at);
      if (at == std::string::npos) return calls_.fail("a refusal does not say '" + part + "': " + calls_.refusal());
    }
  }

  void check_taken() {
    if constexpr (requires { device_.taken(limits_.budget); }) {
      if (const std::string wrong = device_.taken(limits_.budget + staging_); !wrong.empty()) calls_.fail(wrong);
    }
  }

  const D& device_;
  const Options& options_;
  ProgramCalls& calls_;
  const ProgramLimits& limits_;
  Bytes most_budget_;  // asked for so far
  Bytes staging_;      // for encodings, beside the budget
};

}  // namespace swapmm::test
