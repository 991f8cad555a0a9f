// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <string_view>

#include <swapmm/base/export.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/options.hpp>
#include <swapmm/plan/plan.hpp>

namespace swapmm {

namespace runtime {
class ProgramBook;
struct PlanTask;
}  // namespace runtime

/// A plan that is waiting to be made. Another thread may run it while the program continues. The manager follows the
/// plan from the first iteration that begins after run() has returned.
class SWAPMM_EXPORT PlanningJob {
 public:
  /// Makes a plan from the observed iteration and validates it. Takes as long as the planner does. Does nothing if
  /// another thread has already taken the same job.
  void run();

 private:
  friend class Scheduler;
  explicit PlanningJob(std::shared_ptr<runtime::PlanTask> task);
  std::shared_ptr<runtime::PlanTask> task_;
};

/// Decides what moves when. It observes iterations, has a planner make a plan from them, and lets the manager follow
/// the plan. A Scheduler is a handle: copies refer to the same scheduler. It belongs to one manager as long
/// as that exists (a second one throws UsageError), and like the manager it is for one thread at a time. Only
/// planning_job() may be called by another thread while the program runs.
class SWAPMM_EXPORT Scheduler {
 public:
  /// Makes a scheduler with the default options.
  Scheduler();
  /// Makes a scheduler with these options. If max_period or max_sequences is too small, it is raised to the smallest
  /// valid value; `observe` above 2^30 and max_period above 2^20 are lowered. Throws UsageError if
  /// SchedulerOptions::machine has a link without speed, or planning_share is not from 0 to 1, or replan_above not from
  /// 0 to 10^6.
  explicit Scheduler(SchedulerOptions options);

  /// The options in use.
  [[nodiscard]] const SchedulerOptions& options() const;

  /// The plan that iterations of that name follow, or followed last; null if there has been none. The plan stays valid
  /// and unchanged while the caller holds it; a plan made later is another object. Copies nothing. A plan that runs
  /// operations again is for the program with these written out: with_ways() in <swapmm/plan/ways.hpp>.
  [[nodiscard]] std::shared_ptr<const Plan> plan(std::string_view iteration) const;
  /// The trace of the iteration that was observed last; nothing if none has ended yet. Durations that the device has
  /// not reported yet are 0: of a program that branches, those of the last iterations (docs/dynamic_programs.md).
  [[nodiscard]] std::optional<Trace> trace(std::string_view iteration) const;

  /// Writes the plan for that iteration name in the format of docs/formats.md: in version 2 if it runs operations
  /// again, else in version 1. Throws UsageError if there is none, and Error if writing to the stream fails.
  void save_plan(std::string_view iteration, std::ostream& out) const;
  /// Reads a plan for iterations of that name, of version 1 or 2 of the format: one for a device and a host, which
  /// may run operations again. They follow it from the second iteration on. Throws PlanRefused if the text is not a
  /// valid plan file, or if there are already plans for iterations of that name and this one is for another program, or
  /// cannot be followed. If the program is not known yet and turns out to be another one, the report has a note, and
  /// the scheduler's own planner makes the plan. Throws UsageError if a planner calls it.
  void load_plan(std::string_view iteration, std::istream& in);

  /// The plan that is waiting to be made, if any; only with Planning::deferred. May be called from any thread.
  [[nodiscard]] std::optional<PlanningJob> planning_job();

 private:
  friend struct SchedulerAccess;
  std::shared_ptr<runtime::ProgramBook> book_;
};

/// Used by MemoryManager only.
struct SchedulerAccess {
  static const std::shared_ptr<runtime::ProgramBook>& book(const Scheduler& scheduler) { return scheduler.book_; }
};

}  // namespace swapmm
