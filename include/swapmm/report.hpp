// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/plan/plan.hpp>

namespace swapmm {

/// What a plan that is or was followed promises.
struct PlanSummary {
  std::string iteration;  ///< name
  std::string planner;
  std::size_t operations = 0;
  std::size_t iterations_per_cycle = 1;
  Prediction predicted;
};

/// What a manager did since it was made. Counts and bytes are exact; times are the device's own, in nanoseconds.
struct Report {
  std::string device;
  bool host_shares_memory = false;  ///< swapping works and saves nothing
  Bytes device_budget;
  Bytes device_used;
  Bytes device_peak;
  Bytes host_used;
  Bytes host_peak;
  Bytes pinned_used;
  std::size_t tensors = 0;
  std::uint64_t operations = 0;
  std::uint64_t iterations_on_demand = 0;
  std::uint64_t iterations_followed = 0;
  std::uint64_t divergences = 0;  ///< times a plan was left because the program did something else
  std::string last_divergence;    ///< what it did
  std::uint64_t plan_starts = 0;  ///< times a plan was begun
  Bytes start_h2d;                ///< moved to make the residency what a plan starts from
  Bytes start_d2h;
  std::uint64_t swap_ins = 0;
  std::uint64_t swap_outs = 0;
  Bytes h2d;
  Bytes d2h;
  std::uint64_t queue_waits = 0;  ///< waits of a queue for another one
  std::uint64_t host_waits = 0;   ///< waits of the host for the device
  std::vector<PlanSummary> plans;
  std::vector<std::string> notes;  ///< plans refused or not made, and why
};

/// A table for a person.
std::ostream& operator<<(std::ostream& out, const Report& report);

}  // namespace swapmm
