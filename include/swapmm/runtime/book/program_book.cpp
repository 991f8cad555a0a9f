// SPDX-License-Identifier: Apache-2.0
#include <swapmm/runtime/book/program_book.hpp>

#include <algorithm>
#include <memory>
#include <utility>

#include <swapmm/base/error.hpp>
#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/runtime/book/planning_task.hpp>
#include <swapmm/runtime/observe/replayed_program.hpp>
#include <swapmm/runtime/values/messages.hpp>

namespace swapmm::runtime {

namespace {

void give_up_cycle(PlanSet& set, std::span<const std::uint64_t> members, const std::string& why) noexcept {
  for (PlanSet::Cycle& cycle : set.cycles) {
    try {
      if (same_cycle(cycle.members, members)) cycle.refusal = why;
    } catch (...) {  // NOLINT(bugprone-empty-catch): no memory for the text
    }
  }
}

// Null if it is not known.
template <class Sequences>
auto sequence_in(Sequences& sequences, std::uint64_t id) -> decltype(sequences.data()) {
  const auto found = std::ranges::find_if(sequences, [&](const auto& known) { return known.id == id; });
  return found == sequences.end() ? nullptr : &*found;
}

}  // namespace

ProgramBook::ProgramBook(SchedulerOptions options) : options_(std::move(options)) {
  // Their product must not overflow.
  options_.observe = std::min(options_.observe, std::size_t{1} << 30U);
  options_.max_period = std::clamp<std::size_t>(options_.max_period, 1, std::size_t{1} << 20U);
  options_.max_sequences = std::max(options_.max_sequences, options_.max_period);
  proves_drops_ = options_.drops == DropRule::proven;
}

void ProgramBook::take() {
  if (has_manager_.exchange(true)) {
    throw UsageError("the scheduler belongs to another manager: each manager needs a scheduler of its own");
  }
}

void ProgramBook::note(std::string text) {
  if (notes_.size() == 16) notes_.erase(notes_.begin());
  notes_.push_back(std::move(text));
}

ProgramBook::ObservedSequence* ProgramBook::sequence_of(Named& programs, std::uint64_t id) const {
  return sequence_in(programs.sequences, id);
}

// ---- what the program does

std::uint64_t ProgramBook::observed(std::string_view name, IterationLog&& log, const KnownMachine& machine) {
  const bool without_budget = machine.device_budget.value == 0;
  if (log.broken || log.operations.empty() || options_.observe == 0 || without_budget) {
    if (find(name) != nullptr) named(name).history.clear();
    return 0;
  }
  install_finished();
  Named& programs = named(name);
  const bool timed = log.timed;
  const std::uint64_t next_id = next_id_;
  const std::uint64_t id = identify(programs, std::move(log));
  if (id == next_id) ++programs.different;
  if (observed_on_demand(programs, id, timed, machine)) return id;
  remember(programs, id);
  const std::size_t p = period(programs, programs.history);
  if (p == 0) {
    programs.in_vain = std::min(programs.in_vain + 1, most_history());
    await_all(programs);
  }
  if (plan_from_loaded(programs, machine) || plan_from_store(programs, machine) || p == 0) return id;
  if (!programs.loaded.empty()) {
    const Result<Program> program = program_of(programs, last_of(programs, p));
    for (const LoadedPlan& plan : programs.loaded) {
      note("iteration \"" + programs.name + "\": loaded plan refused: it is for the program " + plan.trace_digest() +
           (program.has_value() ? ", this one is " + digest(program->trace) : std::string()));
    }
    programs.loaded.clear();
  }
  recognized(programs, last_of(programs, p));
  plan_cycle(programs, p, {}, machine);
  return id;
}

void ProgramBook::remember(Named& programs, std::uint64_t sequence) {
  programs.untimed.clear();
  programs.untimed_alike.clear();
  programs.history.push_back(sequence);
  if (programs.history.size() > most_history()) programs.history.erase(programs.history.begin());
}

void ProgramBook::followed(std::string_view name, const FollowablePtr& plan, std::size_t member) {
  Named& programs = named(name);
  std::vector<PlanCase>& cases = programs.now().cases;
  const auto known = std::find_if(cases.begin(), cases.end(), [&](const PlanCase& each) { return each.plan == plan; });
  if (known != cases.end()) ++known->since_start;
  ObservedSequence* const sequence =
      known == cases.end() ? nullptr : sequence_of(programs, known->members[member % known->members.size()]);
  if (sequence == nullptr) return programs.history.clear();  // the plan was replaced, or its iterations are forgotten
  sequence->last_seen = ++clock_;
  if (programs.in_vain > 0) --programs.in_vain;
  remember(programs, sequence->id);
}

// Uses a loaded plan as soon as its program is seen once: one iteration, or one cycle, is enough to recognize it.
bool ProgramBook::plan_from_loaded(Named& programs, const KnownMachine& machine) {
  if (programs.loaded.empty()) return false;
  for (std::size_t p = 1; p <= std::min(options_.max_period, programs.history.size()); ++p) {
    const auto members = last_of(programs, p);
    const Result<Program> program = program_of(programs, members);
    if (!program.has_value()) continue;
    const auto match = std::find_if(programs.loaded.begin(), programs.loaded.end(),
                                    [&](const LoadedPlan& plan) { return plan.is_for(*program); });
    if (match == programs.loaded.end()) continue;
    if (pending_ != nullptr) {
      // The loaded plan waits for another cycle's task, and takes the place of a task for its own cycle.
      if (!same_cycle(pending_->members, members)) return true;
      set_pending(nullptr);
    }
    Result<GivenPlan> given = match->given_for(*program);
    if (!given.has_value()) {
      note("iteration \"" + programs.name + "\": loaded plan refused: " + given.problem().message);
      programs.loaded.erase(match);
      return false;
    }
    std::erase_if(programs.now().cycles,
                  [&](const PlanSet::Cycle& known) { return same_cycle(known.members, members); });
    plan_cycle(programs, p, *std::move(given), machine);
    programs.loaded.erase(match);
    return true;
  }
  return false;
}

std::span<const std::uint64_t> ProgramBook::last_of(const Named& programs, std::size_t count) {
  return std::span(programs.history).last(count);
}

const ProgramBook::ObservedSequence* ProgramBook::known_sequence(const Named& programs, std::uint64_t id) {
  return sequence_in(programs.sequences, id);
}

const IterationLog* ProgramBook::log_of(const Named& programs, std::uint64_t id) {
  const ObservedSequence* const known = known_sequence(programs, id);
  return known == nullptr ? nullptr : &known->log;
}

Result<Program> ProgramBook::program_of(const Named& programs, std::span<const std::uint64_t> members) const {
  std::vector<const IterationLog*> logs;
  for (const std::uint64_t id : members) {
    const IterationLog* const log = log_of(programs, id);
    if (log == nullptr) return Problem{"one of its iterations is not known any more"};
    logs.push_back(log);
  }
  return make_program(logs, programs.name, proves_drops_);
}

std::uint64_t ProgramBook::id_of(const Named& programs, const std::vector<std::uint64_t>& key) {
  const auto found =
      std::ranges::find_if(programs.sequences, [&](const ObservedSequence& known) { return known.key == key; });
  return found == programs.sequences.end() ? 0 : found->id;
}

std::uint64_t ProgramBook::identify(Named& programs, IterationLog&& log) {
  std::vector<std::uint64_t> key = identity(log);
  ++clock_;
  ObservedSequence* known = sequence_of(programs, id_of(programs, key));
  if (known == nullptr) {
    if (programs.sequences.size() >= options_.max_sequences) {
      const auto oldest = std::min_element(
          programs.sequences.begin(), programs.sequences.end(),
          [](const ObservedSequence& a, const ObservedSequence& b) { return a.last_seen < b.last_seen; });
      const std::uint64_t gone = oldest->id;
      for (PlanSet& set : programs.sets) {
        const auto has_it = [&](const auto& cycle) {
          return std::find(cycle.members.begin(), cycle.members.end(), gone) != cycle.members.end();
        };
        std::erase_if(set.cycles, has_it);
        std::erase_if(set.lookups, has_it);
      }
      programs.sequences.erase(oldest);
    }
    ObservedSequence added;
    added.key = std::move(key);
    added.samples.resize(log.operations.size());
    added.id = next_id_++;
    programs.sequences.push_back(std::move(added));
    known = &programs.sequences.back();
  }
  for (std::size_t i = 0; i < log.operations.size(); ++i) {
    auto& duration = log.operations[i].duration;
    if (log.timed) known->samples[i].add(duration);
    duration = known->samples[i].estimate();
  }
  if (!proves_drops_) add_downloads(log, known->log);
  known->log = std::move(log);
  known->last_seen = clock_;
  return known->id;
}

// Returns the length of the shortest cycle that the last iterations repeated `observe` times (cycles longer than 1 at
// least twice, because one pass shows no repetition). Returns 0 if there is none yet.
std::size_t ProgramBook::period(const Named& programs, std::span<const std::uint64_t> history) const {
  for (std::size_t p = 1; p <= std::min(options_.max_period, history.size()); ++p) {
    const std::size_t length = p * (p == 1 ? options_.observe : std::max<std::size_t>(options_.observe, 2));
    if (history.size() < length) continue;
    bool repeats = true;
    for (std::size_t back = 1; back + p <= length; ++back) {
      repeats = repeats && history[history.size() - back] == history[history.size() - back - p];
    }
    if (repeats && !overlaps(programs, history.last(p))) return p;
  }
  return 0;
}

// Tensors that are made anew in each iteration, and live into the next one, need a longer cycle: each generation has a
// place of its own.
bool ProgramBook::overlaps(const Named& programs, std::span<const std::uint64_t> members) const {
  if (2 * members.size() > options_.max_period) return false;
  const bool may = std::any_of(members.begin(), members.end(), [&](std::uint64_t id) {
    const IterationLog* const log = log_of(programs, id);
    return log != nullptr && has_earlier_generation(*log);
  });
  if (!may) return false;
  std::vector<const IterationLog*> logs;
  for (const std::uint64_t id : members) {
    if (const IterationLog* const log = log_of(programs, id)) logs.push_back(log);
  }
  return logs.size() == members.size() && generations_overlap(logs);
}

void ProgramBook::plan_cycle(Named& programs, std::size_t period, std::optional<GivenPlan> given,
                             const KnownMachine& machine) {
  const auto last = last_of(programs, period);
  if (programs.now().has_cycle(last)) return;
  if (pending_ != nullptr) return;  // one task at a time
  if (!given && !knows_times(programs, last)) return;
  std::vector<std::uint64_t> members(last.begin(), last.end());
  Result<Program> program = program_of(programs, members);
  programs.now().cycles.push_back({members});
  try {
    if (program.has_value()) {
      if (!given) given = stored(programs, members, *program, machine);
      return plan_program(programs, members, *std::move(program), std::move(given), machine);
    }
    refuse(programs, programs.now(), members, program.problem());
  } catch (...) {
    programs.now().cycles.pop_back();  // out of memory: the cycle is planned when it occurs again
    throw;
  }
}

void ProgramBook::plan_program(Named& programs, std::vector<std::uint64_t> members, Program program,
                               std::optional<GivenPlan> given, const KnownMachine& machine) {
  auto task = std::make_shared<PlanTask>();
  task->given = std::move(given);
  if (!task->given) {
    const std::string own = digest(program.trace);
    for (const PlanCase& known : programs.now().cases) {
      if (known.plan->observed_digest() == own) task->given = given_by(*known.plan);
    }
  }
  task->program = std::move(program);
  task->machine = machine;
  task->planner = options_.planner;
  task->allows_replays = allows_replays();
  task->time = time_for_planner();
  task->name = programs.name;
  task->members = std::move(members);
  if (task->given) {
    run(*task);
    if (!task->result->has_value()) drop_given(*task);
  }
  if (!task->given && options_.planning == Planning::deferred) {
    set_pending(std::move(task));
    return;
  }
  if (!task->given) run(*task);
  install_new(programs, programs.now(), *task);
}

// The task is then for the planner.
void ProgramBook::drop_given(PlanTask& task) {
  const std::string& why = task.result->problem().message;
  if (task.given->store_key.empty()) {
    note("iteration \"" + task.name + "\": given plan refused: " + why);
  } else {
    refuse_stored(task.given->store_key, why);
  }
  task.given.reset();
  task.result.reset();
  task.done.store(false, std::memory_order_release);
}

// A user-supplied planner may call the scheduler. While it runs, calls that would change the book are refused.
void ProgramBook::run(PlanTask& task) {
  struct Running {
    bool& flag;
    explicit Running(bool& runs) : flag(runs) { flag = true; }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() { flag = false; }
  };
  const Running running(planner_runs_);
  task.run();
}

void ProgramBook::refuse(const Named& programs, PlanSet& set, std::span<const std::uint64_t> members,
                         const Problem& why) {
  for (PlanSet::Cycle& cycle : set.cycles) {
    if (same_cycle(cycle.members, members)) cycle.refusal = why.message;
  }
  note("iteration \"" + programs.name + "\" stays on demand: " + why.message);
}

void ProgramBook::install(PlanTask& task) {
  Named& programs = named(task.name);
  const auto set = std::find_if(programs.sets.begin(), programs.sets.end(),
                                [&](const PlanSet& each) { return each.budget == task.machine.device_budget; });
  if (set == programs.sets.end()) return;
  if (task.replaces == nullptr) return install_new(programs, *set, task);
  for (PlanCase& known : set->cases) {
    if (known.plan == task.replaces) return install_again(programs, known, task);
  }
}

void ProgramBook::install_new(Named& programs, PlanSet& set, PlanTask& task) {
  Result<CompiledPlan>& result = *task.result;
  if (!result.has_value()) {
    return refuse(programs, set, task.members, result.problem());
  }
  // If memory runs out here, the task keeps its result for the next try. Nothing after this line allocates.
  set.cases.reserve(set.cases.size() + 1);
  PlanCase added;
  added.members = task.members;
  added.try_out(std::make_shared<const CompiledPlan>(*std::move(result)), compares());
  for (const PlanCase& known : set.cases) {  // reuse what is known of it on other handles
    const Plan& plan = known.plan->plan;
    if (plan.trace_digest != added.plan->plan.trace_digest || plan.commands != added.plan->plan.commands) continue;
    if (known.state == PlanState::on_trial) continue;
    added.state = known.state;
    added.times = known.times;
    added.predicted = known.predicted;
  }
  added.trusted = task.given.has_value() || has_settled(programs, added.members);
  added.awaited = awaited(programs, added);
  std::erase_if(set.cases, [&](const PlanCase& known) { return same_cycle(known.members, added.members); });
  const FollowablePtr plan = added.plan;
  set.cases.insert(set.cases.begin(), std::move(added));
  ++plans_made_;
  if (task.given && !task.given->store_key.empty()) ++from_store_;
  if (!task.given) keep_plan(*plan, task.machine);
  if (set.cases.size() > options_.max_sequences) set.cases.pop_back();
}

void ProgramBook::install_finished() {
  if (pending_ == nullptr || !pending_->done.load(std::memory_order_acquire)) return;
  const std::string name = pending_->name;
  const bool was_loaded = pending_->given.has_value();
  if (pending_->question == nullptr) install(*pending_);
  set_pending(nullptr);
  if (!was_loaded) follow_loaded(name);
}

// Uses a plan that was loaded for a program while another plan was made for it. From now on the program follows that
// one, and plan_from_loaded() would never see it.
void ProgramBook::follow_loaded(std::string_view name) {
  Named& programs = named(name);
  const auto match = std::find_if(programs.loaded.begin(), programs.loaded.end(), [&](const LoadedPlan& plan) {
    return std::any_of(programs.now().cases.begin(), programs.now().cases.end(),
                       [&](const PlanCase& known) { return plan.is_for(known.plan->observed()); });
  });
  if (match == programs.loaded.end()) return;
  try {
    load(name, *match);
  } catch (const PlanRefused& refusal) {
    note("iteration \"" + programs.name + "\": loaded plan refused: " + refusal.what());
  }
  programs.loaded.erase(match);
}

// ---- plans

std::span<const PlanCase> ProgramBook::cases(std::string_view name) const {
  const Named* const known = find(name);
  return known == nullptr ? std::span<const PlanCase>{} : std::span<const PlanCase>{known->now().cases};
}

void ProgramBook::used(std::string_view name, const FollowablePtr& plan, const StartCost& cost) {
  std::vector<PlanCase>& cases = named(name).now().cases;
  const auto at = std::find_if(cases.begin(), cases.end(), [&](const PlanCase& known) { return known.plan == plan; });
  if (at == cases.end()) return;
  at->started = true;
  at->since_start = 0;
  at->start_cost =
      planning::copy_time(plan->plan.machine.h2d, cost.in) + planning::copy_time(plan->plan.machine.d2h, cost.out);
  std::rotate(cases.begin(), at, at + 1);
}

void ProgramBook::used(std::string_view name, const FollowablePtr& plan) { used(name, plan, {}); }

bool ProgramBook::still_chosen(std::string_view name, const FollowablePtr& plan) const {
  const auto known = cases(name);
  return std::any_of(known.begin(), known.end(), [&](const PlanCase& each) { return each.choice() == plan; });
}

void ProgramBook::give_up(const FollowablePtr& plan, const std::exception_ptr& error) noexcept {
  std::string why;
  try {
    why = "its plan is given up: " + what_of(error);
  } catch (...) {  // NOLINT(bugprone-empty-catch): no memory for the text
  }
  for (Named& programs : names_) {
    bool known = false;
    for (PlanSet& set : programs.sets) {
      for (PlanCase& each : set.cases) {
        if (each.before == plan) each.before = nullptr;
        if (each.plan != plan) continue;
        known = true;
        each.go_back();
        // Its cycle stays in the set, so that it is not planned again.
        if (each.plan == plan) give_up_cycle(set, each.members, why);
      }
      std::erase_if(set.cases, [&](const PlanCase& each) { return each.plan == plan; });
    }
    try {
      if (known) note("iteration \"" + programs.name + "\": " + why);
    } catch (...) {  // NOLINT(bugprone-empty-catch): no memory for the note
    }
  }
}

void ProgramBook::load(std::string_view name, LoadedPlan plan) {
  if (planner_runs_) throw UsageError("a planner must not load plans: it returns the one to follow");
  Named& programs = named(name);
  std::string known;
  for (PlanCase& own : programs.now().cases) {
    if (plan.is_for(own.plan->observed())) return replace(own, plan);
    known = own.plan->observed_digest();
  }
  if (!known.empty()) {
    throw PlanRefused("it is for the program " + plan.trace_digest() + ", iteration \"" + std::string(name) +
                      "\" of this one is " + known);
  }
  programs.loaded.push_back(std::move(plan));
}

void ProgramBook::replace(PlanCase& plan_case, const LoadedPlan& by) const {
  const Program& program = plan_case.plan->observed();
  Result<GivenPlan> given = by.given_for(program);
  if (!given.has_value()) throw PlanRefused(given.problem().message);
  if (const Check check = may_be_followed(*given, allows_replays()); !check) throw PlanRefused(check.problem().message);
  Result<CompiledPlan> result =
      adopt_plan(program, std::move(given->plan), given->replays, plan_case.plan->plan.machine);
  if (!result.has_value()) throw PlanRefused(result.problem().message);
  plan_case.try_out(std::make_shared<const CompiledPlan>(*std::move(result)), compares());
}

FollowablePtr ProgramBook::latest(std::string_view name) const {
  const auto known = cases(name);
  return known.empty() ? nullptr : known.front().plan;
}

std::optional<Trace> ProgramBook::trace(std::string_view name) const {
  const Named* const known = find(name);
  if (known == nullptr || known->sequences.empty()) return std::nullopt;
  const auto last =
      std::max_element(known->sequences.begin(), known->sequences.end(),
                       [](const ObservedSequence& a, const ObservedSequence& b) { return a.last_seen < b.last_seen; });
  const IterationLog* const log = &last->log;
  Result<Program> program = make_program({&log, 1}, name);
  if (!program.has_value()) return std::nullopt;
  return trace_with_replayable(*program);
}

}  // namespace swapmm::runtime
