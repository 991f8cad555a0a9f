// SPDX-License-Identifier: Apache-2.0
#include <swapmm/scheduler.hpp>

#include <istream>
#include <ostream>
#include <string>
#include <utility>

#include <swapmm/error.hpp>
#include <swapmm/runtime/book/given_plan.hpp>
#include <swapmm/runtime/book/program_book.hpp>

namespace swapmm {

PlanningJob::PlanningJob(std::shared_ptr<runtime::PlanTask> task) : task_(std::move(task)) {}

void PlanningJob::run() { task_->run_once(); }

Scheduler::Scheduler() : Scheduler(SchedulerOptions{}) {}

namespace {

// The rest of the machine is the manager's own.
SchedulerOptions checked(SchedulerOptions options) {
  const auto require = [](bool is_right, const char* name, double value, const char* range) {
    if (!is_right) {
      throw UsageError("SchedulerOptions::" + std::string(name) + " is " + std::to_string(value) + ": " + range);
    }
  };
  for (const auto& [name, time] :
       {std::pair{"planning_time", options.planning_time}, std::pair{"planning_limit", options.planning_limit}}) {
    require(time.count() >= 0, name, static_cast<double>(time.count()), "it is 0 ms or more");
  }
  require(options.planning_share >= 0 && options.planning_share <= 1, "planning_share", options.planning_share,
          "it is from 0 to 1");
  require(options.replan_above >= 0 && options.replan_above <= 1e6, "replan_above", options.replan_above,
          "it is from 0 to 1000000");
  if (options.planning > Planning::deferred) throw UsageError("SchedulerOptions::planning is none of Planning");
  if (options.drops > DropRule::proven) throw UsageError("SchedulerOptions::drops is none of DropRule");
  if (!options.machine) return options;
  Machine links;
  links.device_budget = Bytes{1};
  links.h2d = options.machine->h2d;
  links.d2h = options.machine->d2h;
  if (const Check check = check_machine(links); !check) {
    throw UsageError("SchedulerOptions::machine: " + check.problem().message);
  }
  return options;
}

}  // namespace

Scheduler::Scheduler(SchedulerOptions options)
    : book_(std::make_shared<runtime::ProgramBook>(checked(std::move(options)))) {}

const SchedulerOptions& Scheduler::options() const { return book_->options(); }

std::shared_ptr<const Plan> Scheduler::plan(std::string_view iteration) const {
  const runtime::FollowablePtr compiled = book_->latest(iteration);
  return compiled == nullptr ? nullptr : std::shared_ptr<const Plan>(compiled, &compiled->plan);
}

std::optional<Trace> Scheduler::trace(std::string_view iteration) const { return book_->trace(iteration); }

void Scheduler::save_plan(std::string_view iteration, std::ostream& out) const {
  const runtime::FollowablePtr known = book_->latest(iteration);
  if (known == nullptr) throw UsageError("there is no plan for iteration \"" + std::string(iteration) + "\" to save");
  runtime::write_compiled_plan(out, *known);
  out.flush();
  if (!out) throw Error("saving the plan of iteration \"" + std::string(iteration) + "\": the stream failed");
}

void Scheduler::load_plan(std::string_view iteration, std::istream& in) {
  Result<runtime::LoadedPlan> plan = runtime::read_loaded_plan(in);
  if (!plan.has_value()) throw PlanRefused(plan.problem().message);
  book_->load(iteration, *std::move(plan));
}

std::optional<PlanningJob> Scheduler::planning_job() {
  std::shared_ptr<runtime::PlanTask> task = book_->pending_task();
  // What another thread runs is nobody else's.
  if (task == nullptr || task->taken.load(std::memory_order_acquire)) return std::nullopt;
  return PlanningJob(std::move(task));
}

}  // namespace swapmm
