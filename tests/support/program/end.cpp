// SPDX-License-Identifier: Apache-2.0
#include "support/program/end.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include <swapmm/backend/testing/simulated/random.hpp>

namespace swapmm::test {
namespace {

/// Somewhere between the others, whose order is as without them.
void add_host_views(const TestProgram& program, std::vector<Ending>& order) {
  simulated::detail::Random random(program.seed ^ 0x71E'5EEDU);
  for (const std::uint8_t slot : slots_with_views(program)) {
    const auto at = static_cast<std::ptrdiff_t>(random.below(static_cast<std::uint32_t>(order.size() + 1)));
    order.insert(order.begin() + at, {Ending::What::host_view, slot, random.below(2) == 0});
  }
}

}  // namespace

std::vector<std::uint8_t> slots_with_views(const TestProgram& program) {
  std::array<bool, slot_count> with{};
  for (const Action& action : program.actions) {
    if (action.kind == ActionKind::open_view) with[action.slot] = true;
    if (action.kind == ActionKind::exchange && (with[action.slot] || with[action.other])) {
      with[action.slot] = with[action.other] = true;
    }
  }
  std::vector<std::uint8_t> slots;
  for (std::uint8_t slot = 0; slot < slot_count; ++slot) {
    if (with[slot]) slots.push_back(slot);
  }
  return slots;
}

std::vector<Ending> endings(const TestProgram& program) {
  std::vector<Ending> order;
  for (std::uint8_t slot = 0; slot < slot_count; ++slot) order.push_back({Ending::What::tensor, slot});
  for (std::uint8_t number = 0; number < promise_count; ++number) order.push_back({Ending::What::promise, number});
  order.push_back({Ending::What::iteration});
  order.push_back({Ending::What::backend});
  order.push_back({Ending::What::manager});
  if (program.ends_plainly) {
    for (const std::uint8_t slot : slots_with_views(program)) order.push_back({Ending::What::host_view, slot});
    const auto rank = [](const Ending& ending) {
      constexpr std::array<int, 6> ranks{1, 3, 2, 5, 4, 0};  // by What
      return std::pair(ranks[static_cast<std::size_t>(ending.what)], -int{ending.number});
    };
    std::sort(order.begin(), order.end(), [&](const Ending& a, const Ending& b) { return rank(a) < rank(b); });
    return order;
  }
  simulated::detail::Random random(program.seed ^ 0xEDDF'0000U);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random.below(static_cast<std::uint32_t>(i))]);
  }
  for (Ending& ending : order) ending.collect = ending.what == Ending::What::promise && random.below(2) == 0;
  add_host_views(program, order);
  return order;
}

}  // namespace swapmm::test
