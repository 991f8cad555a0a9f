// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/backend/file_memory.hpp>
#include <swapmm/backend/neighbour.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/planner_choice.hpp>

namespace swapmm {

class SharedLinks;

/// How long the value of a tensor lives.
enum class Lifetime : std::uint8_t {
  observed,   ///< until the next iteration, unless each observed iteration begins by writing all of it
  transient,  ///< dead at the end of each iteration, from the first one on
  kept,       ///< survives each iteration, even if observed iterations begin by writing all of it
};
inline constexpr Lifetime persistent = Lifetime::observed;  ///< default: as observed
inline constexpr Lifetime transient = Lifetime::transient;  ///< short for Lifetime::transient
inline constexpr Lifetime kept = Lifetime::kept;            ///< short for Lifetime::kept

/// How data moves while no plan is followed.
enum class DemandMode : std::uint8_t {
  least_recently_used,  ///< a tensor stays until its room is needed; the least recently used one goes first
  per_operation,        ///< swaps each bundle in before its operation and out after it, as in the original method
  /// The same as least_recently_used, but the tensor that will be used latest goes first, as far as repeated parts of
  /// the sequence of operations tell, and before the host waits, what the next operations read is brought. See
  /// docs/dynamic_programs.md.
  foreseen,
};

/// Options for one MemoryManager. Environment variables do not change them.
struct Options {
  /// Device memory that the manager may use, in bytes. It is allocated when the manager is created. 0 selects the
  /// backend's default. The default on CUDA is the free memory minus a reserve. OpenCL cannot tell how much memory is
  /// free and has no default, so a value is required there.
  Bytes device_budget;
  /// Limit of page-locked host memory, in bytes. Further values are stored in pageable memory. Default: no limit.
  Bytes pinned_budget{std::numeric_limits<std::uint64_t>::max()};
  /// Limit of all host memory, in bytes. Default: no limit.
  Bytes host_budget{std::numeric_limits<std::uint64_t>::max()};
  /// A file for what fits neither on the device nor within `host_budget`, such as swapmm::file::open(), or the file of
  /// a manager's constants, see MemoryManager::constant(). Its capacity is the limit. Values move between the file and
  /// the device without a copy in host memory but for `file_staging`. Not with `scrub`. Default: none.
  std::shared_ptr<FileMemory> file{};
  /// Host memory through which values move between the file and the device, in bytes; a part of `host_budget`. More
  /// hides more of the time that a disk takes to answer. Used only with `file`.
  Bytes file_staging{std::uint64_t{32} << 20U};
  /// Memory of other devices for what does not fit on the manager's own, such as {opencl::neighbour(device, 1_GiB)}: it
  /// is used before the host's, a fast one before a slow one. Allocated when the manager is created, so the neighbour
  /// must have it free. Not with `scrub`. Default: none.
  std::vector<std::shared_ptr<Neighbour>> neighbours{};
  /// What the manager's device shares with those of other managers on its way to the host: plans are then made for all
  /// of them together, and their copies take turns. Plans with `file`, `neighbours` or `codec_staging` are not.
  /// Default: nothing.
  std::shared_ptr<SharedLinks> shared_links{};
  /// Device memory, in bytes and a part of `device_budget`, through which values with many zeros are encoded on their
  /// way to the host, and decoded on their way back, so that fewer bytes cross the link: see docs/compression.md. One
  /// half for each direction; larger values than that are copied as they are, and so are those for which it does not
  /// pay. Host memory is taken for the largest encoded form. Not with `file`, `neighbours` or `scrub`. 0: none.
  Bytes codec_staging{0};
  /// Number of points per queue by which the host may run ahead of the device while no plan is followed. At least 8.
  std::size_t queue_depth = 1024;
  /// Number of iterations by which the host may run ahead of the device while a plan is followed: 1 to 3.
  std::size_t run_ahead = 2;
  /// How data moves while no plan is followed.
  DemandMode demand_mode = DemandMode::foreseen;
  /// Compares what operations access with what they declare, by poison and hashes. For debugging. Very slow: it copies
  /// each resident tensor before and after each operation, and no plan is followed.
  bool check_access = false;
  /// Overwrites the memory of tensors with zeros before it goes back to the driver and to the host's allocator: when
  /// the manager is destroyed, in set_budget(), and when host memory kept for reuse is freed. Each time costs a copy of
  /// the whole budget to the device. A block of host memory is used as long as the manager exists. There is no cost
  /// while operations run.
  bool scrub = false;
};

/// When plans are made.
enum class Planning : std::uint8_t {
  immediate,  ///< in the calling thread, at the start of the iteration after the last observed one
  deferred,   ///< in the thread that takes Scheduler::planning_job(); observation continues until it is done
};

/// Which values a followed plan may lose. Whatever it may not lose is copied to the host when its room is needed.
enum class DropRule : std::uint8_t {
  /// Those that observed iterations did not read any more, until the program shows that it branches: see
  /// docs/dynamic_programs.md. From then on as `proven`.
  by_evidence,
  /// Those that observed iterations did not read any more. A program that reads one after all gets DroppedValue.
  observed,
  /// Those that are proven dead: the tensor was destroyed, its next value is written by an operation that was called
  /// already, or it is `transient` and its iteration is over. DroppedValue is never thrown. For programs that branch:
  /// plans are started only once they could have saved what that may cost, see docs/dynamic_programs.md.
  proven,
};

/// Keeps plans beyond the process, so that the next run of the same program need not make them again. Functions of the
/// program; any may be null. They run on the thread that uses the manager, where plans are made, and must not use the
/// scheduler. If one throws, the report has a note, and it is not called again.
struct PlanStore {
  /// Returns the text that was kept under that key, if any. A key is a digest of 64 hexadecimal digits: of the program,
  /// the budget, the device's name, the planner's name and the version of the library. Durations and the speeds of
  /// links are no part of it.
  std::function<std::optional<std::string>(const std::string& key)> find{};
  /// Keeps a plan in the format of docs/formats.md. Replaces what was kept under that key before.
  std::function<void(const std::string& key, const std::string& text)> keep{};
  /// Called if a text that find() returned is no valid plan for the program. The plan is then made anew, and kept.
  std::function<void(const std::string& key, const std::string& reason)> refused{};
};

/// Options for one Scheduler.
struct SchedulerOptions {
  /// Number of equal iterations to observe before a plan is made. 0: never make a plan.
  std::size_t observe = 2;
  /// The planner: the name of one of planners(), or any function or object of your own that makes a Plan from a Trace
  /// and a Machine, see PlannerChoice. If it fails (an unknown name, an exception, a plan that is not valid or belongs
  /// to another program), iterations stay on demand, and the report has the reason.
  PlannerChoice planner = "best";
  /// When plans are made, and by which thread.
  Planning planning = Planning::immediate;
  /// Longest cycle of different iterations that becomes one plan, in iterations. At least 1.
  std::size_t max_period = 4;
  /// Number of sequences remembered per iteration name. The one unused for longest is dropped.
  std::size_t max_sequences = 16;
  /// Link speeds to plan with. Default: as observed. Budget and alignment are always the manager's.
  std::optional<Machine> machine{};
  /// Time that a planner that searches takes for a plan, by the clock, unless it proves earlier that none is better. 0:
  /// a fixed number of steps instead, so that the same observed times give the same plan.
  std::chrono::milliseconds planning_time{0};
  /// The fixed number of steps ends after this time, with the best plan so far. 0: never, and the same observed times
  /// always give the same plan: for hundreds of operations that may run again it is made in tens of seconds. Without
  /// effect if `planning_time` is above 0.
  std::chrono::milliseconds planning_limit{3000};
  /// Such a planner may also take no more than this part of the time since the scheduler was made, or 20 ms if that is
  /// more: 0.25 is a quarter. So a short program is not kept waiting for its plan. 0: no such limit. Without effect if
  /// `planning_time` is 0.
  double planning_share = 0;
  /// One in this many rounds that follow a plan has its operations and copies timed. 0: none, and plans are never
  /// remade.
  std::size_t sample_every = 64;
  /// A plan is remade if the time of its rounds differs from the prediction by more than this fraction of the
  /// prediction: 0.1 is 10 %. 0: never.
  double replan_above = 0.1;
  /// Number of rounds of a new plan after which the faster of it and the previous state is kept. The first two rounds
  /// do not count, because they include the move to the plan. 0: a new plan is always kept.
  std::size_t trial_iterations = 4;
  /// Where plans are looked for before they are made, and kept after that. Default: nowhere. A plan that is found is
  /// followed as soon as its iterations were observed once. It is checked as a plan that is made. Plans of a planner
  /// without a name are not kept.
  PlanStore plan_store{};
  /// Which values a followed plan may lose.
  DropRule drops = DropRule::by_evidence;
};

}  // namespace swapmm
