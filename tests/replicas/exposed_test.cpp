// SPDX-License-Identifier: Apache-2.0
// What of the synchronisation is not hidden behind the devices' work, in virtual time.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include "support/replica_times.hpp"
#include "support/steady_plans.hpp"

namespace swapmm::test::exposed_test {
using namespace std::chrono_literals;

ReplicaTiming timing(std::size_t replicas, std::chrono::nanoseconds per_chunk) {
  ReplicaTiming made = twelve_layers(replicas, per_chunk);
  made.setting.scheduler = steady({.planner = "belady"});
  return made;
}

TEST_CASE("chunks hide a part of the synchronisation, and the search ends within one of the best size") {
  for (const std::chrono::nanoseconds per_chunk : {0us, 60us, 120us}) {
    const ReplicaTiming of = timing(2, per_chunk);
    const std::chrono::nanoseconds nothing = time_without_sums(of);
    std::vector<std::chrono::nanoseconds> times;
    for (std::size_t size = 1; size <= of.layers.size(); ++size) times.push_back(time_with(of, size));
    const auto least = std::min_element(times.begin(), times.end());
    const auto best = static_cast<std::size_t>(least - times.begin()) + 1;
    const auto exposed = *least - nothing;
    const auto at_the_end = times.back() - nothing;
    CHECK(exposed >= 0ns);
    CHECK(exposed < at_the_end);

    ReplicaTiming searched = of;
    searched.setting.options.chunk_size = {.settle = unsteady_steps, .timed = 1};
    TimedReplicas replicas(searched);
    for (std::size_t step = 0; step < 200 && !replicas.replicas().search()->done(); ++step) replicas.step();
    REQUIRE(replicas.replicas().search()->done());
    const std::size_t found = replicas.replicas().layers_per_chunk();
    CHECK(std::max(found, best) - std::min(found, best) <= 1);
  }
}

}  // namespace swapmm::test::exposed_test
