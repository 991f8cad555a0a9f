// SPDX-License-Identifier: Apache-2.0
#include "support/program/end.hpp"

#include <algorithm>
#include <utility>

#include <swapmm/backend/testing/simulated/random.hpp>

namespace swapmm::test {

std::vector<Ending> endings(const TestProgram& program) {
  std::vector<Ending> order;
  for (std::uint8_t slot = 0; slot < slot_count; ++slot) order.push_back({Ending::What::tensor, slot});
  for (std::uint8_t number = 0; number < promise_count; ++number) order.push_back({Ending::What::promise, number});
  order.push_back({Ending::What::iteration});
  order.push_back({Ending::What::backend});
  order.push_back({Ending::What::manager});
  if (program.ends_plainly) {
    const auto rank = [](const Ending& ending) {
      constexpr std::array<int, 5> ranks{0, 2, 1, 4, 3};  // by What
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
  return order;
}

}  // namespace swapmm::test
