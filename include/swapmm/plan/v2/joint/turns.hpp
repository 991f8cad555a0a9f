// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <swapmm/plan/v2/spread/spread_plans.hpp>

namespace swapmm::v2::planning {

/// When the commands of a device's plan start if the device has its links for itself.
struct SoloTimes {
  std::vector<double> starts;  ///< of each command, nanoseconds; some are below 0
  double iteration = 0;        ///< nanoseconds
};

/// How devices take turns on the capacities that they share. Each device has a window of the iteration, into which its
/// times alone are stretched. A copy waits for those of other devices that come before it in this order.
struct Turns {
  enum class Who : std::uint8_t {
    nobody,  ///< copies wait for nothing but what their own device needs
    later,   ///< a device waits for those whose windows come before its own; they do not wait for it
    all,     ///< every device waits for every other one
  };
  Who who = Who::nobody;
  double period = 0;              ///< nanoseconds; the windows lie in it
  double overlap = 1;             ///< 1: each window is the whole period; 0: as short as the device's times alone
  std::vector<double> positions;  ///< of each part: 0 if its window begins with the period, 1 if it ends with it

  friend bool operator==(const Turns&, const Turns&) = default;
};

/// Makes copies of different devices wait for each other. As many copies as a capacity needs to be busy may still run
/// at the same time. A valid plan stays valid, if devices share no stores with a limit.
void take_turns(SpreadPlan& spread, const std::vector<const SoloTimes*>& solo, const Turns& turns);

}  // namespace swapmm::v2::planning
