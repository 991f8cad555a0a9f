// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/search/reordering.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/validate.hpp>

namespace swapmm::planning {
namespace {

/// Tries x commands.
constexpr std::size_t work = 300'000;
constexpr int most_passes = 8;
/// Copies move forward by so many places.
constexpr std::size_t farthest = 6;

/// Puts the copy at position copies[from] before the one at copies[to]; those between move on by one.
void bring_forward(Plan& plan, const std::vector<std::int32_t>& copies, std::size_t from, std::size_t to) {
  const auto first = copies.begin() + static_cast<std::ptrdiff_t>(to);
  const auto last = copies.begin() + static_cast<std::ptrdiff_t>(from);
  const auto moved = [&](std::int32_t command) {
    const auto at = std::find(first, last + 1, command);
    if (at == last + 1) return command;
    return at == last ? *first : *std::next(at);
  };
  for (auto at = last; at != first; --at) {
    std::swap(plan.commands[static_cast<std::size_t>(*at)], plan.commands[static_cast<std::size_t>(*std::prev(at))]);
  }
  for (Command& command : plan.commands) {
    for (Wait& wait : command.after) {
      if (wait.on == Wait::On::command) wait.index = moved(wait.index);
    }
  }
}

/// Positions of the commands of a kind.
std::vector<std::int32_t> all_of(const Plan& plan, CommandKind kind) {
  std::vector<std::int32_t> found;
  for (std::size_t c = 0; c < plan.commands.size(); ++c) {
    if (plan.commands[c].kind == kind) found.push_back(static_cast<std::int32_t>(c));
  }
  return found;
}

}  // namespace

void reorder_copies(const PlanningCase& planning, BestPlan& best, const std::function<bool()>& is_enough) {
  const std::string digest_of_trace = digest(planning.trace);
  std::size_t tries = work / (best.plan().commands.size() + 1);
  bool has_gained = true;
  for (int pass = 0; pass < most_passes && has_gained; ++pass) {
    has_gained = false;
    for (const CommandKind kind : {CommandKind::swap_in, CommandKind::swap_out}) {
      const std::vector<std::int32_t> copies = all_of(best.plan(), kind);
      for (std::size_t i = 1; i < copies.size(); ++i) {
        for (std::size_t forward = 1; forward <= std::min(i, farthest); ++forward) {
          if (tries-- == 0 || is_enough()) return;
          Plan changed = best.plan();
          bring_forward(changed, copies, i, i - forward);
          changed.trace_digest = digest_of_trace;
          if (!validate(planning.trace, changed).empty()) continue;  // only valid plans can be simulated
          const std::chrono::nanoseconds time = best.outcome_of(changed).iteration;
          if (time < best.simulation().iteration) has_gained |= best.offer_within(time, std::move(changed));
        }
      }
    }
  }
}

}  // namespace swapmm::planning
