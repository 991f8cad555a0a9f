// SPDX-License-Identifier: Apache-2.0
// What a program book does about programs that do something else than they did.
#include <swapmm/runtime/book/program_book.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/runtime/observe/program.hpp>

namespace swapmm::runtime {

using std::chrono::nanoseconds;

namespace {

// Of an iteration with the plan.
nanoseconds time_of(const PlanCase& plan_case) {
  return plan_case.times.median().value_or(plan_case.predicted) /
         static_cast<nanoseconds::rep>(plan_case.members.size());
}

}  // namespace

void ProgramBook::diverged(std::string_view name, const FollowablePtr& plan) {
  Named& programs = named(name);
  for (PlanCase& known : programs.now().cases) {
    if (known.plan != plan) continue;
    if (std::exchange(known.started, false)) ++known.false_starts;
    if (known.state == PlanState::on_trial) add_unpaid(programs);
  }
}

// What a start costs is paid by the iterations that follow the plan: by what they save, or if it is little beside them.
void ProgramBook::left(std::string_view name, const FollowablePtr& plan) {
  Named& programs = named(name);
  for (PlanCase& known : programs.now().cases) {
    if (known.plan != plan || known.start_cost.count() == 0) continue;  // the next start may cost something
    constexpr int little = 8;
    const auto iterations = static_cast<nanoseconds::rep>(known.since_start);
    const nanoseconds pays = std::max(saved_by(known, demand_time(programs, known)), time_of(known) / little);
    const bool is_paid = known.start_cost <= iterations * pays;
    known.unpaid_starts = is_paid ? 0 : known.unpaid_starts + 1;
    if (!is_paid) known.awaited = std::max(known.awaited, awaited(programs, known));
  }
}

// Of an iteration. As long as the time on demand is unknown, a plan counts as twice as fast.
nanoseconds ProgramBook::saved_by(const PlanCase& plan_case, const std::optional<DemandTime>& demand) {
  const nanoseconds takes = time_of(plan_case);
  if (!demand) return takes;
  return std::max(demand->time / static_cast<nanoseconds::rep>(plan_case.members.size()) - takes, nanoseconds{0});
}

// 2, 8, 32 and so on, or what pays a start if that is more. A plan that saves nothing waits for ever.
std::size_t ProgramBook::awaited_to_pay(const PlanCase& plan_case, const std::optional<DemandTime>& demand) {
  constexpr std::size_t most = 16;
  const nanoseconds saved = saved_by(plan_case, demand);
  if (saved.count() == 0) return PlanCase::never;
  const std::size_t times = std::size_t{1} << std::min(2 * plan_case.unpaid_starts - 3, most);
  return std::max(times, static_cast<std::size_t>(plan_case.start_cost / saved));
}

void ProgramBook::add_unpaid(Named& programs) const {
  programs.unpaid = std::min(programs.unpaid + 1, most_unpaid);
  await_all(programs);
}

// How often a cycle must be seen before it is timed and its plan is tried, beyond what makes a plan: 0, 2, 8, 32, and
// then 128 times, as long as plans on trial were followed for fewer than two rounds for each time that they were left.
// So what this costs in the long run stays below a hundredth of the time, if it costs less than an iteration.
std::size_t ProgramBook::awaited(const Named& programs) {
  constexpr std::size_t enough_rounds = 2;
  if (programs.unpaid < 2) return 0;
  std::size_t rounds = 0;
  for (const PlanCase& known : programs.now().cases) rounds += known.state == PlanState::on_trial ? known.rounds : 0;
  if (rounds >= enough_rounds * programs.unpaid) return 0;
  return std::size_t{1} << (2 * programs.unpaid - 3);
}

// The same for a plan that is known. Where programs branch, it is not tried before it could have saved what its start
// may cost: an iteration. One that does not promise to be faster than on demand waits long, and for ever once plans
// were left again and again.
std::size_t ProgramBook::awaited(const Named& programs, const PlanCase& plan_case) const {
  if (plan_case.unpaid_starts >= 2) return awaited_to_pay(plan_case, demand_time(programs, plan_case));
  const std::size_t times = awaited(programs);
  if (times == 0 && (plan_case.state != PlanState::on_trial || !proves_drops_ || plan_case.trusted)) return 0;
  const std::optional<DemandTime> demand = demand_time(programs, plan_case);
  const bool is_faster = demand && slower(demand->least(), plan_case.predicted);
  if (times == 0) {
    // Regular programs may read a value in each iteration, too.
    std::size_t rounds = options_.drops == DropRule::proven || programs.unpaid != 0 ? 100 : 32;
    if (is_faster) {
      const auto saved = demand->least() - plan_case.predicted;
      rounds = std::min(rounds, static_cast<std::size_t>(demand->least() / saved));
    }
    const std::size_t iterations = rounds * plan_case.members.size();
    return iterations - std::min(iterations, plan_case.seen);
  }
  if (demand && !is_faster) return PlanCase::never;
  return plan_case.state == PlanState::on_trial ? times : 0;
}

// Whether a plan for that cycle has won a trial, with any budget.
bool ProgramBook::has_settled(const Named& programs, std::span<const std::uint64_t> members) {
  return std::ranges::any_of(programs.sets, [&](const PlanSet& set) {
    return std::ranges::any_of(set.cases, [&](const PlanCase& known) {
      return known.state == PlanState::settled && same_cycle(known.members, members);
    });
  });
}

void ProgramBook::await_all(Named& programs) const {
  for (PlanCase& known : programs.now().cases) known.awaited = awaited(programs, known);
}

// The program runs this cycle: its plan is the first to be offered, even if it was left before.
void ProgramBook::recognized(Named& programs, std::span<const std::uint64_t> members) const {
  std::vector<PlanCase>& cases = programs.now().cases;
  const auto at = std::find_if(cases.begin(), cases.end(),
                               [&](const PlanCase& known) { return same_cycle(known.members, members); });
  if (at == cases.end()) return;
  const std::size_t before = at->awaited;
  ++at->seen;
  await_all(programs);
  if (before != PlanCase::never) at->awaited = std::min(at->awaited, before == 0 ? 0 : before - 1);
  at->false_starts = 0;
  std::rotate(cases.begin(), at, at + 1);
}

void ProgramBook::prove_drops(std::string_view reason) {
  if (proves_drops_ || options_.drops != DropRule::by_evidence) return;
  proves_drops_ = true;
  drop_pending();
  for (Named& programs : names_) {
    for (PlanSet& set : programs.sets) {
      set.cases.clear();
      set.cycles.clear();
    }
    programs.history.clear();
  }
  note("from now on plans drop only what is proven dead: " + std::string(reason));
}

// As many as the default options' cycle may have are not many, however short cycles are to be. Nor are those of a
// program that makes tensors anew from time to time and then repeats itself.
bool ProgramBook::has_many_sequences(std::string_view name) const {
  constexpr std::size_t least = 8;
  const Named* const programs = find(name);
  return programs != nullptr && programs->different > std::max(most_history(), least) && !may_repeat(*programs);
}

// Once the last untimed iterations were a cycle, as often as its plan must wait for it, as many are timed as that
// needs.
void ProgramBook::remember_untimed(Named& programs, std::uint64_t sequence) const {
  std::vector<std::uint64_t>& last = programs.untimed;
  last.push_back(sequence);
  if (last.size() > options_.max_period + 1) last.erase(last.begin());
  programs.untimed_alike.resize(last.size());
  const std::size_t times = 1 + awaited(programs);
  for (std::size_t p = 1; p < last.size(); ++p) {
    std::size_t& alike = programs.untimed_alike[p];
    alike = last[last.size() - 1 - p] == sequence ? alike + 1 : 0;
    if (alike < p * times || programs.to_time != 0) continue;
    programs.to_time = p * std::max<std::size_t>(options_.observe, 2);
    add_unpaid(programs);
  }
}

// ---- late times

// A program's first iterations are waited for until two of them were part of no cycle (one, if drops are to be proven):
// a regular program has its plan then. From then on the host waits for times only where a plan is made or remade of
// them.
ProgramBook::Outlook ProgramBook::outlook(std::string_view name, const IterationLog& log) const {
  constexpr Outlook nothing{false, false};
  const Named* const programs = find(name);
  if (programs == nullptr || !log.timed || log.broken || blind_ || !programs->loaded.empty()) return {};
  if (programs->in_vain < 2 && !proves_drops_) return {};
  const std::uint64_t id = id_of(*programs, identity(log));
  std::vector<std::uint64_t> history = programs->history;
  history.push_back(id == 0 ? next_id_ : id);
  if (history.size() > most_history()) history.erase(history.begin());
  if (pending_ == nullptr && may_find_stored(*programs, history)) return {};
  for (const PlanCase& plan_case : programs->now().cases) {
    if (is_due(plan_case) && plan_case.has(id)) return {};
  }
  const std::size_t p = period(*programs, history);
  const std::span<const std::uint64_t> members = std::span(history).last(p);
  if (p == 0 || pending_ != nullptr || programs->now().has_cycle(members)) return nothing;
  if (knows_times(*programs, members)) return {true, !proves_drops_};
  // In programs that branch most cycles end soon.
  const bool repeats_all = history.size() == most_history() &&
                           std::equal(history.begin() + static_cast<std::ptrdiff_t>(p), history.end(), history.begin());
  return options_.drops == DropRule::proven && !repeats_all ? nothing : Outlook{};
}

bool ProgramBook::knows_times(const Named& programs, std::span<const std::uint64_t> members) const {
  return std::ranges::all_of(members, [&](std::uint64_t id) {
    const ObservedSequence* const known = known_sequence(programs, id);
    return known != nullptr && (!known->log.times_are_late || has_times(known->log));
  });
}

void ProgramBook::times_came(std::uint64_t id, std::span<const std::chrono::nanoseconds> durations) {
  for (Named& programs : names_) {
    ObservedSequence* const sequence = sequence_of(programs, id);
    if (sequence == nullptr) continue;
    sequence->log.times_are_late = false;
    for (std::size_t i = 0; i < sequence->samples.size() && i < durations.size(); ++i) {
      sequence->samples[i].add(durations[i]);
      sequence->log.operations[i].duration = sequence->samples[i].estimate();
    }
  }
}

const ProgramBook::Named* ProgramBook::find(std::string_view name) const {
  const auto found = std::find_if(names_.begin(), names_.end(), [&](const Named& n) { return n.name == name; });
  return found == names_.end() ? nullptr : &*found;
}

ProgramBook::Named& ProgramBook::named(std::string_view name) {
  ++uses_;
  if (const Named* const known = find(name)) {
    Named& programs = names_[static_cast<std::size_t>(known - names_.data())];
    programs.used = uses_;
    return programs;
  }
  if (names_.size() >= most_names) forget_a_name();
  Named added;
  added.name = name;
  added.used = uses_;
  added.sets.push_back({budget_, {}, {}, {}});
  names_.push_back(std::move(added));
  return names_.back();
}

/// Forgets the name that was unused for longest, unless its plan is being made, or was loaded.
void ProgramBook::forget_a_name() {
  const auto order = [this](const Named& known) {
    const bool is_wanted = !known.loaded.empty() || (pending_ != nullptr && pending_->name == known.name);
    return std::pair(is_wanted, known.used);
  };
  names_.erase(std::ranges::min_element(names_, {}, order));
}

// Another thread may be running the task; its result is not used.
void ProgramBook::drop_pending() {
  joint_.number = 0;  // what was offered is not what the program does
  joint_.plan = nullptr;
  if (pending_ == nullptr) return;
  if (pending_->question == nullptr) {
    for (PlanSet& set : named(pending_->name).sets) set.cycles.clear();
  }
  set_pending(nullptr);
}

void ProgramBook::keep_value(std::uint64_t serial) {
  drop_pending();
  for (Named& programs : names_) {
    // The logs must change even if no plan is dropped: a plan for another budget may be made from them.
    for (ObservedSequence& sequence : programs.sequences) {
      for (LogTensor& tensor : sequence.log.tensors) {
        if (tensor.serial == serial) tensor.outlives = outlives_all;
      }
    }
    for (PlanSet& set : programs.sets) {
      const std::size_t gone = std::erase_if(set.cases, [&](const PlanCase& known) {
        const std::vector<Role>& roles = known.plan->program.roles;
        return std::any_of(roles.begin(), roles.end(), [&](const Role& role) { return role.serial == serial; });
      });
      if (gone == 0) continue;
      set.cycles.clear();  // the cycle of a dropped plan is not known, so any cycle may be planned again
      programs.history.clear();
    }
  }
}

}  // namespace swapmm::runtime
