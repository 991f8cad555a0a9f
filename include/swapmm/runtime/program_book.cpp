// SPDX-License-Identifier: Apache-2.0
#include <swapmm/runtime/program_book.hpp>

#include <algorithm>
#include <utility>

#include <swapmm/error.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/simulator.hpp>
#include <swapmm/plan/validator.hpp>

namespace swapmm::runtime {

namespace {

// For a person, who looks at the longest.
PlanSummary summary_of(const std::string& name, const CompiledPlan& known) {
  const Trace& trace = known.program.trace;
  PlanSummary summary;
  summary.iteration = name;
  summary.planner = known.plan.planner;
  summary.operations = trace.operations.size();
  summary.iterations_per_cycle = static_cast<std::size_t>(
      std::count_if(known.program.events.begin(), known.program.events.end(),
                    [](const Event& event) { return event.what == Event::What::end_of_iteration; }));
  summary.predicted = known.plan.predicted;
  summary.stalled_operations = known.stalls.size();
  constexpr std::size_t most = 5;
  for (std::size_t i = 0; i < std::min(most, known.stalls.size()); ++i) {
    summary.stalls.push_back({describe(known.stalls[i], trace, known.plan), known.stalls[i].time});
  }
  return summary;
}

}  // namespace

Result<CompiledPlan> adopt_plan(Program program, Plan plan, const Machine& machine) {
  // Whatever machine the plan was made for, it is to be valid on this one.
  plan.machine.device_budget = machine.device_budget;
  plan.machine.alignment = machine.alignment;
  plan.machine.max_allocation = machine.max_allocation;
  plan.machine.duplex = machine.duplex;
  const std::vector<Violation> violations = validate(program.trace, plan);
  if (!violations.empty()) {
    return Problem{"the plan breaks rule " + std::to_string(violations.front().rule) + ": " +
                   violations.front().message};
  }
  std::vector<Stall> stalls = find_stalls(program.trace, plan);
  Result<CompiledPlan> compiled = compile(std::move(program), std::move(plan));
  if (compiled.has_value()) compiled->stalls = std::move(stalls);
  return compiled;
}

void PlanTask::run() {
  // By copies: where memory runs out, the task is as before.
  if (given) {
    result = adopt_plan(program, *given, machine);
  } else if (Result<Plan> plan = make_plan(planner, program.trace, machine); plan.has_value()) {
    result = adopt_plan(program, *std::move(plan), machine);
  } else {
    result = plan.problem();
  }
  done.store(true, std::memory_order_release);
}

ProgramBook::ProgramBook(SchedulerOptions options) : options_(std::move(options)) {
  options_.max_period = std::max<std::size_t>(options_.max_period, 1);
  options_.max_sequences = std::max(options_.max_sequences, options_.max_period);
}

void ProgramBook::note(std::string text) {
  if (notes_.size() == 16) notes_.erase(notes_.begin());
  notes_.push_back(std::move(text));
}

const ProgramBook::Named* ProgramBook::find(std::string_view name) const {
  const auto found = std::find_if(names_.begin(), names_.end(), [&](const Named& n) { return n.name == name; });
  return found == names_.end() ? nullptr : &*found;
}

ProgramBook::Named& ProgramBook::named(std::string_view name) {
  if (const Named* const known = find(name)) return names_[static_cast<std::size_t>(known - names_.data())];
  Named added;
  added.name = name;
  names_.push_back(std::move(added));
  return names_.back();
}

void ProgramBook::observed(std::string_view name, IterationLog&& log, const Machine& machine) {
  if (log.broken || log.operations.empty() || options_.observe == 0) return interrupted(name);
  install_finished();
  Named& programs = named(name);
  const std::uint64_t id = identify(programs, std::move(log));
  programs.history.push_back(id);
  const std::size_t most = options_.max_period * std::max<std::size_t>(options_.observe, 2);
  if (programs.history.size() > most) programs.history.erase(programs.history.begin());
  if (plan_from_loaded(programs, machine)) return;
  const std::size_t p = period(programs);
  if (p == 0) return;
  if (!programs.loaded.empty()) {
    const Result<Program> program = last_iterations(programs, p);
    for (const Plan& plan : programs.loaded) {
      note("iteration \"" + programs.name + "\": loaded plan refused: it is for the program " + plan.trace_digest +
           (program.has_value() ? ", this one is " + digest(program->trace) : std::string()));
    }
    programs.loaded.clear();
  }
  plan_cycle(programs, p, std::nullopt, machine);
}

// A loaded plan needs no second look at its program: one iteration, or one cycle, tells whether it is this one's.
bool ProgramBook::plan_from_loaded(Named& programs, const Machine& machine) {
  if (programs.loaded.empty()) return false;
  for (std::size_t p = 1; p <= std::min(options_.max_period, programs.history.size()); ++p) {
    const Result<Program> program = last_iterations(programs, p);
    if (!program.has_value()) continue;
    const std::string own = digest(program->trace);
    const auto match = std::find_if(programs.loaded.begin(), programs.loaded.end(),
                                    [&](const Plan& plan) { return plan.trace_digest == own; });
    if (match == programs.loaded.end()) continue;
    plan_cycle(programs, p, *match, machine);
    programs.loaded.erase(match);
    return true;
  }
  return false;
}

Result<Program> ProgramBook::last_iterations(const Named& programs, std::size_t count) const {
  std::vector<const IterationLog*> logs;
  for (std::size_t i = programs.history.size() - count; i < programs.history.size(); ++i) {
    const auto sequence = std::find_if(programs.sequences.begin(), programs.sequences.end(),
                                       [&](const Sequence& known) { return known.id == programs.history[i]; });
    logs.push_back(&sequence->log);
  }
  return make_program(logs, programs.name);
}

void ProgramBook::interrupted(std::string_view name) {
  if (find(name) != nullptr) named(name).history.clear();
}

std::uint64_t ProgramBook::identify(Named& programs, IterationLog&& log) {
  std::vector<std::uint64_t> key = identity(log);
  ++clock_;
  for (Sequence& sequence : programs.sequences) {
    if (sequence.key != key) continue;
    for (std::size_t i = 0; i < log.operations.size(); ++i) {
      const auto before = sequence.log.operations[i].duration;
      auto& duration = log.operations[i].duration;
      // The first run of an operation often includes its compilation: the least is what it takes.
      duration = duration.count() == 0 || (before.count() != 0 && before < duration) ? before : duration;
    }
    sequence.log = std::move(log);
    sequence.last_seen = clock_;
    return sequence.id;
  }
  if (programs.sequences.size() >= options_.max_sequences) {
    const auto oldest =
        std::min_element(programs.sequences.begin(), programs.sequences.end(),
                         [](const Sequence& a, const Sequence& b) { return a.last_seen < b.last_seen; });
    const std::uint64_t gone = oldest->id;
    std::erase(programs.history, gone);
    std::erase_if(programs.cycles, [&](const Cycle& cycle) {
      return std::find(cycle.members.begin(), cycle.members.end(), gone) != cycle.members.end();
    });
    programs.sequences.erase(oldest);
  }
  programs.sequences.push_back({next_id_, std::move(key), std::move(log), clock_});
  return next_id_++;
}

// The shortest cycle that the last iterations went through `observe` times (a longer one at least twice, or it would
// be no cycle); 0: none yet.
std::size_t ProgramBook::period(const Named& programs) const {
  const std::vector<std::uint64_t>& history = programs.history;
  for (std::size_t p = 1; p <= options_.max_period; ++p) {
    const std::size_t length = p * (p == 1 ? options_.observe : std::max<std::size_t>(options_.observe, 2));
    if (history.size() < length) continue;
    bool repeats = true;
    for (std::size_t back = 1; back + p <= length; ++back) {
      repeats = repeats && history[history.size() - back] == history[history.size() - back - p];
    }
    if (repeats) return p;
  }
  return 0;
}

void ProgramBook::plan_cycle(Named& programs, std::size_t period, std::optional<Plan> given, const Machine& machine) {
  const std::vector<std::uint64_t> members(programs.history.end() - static_cast<std::ptrdiff_t>(period),
                                           programs.history.end());
  for (const Cycle& cycle : programs.cycles) {
    if (cycle.members.size() != period) continue;
    std::vector<std::uint64_t> rotated = cycle.members;
    for (std::size_t turn = 0; turn < period; ++turn) {
      if (rotated == members) return;
      std::rotate(rotated.begin(), rotated.begin() + 1, rotated.end());
    }
  }
  if (pending_ != nullptr) return;  // one at a time
  Result<Program> program = last_iterations(programs, period);
  programs.cycles.push_back({members});
  try {
    if (program.has_value()) return plan_program(programs, *std::move(program), std::move(given), machine);
    note("iteration \"" + programs.name + "\" stays on demand: " + program.problem().message);
  } catch (...) {
    programs.cycles.pop_back();  // no memory: it is planned when it comes again
    throw;
  }
}

void ProgramBook::plan_program(Named& programs, Program program, std::optional<Plan> given, const Machine& machine) {
  auto task = std::make_shared<PlanTask>();
  task->given = std::move(given);
  if (!task->given) {
    const std::string own = digest(program.trace);
    for (const FollowablePtr& known : programs.plans) {
      if (known->plan.trace_digest == own) task->given = known->plan;  // the same program on other handles
    }
  }
  task->program = std::move(program);
  task->machine = machine;
  task->planner = options_.planner;
  if (options_.planning == Planning::deferred && !task->given) {
    pending_name_ = programs.name;
    pending_ = std::move(task);
    return;
  }
  task->run();
  if (task->given && !task->result->has_value()) {
    note("iteration \"" + programs.name + "\": given plan refused: " + task->result->problem().message);
    task->given.reset();
    task->run();
  }
  install(programs, *task->result);
}

void ProgramBook::install(Named& programs, Result<CompiledPlan>& result) {
  if (!result.has_value()) {
    return note("iteration \"" + programs.name + "\" stays on demand: " + result.problem().message);
  }
  programs.plans.reserve(programs.plans.size() + 1);
  programs.plans.insert(programs.plans.begin(), std::make_shared<const CompiledPlan>(*std::move(result)));
  ++plans_made_;
  if (programs.plans.size() > options_.max_sequences) programs.plans.pop_back();
}

void ProgramBook::install_finished() {
  if (pending_ == nullptr || !pending_->done.load(std::memory_order_acquire)) return;
  if (find(pending_name_) != nullptr) install(named(pending_name_), *pending_->result);
  pending_ = nullptr;
}

std::span<const FollowablePtr> ProgramBook::candidates(std::string_view name) const {
  const Named* const known = find(name);
  return known == nullptr ? std::span<const FollowablePtr>{} : std::span<const FollowablePtr>{known->plans};
}

void ProgramBook::used(std::string_view name, const FollowablePtr& plan) {
  Named& programs = named(name);
  const auto at = std::find(programs.plans.begin(), programs.plans.end(), plan);
  if (at != programs.plans.end()) std::rotate(programs.plans.begin(), at, at + 1);
}

void ProgramBook::forget_plans_of(std::uint64_t serial) {
  if (pending_ != nullptr) {  // whoever makes it may be at it: nobody will take the result
    named(pending_name_).cycles.clear();
    pending_ = nullptr;
  }
  for (Named& programs : names_) {
    const std::size_t gone = std::erase_if(programs.plans, [&](const FollowablePtr& plan) {
      const std::vector<Role>& roles = plan->program.roles;
      return std::any_of(roles.begin(), roles.end(), [&](const Role& role) { return role.serial == serial; });
    });
    if (gone == 0) continue;
    programs.cycles.clear();  // which cycle it was is not kept: any of them may be planned anew
    programs.history.clear();
  }
}

void ProgramBook::load(std::string_view name, Plan plan) {
  Named& programs = named(name);
  std::string known;
  for (const FollowablePtr& own : programs.plans) {
    if (own->plan.trace_digest == plan.trace_digest) {
      Result<CompiledPlan> result = adopt_plan(own->program, plan, own->plan.machine);
      if (!result.has_value()) throw PlanRefused("plan refused: " + result.problem().message);
      const auto at = std::find(programs.plans.begin(), programs.plans.end(), own);
      *at = std::make_shared<const CompiledPlan>(*std::move(result));
      return;
    }
    known = own->plan.trace_digest;
  }
  if (!known.empty()) {
    throw PlanRefused("plan refused: it is for the program " + plan.trace_digest + ", iteration \"" +
                      std::string(name) + "\" of this one is " + known);
  }
  programs.loaded.push_back(std::move(plan));
}

void ProgramBook::summarize(Report& report) const {
  for (const Named& programs : names_) {
    for (const FollowablePtr& plan : programs.plans) report.plans.push_back(summary_of(programs.name, *plan));
  }
  report.notes = notes_;
}

const CompiledPlan* ProgramBook::latest(std::string_view name) const {
  const auto plans = candidates(name);
  return plans.empty() ? nullptr : plans.front().get();
}

std::optional<Trace> ProgramBook::trace(std::string_view name) const {
  const Named* const known = find(name);
  if (known == nullptr || known->sequences.empty()) return std::nullopt;
  const auto last = std::max_element(known->sequences.begin(), known->sequences.end(),
                                     [](const Sequence& a, const Sequence& b) { return a.last_seen < b.last_seen; });
  const IterationLog* const log = &last->log;
  Result<Program> program = make_program({&log, 1}, name);
  if (!program.has_value()) return std::nullopt;
  return std::move(program->trace);
}

}  // namespace swapmm::runtime
