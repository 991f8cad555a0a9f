// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/interface/options.hpp>
#include <swapmm/interface/report.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/runtime/book/compiled_plan.hpp>
#include <swapmm/runtime/book/known_machine.hpp>
#include <swapmm/runtime/book/plan_case.hpp>
#include <swapmm/runtime/book/planning_task.hpp>
#include <swapmm/runtime/observe/log.hpp>
#include <swapmm/runtime/timing/round_times.hpp>

namespace swapmm::runtime {

/// Stores what is known of a program's iterations: the sequences seen under each iteration name, their plans for each
/// budget, and the measurements of both.
class ProgramBook {
 public:
  explicit ProgramBook(SchedulerOptions options);

  [[nodiscard]] const SchedulerOptions& options() const { return options_; }

  /// A manager's claim to a book, from the constructor to end(). Throws UsageError if another manager has it.
  class Owner {
   public:
    explicit Owner(ProgramBook& book) : book_(&book) { book.take(); }
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    ~Owner() { end(); }
    void end() noexcept {
      if (book_ != nullptr) std::exchange(book_, nullptr)->has_manager_.store(false);
    }

   private:
    ProgramBook* book_;
  };

  // ---- what the program does

  /// Takes the log of an iteration that has ended and cannot change any more. Makes a plan if the iteration has been
  /// seen often enough (or creates a task, with Planning::deferred). Returns the id of its sequence, or 0 if nothing
  /// was learned.
  SWAPMM_TEMPLATE_EXPORT std::uint64_t observed(std::string_view name, IterationLog&& log, const KnownMachine& machine);
  /// What observed() needs for that log.
  struct Outlook {
    bool plans = true;  ///< it may make a plan, so the machine must be known
    bool waits = true;  ///< it needs the times of that log and of those before, so it is worth waiting for them
  };
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT Outlook outlook(std::string_view name, const IterationLog& log) const;
  /// Takes the durations of the operations of a log whose times were late, by what observed() returned; 0: unknown.
  SWAPMM_TEMPLATE_EXPORT void times_came(std::uint64_t id, std::span<const std::chrono::nanoseconds> durations);
  /// Reports that an iteration followed the plan to its end, as the member with that number of the plan's cycle.
  SWAPMM_TEMPLATE_EXPORT void followed(std::string_view name, const FollowablePtr& plan, std::size_t member);
  /// Reports that the program did something that the plan does not expect. (What it did is observed().) A plan that is
  /// started several times and never followed for a whole round is then not offered() until its cycle is seen again.
  /// The start of a plan costs copies. So once plans on trial were left twice before they had shown that they are
  /// faster than on demand, all cycles of that name must be seen more often before plans are tried: 2 times, and then
  /// 8, 32 and 128 times. Plans that promise to be no faster than on demand are not started then. In programs that
  /// branch plans wait before that, too, until they could have saved the time of an iteration.
  SWAPMM_TEMPLATE_EXPORT void diverged(std::string_view name, const FollowablePtr& plan);
  /// Reports that the plan is not followed any more, whatever the reason. If two starts in a row cost more than the
  /// iterations since then saved, the plan waits until its cycle has been seen so often that a start could have been
  /// paid: see docs/decisions/0061-starts-that-pay.md.
  SWAPMM_TEMPLATE_EXPORT void left(std::string_view name, const FollowablePtr& plan);
  /// Installs the plan of the pending task, if the task is done.
  SWAPMM_TEMPLATE_EXPORT void install_finished();
  /// Replans cycles that were planned for other budgets for the current budget. `now` returns the machine. `usable`
  /// tells whether the tensors of a program still exist.
  SWAPMM_TEMPLATE_EXPORT void replan_for_budget(std::string_view name, const std::function<KnownMachine()>& now,
                                                const std::function<bool(const Program&)>& usable);

  // ---- programs that branch: see docs/decisions/0038-programs-that-branch.md

  /// Whether plans may drop only what is proven dead.
  [[nodiscard]] bool proves_drops() const { return proves_drops_; }
  /// Makes it so, for all names, unless SchedulerOptions::drops says otherwise. Plans that were made before are
  /// forgotten. Adds a note with the reason.
  SWAPMM_TEMPLATE_EXPORT void prove_drops(std::string_view reason);
  /// See EntranceOptions::callables_until_end.
  void set_callables_until_end(bool stay) { callables_until_end_ = stay; }
  /// True if iterations of that name were of more different sequences than a regular program has.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT bool has_many_sequences(std::string_view name) const;

  // ---- plans

  /// Returns the cases that have a plan under that name. First comes the one that was used last, or whose cycle was
  /// seen since. Follow PlanCase::offered().
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::span<const PlanCase> cases(std::string_view name) const;
  /// What the start of a plan copied that would not have been copied on demand.
  struct StartCost {
    Bytes in;   ///< to the device
    Bytes out;  ///< from it
  };
  /// Reports that the plan was started.
  SWAPMM_TEMPLATE_EXPORT void used(std::string_view name, const FollowablePtr& plan, const StartCost& cost);
  /// Returns false if a choice other than this plan is to be followed now.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT bool still_chosen(std::string_view name, const FollowablePtr& plan) const;
  /// Called if a plan dropped a value of that tensor that was needed. Removes the plans of all names that use the
  /// tensor; new plans keep its value. Their cycles are observed again.
  SWAPMM_TEMPLATE_EXPORT void keep_value(std::uint64_t serial);

  /// Returns the pending task, or null. May be called from any thread.
  [[nodiscard]] std::shared_ptr<PlanTask> pending_task() const {
    const std::lock_guard lock(pending_mutex_);
    return pending_;
  }

  /// Marks a plan as never to be followed again, because following it led to `error`. Adds a note with the error. The
  /// plan is not made again.
  SWAPMM_TEMPLATE_EXPORT void give_up(const FollowablePtr& plan, const std::exception_ptr& error) noexcept;

  /// Takes a plan for iterations of that name. Keeps it for later if no program of that name is known yet. Throws
  /// PlanRefused if programs of that name are known and the plan is for none of them, or is not valid. Throws
  /// UsageError while a planner runs here.
  void load(std::string_view name, LoadedPlan plan);
  /// The plan used last, or null.
  [[nodiscard]] FollowablePtr latest(std::string_view name) const;
  /// The last observed iteration as a trace, with the durations known now; nothing if there is none.
  [[nodiscard]] std::optional<Trace> trace(std::string_view name) const;

  // ---- managers that share links: program_book_joint.cpp

  /// From now on, plans are made together with those of other managers.
  SWAPMM_TEMPLATE_EXPORT void join(std::weak_ptr<LinkMember> member);

  // ---- budgets: plans for other budgets are kept and reused

  /// Allocates what use_budget() needs for any of these budgets, so that use_budget() cannot fail. Plans for other
  /// budgets than these and the current one may have to make room: at most six budgets at a time.
  SWAPMM_TEMPLATE_EXPORT void prepare_budgets(std::initializer_list<PlanBudget> budgets);
  SWAPMM_TEMPLATE_EXPORT void use_budget(PlanBudget budget) noexcept;

  // ---- measurements: see docs/decisions/0010-plans-that-keep-up.md

  struct Measures {
    bool round = false;   ///< time the round as a whole
    bool sample = false;  ///< time each operation and copy
  };
  /// Returns what to measure in the next round under that name.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT Measures measures(std::string_view name) const;
  /// Returns true if an iteration on demand is to be observed with the times of its operations.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT bool wants_times(std::string_view name) const;
  /// Returns true if the times of the last rounds decide what comes next. Pass `enough` = true if no more rounds can be
  /// timed until those times are known.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT bool awaits_times(std::string_view name, bool enough) const;
  /// Reports that a round with that plan has ended; `sampled`: its operations and copies were timed.
  SWAPMM_TEMPLATE_EXPORT void round_ended(std::string_view name, const FollowablePtr& plan, bool sampled);
  /// Adds the time of a round with a plan. Ends a trial once enough rounds were timed.
  SWAPMM_TEMPLATE_EXPORT void round_took(const FollowablePtr& plan, std::chrono::nanoseconds time);
  /// Adds the time of an iteration on demand. `observed`: its operations were timed, so it may have begun on an idle
  /// device.
  SWAPMM_TEMPLATE_EXPORT void iteration_took(std::uint64_t id, std::chrono::nanoseconds time, bool observed);
  /// What copies of the tensors of the plan's trace seem to move by a sample that sampled() is about to report.
  SWAPMM_TEMPLATE_EXPORT void copies_seem(const FollowablePtr& plan, std::vector<std::optional<Bytes>> copied);
  /// Adds the durations of all operations of a round with a plan; 0 means unknown. Remakes the plan if its prediction
  /// is off.
  SWAPMM_TEMPLATE_EXPORT void sampled(const FollowablePtr& plan, std::span<const std::chrono::nanoseconds> durations,
                                      const KnownMachine& machine);
  /// Reports that the device measures no times: from now on, plans are not compared.
  SWAPMM_TEMPLATE_EXPORT void tells_no_times();
  /// Reports that plans are made for links of which nothing is known.
  SWAPMM_TEMPLATE_EXPORT void knows_no_links();

  // ---- for the report

  /// Reasons why plans were refused, not made or left, newest last. Only the last 16 are kept.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  [[nodiscard]] std::uint64_t plans_made() const { return plans_made_; }
  void note(std::string text);
  /// Fills in plans and notes.
  SWAPMM_TEMPLATE_EXPORT void summarize(Report& report) const;
  /// Plans that the plan store had.
  [[nodiscard]] std::uint64_t plans_found() const { return from_store_; }

  // ---- for programs that were compiled against 0.1, whose managers have no file and no neighbours

  /// The same as above.
  SWAPMM_TEMPLATE_EXPORT void prepare_budgets(std::initializer_list<Bytes> budgets);
  /// The same as above.
  SWAPMM_TEMPLATE_EXPORT void use_budget(Bytes budget) noexcept;
  /// The same as above, with a start that cost nothing.
  SWAPMM_TEMPLATE_EXPORT void used(std::string_view name, const FollowablePtr& plan);

  /// The same as above.
  SWAPMM_TEMPLATE_EXPORT std::uint64_t observed(std::string_view name, IterationLog&& log, const Machine& machine);
  /// See replan_for_budget().
  SWAPMM_TEMPLATE_EXPORT void plan_for_budget(std::string_view name, const std::function<Machine()>& now,
                                              const std::function<bool(const Program&)>& usable);
  /// The same as above.
  SWAPMM_TEMPLATE_EXPORT void sampled(const FollowablePtr& plan, std::span<const std::chrono::nanoseconds> durations,
                                      const Machine& machine);

 private:
  struct ObservedSequence {
    std::uint64_t id = 0;
    std::vector<std::uint64_t> key;
    IterationLog log;                      // the last log, with the durations known now
    std::vector<DurationSamples> samples;  // per operation
    RoundTimes times;                      // of whole iterations on demand, not observed
    RoundTimes observed;                   // of observed iterations
    std::uint64_t last_seen = 0;
  };
  struct Named {
    std::string name;
    std::uint64_t used = 0;  // the last use of all names' that was of this one
    std::vector<ObservedSequence> sequences;
    std::vector<std::uint64_t> history;  // sequence ids of the last iterations without a gap, newest last
    std::vector<PlanSet> sets;           // the set of the current budget is first; never empty
    bool budget_is_new = false;          // plans for other budgets may have no counterpart for this one yet
    bool surprised = false;              // an untimed iteration came whose times are needed
    std::size_t different = 0;           // how many sequences were new
    std::size_t vain_lookups = 0;        // of cycles that the plan store did not have
    std::size_t in_vain = 0;  // observed iterations that were part of no cycle, less those that followed a plan
    std::vector<std::uint64_t> untimed;  // ids of the last iterations without times and without a gap, newest last
    std::vector<std::size_t> untimed_alike{};  // by period: how many of them in a row were as one period before
    std::size_t to_time = 0;  // so many of the next iterations are timed: a cycle was seen among untimed ones
    std::size_t unpaid = 0;   // starts of plans, and cycles timed after timing had ended, that have not paid yet
    std::vector<LoadedPlan> loaded;

    [[nodiscard]] PlanSet& now() { return sets.front(); }
    [[nodiscard]] const PlanSet& now() const { return sets.front(); }
  };
  struct CaseOf {
    Named* programs = nullptr;
    PlanCase* plan_case = nullptr;
  };

  void prepare(std::span<const PlanBudget> budgets);
  Named& named(std::string_view name);
  [[nodiscard]] const Named* find(std::string_view name) const;
  void forget_a_name();
  std::uint64_t identify(Named& programs, IterationLog&& log);
  void remember(Named& programs, std::uint64_t sequence);
  /// The number of last iterations of one name that are searched for a cycle.
  [[nodiscard]] std::size_t most_history() const {
    return options_.max_period * std::max<std::size_t>(options_.observe, 2);
  }
  // False after many iterations that were part of no cycle: no more of them are timed until there is one. Chance makes
  // cycles, too, if there are few sequences; so one of them does not outweigh what was seen before.
  [[nodiscard]] bool may_repeat(const Named& programs) const { return programs.in_vain < most_history(); }
  void remember_untimed(Named& programs, std::uint64_t sequence) const;
  void drop_pending();
  [[nodiscard]] std::size_t period(const Named& programs, std::span<const std::uint64_t> history) const;
  [[nodiscard]] bool overlaps(const Named& programs, std::span<const std::uint64_t> members) const;
  [[nodiscard]] bool knows_times(const Named& programs, std::span<const std::uint64_t> members) const;
  [[nodiscard]] bool may_find_stored(const Named& programs, std::span<const std::uint64_t> history) const;
  [[nodiscard]] bool plan_from_loaded(Named& programs, const KnownMachine& machine);
  // The id of the sequence with that key; 0 if there is none.
  [[nodiscard]] static std::uint64_t id_of(const Named& programs, const std::vector<std::uint64_t>& key);
  // Null if the sequence is forgotten.
  [[nodiscard]] static const ObservedSequence* known_sequence(const Named& programs, std::uint64_t id);
  // Its last log; null if the sequence is forgotten.
  [[nodiscard]] static const IterationLog* log_of(const Named& programs, std::uint64_t id);
  [[nodiscard]] Result<Program> program_of(const Named& programs, std::span<const std::uint64_t> members) const;
  [[nodiscard]] static std::span<const std::uint64_t> last_of(const Named& programs, std::size_t count);
  void recognized(Named& programs, std::span<const std::uint64_t> members) const;
  static constexpr std::size_t most_unpaid = 5;
  // Iteration names whose sequences and plans are known.
  static constexpr std::size_t most_names = 1024;
  void add_unpaid(Named& programs) const;
  [[nodiscard]] static std::size_t awaited(const Named& programs);
  [[nodiscard]] std::size_t awaited(const Named& programs, const PlanCase& plan_case) const;
  [[nodiscard]] static bool has_settled(const Named& programs, std::span<const std::uint64_t> members);
  void await_all(Named& programs) const;
  // `given` is used instead of the planner's plan.
  void plan_cycle(Named& programs, std::size_t period, std::optional<GivenPlan> given, const KnownMachine& machine);
  void plan_program(Named& programs, std::vector<std::uint64_t> members, Program program,
                    std::optional<GivenPlan> given, const KnownMachine& machine);
  void complete_budget(Named& programs, const PlanSet& other, const KnownMachine& machine,
                       const std::function<bool(const Program&)>& usable);
  void drop_given(PlanTask& task);
  [[nodiscard]] PlanningTime time_for_planner() const;
  void set_pending(std::shared_ptr<PlanTask> task) noexcept {
    const std::lock_guard lock(pending_mutex_);
    pending_.swap(task);
  }
  void run(PlanTask& task);
  void install(PlanTask& task);
  void install_new(Named& programs, PlanSet& set, PlanTask& task);
  void follow_loaded(std::string_view name);
  // Throws PlanRefused if the plan cannot be followed.
  void replace(PlanCase& plan_case, const LoadedPlan& by) const;
  void refuse(const Named& programs, PlanSet& set, std::span<const std::uint64_t> members, const Problem& why);

  // The plan store.
  [[nodiscard]] bool plan_from_store(Named& programs, const KnownMachine& machine);
  [[nodiscard]] std::optional<GivenPlan> stored(Named& programs, std::span<const std::uint64_t> members,
                                                const Program& program, const KnownMachine& machine);
  void keep_plan(const CompiledPlan& made, const KnownMachine& machine) noexcept;
  void refuse_stored(const std::string& key, const std::string& reason) noexcept;

  // Measurements.
  [[nodiscard]] bool compares() const { return options_.trial_iterations != 0 && !blind_; }
  [[nodiscard]] std::size_t rounds_not_counted() const;
  [[nodiscard]] std::size_t rounds_counted() const;
  [[nodiscard]] bool is_due(const PlanCase& plan_case) const;
  [[nodiscard]] static bool is_left_on_demand(const Named& programs, std::uint64_t sequence);
  bool observed_on_demand(Named& programs, std::uint64_t sequence, bool timed, const KnownMachine& machine);
  [[nodiscard]] CaseOf case_of(const FollowablePtr& plan);
  [[nodiscard]] ObservedSequence* sequence_of(Named& programs, std::uint64_t id) const;
  // The time of a round on demand.
  struct DemandTime {
    std::chrono::nanoseconds time{0};
    std::chrono::nanoseconds of_idle_device{0};  // what may come from beginning on an idle device

    [[nodiscard]] std::chrono::nanoseconds least() const { return time - of_idle_device; }
  };
  [[nodiscard]] static std::optional<DemandTime> demand_time(const Named& programs, const PlanCase& plan_case);
  [[nodiscard]] static std::chrono::nanoseconds saved_by(const PlanCase& plan_case,
                                                         const std::optional<DemandTime>& demand);
  [[nodiscard]] static std::size_t awaited_to_pay(const PlanCase& plan_case, const std::optional<DemandTime>& demand);
  [[nodiscard]] static std::chrono::nanoseconds first_copies(const IterationLog& log, const Link& link);
  void judge(Named& programs, PlanCase& plan_case);
  void lose(const Named& programs, PlanCase& plan_case, std::chrono::nanoseconds took, std::chrono::nanoseconds before);
  void judge_check(Named& programs, PlanCase& plan_case);
  static void keep_faster(Named& programs, PlanCase& plan_case);
  [[nodiscard]] std::optional<Program> refreshed(const Named& programs, const PlanCase& plan_case) const;
  /// Whether plans may run operations again.
  [[nodiscard]] bool allows_replays() const { return !proves_drops_ || callables_until_end_; }
  [[nodiscard]] bool prediction_is_off(const PlanCase& plan_case, const Trace& trace,
                                       const KnownMachine& machine) const;
  void reconsider(Named& programs, PlanCase& plan_case, const KnownMachine& machine);
  void install_again(Named& programs, PlanCase& plan_case, PlanTask& task);

  // Managers that share links.
  // The part that this manager takes in joint plans: with one cycle, for one budget.
  struct JointPart {
    std::string name;
    std::vector<std::uint64_t> members;
    PlanBudget budget{Bytes{}};
    FollowablePtr plan;  // that was followed when it was offered
    Program program;
    std::uint64_t number = 0;    // of the offer; 0: there is none
    std::uint64_t answered = 0;  // the last answer that was seen
    std::uint64_t since = 0;     // plans with later numbers are those of the managers that are there now
    std::size_t elsewhere = 0;   // iterations in a row of other cycles, or with another budget
    std::size_t patience = 32;   // so many of these until the part is taken with another cycle; doubles each time
  };
  void plan_jointly(Named& programs, const std::function<KnownMachine()>& now);
  [[nodiscard]] bool takes_part(const Named& programs, const PlanCase& plan_case);
  [[nodiscard]] bool is_joint(const PlanCase& plan_case) const {
    return plan_case.plan->turns != nullptr && plan_case.plan->turns->number > joint_.since && !links_.expired();
  }
  void offer(const Named& programs, const PlanCase& plan_case, const KnownMachine& machine, LinkMember& member);
  void take_answer(Named& programs, const std::function<KnownMachine()>& now, const LinkMember& member);
  void adopt_part(Named& programs, PlanCase& plan_case, const JointAnswer& answer, const KnownMachine& machine);
  void plan_alone_again(Named& programs, PlanCase& plan_case, const KnownMachine& machine);
  [[nodiscard]] bool is_measured_beside_others(PlanCase& plan_case) const;
  void ask_for_all(const Named& programs, LinkMember& member);
  void judge_jointly(Named& programs, PlanCase& plan_case);
  void reconsider_jointly(Named& programs, PlanCase& plan_case, const KnownMachine& machine);
  void plan_again(Named& programs, PlanCase& plan_case, Program program, const KnownMachine& machine);

  PlanSummary summary_of(const Named& programs, const PlanCase& plan_case) const;
  [[nodiscard]] std::optional<OnDemandSummary> on_demand_summary(const Named& programs) const;

  SWAPMM_TEMPLATE_EXPORT void take();

  SchedulerOptions options_;
  std::atomic<bool> has_manager_{false};
  std::chrono::steady_clock::time_point made_ = std::chrono::steady_clock::now();
  PlanBudget budget_{Bytes{}};
  std::vector<Named> names_;
  std::uint64_t uses_ = 0;             // of names
  std::shared_ptr<PlanTask> pending_;  // only the manager's thread may read it without pending_mutex_
  mutable std::mutex pending_mutex_;
  std::vector<std::string> notes_;
  bool blind_ = false;           // the device measures no times
  bool notes_no_links_ = false;  // see knows_no_links()
  bool planner_runs_ = false;    // a planner runs on the manager's thread
  bool proves_drops_ = false;    // see proves_drops()
  std::uint64_t next_id_ = 1;
  std::uint64_t clock_ = 0;
  std::uint64_t plans_made_ = 0;
  std::uint64_t plans_remade_ = 0;
  std::uint64_t from_store_ = 0;
  std::uint64_t sampled_rounds_ = 0;
  bool callables_until_end_ = false;  // see set_callables_until_end()
  std::weak_ptr<LinkMember> links_;
  JointPart joint_;
};

}  // namespace swapmm::runtime
