// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <swapmm/plan/v2/simulation/event_run.hpp>

namespace swapmm::v2::simulation {

/// Runs iterations until the last ones repeat themselves, or 1,000 of them. Returns the mean time of an iteration in
/// the long run, rounded to the nearest nanosecond with halves up: that of the period in which everything repeats that
/// has an effect on when iterations end, or of the last 500 iterations if there is none. It is longest_iteration if an
/// iteration takes longer. The peaks of the run are those of the period in which everything repeats, or of about the
/// last 500 iterations.
[[nodiscard]] std::int64_t run_until_periodic(EventRun& run);

}  // namespace swapmm::v2::simulation
