// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/base/result.hpp>
#include <swapmm/options.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/report.hpp>
#include <swapmm/runtime/compiled_plan.hpp>
#include <swapmm/runtime/log.hpp>

namespace swapmm::runtime {

/// Making one plan: everything it needs by value, so that any thread may run it.
struct PlanTask {
  Program program;
  Machine machine;
  std::string planner;
  std::optional<Plan> given;  ///< a loaded plan to use in place of the planner's
  std::optional<Result<CompiledPlan>> result;
  std::atomic<bool> done{false};

  /// Plans, validates, compiles. Throws where memory runs out alone, and can then be run again.
  void run();
};

/// Checks `plan` against the program and the machine it is to run on, and makes it flat.
[[nodiscard]] Result<CompiledPlan> adopt_plan(Program program, Plan plan, const Machine& machine);

/// What is known of a program's iterations: the sequences seen under each iteration name, and their plans.
class ProgramBook {
 public:
  explicit ProgramBook(SchedulerOptions options);

  [[nodiscard]] const SchedulerOptions& options() const { return options_; }

  /// An iteration has ended and nothing of it can change any more. Makes a plan when it has been seen often enough
  /// (or leaves a task, with Planning::deferred).
  void observed(std::string_view name, IterationLog&& log, const Machine& machine);
  /// An iteration broke off or failed: what came before it is no cycle with what comes next.
  void interrupted(std::string_view name);
  /// Takes over finished tasks.
  void install_finished();

  /// Plans that iterations of that name may follow, the last used first.
  [[nodiscard]] std::span<const FollowablePtr> candidates(std::string_view name) const;
  void used(std::string_view name, const FollowablePtr& plan);
  /// Plans with that tensor turned out not to suit the program: it is observed again, under every name.
  void forget_plans_of(std::uint64_t serial);

  [[nodiscard]] std::shared_ptr<PlanTask> pending_task() const { return pending_; }

  /// Throws PlanRefused where programs of that name are known and none is the plan's; keeps it for later where
  /// none is known yet.
  void load(std::string_view name, Plan plan);
  /// The plan used last, or nothing.
  [[nodiscard]] const CompiledPlan* latest(std::string_view name) const;
  /// The last observed iteration as a trace, or nothing.
  [[nodiscard]] std::optional<Trace> trace(std::string_view name) const;

  /// Why plans were refused or not made, newest last; the last 16 alone are kept.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  [[nodiscard]] std::uint64_t plans_made() const { return plans_made_; }
  void note(std::string text);
  /// Fills in plans and notes.
  void summarize(Report& report) const;

 private:
  struct Sequence {
    std::uint64_t id = 0;
    std::vector<std::uint64_t> key;
    IterationLog log;  // the last one, with the least durations seen
    std::uint64_t last_seen = 0;
  };
  struct Cycle {
    std::vector<std::uint64_t> members;  // sequence ids; it has a plan, or none could be made
  };
  struct Named {
    std::string name;
    std::vector<Sequence> sequences;
    std::vector<std::uint64_t> history;  // sequence ids, newest last
    std::vector<Cycle> cycles;
    std::vector<FollowablePtr> plans;  // last used first
    std::vector<Plan> loaded;
  };

  Named& named(std::string_view name);
  [[nodiscard]] const Named* find(std::string_view name) const;
  std::uint64_t identify(Named& programs, IterationLog&& log);
  [[nodiscard]] std::size_t period(const Named& programs) const;
  [[nodiscard]] bool plan_from_loaded(Named& programs, const Machine& machine);
  [[nodiscard]] Result<Program> last_iterations(const Named& programs, std::size_t count) const;
  void plan_cycle(Named& programs, std::size_t period, std::optional<Plan> given, const Machine& machine);
  void plan_program(Named& programs, Program program, std::optional<Plan> given, const Machine& machine);
  void install(Named& programs, Result<CompiledPlan>& result);

  SchedulerOptions options_;
  std::vector<Named> names_;
  std::shared_ptr<PlanTask> pending_;
  std::string pending_name_;
  std::vector<std::string> notes_;
  std::uint64_t next_id_ = 1;
  std::uint64_t clock_ = 0;
  std::uint64_t plans_made_ = 0;
};

}  // namespace swapmm::runtime
