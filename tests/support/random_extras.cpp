// SPDX-License-Identifier: Apache-2.0
#include "support/random_extras.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
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

Action view_action(simulated::detail::Random& random, ActionKind kind, std::uint8_t slot) {
  Action action;
  action.kind = kind;
  action.slot = slot;
  if (random.below(5) < 2) {
    action.first = static_cast<std::uint8_t>(random.below(most_slices));
    action.slices = static_cast<std::uint8_t>(1 + random.below(most_slices - 1));
  }
  if (kind == ActionKind::open_view) {
    constexpr std::array memories{ViewMemory::own, ViewMemory::own, ViewMemory::own, ViewMemory::eager,
                                  ViewMemory::array};
    action.other = static_cast<std::uint8_t>(memories[random.below(memories.size())]);
    if (random.below(3) == 0) action.view = static_cast<ViewForm>(1 + random.below(view_form_count - 1));
  } else {
    action.other = static_cast<std::uint8_t>(random.below(view_touch_count));
  }
  return action;
}

ActionKind look_or_poke(simulated::detail::Random& random) {
  return random.below(2) == 0 ? ActionKind::look : ActionKind::poke;
}

/// Behind any action something happens to a view of any tensor.
void add_views_anywhere(simulated::detail::Random& random, TestProgram& program) {
  std::vector<Action> actions;
  std::vector<std::uint8_t> made;
  std::vector<std::uint8_t> viewed;
  for (const Action& action : program.actions) {
    actions.push_back(action);
    if (action.kind == ActionKind::make && action.lifetime != Lifetime::transient) made.push_back(action.slot);
    if (made.empty() || random.below(3) != 0) continue;
    const auto any = [&](const std::vector<std::uint8_t>& slots) {
      return slots[random.below(static_cast<std::uint32_t>(slots.size()))];
    };
    const std::uint32_t kind = random.below(20);
    if (viewed.empty() || kind < 4) {
      viewed.push_back(any(made));
      actions.push_back(view_action(random, ActionKind::open_view, viewed.back()));
    } else if (kind < 6) {
      actions.push_back(view_action(random, ActionKind::close_view, any(viewed)));
    } else if (kind < 7) {
      actions.push_back(view_action(random, ActionKind::write_back, any(viewed)));
    } else {
      const ActionKind touch = look_or_poke(random);  // drawn in this order by any compiler
      actions.push_back(view_action(random, touch, any(viewed)));
    }
  }
  program.actions = std::move(actions);
  program.steady = false;
}

/// Views of tensors that live as long as the program are opened before the first iteration. Each operation has a look
/// or a poke that always comes behind it, or none.
void add_views_at_places(simulated::detail::Random& random, TestProgram& program) {
  std::vector<std::uint8_t> uploaded;
  std::size_t begin = 0;
  for (; begin < program.actions.size() && program.actions[begin].kind != ActionKind::begin_iteration; ++begin) {
    if (program.actions[begin].kind == ActionKind::upload) uploaded.push_back(program.actions[begin].slot);
  }
  if (uploaded.empty()) return;
  std::vector<Action> actions(program.actions.begin(), program.actions.begin() + static_cast<std::ptrdiff_t>(begin));
  const auto any = [&] { return uploaded[random.below(static_cast<std::uint32_t>(uploaded.size()))]; };
  for (std::uint32_t count = 1 + random.below(3); count > 0; --count) {
    actions.push_back(view_action(random, ActionKind::open_view, any()));
  }
  std::array<Action, first_unusual_name> touches{};  // by name of the operation
  for (Action& touch : touches) {
    if (random.below(3) != 0) continue;
    const ActionKind kind = look_or_poke(random);  // drawn in this order by any compiler
    touch = view_action(random, kind, any());
  }
  for (; begin < program.actions.size(); ++begin) {
    const Action& action = program.actions[begin];
    actions.push_back(action);
    if (action.kind != ActionKind::operation || action.name >= first_unusual_name) continue;
    if (const Action& touch = touches[action.name]; touch.kind != ActionKind::synchronize) actions.push_back(touch);
  }
  program.actions = std::move(actions);
}

}  // namespace

void add_host_views(simulated::detail::Random& random, TestProgram& program) {
  if (random.below(2) == 0) {
    add_views_anywhere(random, program);
  } else {
    add_views_at_places(random, program);
  }
  constexpr Bytes of_the_library{512U << 10U};  // docs/host_views.md
  if (!has_host_views(program) || random.below(4) == 0) return;
  const auto grow = [&](Bytes& bytes) {
    if (bytes.value != std::numeric_limits<std::uint64_t>::max()) bytes += of_the_library;
  };
  grow(program.manager.host_budget);
  if (program.device.host_bytes) grow(*program.device.host_bytes);
}

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
