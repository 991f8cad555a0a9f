// SPDX-License-Identifier: Apache-2.0
// The plans that a program book keeps for each budget.
#include <swapmm/runtime/book/program_book.hpp>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace swapmm::runtime {
namespace {

constexpr std::size_t most_budgets = 8;  // the most budgets whose plans are kept, per iteration name

}  // namespace

void ProgramBook::prepare_budgets(std::initializer_list<PlanBudget> budgets) {
  prepare(std::span(budgets.begin(), budgets.size()));
}

void ProgramBook::prepare(std::span<const PlanBudget> budgets) {
  for (Named& programs : names_) {
    std::vector<PlanSet>& sets = programs.sets;  // last used first
    for (const PlanBudget& budget : budgets) {
      const auto is_for_it = [&](const PlanSet& set) { return set.budget == budget; };
      if (std::any_of(sets.begin(), sets.end(), is_for_it)) continue;
      if (sets.size() >= most_budgets) {
        const auto unneeded = std::find_if(sets.rbegin(), sets.rend(), [&](const PlanSet& set) {
          return std::find(budgets.begin(), budgets.end(), set.budget) == budgets.end();
        });
        sets.erase(std::prev(unneeded.base()));
      }
      sets.push_back({budget, {}, {}, {}});
    }
  }
}

void ProgramBook::use_budget(PlanBudget budget) noexcept {
  budget_ = budget;
  for (Named& programs : names_) {
    const auto at = std::find_if(programs.sets.begin(), programs.sets.end(),
                                 [&](const PlanSet& set) { return set.budget == budget; });
    if (at == programs.sets.end()) continue;
    if (at != programs.sets.begin()) {
      for (ObservedSequence& sequence : programs.sequences) {  // on demand they take another time now
        sequence.times.clear();
        sequence.observed.clear();
      }
    }
    std::rotate(programs.sets.begin(), at, at + 1);
    programs.budget_is_new = true;
  }
}

void ProgramBook::replan_for_budget(std::string_view name, const std::function<KnownMachine()>& now,
                                    const std::function<bool(const Program&)>& usable) {
  if (find(name) == nullptr) return;
  Named& programs = named(name);
  plan_jointly(programs, now);
  if (!programs.budget_is_new) return;
  const KnownMachine machine = now();
  for (std::size_t other = 1; other < programs.sets.size(); ++other) {
    complete_budget(programs, programs.sets[other], machine, usable);
  }
  programs.budget_is_new = pending_ != nullptr;  // if a task is pending, the remaining cycles wait for it
}

void ProgramBook::complete_budget(Named& programs, const PlanSet& other, const KnownMachine& machine,
                                  const std::function<bool(const Program&)>& usable) {
  for (const PlanSet::Cycle& cycle : other.cycles) {
    if (pending_ != nullptr) return;
    if (programs.now().has_cycle(cycle.members)) continue;
    Result<Program> program = program_of(programs, cycle.members);
    if (!program.has_value() || !usable(*program)) continue;
    programs.now().cycles.push_back({cycle.members});
    try {
      std::optional<GivenPlan> given = stored(programs, cycle.members, *program, machine);
      plan_program(programs, cycle.members, *std::move(program), std::move(given), machine);
    } catch (...) {
      programs.now().cycles.pop_back();
      throw;
    }
  }
}

std::uint64_t ProgramBook::observed(std::string_view name, IterationLog&& log, const Machine& machine) {
  return observed(name, std::move(log), KnownMachine(machine));
}

void ProgramBook::prepare_budgets(std::initializer_list<Bytes> budgets) {
  prepare(std::vector<PlanBudget>(budgets.begin(), budgets.end()));
}
void ProgramBook::use_budget(Bytes budget) noexcept { use_budget(PlanBudget(budget)); }

void ProgramBook::plan_for_budget(std::string_view name, const std::function<Machine()>& now,
                                  const std::function<bool(const Program&)>& usable) {
  replan_for_budget(
      name, [&] { return KnownMachine(now()); }, usable);
}

void ProgramBook::sampled(const FollowablePtr& plan, std::span<const std::chrono::nanoseconds> durations,
                          const Machine& machine) {
  sampled(plan, durations, KnownMachine(machine));
}

}  // namespace swapmm::runtime
