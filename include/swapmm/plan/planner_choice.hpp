// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/planner.hpp>

namespace swapmm {

/// Requirements on a planner: a function, lambda or object that can be called with trace, machine and PlanningOptions,
/// or only with trace and machine, and returns a Plan or a Result<Plan>.
template <class F>
concept PlannerCallable =
    std::is_invocable_r_v<Result<Plan>, F&, const Trace&, const Machine&, const PlanningOptions&> ||
    std::is_invocable_r_v<Result<Plan>, F&, const Trace&, const Machine&>;

/// The planner that a scheduler uses: one of planners(), selected by name, or a planner of the program.
///
/// If a planner of the program throws, or if its plan is not valid for the trace, the report has a note, and the
/// program continues without that plan. The planner runs on the thread that plans (SchedulerOptions::planning). With
/// Planning::deferred, several threads may call it at the same time.
class SWAPMM_EXPORT PlannerChoice {
 public:
  /// @{
  /// Selects one of planners() by its name. If the name is unknown, plan() returns a Problem.
  PlannerChoice(const char* name) : name_(name) {}             // NOLINT(*-explicit-*)
  PlannerChoice(std::string name) : name_(std::move(name)) {}  // NOLINT(*-explicit-*)
  PlannerChoice(std::string_view name) : name_(name) {}        // NOLINT(*-explicit-*)
  PlannerChoice(std::nullptr_t) = delete;
  /// @}

  /// Selects a planner of the program. Copies of the choice share the object, so it need not be copyable. The report
  /// shows Plan::planner of its plans as the name, or "own planner" if that is empty.
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, PlannerChoice> && PlannerCallable<std::decay_t<F>>)
  // NOLINTNEXTLINE(*-explicit-*,*-forwarding-reference-*): the constraint leaves copies and moves alone
  PlannerChoice(F&& planner) : make_(wrap(std::forward<F>(planner))) {}
  /// The same with a name, which is stored in Plan::planner of its plans.
  template <class F>
    requires(PlannerCallable<std::decay_t<F>>)
  PlannerChoice(std::string name, F&& planner) : name_(std::move(name)), make_(wrap(std::forward<F>(planner))) {}
  /// Selects an entry of planners(), or any other planner with a name.
  PlannerChoice(NamedPlanner planner)  // NOLINT(*-explicit-*)
      : name_(std::move(planner.name)), make_(std::make_shared<const Planner>(std::move(planner.make))) {}

  /// The name that was given; empty for a planner of the program without a name.
  [[nodiscard]] const std::string& name() const { return name_; }
  /// True if a planner was given, and not only a name.
  [[nodiscard]] bool is_own() const { return make_ != nullptr; }

  /// Runs the planner. If a planner of the program throws, the result is a Problem with the exception's text. Its
  /// plan gets the name. The planners of planners() throw only std::bad_alloc, which passes through.
  [[nodiscard]] Result<Plan> plan(const Trace& trace, const Machine& machine,
                                  const PlanningOptions& options = {}) const;

  /// True if both have the same name and, for a planner of the program, share the same object.
  friend bool operator==(const PlannerChoice&, const PlannerChoice&) = default;

 private:
  template <class F>
  static std::shared_ptr<const Planner> wrap(F&& planner) {
    using Held = std::decay_t<F>;
    auto held = std::make_shared<Held>(std::forward<F>(planner));
    return std::make_shared<const Planner>([held = std::move(held)](
                                               const Trace& trace, const Machine& machine,
                                               [[maybe_unused]] const PlanningOptions& options) -> Result<Plan> {
      if constexpr (std::is_invocable_r_v<Result<Plan>, Held&, const Trace&, const Machine&, const PlanningOptions&>) {
        return std::invoke(*held, trace, machine, options);
      } else {
        return std::invoke(*held, trace, machine);
      }
    });
  }
  [[nodiscard]] Result<Plan> plan_by_own(const Trace& trace, const Machine& machine,
                                         const PlanningOptions& options) const;

  std::string name_;
  std::shared_ptr<const Planner> make_;  ///< null: the planner of planners() with that name
};

}  // namespace swapmm
