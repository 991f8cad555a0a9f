// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/interface/options.hpp>
#include <swapmm/interface/report.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/runtime/book/compiled_plan.hpp>
#include <swapmm/runtime/book/plan_case.hpp>
#include <swapmm/runtime/book/planning_task.hpp>
#include <swapmm/runtime/observe/log.hpp>
#include <swapmm/runtime/timing/round_times.hpp>

namespace swapmm::runtime {

/// What is known of a program's iterations: the sequences seen under each iteration name, their plans for each budget,
/// and what was measured of both.
class ProgramBook {
 public:
  explicit ProgramBook(SchedulerOptions options);

  [[nodiscard]] const SchedulerOptions& options() const { return options_; }

  // ---- what the program does

  /// An iteration has ended and nothing of it can change any more. Makes a plan when it has been seen often enough
  /// (or leaves a task, with Planning::deferred). Returns the number of its sequence; 0: nothing was learned.
  SWAPMM_TEMPLATE_EXPORT std::uint64_t observed(std::string_view name, IterationLog&& log, const Machine& machine);
  /// An iteration broke off or failed: what came before it is no cycle with what comes next.
  SWAPMM_TEMPLATE_EXPORT void interrupted(std::string_view name);
  /// Takes over finished tasks.
  SWAPMM_TEMPLATE_EXPORT void install_finished();
  /// Plans for this budget what has plans for another one, where `usable` says that the program still has its tensors.
  SWAPMM_TEMPLATE_EXPORT void plan_for_budget(std::string_view name, const std::function<Machine()>& now,
                                              const std::function<bool(const Program&)>& usable);

  // ---- plans

  /// What has a plan under that name, the last used first; PlanCase::choice() may be followed.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::span<const PlanCase> cases(std::string_view name) const;
  SWAPMM_TEMPLATE_EXPORT void used(std::string_view name, const FollowablePtr& plan);
  /// False where something else than this plan is to be followed now.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT bool still_chosen(std::string_view name, const FollowablePtr& plan) const;
  /// Plans dropped a value of that tensor which was needed: no plan does so any more. What had one is observed again,
  /// under every name.
  SWAPMM_TEMPLATE_EXPORT void keep_value(std::uint64_t serial);

  /// From any thread.
  [[nodiscard]] std::shared_ptr<PlanTask> pending_task() const {
    const std::lock_guard lock(pending_mutex_);
    return pending_;
  }

  /// The plan must never be followed again: following it led to `error`, of which a note tells. It is not made anew.
  SWAPMM_TEMPLATE_EXPORT void give_up(const FollowablePtr& plan, const std::exception_ptr& error) noexcept;

  /// Throws PlanRefused where programs of that name are known and none is the plan's; keeps it for later where
  /// none is known yet. Throws UsageError while a planner runs here.
  void load(std::string_view name, Plan plan);
  /// The plan used last, or null.
  [[nodiscard]] FollowablePtr latest(std::string_view name) const;
  /// The last observed iteration as a trace, with the durations known now, or nothing.
  [[nodiscard]] std::optional<Trace> trace(std::string_view name) const;

  // ---- budgets. Plans of another budget are kept, and found again.

  /// Makes room, so that use_budget() with that budget cannot fail.
  SWAPMM_TEMPLATE_EXPORT void prepare_budget(Bytes budget);
  SWAPMM_TEMPLATE_EXPORT void use_budget(Bytes budget) noexcept;

  // ---- what was measured: see docs/decisions/0010-plans-that-keep-up.md

  struct Measures {
    bool round = false;   ///< how long it takes as a whole
    bool sample = false;  ///< all of it
  };
  /// What to measure in the next round under that name.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT Measures measures(std::string_view name) const;
  /// An iteration on demand is to be observed with the times of its operations.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT bool wants_times(std::string_view name) const;
  /// The times of the last rounds decide on what comes next; `enough`: no more can be taken before they are known.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT bool awaits_times(std::string_view name, bool enough) const;
  /// A round by that plan has ended, sampled or not.
  SWAPMM_TEMPLATE_EXPORT void round_ended(std::string_view name, const FollowablePtr& plan, bool sampled);
  /// A round by a plan took so long. Ends a trial when enough is known.
  SWAPMM_TEMPLATE_EXPORT void round_took(const FollowablePtr& plan, std::chrono::nanoseconds time);
  /// An iteration on demand took so long; `observed` with the times of its operations, after all before it had ended.
  SWAPMM_TEMPLATE_EXPORT void iteration_took(std::uint64_t id, std::chrono::nanoseconds time, bool observed);
  /// The durations of all operations of a round by a plan; 0: not known. Makes another plan where the prediction is
  /// off.
  SWAPMM_TEMPLATE_EXPORT void sampled(const FollowablePtr& plan, std::span<const std::chrono::nanoseconds> durations,
                                      const Machine& machine);
  /// The device knows no times: nothing is compared from now on.
  SWAPMM_TEMPLATE_EXPORT void tells_no_times();

  // ---- for persons

  /// Why plans were refused, not made or left, newest last; the last 16 alone are kept.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  [[nodiscard]] std::uint64_t plans_made() const { return plans_made_; }
  void note(std::string text);
  /// Fills in plans and notes.
  SWAPMM_TEMPLATE_EXPORT void summarize(Report& report) const;

 private:
  struct ObservedSequence {
    std::uint64_t id = 0;
    std::vector<std::uint64_t> key;
    IterationLog log;                      // the last one, with the durations known now
    std::vector<DurationSamples> samples;  // per operation
    RoundTimes times;                      // of whole iterations on demand
    RoundTimes observed;                   // of those that were observed
    std::uint64_t last_seen = 0;
  };
  struct Named {
    std::string name;
    std::vector<ObservedSequence> sequences;
    std::vector<std::uint64_t> history;  // sequence ids, newest last
    std::vector<PlanSet> sets;           // that of the budget now first; never empty
    bool budget_is_new = false;          // plans of other budgets may have none for this one yet
    bool surprised = false;              // something came untimed that has to be timed
    std::vector<Plan> loaded;

    [[nodiscard]] PlanSet& now() { return sets.front(); }
    [[nodiscard]] const PlanSet& now() const { return sets.front(); }
  };
  struct CaseOf {
    Named* programs = nullptr;
    PlanCase* plan_case = nullptr;
  };

  Named& named(std::string_view name);
  [[nodiscard]] const Named* find(std::string_view name) const;
  std::uint64_t identify(Named& programs, IterationLog&& log);
  /// Iterations of one name in which a cycle is looked for.
  [[nodiscard]] std::size_t most_history() const {
    return options_.max_period * std::max<std::size_t>(options_.observe, 2);
  }
  [[nodiscard]] std::size_t period(const Named& programs) const;
  [[nodiscard]] bool plan_from_loaded(Named& programs, const Machine& machine);
  [[nodiscard]] Result<Program> program_of(const Named& programs, std::span<const std::uint64_t> members) const;
  [[nodiscard]] static std::span<const std::uint64_t> last_of(const Named& programs, std::size_t count);
  void plan_cycle(Named& programs, std::size_t period, std::optional<Plan> given, const Machine& machine);
  void plan_program(Named& programs, std::vector<std::uint64_t> members, Program program, std::optional<Plan> given,
                    const Machine& machine);
  void complete_budget(Named& programs, const PlanSet& other, const Machine& machine,
                       const std::function<bool(const Program&)>& usable);
  void set_pending(std::shared_ptr<PlanTask> task) noexcept {
    const std::lock_guard lock(pending_mutex_);
    pending_.swap(task);
  }
  void run(PlanTask& task);
  void install(PlanTask& task);
  void install_new(Named& programs, PlanSet& set, PlanTask& task);
  void refuse(const Named& programs, PlanSet& set, std::span<const std::uint64_t> members, const Problem& why);

  // What was measured.
  [[nodiscard]] bool compares() const { return options_.trial_iterations != 0 && !blind_; }
  [[nodiscard]] std::size_t rounds_not_counted() const;
  [[nodiscard]] std::size_t rounds_counted() const;
  [[nodiscard]] static const PlanCase* settled_case(const Named& programs, std::uint64_t sequence);
  bool observed_on_demand(Named& programs, std::uint64_t sequence, bool timed, const Machine& machine);
  [[nodiscard]] CaseOf case_of(const FollowablePtr& plan);
  [[nodiscard]] ObservedSequence* sequence_of(Named& programs, std::uint64_t id) const;
  [[nodiscard]] std::optional<std::chrono::nanoseconds> demand_time(const Named& programs,
                                                                    const PlanCase& plan_case) const;
  void judge(Named& programs, PlanCase& plan_case);
  void lose(const Named& programs, PlanCase& plan_case, std::chrono::nanoseconds took, std::chrono::nanoseconds before);
  void judge_check(Named& programs, PlanCase& plan_case);
  [[nodiscard]] std::optional<Program> refreshed(const Named& programs, const PlanCase& plan_case) const;
  [[nodiscard]] bool prediction_is_off(const PlanCase& plan_case, const Trace& trace, const Machine& machine) const;
  void reconsider(Named& programs, PlanCase& plan_case, const Machine& machine);
  void install_again(Named& programs, PlanCase& plan_case, PlanTask& task);
  PlanSummary summary_of(const Named& programs, const PlanCase& plan_case) const;
  [[nodiscard]] std::optional<OnDemandSummary> on_demand_summary(const Named& programs) const;

  SchedulerOptions options_;
  Bytes budget_;
  std::vector<Named> names_;
  std::shared_ptr<PlanTask> pending_;  // read by the manager's thread as it is; all else by the functions
  mutable std::mutex pending_mutex_;
  std::vector<std::string> notes_;
  bool blind_ = false;         // the device knows no times
  bool planner_runs_ = false;  // on the manager's thread
  std::uint64_t next_id_ = 1;
  std::uint64_t clock_ = 0;
  std::uint64_t plans_made_ = 0;
  std::uint64_t plans_remade_ = 0;
  std::uint64_t sampled_rounds_ = 0;
};

}  // namespace swapmm::runtime
