// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>

namespace swapmm::test {

struct RandomTraceOptions {
  std::size_t operations = 6;      ///< at least 1
  std::size_t tensors = 5;         ///< at least 1
  std::uint64_t max_bytes = 100;   ///< of one tensor; at least 1
  std::size_t max_bundle = 3;      ///< tensors of one operation; at least 1
  std::int64_t max_duration = 50;  ///< nanoseconds; 0 occurs too
  double host_reads = 0.1;         ///< per operation
  bool inputs = true;
};

/// A trace that passes check_trace: all kinds and accesses, sometimes unused tensors, empty bundles, inputs that come
/// late and host reads of values long written.
[[nodiscard]] Trace random_trace(std::mt19937_64& random, const RandomTraceOptions& options = {});

/// Lets some of the values that the next access overwrites linger, each with this probability.
void add_lingering(Trace& trace, std::mt19937_64& random, double probability);

/// The sum of its operations' durations.
[[nodiscard]] std::chrono::nanoseconds compute_of(const Trace& trace);

/// A machine that passes check_machine. Its budget is at least `least_budget`; alignment, arenas that hold
/// `least_budget`, half duplex and latencies occur.
[[nodiscard]] Machine random_machine(std::mt19937_64& random, Bytes least_budget);

/// Such a machine, without arenas, for that trace: its budget is from the largest bundle to so much of the peak of live
/// bytes.
[[nodiscard]] Machine random_machine_for(const Trace& trace, std::mt19937_64& random, std::uint64_t percent_of_peak);

/// From 0 to `most`, the same on every standard library.
[[nodiscard]] inline std::uint64_t below_or_equal(std::mt19937_64& random, std::uint64_t most) {
  return most == UINT64_MAX ? random() : random() % (most + 1);
}
/// One of `count` positions.
[[nodiscard]] inline std::size_t one_of(std::mt19937_64& random, std::size_t count) {
  return static_cast<std::size_t>(random() % count);
}
[[nodiscard]] inline bool chance(std::mt19937_64& random, double probability) {
  return static_cast<double>(random() >> 11U) * 0x1.0p-53 < probability;
}

}  // namespace swapmm::test
