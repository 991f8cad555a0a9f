// SPDX-License-Identifier: Apache-2.0
// How a program book uses measured times: docs/decisions/0010-plans-that-keep-up.md.

#include <swapmm/runtime/book/program_book.hpp>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include <swapmm/base/text/figures.hpp>
#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/runtime/book/tiered_plan.hpp>
#include <swapmm/runtime/observe/replayed_program.hpp>

namespace swapmm::runtime {

namespace {

using std::chrono::nanoseconds;

constexpr std::size_t measured_rounds = 4;  // before each sample

bool off(nanoseconds seen, nanoseconds predicted, double above) {
  const auto expected = static_cast<double>(predicted.count());
  return std::abs(static_cast<double>(seen.count()) - expected) > above * expected;
}

// Whether both plans encode the values of the same tensors on their way to the host.
bool encode_the_same(const CompiledPlan& a, const CompiledPlan& b) {
  return std::ranges::equal(
      a.observed().trace.tensors, b.observed().trace.tensors,
      [](const TraceTensor& x, const TraceTensor& y) { return x.copied.has_value() == y.copied.has_value(); });
}

// Predicts how long the plan takes with other durations and links. `trace` is what was observed.
nanoseconds simulated(const Trace& trace, const CompiledPlan& made, const KnownMachine& machine) {
  if (made.tiered) return tiered_iteration(trace, *made.tiered, machine);
  Plan plan = made.plan;
  const Machine one = as_one_memory(made.program, machine);
  plan.machine.h2d = one.h2d;
  plan.machine.d2h = one.d2h;
  if (made.without_replays != nullptr) return simulate(with_times_of(trace, made.program), plan).iteration;
  return simulate(trace, plan).iteration;
}

}  // namespace

// ---- when to measure

std::size_t ProgramBook::rounds_not_counted() const { return std::min<std::size_t>(2, options_.trial_iterations - 1); }
std::size_t ProgramBook::rounds_counted() const { return options_.trial_iterations - rounds_not_counted(); }

ProgramBook::Measures ProgramBook::measures(std::string_view name) const {
  const auto known = cases(name);
  if (blind_ || known.empty()) return {};
  const PlanCase& next = known.front();  // the case most likely to be used next
  if (next.state == PlanState::on_trial || next.measured_again) return {next.rounds >= rounds_not_counted(), false};
  const std::size_t every = options_.sample_every;
  if (every == 0) return {};
  const bool sample = next.rounds + 1 >= every;
  return {!sample && next.rounds + 1 + measured_rounds >= every, sample && next.state == PlanState::settled};
}

// On demand the host may be any number of rounds ahead of the device, so the rounds are limited here.
bool ProgramBook::awaits_times(std::string_view name, bool enough) const {
  const auto known = cases(name);
  if (blind_ || known.empty() || !known.front().checking) return false;
  return enough || known.front().rounds >= options_.trial_iterations * known.front().members.size();
}

bool ProgramBook::wants_times(std::string_view name) const {
  const Named* const programs = find(name);
  if (programs == nullptr || programs->to_time > 0) return true;
  if (awaited(*programs) != 0 || !may_repeat(*programs)) return false;
  if (programs->surprised) return true;
  if (programs->now().cases.empty()) return true;
  const PlanCase& next = programs->now().cases.front();
  if (next.checking) return false;
  if (next.awaited != 0 && demand_time(*programs, next)) {  // it waits, and all may be known
    return !std::ranges::all_of(next.members, [&](std::uint64_t id) {
      const IterationLog* const log = log_of(*programs, id);
      return log != nullptr && has_times(*log);
    });
  }
  if (next.state != PlanState::left) return true;
  return options_.sample_every != 0 && next.rounds + 1 >= options_.sample_every;
}

void ProgramBook::round_ended(std::string_view name, const FollowablePtr& plan, bool sampled) {
  for (PlanCase& known : named(name).now().cases) {
    if (known.plan != plan) continue;
    known.rounds = sampled ? 0 : known.rounds + 1;
    known.started = false;
    known.false_starts = 0;
  }
}

// Returns true if nothing more is to be done for this iteration.
bool ProgramBook::observed_on_demand(Named& programs, std::uint64_t sequence, bool timed, const KnownMachine& machine) {
  const ObservedSequence& known = *sequence_of(programs, sequence);
  if (!timed && !has_times(known.log)) {  // not the sequence that was expected: its times are needed for a plan
    programs.surprised = may_repeat(programs) && awaited(programs) == 0;
    remember_untimed(programs, sequence);
    programs.history.clear();
    return true;
  }
  if (timed && programs.to_time > 0) --programs.to_time;
  if (timed && !is_left_on_demand(programs, sequence)) programs.surprised = false;
  for (PlanCase& plan_case : programs.now().cases) {
    if (plan_case.choice() != nullptr || !plan_case.has(sequence)) continue;
    if (!timed || !is_due(plan_case)) {
      ++plan_case.rounds;
      continue;
    }
    if (++plan_case.members_sampled < plan_case.members.size()) continue;
    plan_case.rounds = plan_case.members_sampled = 0;
    reconsider(programs, plan_case, machine);
    break;
  }
  return false;
}

// A plan that was left for on demand is reconsidered with new times now and then.
bool ProgramBook::is_due(const PlanCase& plan_case) const {
  return plan_case.state == PlanState::left && options_.sample_every != 0 &&
         plan_case.rounds + 1 >= options_.sample_every;
}

bool ProgramBook::is_left_on_demand(const Named& programs, std::uint64_t sequence) {
  const std::vector<PlanCase>& cases = programs.now().cases;
  return std::any_of(cases.begin(), cases.end(), [&](const PlanCase& plan_case) {
    return plan_case.choice() == nullptr && plan_case.has(sequence);
  });
}

// ---- whole rounds

ProgramBook::CaseOf ProgramBook::case_of(const FollowablePtr& plan) {
  for (Named& programs : names_) {
    for (PlanCase& known : programs.now().cases) {
      if (known.plan == plan) return {&programs, &known};
    }
  }
  return {};
}

void ProgramBook::round_took(const FollowablePtr& plan, nanoseconds time) {
  const CaseOf known = case_of(plan);
  if (known.plan_case == nullptr) return;
  known.plan_case->times.add(time);
  judge(*known.programs, *known.plan_case);
}

void ProgramBook::iteration_took(std::uint64_t id, nanoseconds time, bool observed) {
  for (Named& programs : names_) {
    ObservedSequence* const sequence = sequence_of(programs, id);
    if (sequence == nullptr) continue;
    (observed ? sequence->observed : sequence->times).add(time);
    for (PlanCase& known : programs.now().cases) {
      if (known.checking && known.has(id)) judge_check(programs, known);
    }
  }
}

// An observed iteration may begin on an idle device, and the host may wait for its last copies. If nothing better is
// known, its time counts as a lower limit of the time on demand. It may still be longer: what its first operation waits
// for is otherwise hidden behind the iteration before.
std::optional<ProgramBook::DemandTime> ProgramBook::demand_time(const Named& programs, const PlanCase& plan_case) {
  DemandTime sum;
  for (const std::uint64_t id : plan_case.members) {
    const ObservedSequence* const sequence = known_sequence(programs, id);
    if (sequence == nullptr) return std::nullopt;
    const bool known = sequence->times.count() != 0;
    const std::optional<nanoseconds> median = (known ? sequence->times : sequence->observed).median();
    if (!median) return std::nullopt;
    sum.time += *median;
    if (!known) sum.of_idle_device += first_copies(sequence->log, plan_case.plan->plan.machine.h2d);
  }
  return sum;
}

// Of what the first operation reads.
nanoseconds ProgramBook::first_copies(const IterationLog& log, const Link& link) {
  Bytes bytes;
  const LogOperation& first = log.operations.front();
  for (const LogAccess& access : std::span(log.accesses).subspan(first.first_access, first.access_count)) {
    if (access.access != Access::write) bytes += log.tensors[access.tensor].bytes;
  }
  return planning::copy_time(link, bytes);
}

void ProgramBook::judge(Named& programs, PlanCase& plan_case) {
  if (plan_case.state != PlanState::on_trial || plan_case.checking) return;
  if (plan_case.times.count() < rounds_counted()) return;
  if (is_joint(plan_case)) return judge_jointly(programs, plan_case);
  const nanoseconds took = *plan_case.times.median();
  if (plan_case.before == nullptr) {
    const std::optional<DemandTime> demand = demand_time(programs, plan_case);
    if (!demand || !slower(took, demand->time)) return keep_faster(programs, plan_case);
    // Not certain yet: the observed time is only a lower limit. Some rounds on demand decide.
    plan_case.checking = true;
    plan_case.rounds = 0;
    for (const std::uint64_t id : plan_case.members) sequence_of(programs, id)->times.clear();
    return;
  }
  const std::optional<nanoseconds> before = plan_case.before_times.median();
  if (before && slower(took, *before)) return lose(programs, plan_case, took, *before);
  plan_case.keep(took, before);
}

void ProgramBook::judge_check(Named& programs, PlanCase& plan_case) {
  for (const std::uint64_t id : plan_case.members) {
    const ObservedSequence* const sequence = sequence_of(programs, id);
    if (sequence == nullptr || sequence->times.count() < rounds_counted()) return;
  }
  const nanoseconds took = *plan_case.times.median();
  const nanoseconds demand = demand_time(programs, plan_case)->time;
  if (slower(took, demand)) return lose(programs, plan_case, took, demand);
  keep_faster(programs, plan_case);
}

// Faster than on demand: the program does what the plan expects for long enough to have shown that.
void ProgramBook::keep_faster(Named& programs, PlanCase& plan_case) {
  programs.unpaid /= 2;
  plan_case.patience = 1;
  plan_case.keep();
}

void ProgramBook::lose(const Named& programs, PlanCase& plan_case, nanoseconds took, nanoseconds before) {
  const bool by_plan = plan_case.before != nullptr;
  const std::string subject = by_plan && is_joint(plan_case)
                                  ? "the plan with other devices makes the slowest of them slower; here it takes "
                                  : "the plan by " + plan_case.plan->plan.planner + " takes ";
  note("iteration \"" + programs.name + "\": " + subject + text::time_text(took) + " a round, " +
       (by_plan ? "the plan before it " : "on demand ") + text::time_text(before) + ": gone back to that");
  if (by_plan || plan_case.lost != nullptr) plan_case.lose_patience();  // remaking it gained nothing
  plan_case.go_back();
}

void ProgramBook::knows_no_links() {
  if (std::exchange(notes_no_links_, true)) return;
  note("no copy was timed yet, and none could be tried: plans move as little as they can");
}

void ProgramBook::tells_no_times() {
  blind_ = true;
  for (Named& programs : names_) {
    for (PlanSet& set : programs.sets) {
      for (PlanCase& known : set.cases) {
        if (known.state == PlanState::on_trial) known.keep();
      }
    }
  }
}

// ---- samples

void ProgramBook::sampled(const FollowablePtr& plan, std::span<const nanoseconds> durations,
                          const KnownMachine& machine) {
  const CaseOf found = case_of(plan);
  if (found.plan_case == nullptr || durations.size() != plan->program.trace.operations.size()) return;
  ++sampled_rounds_;
  const std::vector<bool>& is_replay = plan->program.replays.is_replay;
  std::size_t position = 0;
  for (const std::uint64_t id : found.plan_case->members) {
    ObservedSequence* const sequence = sequence_of(*found.programs, id);
    if (sequence == nullptr) return;
    for (std::size_t i = 0; i < sequence->samples.size(); ++i) {
      while (!is_replay.empty() && is_replay[position]) ++position;
      sequence->samples[i].add(durations[position++]);
      sequence->log.operations[i].duration = sequence->samples[i].estimate();
    }
  }
  if (found.plan_case->state == PlanState::settled) reconsider(*found.programs, *found.plan_case, machine);
}

void ProgramBook::copies_seem(const FollowablePtr& plan, std::vector<std::optional<Bytes>> copied) {
  const CaseOf found = case_of(plan);
  if (found.plan_case != nullptr) found.plan_case->copied = std::move(copied);
}

std::optional<Program> ProgramBook::refreshed(const Named& programs, const PlanCase& plan_case) const {
  Program program = plan_case.plan->observed();
  std::vector<TraceOperation>& operations = program.trace.operations;
  std::size_t position = 0;
  for (const std::uint64_t id : plan_case.members) {
    const ObservedSequence* const sequence = known_sequence(programs, id);
    if (sequence == nullptr) return std::nullopt;
    for (const LogOperation& operation : sequence->log.operations) {
      operations[position++].duration = operation.duration;
    }
  }
  for (std::size_t t = 0; t < plan_case.copied.size(); ++t) {
    TraceTensor& tensor = program.trace.tensors[t];
    if (tensor.copied) tensor.copied = plan_case.copied[t];
  }
  return program;
}

bool ProgramBook::prediction_is_off(const PlanCase& plan_case, const Trace& trace, const KnownMachine& machine) const {
  const double above = options_.replan_above;
  const std::optional<nanoseconds> measured = plan_case.times.median();
  return (measured && off(*measured, plan_case.predicted, above)) ||
         off(simulated(trace, *plan_case.plan, machine), plan_case.predicted, above);
}

PlanningTime ProgramBook::time_for_planner() const {
  using std::chrono::milliseconds;
  if (options_.planning_time.count() == 0) return {options_.planning_limit, true};
  if (!(options_.planning_share > 0)) return {options_.planning_time, false};
  const std::chrono::duration<double, std::milli> age = std::chrono::steady_clock::now() - made_;
  const double share = std::max(age.count() * options_.planning_share, 20.0);
  if (share >= static_cast<double>(options_.planning_time.count())) return {options_.planning_time, false};
  return {milliseconds{static_cast<milliseconds::rep>(share)}, false};
}

// If on demand has won, a new plan is made without a look at the prediction: any other plan may be faster.
void ProgramBook::reconsider(Named& programs, PlanCase& plan_case, const KnownMachine& machine) {
  if (options_.replan_above <= 0) return;
  if (++plan_case.samples < plan_case.patience || pending_ != nullptr) return;
  std::optional<Program> program = refreshed(programs, plan_case);
  if (!program) return;
  if (is_joint(plan_case)) return reconsider_jointly(programs, plan_case, machine);
  if (plan_case.state != PlanState::left && !prediction_is_off(plan_case, program->trace, machine)) return;
  plan_case.samples = 0;
  ++plans_remade_;
  plan_again(programs, plan_case, *std::move(program), machine);
}

void ProgramBook::plan_again(Named& programs, PlanCase& plan_case, Program program, const KnownMachine& machine) {
  auto task = std::make_shared<PlanTask>();
  task->program = std::move(program);
  task->machine = machine;
  task->planner = options_.planner;
  task->allows_replays = allows_replays();
  task->time = time_for_planner();
  task->name = programs.name;
  task->members = plan_case.members;
  task->replaces = plan_case.plan;
  if (options_.planning == Planning::deferred) {
    set_pending(std::move(task));
    return;
  }
  run(*task);
  install_again(programs, plan_case, *task);
}

// Tries the new plan only if it promises to be faster than the present state.
void ProgramBook::install_again(Named& programs, PlanCase& plan_case, PlanTask& task) {
  Result<CompiledPlan>& result = *task.result;
  if (!result.has_value()) {
    note("iteration \"" + programs.name + "\" is not planned anew: " + result.problem().message);
    return plan_case.lose_patience();
  }
  const Plan& old = plan_case.plan->plan;
  const bool encodes_others = !encode_the_same(*result, *plan_case.plan);
  const bool same = !encodes_others && result->plan.commands == old.commands && result->plan.initial == old.initial;
  const nanoseconds expected = simulated(result->observed().trace, *plan_case.plan, task.machine);
  const std::optional<DemandTime> present =
      plan_case.state == PlanState::left ? demand_time(programs, plan_case) : DemandTime{.time = expected};
  // What is encoded in vain is slower than the old plan's prediction says.
  if (same || (!encodes_others && present && !slower(present->time, result->plan.predicted.iteration))) {
    plan_case.predicted = expected;
    return plan_case.lose_patience();
  }
  plan_case.try_out(std::make_shared<const CompiledPlan>(*std::move(result)), compares());
  keep_plan(*plan_case.plan, task.machine);
}

// ---- for the report

// Lists only the longest stalls.
PlanSummary ProgramBook::summary_of(const Named& programs, const PlanCase& plan_case) const {
  const CompiledPlan& known = *plan_case.plan;
  const Trace& trace = known.program.trace;
  PlanSummary summary;
  summary.iteration = programs.name;
  summary.planner = known.plan.planner;
  if (is_joint(plan_case)) summary.devices = known.turns->members.size();
  summary.operations = known.observed().trace.operations.size();
  for (std::size_t i = 0; i < known.program.replays.is_replay.size(); ++i) {
    if (!known.program.replays.is_replay[i]) continue;
    ++summary.replays;
    summary.replay_time += trace.operations[i].duration;
  }
  for (std::size_t role = 0; role < trace.tensors.size(); ++role) {
    summary.encoded += known.swapped_out[role] && trace.tensors[role].copied ? 1 : 0;
  }
  summary.iterations_per_cycle = static_cast<std::size_t>(
      std::count_if(known.program.events.begin(), known.program.events.end(),
                    [](const Event& event) { return event.what == Event::What::end_of_iteration; }));
  summary.predicted = known.plan.predicted;
  summary.state = plan_case.state;
  summary.measured = plan_case.times.median().value_or(nanoseconds{0});
  summary.on_demand = demand_time(programs, plan_case).value_or(DemandTime{}).time;
  summary.stalled_operations = known.stalls.size();
  if (known.tiered) {
    summary.tells_file = knows(Home::file, *known.tiered);
    std::tie(summary.file_in, summary.file_out) = bytes_of(Home::file, *known.tiered);
    for (std::size_t path = 0; path < neighbour_path_count; ++path) {
      if (!knows(neighbour_home(path), *known.tiered)) continue;
      summary.tells_neighbours = true;
      const auto [in, out] = bytes_of(neighbour_home(path), *known.tiered);
      summary.neighbours_in += in;
      summary.neighbours_out += out;
    }
  }
  constexpr std::size_t most = 5;
  for (std::size_t i = 0; i < std::min(most, known.stalls.size()); ++i) {
    summary.stalls.push_back({describe(known.stalls[i], trace, known.plan), known.stalls[i].time});
  }
  return summary;
}

// Returns nothing if a plan is followed, or if iterations of that name are still being observed for the first time.
std::optional<OnDemandSummary> ProgramBook::on_demand_summary(const Named& programs) const {
  const PlanSet& set = programs.now();
  if (!set.cases.empty()) {
    const PlanCase& last = set.cases.front();
    const std::string the_plan = "the plan by " + last.plan->plan.planner;
    if (last.state != PlanState::left) {
      if (last.awaited == 0) return std::nullopt;
      const bool is_tried = last.awaited != PlanCase::never;
      return OnDemandSummary{
          programs.name, OnDemandReason::plan_waits,
          is_tried ? the_plan + " waits for " + std::to_string(last.awaited) + " more iterations of its cycle: " +
                         (last.unpaid_starts < 2 ? "the program branches" : "its last starts cost more than they saved")
                   : the_plan + " promises no gain over on demand, and plans were left early"};
    }
    const std::optional<DemandTime> demand = demand_time(programs, last);
    return OnDemandSummary{programs.name, OnDemandReason::on_demand_is_faster,
                           the_plan + " takes " + text::time_text(last.times.median().value_or(nanoseconds{0})) +
                               " a round, on demand " + text::time_text(demand.value_or(DemandTime{}).time)};
  }
  if (pending_ != nullptr && pending_->name == programs.name) {
    return OnDemandSummary{programs.name, OnDemandReason::plan_is_awaited,
                           "its plan is to be made by whoever takes Scheduler::planning_job()"};
  }
  if (!set.cycles.empty() && !set.cycles.back().refusal.empty()) {
    return OnDemandSummary{programs.name, OnDemandReason::no_plan, set.cycles.back().refusal};
  }
  const bool is_full = programs.history.size() == most_history() && period(programs, programs.history) == 0;
  if (set.cycles.empty() && (is_full || !may_repeat(programs))) {
    return OnDemandSummary{programs.name, OnDemandReason::nothing_repeats,
                           "its last " + std::to_string(most_history()) + " iterations are no cycle of up to " +
                               std::to_string(options_.max_period) + " (SchedulerOptions::max_period)"};
  }
  return std::nullopt;
}

void ProgramBook::summarize(Report& report) const {
  for (const Named& programs : names_) {
    for (const PlanCase& known : programs.now().cases) report.plans.push_back(summary_of(programs, known));
    if (auto summary = on_demand_summary(programs)) report.on_demand.push_back(*std::move(summary));
  }
  report.sampled_rounds = sampled_rounds_;
  report.plans_remade = plans_remade_;
  report.plans_found = from_store_;
  report.notes = notes_;
}

}  // namespace swapmm::runtime
