// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <string_view>

#include <swapmm/ir/trace.hpp>
#include <swapmm/options.hpp>
#include <swapmm/plan/plan.hpp>

namespace swapmm {

namespace runtime {
class ProgramBook;
struct PlanTask;
}  // namespace runtime

/// A plan to be made: the one thing of a manager that another thread may run, while the program goes on. The result
/// is followed from the first iteration that begins after run() has returned.
class PlanningJob {
 public:
  /// Observed iteration -> plan, validated. Takes as long as its planner does. Where another thread took the same job
  /// first, it does nothing.
  void run();

 private:
  friend class Scheduler;
  explicit PlanningJob(std::shared_ptr<runtime::PlanTask> task);
  std::shared_ptr<runtime::PlanTask> task_;
};

/// Decides what moves when: observes iterations, has a planner make a plan of them, and lets the manager follow it.
/// A handle: copies are the same scheduler. One manager uses it, and like the manager it is for one thread at a time,
/// but for planning_job(): a thread that makes plans may ask for them while another one runs the program.
class Scheduler {
 public:
  /// With the default options.
  Scheduler();
  /// Of max_period and max_sequences, what is too small is raised to what makes sense.
  explicit Scheduler(SchedulerOptions options);

  /// As they are used.
  [[nodiscard]] const SchedulerOptions& options() const;

  /// The plan that iterations of that name follow, or followed last; null before one was made. It stays valid and
  /// unchanged for as long as it is held, whatever becomes of scheduler and manager; a plan that takes its place later
  /// is another object. Copies nothing.
  [[nodiscard]] std::shared_ptr<const Plan> plan(std::string_view iteration) const;
  /// The iteration as last observed; none before one has ended.
  [[nodiscard]] std::optional<Trace> trace(std::string_view iteration) const;

  /// Writes the plan of that iteration name in the format of docs/formats.md. Throws UsageError where there is none,
  /// Error where the stream does not take all of it.
  void save_plan(std::string_view iteration, std::ostream& out) const;
  /// Reads a plan to be followed by iterations of that name, from the second one on. Throws PlanRefused for a text
  /// that is no plan, and for another program's plan where there are plans for iterations of that name; if they are
  /// made later, a refusal stands in the report and the scheduler's own planner takes over. Throws UsageError if a
  /// planner calls it.
  void load_plan(std::string_view iteration, std::istream& in);

  /// With Planning::deferred: the plan that waits to be made, if any. From any thread.
  [[nodiscard]] std::optional<PlanningJob> planning_job();

 private:
  friend struct SchedulerAccess;
  std::shared_ptr<runtime::ProgramBook> book_;
};

/// For MemoryManager alone.
struct SchedulerAccess {
  static const std::shared_ptr<runtime::ProgramBook>& book(const Scheduler& scheduler) { return scheduler.book_; }
};

}  // namespace swapmm
