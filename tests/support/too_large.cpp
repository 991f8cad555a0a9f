// SPDX-License-Identifier: Apache-2.0
#include "support/too_large.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace swapmm::test {
namespace {

/// What exists in front of an action, and the budget then; that it was refused where it is changed is not known here.
struct Before {
  std::array<std::uint32_t, slot_count> bytes{};
  Bytes budget;
};

Before before_action(const TestProgram& program, std::size_t end) {
  Before before{{}, program.manager.device_budget};
  for (std::size_t i = 0; i < end; ++i) {
    const Action& action = program.actions[i];
    if (action.kind == ActionKind::make) before.bytes[action.slot] = action.bytes;
    if (action.kind == ActionKind::destroy) before.bytes[action.slot] = 0;
    if (action.kind == ActionKind::exchange) std::swap(before.bytes[action.slot], before.bytes[action.other]);
    if (action.kind == ActionKind::set_budget) before.budget = std::max(before.budget, Bytes{action.bytes});
  }
  return before;
}

Action too_large_action(const Before& before, Bytes alignment, simulated::detail::Random& random) {
  Action action;
  action.kind = ActionKind::operation;
  action.name = 203;
  action.form = {random.below(2) == 0, random.below(2) == 0, false, random.below(2) == 0};
  std::vector<std::uint8_t> slots;
  for (std::uint8_t slot = 0; slot < slot_count; ++slot) {
    if (before.bytes[slot] != 0) slots.push_back(slot);
  }
  for (std::size_t i = slots.size(); i > 1; --i) {
    std::swap(slots[i - 1], slots[random.below(static_cast<std::uint32_t>(i))]);
  }
  Bytes need;
  const std::size_t most = random.below(most_parts + 1);
  for (const std::uint8_t slot : slots) {
    if (action.part_count == most) break;
    need += round_up(Bytes{before.bytes[slot]}, alignment);
    action.parts[action.part_count++] = {slot, static_cast<Access>(random.below(3)), 0, most_slices};
  }
  if (need > before.budget && random.below(2) == 0) return action;
  const Bytes missing = need > before.budget ? Bytes{}
                                             : round_down(before.budget, alignment) -
                                                   std::min(need, round_down(before.budget, alignment));
  action.bytes = static_cast<std::uint32_t>(missing.value) + 1 + (random.below(2) == 0 ? 0 : random.below(4000));
  return action;
}

}  // namespace

void add_too_large(TestProgram& program, simulated::detail::Random& random, std::size_t count) {
  for (; count > 0; --count) {
    const std::size_t at = random.below(static_cast<std::uint32_t>(program.actions.size() + 1));
    const Action action = too_large_action(before_action(program, at), program.device.alignment, random);
    program.actions.insert(program.actions.begin() + static_cast<std::ptrdiff_t>(at), action);
  }
}

}  // namespace swapmm::test
