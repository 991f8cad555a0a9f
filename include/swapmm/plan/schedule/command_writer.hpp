// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/schedule/schedule.hpp>
#include <swapmm/plan/schedule/stay_facts.hpp>

namespace swapmm::planning {

/// A schedule with all that is known of its stays; facts and offsets stand in the order of the stays.
struct PlacedSchedule {
  const PlanningCase& planning;
  const Schedule& schedule;
  const std::vector<StayFacts>& facts;
  const std::vector<WriteBack>& write_backs;
  const std::vector<Bytes>& offsets;
};

/// The commands of one iteration with every wait that the rules of docs/formats.md ask for.
[[nodiscard]] std::vector<Command> write_commands(const PlacedSchedule& placed);

}  // namespace swapmm::planning
