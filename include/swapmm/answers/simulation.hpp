// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include <swapmm/answers/as_json.hpp>
#include <swapmm/answers/planning.hpp>
#include <swapmm/answers/quantities.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/simulate.hpp>

// A plan where durations and the link are not what it was made for.

namespace swapmm::answers {

using std::chrono::nanoseconds;

/// How things vary.
struct Disturbance {
  double noise = 0;                   ///< every duration is off by up to this share
  std::optional<SlowLink> slow_link;  ///< a slow part of the iteration, elsewhere in each draw
  std::uint64_t seed = 1;             ///< of the noise
  std::uint64_t draws = 16;           ///< how many
};

/// One iteration in the steady state.
struct Draw {
  nanoseconds iteration{0};
  nanoseconds compute{0};
};

/// Draws; none if nothing varies. `calm` is the plan undisturbed.
[[nodiscard]] std::vector<Draw> disturbed(const Disturbance& disturbance, const Trace& trace, const Plan& plan,
                                          const Simulation& calm, Watcher& watcher);

/// Of several draws, by time and by what is lost: points of compute / time against the calm run.
struct Summary {
  nanoseconds mean{0};
  nanoseconds worst{0};
  std::optional<double> mean_lost;  ///< none: there is no computation
  std::optional<double> worst_lost;
};

[[nodiscard]] Summary summarize(const std::vector<Draw>& draws, const Simulation& calm);

[[nodiscard]] json::object simulation_as_json(const Trace& trace, const Plan& plan, const Simulation& calm,
                                              const Disturbance& disturbance, const std::vector<Draw>& draws);

}  // namespace swapmm::answers
