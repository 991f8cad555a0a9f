// SPDX-License-Identifier: Apache-2.0
#include "support/random_extras.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace swapmm::test {
namespace {

/// Names from here on are those of operations that no pattern has.
constexpr std::uint8_t first_unusual_name = 200;

/// Reads the value, and does not write all of it.
bool needs_value(const Action& operation, std::uint8_t slot) {
  for (std::size_t i = 0; i < operation.part_count; ++i) {
    if (operation.parts[i].slot == slot && operation.parts[i].access != Access::write) return true;
  }
  return false;
}

/// A tensor that the operation at `at` writes, and that the next one reads: it is still there between the two. Or no
/// slot.
std::uint8_t value_on_its_way(const std::vector<Action>& actions, std::size_t at) {
  if (at + 1 >= actions.size() || actions[at + 1].kind != ActionKind::operation) return slot_count;
  for (std::size_t i = 0; i < actions[at].part_count; ++i) {
    const Part& part = actions[at].parts[i];
    if (part.access != Access::read && needs_value(actions[at + 1], part.slot)) return part.slot;
  }
  return slot_count;
}

}  // namespace

void add_work_areas(simulated::detail::Random& random, TestProgram& program) {
  std::vector<std::uint32_t> sizes;
  for (const Action& action : program.actions) {
    if (action.kind == ActionKind::make) sizes.push_back(action.bytes);
  }
  if (sizes.empty()) return;
  std::array<std::uint32_t, first_unusual_name> bytes{};  // by name: the same in each iteration
  for (std::uint32_t& size : bytes) {
    if (random.below(2) == 0) size = sizes[random.below(static_cast<std::uint32_t>(sizes.size()))];
  }
  for (Action& action : program.actions) {
    if (action.kind != ActionKind::operation || action.name >= first_unusual_name || action.bytes != 0) continue;
    action.bytes = bytes[action.name];
  }
}

void add_side_downloads(simulated::detail::Random& random, TestProgram& program) {
  std::vector<Action> actions;
  std::size_t iterations = 0;
  bool inside = false;
  for (std::size_t at = 0; at < program.actions.size(); ++at) {
    const Action& action = program.actions[at];
    actions.push_back(action);
    if (action.kind == ActionKind::begin_iteration) ++iterations;
    if (action.kind == ActionKind::begin_iteration) inside = true;
    if (action.kind == ActionKind::end_iteration) inside = false;
    if (!inside || iterations < 4 || action.kind != ActionKind::operation || action.part_count == 0) continue;
    if (random.below(4) != 0) continue;
    std::uint8_t slot = value_on_its_way(program.actions, at);
    if (slot == slot_count || random.below(4) == 0) slot = action.parts[random.below(action.part_count)].slot;
    Action collect;
    collect.kind = random.below(4) == 0 ? ActionKind::drop : ActionKind::collect;
    collect.other = static_cast<std::uint8_t>(random.below(promise_count));
    actions.push_back(collect);  // of a promise before it
    Action promise;
    promise.kind = ActionKind::promise;
    promise.slot = slot;
    promise.other = collect.other;
    actions.push_back(promise);
    program.steady = false;
  }
  program.actions = std::move(actions);
}

void add_outlived_views(simulated::detail::Random& random, TestProgram& program) {
  std::vector<Action> actions;
  std::array<bool, slot_count> made{};
  std::vector<std::uint8_t> gone;
  for (const Action& action : program.actions) {
    actions.push_back(action);
    const bool again = action.kind == ActionKind::make && std::exchange(made[action.slot], true);
    if (again || action.kind == ActionKind::destroy) gone.push_back(action.slot);
    if (gone.empty() || random.below(6) != 0) continue;
    Action use;
    use.kind = ActionKind::outlived;
    use.slot = gone[random.below(static_cast<std::uint32_t>(gone.size()))];
    use.other = static_cast<std::uint8_t>(random.below(outlived_use_count));
    actions.push_back(use);
  }
  program.actions = std::move(actions);
}

}  // namespace swapmm::test
