// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <swapmm/plan/v2/simulation/event_run.hpp>

namespace swapmm::v2::simulation {

/// What a run comes to in the long run.
struct SteadyState {
  /// The mean time of an iteration, rounded to the nearest nanosecond with halves up: that of the period in which
  /// everything repeats that has an effect on when iterations end, or of the last 500 iterations if there is none.
  /// longest_iteration if an iteration takes longer.
  std::int64_t mean = 0;
  std::size_t period = 0;  ///< the iterations after which everything repeats; 0: it never does
};

/// Runs iterations until the last ones repeat themselves, or 1,000 of them. The peaks of the run are those of the
/// period in which everything repeats, or of about the last 500 iterations.
[[nodiscard]] SteadyState run_until_periodic(EventRun& run);

}  // namespace swapmm::v2::simulation
