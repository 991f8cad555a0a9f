// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <swapmm/base/result.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/v2/joint/turns.hpp>
#include <swapmm/plan/v2/spread/spread_plans.hpp>

namespace swapmm::v2::planning {

/// A plan for one device alone.
struct DevicePlan {
  double speed = 1;  ///< the part of the links' speed for which it was made
  swapmm::Plan plan;
  SoloTimes solo;  ///< with all of the speed
};

class DeviceSearch;

/// The plans of devices alone that a joint plan is put together from. Devices that run the same program in the same
/// memory have the same plans.
class DevicePlans {
 public:
  /// Keeps a reference to `all`.
  explicit DevicePlans(const SpreadCase& all);
  ~DevicePlans();
  DevicePlans(const DevicePlans&) = delete;
  DevicePlans& operator=(const DevicePlans&) = delete;

  /// The number of different devices.
  [[nodiscard]] std::size_t kinds() const { return plans_.size(); }
  /// The kind of a part.
  [[nodiscard]] std::size_t kind(std::size_t part) const { return kind_of_[part]; }
  /// The plans of a kind so far, in the order in which they were made.
  [[nodiscard]] const std::deque<DevicePlan>& of_kind(std::size_t kind) const { return plans_[kind]; }

  /// Whether planning may go on until this part of its time has passed.
  using GoOn = std::function<bool(double until)>;

  /// Searches on for the best plan at this speed, for so many rounds of the search of `best`, or until this part of the
  /// time has passed. The first time, the search is prepared first, for which there is all of the time. Returns the
  /// position of the plan; that of an older one if it is the same.
  [[nodiscard]] Result<std::size_t> search(std::size_t kind, double speed, int rounds, const GoOn& go_on, double until);
  /// A round that was ended begins anew, so a search that had too little time for one needs more the next time: how
  /// many times as much.
  [[nodiscard]] double patience(std::size_t kind, double speed) const;
  /// The same as search() with the planner `best` and all of the speed: what the device would have if it were alone.
  [[nodiscard]] Result<std::size_t> plan_alone(std::size_t kind, const PlanningOptions& options);
  /// A plan for a device alone that was made elsewhere. Returns its position; nothing if it is not valid there.
  [[nodiscard]] std::optional<std::size_t> know(std::size_t part, const swapmm::Plan& plan);

 private:
  std::size_t add(std::size_t kind, double speed, const swapmm::Plan& plan);

  const SpreadCase& all_;
  std::vector<std::size_t> kind_of_;  // of each part
  std::vector<std::size_t> first_;    // of each kind: a part
  std::vector<std::deque<DevicePlan>> plans_;
  std::vector<std::vector<std::unique_ptr<DeviceSearch>>> searches_;  // of each kind, one for each speed
};

}  // namespace swapmm::v2::planning
