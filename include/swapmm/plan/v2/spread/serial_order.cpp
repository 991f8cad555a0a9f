// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/spread/serial_order.hpp>

#include <functional>
#include <limits>
#include <queue>
#include <utility>

namespace swapmm::v2::planning {

// Kahn's algorithm. Commands go before operations, in the order of their list.
SerialOrder serial_order(const swapmm::Plan& plan, std::size_t operations) {
  constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  const std::size_t n = operations;
  const std::size_t count = n + plan.commands.size();
  std::vector<std::vector<std::uint32_t>> followers(count);
  std::vector<std::uint32_t> missing(count, 0);
  const auto add = [&](std::size_t waiting, std::size_t waited) {
    followers[waited].push_back(static_cast<std::uint32_t>(waiting));
    ++missing[waiting];
  };
  for (std::size_t i = 1; i < n; ++i) add(i, i - 1);
  std::size_t last_in = none;
  std::size_t last_out = none;
  for (std::size_t j = 0; j < plan.commands.size(); ++j) {
    const swapmm::Command& command = plan.commands[j];
    const bool copies_in = command.kind == swapmm::CommandKind::swap_in;
    const bool copies_out = command.kind == swapmm::CommandKind::swap_out;
    if (copies_in || copies_out) {
      std::size_t& last = copies_in || plan.machine.duplex == Duplex::half ? last_in : last_out;
      if (last != none) add(n + j, last);
      last = n + j;
    }
    for (const Wait& wait : command.after) {
      if (wait.index < 0 || wait.previous) continue;  // of the iteration before
      add(n + j, (wait.on == Wait::On::command ? n : 0) + static_cast<std::size_t>(wait.index));
    }
    if (command.before_operation && *command.before_operation < n) add(*command.before_operation, n + j);
  }
  using Ready = std::pair<int, std::uint32_t>;  // releases are first, operations last
  const auto turn = [&](std::uint32_t x) {
    if (x < n) return 2;
    return plan.commands[x - n].kind == swapmm::CommandKind::release ? 0 : 1;
  };
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (std::uint32_t x = 0; x < count; ++x) {
    if (missing[x] == 0) ready.emplace(turn(x), x);
  }
  SerialOrder order;
  std::uint32_t before = 0;
  while (!ready.empty()) {
    const std::uint32_t x = ready.top().second;
    ready.pop();
    if (x < n) {
      before = x + 1;
    } else {
      order.commands.push_back(x - static_cast<std::uint32_t>(n));
      order.before.push_back(before);
    }
    for (const std::uint32_t follower : followers[x]) {
      if (--missing[follower] == 0) ready.emplace(turn(follower), follower);
    }
  }
  return order;
}

}  // namespace swapmm::v2::planning
