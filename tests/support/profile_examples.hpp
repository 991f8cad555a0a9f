// SPDX-License-Identifier: Apache-2.0
#pragma once

// Small profiles whose pictures can be checked by hand.

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include <swapmm/ir/profile.hpp>

namespace swapmm::test {

inline ProfileSpan operation_span(std::string name, std::int64_t start, std::int64_t end) {
  return {Lane::compute, std::move(name), Bytes{0}, std::chrono::nanoseconds{start}, std::chrono::nanoseconds{end}};
}
inline ProfileSpan copy_span(Lane lane, std::string name, std::uint64_t bytes, std::int64_t start, std::int64_t end) {
  return {lane, std::move(name), Bytes{bytes}, std::chrono::nanoseconds{start}, std::chrono::nanoseconds{end}};
}
inline ProfileLevel level(std::int64_t time, std::uint64_t used) {
  return {std::chrono::nanoseconds{time}, Bytes{used}};
}

/// One iteration of 12 ms with one stall of 1 ms, in which one tensor goes and comes back.
inline Profile one_layer_swapped() {
  constexpr std::int64_t ms = 1'000'000;
  constexpr std::uint64_t mib = std::uint64_t{1} << 20U;
  Profile profile;
  profile.title = "forward & backward";
  profile.device = "a <small> device";
  profile.device_budget = Bytes{96 * mib};
  profile.spans = {
      operation_span("conv1", 0, 2 * ms),
      operation_span("conv2", 2 * ms, 5 * ms),
      copy_span(Lane::d2h, "a1", 32 * mib, 2 * ms, 4 * ms),
      operation_span("conv2.backward", 5 * ms, 8 * ms),
      copy_span(Lane::h2d, "a1", 32 * mib, 7 * ms, 9 * ms),
      operation_span("conv1.backward", 9 * ms, 12 * ms),
  };
  profile.levels = {level(0, 32 * mib), level(2 * ms, 96 * mib), level(4 * ms, 64 * mib), level(7 * ms, 96 * mib),
                    level(11 * ms, 48 * mib)};
  profile.iteration_ends = {std::chrono::nanoseconds{12 * ms}};
  return profile;
}

/// Two iterations of 600 and 400 ns. A copy began before them, and one ends behind them; no budget.
inline Profile two_iterations() {
  Profile profile;
  profile.title = "two iterations";
  profile.spans = {
      copy_span(Lane::h2d, "weights", 1000, -100, 100),
      operation_span("a", 100, 300),
      operation_span("b", 300, 600),
      operation_span("a", 600, 800),
      operation_span("b", 850, 1000),
      copy_span(Lane::d2h, "result", 300, 900, 1200),
  };
  profile.levels = {level(0, 1000), level(850, 1500)};
  profile.iteration_ends = {std::chrono::nanoseconds{600}, std::chrono::nanoseconds{1000}};
  return profile;
}

}  // namespace swapmm::test
