// SPDX-License-Identifier: Apache-2.0
#pragma once

// The gate that every call of a faulty backend passes. backend/testing/faulty.hpp uses it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <swapmm/backend/backend.hpp>
#include <swapmm/backend/testing/call_site.hpp>
#include <swapmm/backend/testing/fault_plan.hpp>

namespace swapmm::detail {

/// The fault plan and the counts, shared by all handles of one Faulty backend.
class FaultState {
 public:
  explicit FaultState(const FaultPlan& plan) : plan_(plan) {}

  /// For each queue, the fault plan of a failed event that the queue waited for. Its next event reports the failure.
  std::array<std::optional<FaultPlan>, queue_count> failing;

  [[nodiscard]] bool lost() const { return lost_by_.has_value(); }
  [[nodiscard]] std::uint64_t fired() const { return fired_; }
  [[nodiscard]] std::uint64_t calls(FaultClass fault_class) const {
    return calls_[static_cast<std::size_t>(fault_class)];
  }
  /// Resets the counts and faults, including a lost device. Events that failed stay failed.
  void restart(const FaultPlan& with) {
    plan_ = with;
    chooser_ = nullptr;
    calls_ = {};
    fired_ = 0;
    lost_by_.reset();
  }
  void choose_by(FaultChooser chooser) { chooser_ = std::move(chooser); }

  /// Counts a call. Returns the fault plan if the call fails by it. Throws if the device is lost.
  std::optional<FaultPlan> gate(FaultClass fault_class, const CallSite& where) {
    const std::uint64_t call = ++calls_[static_cast<std::size_t>(fault_class)];
    if (lost_by_) throw injected_error(*lost_by_);
    if (chooser_) return chooser_(fault_class, where);
    if (plan_.n == 0 || plan_.fault_class != fault_class || !applicable(fault_class, plan_.mode)) return std::nullopt;
    if (call != plan_.n && !(plan_.mode == FaultMode::for_ever && call > plan_.n)) return std::nullopt;
    return plan_;
  }
  void count_fired() { ++fired_; }
  void lose_device(const FaultPlan& by) { lost_by_ = by; }

 private:
  FaultPlan plan_;
  FaultChooser chooser_;
  std::array<std::uint64_t, fault_class_count> calls_{};
  std::uint64_t fired_ = 0;
  std::optional<FaultPlan> lost_by_;
};

/// An object whose first use may fail, as the fault plan says.
template <class Inner>
struct LazilyFailing {
  Inner inner;                                    ///< the object
  mutable std::optional<FaultPlan> fails_at_use;  ///< the plan by which the first use fails

  /// Throws at the first call if the plan says so.
  void use() const {
    if (const auto plan = std::exchange(fails_at_use, std::nullopt)) throw injected_error(*plan);
  }
};

}  // namespace swapmm::detail
