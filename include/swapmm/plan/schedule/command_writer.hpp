// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/schedule/schedule.hpp>
#include <swapmm/plan/schedule/stay_facts.hpp>

namespace swapmm::planning {

/// A schedule with the facts and offsets of its stays, in the order of the stays.
struct PlacedSchedule {
  const PlanningCase& planning;
  const Schedule& schedule;
  const std::vector<StayFacts>& facts;
  const std::vector<WriteBack>& write_backs;
  const std::vector<Bytes>& offsets;
};

/// Writes the commands of one iteration, with all waits that docs/formats.md requires.
[[nodiscard]] std::vector<Command> write_commands(const PlacedSchedule& placed);

}  // namespace swapmm::planning
