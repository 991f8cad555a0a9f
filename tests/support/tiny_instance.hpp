// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <random>

#include <swapmm/ir/liveness.hpp>

#include "support/random_trace.hpp"

namespace swapmm::test {

struct TinyInstance {
  Trace trace;
  Machine machine;
};

/// 4 to 7 operations and 3 to 5 tensors, for exact searches: full duplex, no host reads, and a budget from the largest
/// bundle to half of the way to the peak, which lies above it. Values that linger have this probability.
[[nodiscard]] inline TinyInstance random_tiny_instance(std::mt19937_64& random, double lingering = 0) {
  for (;;) {
    RandomTraceOptions options;
    options.operations = 4 + one_of(random, 4);
    options.tensors = 3 + one_of(random, 3);
    options.max_bundle = 2;
    options.max_bytes = 1 + one_of(random, 40);
    options.max_duration = static_cast<std::int64_t>(1 + one_of(random, 60));
    options.host_reads = 0;
    TinyInstance tiny{random_trace(random, options), {}};
    if (lingering > 0) add_lingering(tiny.trace, random, lingering);
    tiny.machine.h2d.bytes_per_second = 1'000'000'000 / (1 + one_of(random, 3));
    tiny.machine.d2h.bytes_per_second = 1'000'000'000 / (1 + one_of(random, 3));
    const Liveness liveness = analyze_liveness(tiny.trace, tiny.machine.alignment);
    if (liveness.peak <= liveness.largest_bundle) continue;
    const std::uint64_t span = liveness.peak.value - liveness.largest_bundle.value;
    tiny.machine.device_budget = Bytes{liveness.largest_bundle.value + below_or_equal(random, span / 2)};
    return tiny;
  }
}

}  // namespace swapmm::test
