// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/spread/spread_shared.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <swapmm/plan/problem/part_of_time.hpp>
#include <swapmm/plan/schedule/best_plan.hpp>
#include <swapmm/plan/schedule/schedule.hpp>
#include <swapmm/plan/search/best_search.hpp>
#include <swapmm/plan/v2/baselines/uses.hpp>
#include <swapmm/plan/v2/engines.hpp>
#include <swapmm/plan/v2/schedule/prediction.hpp>
#include <swapmm/plan/v2/simulate.hpp>
#include <swapmm/plan/v2/spread/shared_parts.hpp>
#include <swapmm/plan/v2/spread/spread.hpp>
#include <swapmm/plan/v2/spread/spread_plans.hpp>
#include <swapmm/plan/v2/spread/timeline.hpp>
#include <swapmm/plan/v2/validate.hpp>

namespace swapmm::v2::planning {
namespace {

namespace v1 = swapmm::planning;

/// How often the times of the best plan are planned with again.
constexpr int most_lines = 4;
/// With a time limit, short searches end after this part of it.
constexpr double end_of_short = 0.6;

/// A plan of the search of `best`, in milliseconds for a hundred operations.
Result<swapmm::Plan> quick_best(const Trace& trace, const swapmm::Machine& machine, const PlanningOptions& limits) {
  const Result<v1::PlanningCase> planning = v1::make_planning_case(trace, machine);
  if (!planning) return planning.problem();
  Result<swapmm::Plan> first = v1::build_per_operation_plan(*planning, v1::Pace::one_at_a_time, "best");
  if (!first) return first.problem();
  v1::BestPlan best(*planning, *std::move(first));
  BestOptions options;
  options.bound.usual = options.bound.long_traces = {.groups = 12, .options = 8'000, .rounds = 1};
  v1::BestSearch search(*planning, options, limits, best);
  search.run({}, 1);
  if (!search.is_near_bound()) search.offer_belady();
  return best.plan();
}

/// The parts of a program in the order of a time line.
class SharedProgram {
 public:
  SharedProgram(const Trace& trace, const Machine& machine, Timeline line, WhatLeaves kept)
      : trace_(trace), ordered_(in_order(trace, std::move(line))) {
    Result<SharedParts> parts = shared_parts(ordered_, machine, kept);
    if (parts) {
      all_.emplace(make_spread_case(ordered_.trace, machine, *std::move(parts)));
    } else {
      problem_ = parts.problem();
    }
  }
  SharedProgram(const SharedProgram&) = delete;
  SharedProgram& operator=(const SharedProgram&) = delete;

  /// Nothing if there is a problem.
  [[nodiscard]] const std::optional<SpreadCase>& all() const { return all_; }
  [[nodiscard]] const Problem& problem() const { return problem_; }

  [[nodiscard]] Result<Plan> plan(std::string_view planner, double speed, const PlanningOptions& options) const {
    Result<Plan> plan = spread_at(planner, *all_, speed, options);
    return plan ? for_trace(*std::move(plan)) : plan;
  }

  /// The same in a short search.
  [[nodiscard]] Result<Plan> quick_plan(std::string_view planner, double speed, const PlanningOptions& options) const {
    if (planner != "best") return plan(planner, speed, options);
    std::vector<swapmm::Plan> plans;
    for (std::size_t part = 0; part < all_->parts.size(); ++part) {
      Result<swapmm::Plan> plan = quick_best(all_->parts[part].trace, machine_of_part(*all_, part, speed), options);
      if (!plan) return plan.problem();
      plans.push_back(*std::move(plan));
    }
    Result<Plan> plan = spread_parts(*all_, plans);
    return plan ? for_trace(*std::move(plan)) : plan;
  }

 private:
  /// A plan for the trace in the order of the time line as one for the trace.
  [[nodiscard]] Result<Plan> for_trace(Plan plan) const {
    const detail::Engines engines(trace_, plan.machine);
    const std::vector<OperationId>& order = ordered_.line.order;
    const auto n = static_cast<std::uint32_t>(order.size());
    for (Command& command : plan.commands) {
      for (Wait& wait : command.after) {
        if (wait.on != Wait::On::operation) continue;
        const std::int32_t back = wait.index < 0 ? static_cast<std::int32_t>(n) : 0;
        wait.index = static_cast<std::int32_t>(order[static_cast<std::size_t>(wait.index + back)]) - back;
      }
      for (std::uint32_t& operation : command.before_operations) {
        operation = static_cast<std::uint32_t>(order[operation % n]) + operation / n * n;
      }
      std::ranges::sort(command.before_operations);
      if (!command.position) continue;
      // The same position among the operations of its engine.
      std::uint32_t at = *command.position;
      while (at < n && engines.engine(order[at]) != engine_of(plan.machine, command.link)) ++at;
      command.position = at < n ? static_cast<std::uint32_t>(order[at]) : n;
    }
    plan.trace_digest = digest(trace_);
    if (const auto violations = validate(trace_, plan); !violations.empty()) {
      return Problem{"the plan is not valid, which is a mistake of swapmm: " + violations.front().message};
    }
    predict(trace_, plan);
    return plan;
  }

  const Trace& trace_;
  OrderedProgram ordered_;
  std::optional<SpreadCase> all_;
  Problem problem_;
};

class SharedSpread {
 public:
  SharedSpread(std::string_view planner, const Trace& trace, const Machine& machine, const PlanningOptions& options)
      : planner_(planner),
        trace_(trace),
        machine_(machine),
        options_(options),
        short_(swapmm::planning::in_part_of_time(options, 0, end_of_short)) {}

  Result<Plan> run() {
    const Result<Timeline> line = make_timeline(trace_, machine_);
    if (!line) return line.problem();
    try_line(*line, {});
    for (int i = 0; i < most_lines && best_ && has_time(); ++i) {
      const std::chrono::nanoseconds before = best_->predicted.iteration;
      const std::vector<Span> spans = simulate(trace_, *best_).operations;
      const Result<Timeline> next = make_timeline(trace_, machine_, spans);
      if (!next) break;
      try_line(*next, speed_);
      if (best_->predicted.iteration >= before) break;
    }
    if (!best_) return *problem_;
    if (program_ && (!options_.go_on || options_.go_on({}))) {
      Result<Plan> plan =
          program_->plan(planner_, speed_, swapmm::planning::in_part_of_time(options_, end_of_short, 1));
      if (plan) offer(*std::move(plan));
    }
    return *std::move(best_);
  }

 private:
  [[nodiscard]] bool has_time() const { return !short_.go_on || short_.go_on({}); }

  /// Short searches at this speed, or at all.
  void try_line(const Timeline& line, std::optional<double> only) {
    for (const WhatLeaves kept : {WhatLeaves::stays_until_copied, WhatLeaves::leaves_at_once}) {
      try_line(line, kept, only);
    }
  }

  void try_line(const Timeline& line, WhatLeaves kept, std::optional<double> only) {
    const auto program = std::make_shared<const SharedProgram>(trace_, machine_, line, kept);
    if (!program->all()) {
      problem_ = program->problem();
      return;
    }
    for (const double speed : only ? std::vector{*only} : speeds_to_spread(*program->all())) {
      if (best_ && !has_time()) return;
      Result<Plan> plan = program->quick_plan(planner_, speed, short_);
      if (!plan) {
        if (!problem_) problem_ = plan.problem();
      } else if (offer(*std::move(plan))) {
        program_ = program;
        speed_ = speed;
      }
    }
  }

  /// Returns whether it is the best plan so far.
  bool offer(Plan plan) {
    if (best_ && plan.predicted.iteration >= best_->predicted.iteration) return false;
    best_ = std::move(plan);
    return true;
  }

  std::string_view planner_;
  const Trace& trace_;
  const Machine& machine_;
  const PlanningOptions& options_;
  const PlanningOptions short_;
  std::optional<Plan> best_;
  std::shared_ptr<const SharedProgram> program_;  // of the best plan, at speed_
  double speed_ = 1;
  std::optional<Problem> problem_;
};

}  // namespace

Result<Plan> spread_shared(std::string_view planner, const Trace& trace, const Machine& machine,
                           const PlanningOptions& options) {
  if (changes_input_that_host_reads(trace)) {
    return Problem{"the host reads an input that operations change after it has given the next value"};
  }
  return SharedSpread(planner, trace, machine, options).run();
}

}  // namespace swapmm::v2::planning
