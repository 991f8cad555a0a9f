// SPDX-License-Identifier: Apache-2.0
#include <swapmm/c_interface/options.hpp>

#include <chrono>
#include <cstddef>
#include <string>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/c_interface/handles.hpp>
#include <swapmm/c_interface/structs.hpp>

namespace swapmm::c_interface {
namespace {

[[noreturn]] void unknown(const char* what, std::uint64_t number) {
  throw UsageError(std::string(what) + " has no value " + std::to_string(number));
}

DemandMode demand_mode_of(std::uint32_t number) {
  switch (number) {
    case SWAPMM_LEAST_RECENTLY_USED: return DemandMode::least_recently_used;
    case SWAPMM_PER_OPERATION: return DemandMode::per_operation;
    case SWAPMM_FORESEEN: return DemandMode::foreseen;
    default: unknown("swapmm_demand_mode", number);
  }
}

DropRule drop_rule_of(std::uint64_t number) {
  switch (number) {
    case SWAPMM_DROP_BY_EVIDENCE: return DropRule::by_evidence;
    case SWAPMM_DROP_OBSERVED: return DropRule::observed;
    case SWAPMM_DROP_PROVEN: return DropRule::proven;
    default: unknown("swapmm_drop_rule", number);
  }
}

constexpr std::uint32_t known_flags =
    SWAPMM_CHECK_ACCESS | SWAPMM_SCRUB | SWAPMM_UNDEFINED_READS | SWAPMM_IDENTIFY_BY_PRODUCER | SWAPMM_PROVEN_DROPS;

}  // namespace

Lifetime lifetime_of(std::uint64_t number) {
  switch (number) {
    case SWAPMM_OBSERVED: return Lifetime::observed;
    case SWAPMM_TRANSIENT: return Lifetime::transient;
    case SWAPMM_KEPT: return Lifetime::kept;
    default: unknown("swapmm_lifetime", number);
  }
}

Access access_of(std::uint64_t number) {
  switch (number) {
    case SWAPMM_READ: return Access::read;
    case SWAPMM_WRITE: return Access::write;
    case SWAPMM_UPDATE: return Access::update;
    default: unknown("swapmm_access", number);
  }
}

swapmm_options default_options() {
  const Options manager;
  const SchedulerOptions scheduler;
  return {
      .struct_size = sizeof(swapmm_options),
      .device_budget = manager.device_budget.value,
      .pinned_budget = manager.pinned_budget.value,
      .host_budget = manager.host_budget.value,
      .queue_depth = manager.queue_depth,
      .run_ahead = manager.run_ahead,
      .demand_mode = SWAPMM_FORESEEN,
      .flags = 0,
      .observe = scheduler.observe,
      .planner = "best",
      .max_period = scheduler.max_period,
      .max_sequences = scheduler.max_sequences,
      .planning_time_ms = static_cast<std::uint64_t>(scheduler.planning_time.count()),
      .planning_share = scheduler.planning_share,
      .sample_every = scheduler.sample_every,
      .replan_above = scheduler.replan_above,
      .trial_iterations = scheduler.trial_iterations,
      .drops = SWAPMM_DROP_BY_EVIDENCE,
      .codec_staging = manager.codec_staging.value,
      .file = nullptr,
      .file_staging = manager.file_staging.value,
      .neighbours = nullptr,
      .neighbour_count = 0,
      .shared_links = nullptr,
      .planning_limit_ms = static_cast<std::uint64_t>(scheduler.planning_limit.count()),
  };
}

ManagerOptions read_options(const swapmm_options& options) {
  check_struct_size<swapmm_options>(options.struct_size, offsetof(swapmm_options, drops), "swapmm_options");
  const swapmm_options given = read_struct(options, default_options());
  if ((given.flags & ~known_flags) != 0) unknown("swapmm_option_flags", given.flags & ~known_flags);
  if (given.planner == nullptr) throw UsageError("swapmm_options::planner is null");
  constexpr std::uint64_t most_milliseconds = std::uint64_t{1} << 40U;
  if (given.planning_time_ms > most_milliseconds) throw UsageError("swapmm_options::planning_time_ms is above 2^40");
  if (given.planning_limit_ms > most_milliseconds) throw UsageError("swapmm_options::planning_limit_ms is above 2^40");
  const auto has = [&](std::uint32_t flag) { return (given.flags & flag) != 0; };
  ManagerOptions read;
  read.options.device_budget = Bytes{given.device_budget};
  read.options.pinned_budget = Bytes{given.pinned_budget};
  read.options.host_budget = Bytes{given.host_budget};
  read.options.codec_staging = Bytes{given.codec_staging};
  if (given.file != nullptr) read.options.file = given.file->memory;
  read.options.file_staging = Bytes{given.file_staging};
  for (std::uint64_t i = 0; i < given.neighbour_count; ++i) {
    const swapmm_neighbour* const neighbour = given.neighbours == nullptr ? nullptr : given.neighbours[i];
    if (neighbour == nullptr)
      throw UsageError("swapmm_options::neighbours has " + std::to_string(i) + ", which is null");
    read.options.neighbours.push_back(neighbour->memory);
  }
  if (given.shared_links != nullptr) read.options.shared_links = given.shared_links->links;
  read.options.queue_depth = static_cast<std::size_t>(given.queue_depth);
  read.options.run_ahead = static_cast<std::size_t>(given.run_ahead);
  read.options.demand_mode = demand_mode_of(given.demand_mode);
  read.options.check_access = has(SWAPMM_CHECK_ACCESS);
  read.options.scrub = has(SWAPMM_SCRUB);
  read.scheduler.observe = static_cast<std::size_t>(given.observe);
  read.scheduler.planner = std::string(given.planner);
  read.scheduler.max_period = static_cast<std::size_t>(given.max_period);
  read.scheduler.max_sequences = static_cast<std::size_t>(given.max_sequences);
  read.scheduler.planning_time = std::chrono::milliseconds(given.planning_time_ms);
  read.scheduler.planning_limit = std::chrono::milliseconds(given.planning_limit_ms);
  read.scheduler.planning_share = given.planning_share;
  read.scheduler.sample_every = static_cast<std::size_t>(given.sample_every);
  read.scheduler.replan_above = given.replan_above;
  read.scheduler.trial_iterations = static_cast<std::size_t>(given.trial_iterations);
  read.scheduler.drops = drop_rule_of(given.drops);
  read.entrance.undefined_reads = has(SWAPMM_UNDEFINED_READS);
  read.entrance.identify_by_producer = has(SWAPMM_IDENTIFY_BY_PRODUCER);
  // Tensors that are destroyed have no value to be asked for.
  if (has(SWAPMM_PROVEN_DROPS)) read.entrance.certainly_dead = [](const void*) { return false; };
  read.entrance.callables_until_end = has(SWAPMM_PROVEN_DROPS);
  return read;
}

}  // namespace swapmm::c_interface
