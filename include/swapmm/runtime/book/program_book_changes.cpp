// SPDX-License-Identifier: Apache-2.0
// What a program book does about programs that do something else than they did.
#include <swapmm/runtime/book/program_book.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace swapmm::runtime {

void ProgramBook::diverged(std::string_view name, const FollowablePtr& plan) {
  Named& programs = named(name);
  for (PlanCase& known : programs.now().cases) {
    if (known.plan != plan) continue;
    if (std::exchange(known.started, false)) ++known.false_starts;
    if (known.state != PlanState::on_trial || promises_much(programs, known)) continue;
    ++programs.left_early;
    await_all(programs);
  }
}

// So much that one round gains more than the start of a plan costs in most programs: a tenth of the time on demand.
bool ProgramBook::promises_much(const Named& programs, const PlanCase& plan_case) const {
  const std::optional<std::chrono::nanoseconds> demand = demand_time(programs, plan_case);
  return demand && 10 * plan_case.predicted < 9 * *demand;
}

// How often a cycle must be seen before its plan is tried, beyond what makes a plan: 0, 0, 1, 2, 4, and then 8 times,
// as long as plans on trial were followed for fewer than two rounds for each time that they were left.
std::size_t ProgramBook::awaited(const Named& programs) {
  constexpr std::size_t allowed = 2;
  constexpr std::size_t doublings = 3;
  constexpr std::size_t enough_rounds = 2;
  if (programs.left_early < allowed) return 0;
  std::size_t rounds = 0;
  for (const PlanCase& known : programs.now().cases) rounds += known.state == PlanState::on_trial ? known.rounds : 0;
  if (rounds >= enough_rounds * programs.left_early) return 0;
  return std::size_t{1} << std::min(programs.left_early - allowed, doublings);
}

void ProgramBook::await_all(Named& programs) {
  const std::size_t times = awaited(programs);
  for (PlanCase& known : programs.now().cases) known.awaited = times;
}

// The program runs this cycle: its plan is the first to be offered, even if it was left before.
void ProgramBook::recognized(Named& programs, std::span<const std::uint64_t> members) {
  std::vector<PlanCase>& cases = programs.now().cases;
  const auto at = std::find_if(cases.begin(), cases.end(),
                               [&](const PlanCase& known) { return same_cycle(known.members, members); });
  if (at == cases.end()) return;
  const std::size_t before = at->awaited;
  await_all(programs);
  at->awaited = before == 0 ? 0 : before - 1;
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

// If the iteration closes a cycle with the untimed ones before it, as many are timed as a plan needs.
void ProgramBook::remember_untimed(Named& programs, std::uint64_t sequence) const {
  std::vector<std::uint64_t>& last = programs.untimed;
  last.push_back(sequence);
  if (last.size() > 2 * options_.max_period) last.erase(last.begin());
  for (std::size_t p = 1; 2 * p <= last.size(); ++p) {
    const auto half = last.end() - static_cast<std::ptrdiff_t>(p);
    if (!std::equal(half, last.end(), half - static_cast<std::ptrdiff_t>(p))) continue;
    programs.to_time = p * std::max<std::size_t>(options_.observe, 2);
    return;
  }
}

// Another thread may be running the task; its result is not used.
void ProgramBook::drop_pending() {
  if (pending_ == nullptr) return;
  for (PlanSet& set : named(pending_->name).sets) set.cycles.clear();
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
