// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/ways/search_ways.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <swapmm/plan/problem/part_of_time.hpp>
#include <swapmm/plan/problem/slower_links.hpp>
#include <swapmm/plan/v2/relaxation/merged_host.hpp>
#include <swapmm/plan/v2/schedule/prediction.hpp>
#include <swapmm/plan/v2/validate.hpp>
#include <swapmm/plan/v2/ways/written_plan.hpp>
#include <swapmm/plan/ways.hpp>
#include <swapmm/plan/ways/candidate.hpp>
#include <swapmm/plan/ways/changes.hpp>
#include <swapmm/plan/ways/program/history.hpp>

namespace swapmm::v2::planning {
namespace {

/// For how many speeds of the merged host ways are chosen, down to that of the slowest link.
constexpr int speeds = 3;
/// The least speed, as a part of that of the slowest link: copies are avoided at almost any price there, for memories
/// that lack room for them.
constexpr double least_speed = 1e-3;
/// How often the planner of a choice may ask whether to go on, to see what the choice is worth.
constexpr int short_search = 60;

// The time is for copies alone, for the choices of all speeds, for short plans, and for a plan of the best choice.
constexpr double end_of_copies = 0.45;
constexpr double end_of_choices = 0.65;
constexpr double end_of_short_plans = 0.75;
constexpr double end_of_changes = 0.85;

/// In small traces: plans for changes of the best choice.
constexpr int most_changes = 100;
constexpr int most_failures = 60;  // in a row

/// Choices are worth no more effort: the machine that they are for is not the one that is planned for.
WaysOptions quick_choice() {
  WaysOptions options;
  options.close_work /= 3;
  options.planned.work /= 3;
  options.planned.change_work /= 3;
  options.planned.most_changes /= 3;
  options.planned.least_changes /= 3;
  options.omissions /= 3;
  options.plans = 1;
  options.copies_first = false;
  options.best.rounds = 1;
  return options;
}

/// The slowest link as a part of what all links into the device, or out of it, carry together.
double slowest_part(const Machine& machine, const swapmm::Machine& merged) {
  std::uint64_t slowest = merged.h2d.bytes_per_second;
  for (const Link& link : machine.links) slowest = std::min(slowest, link.bytes_per_second);
  return static_cast<double>(slowest) / static_cast<double>(merged.h2d.bytes_per_second);
}

/// Speeds of the merged host for which ways are chosen, ascending.
std::vector<double> speeds_of(const Machine& machine, const swapmm::Machine& merged, MemoryId device) {
  const double slowest = slowest_part(machine, merged);
  std::vector<double> all;
  bool is_limited = false;
  for (std::size_t m = 0; m < machine.memories.size(); ++m) {
    is_limited = is_limited || (m != index(device) && machine.memories[m].bytes);
  }
  if (is_limited) all.push_back(slowest * least_speed);
  for (int i = speeds - 1; i > 0 && slowest < 1; --i)
    all.push_back(std::pow(slowest, static_cast<double>(i) / (speeds - 1)));
  all.push_back(1);
  return all;
}

class ManyWaysSearch {
 public:
  ManyWaysSearch(const Trace& trace, const Machine& machine, const PlanningOptions& options, const CopyPlanner& copies,
                 const LazyBound& bound)
      : trace_(trace), machine_(machine), options_(options), copies_(copies), bound_(bound) {}

  Result<Plan> run() {
    const std::optional<MemoryId> device = only_device(machine_);
    const auto merged = device ? with_one_host(machine_, *device) : std::nullopt;
    const Trace allowed = swapmm::planning::only_ways(trace_, options_.ways);
    const bool has_choices = merged && trace_.engines.empty() && swapmm::planning::has_ways(allowed);
    if (!has_choices) return copies_(trace_, options_, bound_);
    offer(copies_(trace_, in_part_of_time(0, end_of_copies), bound_));
    if (is_optimal()) return *std::move(best_);
    choose(allowed, *merged, *device);
    const std::size_t count = choices_.size();
    for (std::size_t c = 0; c < count && (c == 0 || has_time(1)); ++c) {
      try_ways(choices_[c], part(end_of_choices, end_of_short_plans, c, count));
    }
    const bool is_small = swapmm::planning::changes_of(allowed, WaysOptions().planned) > 0;
    if (is_small && !is_optimal()) change_best(allowed, *merged);
    if (best_choice_ && has_time(1) && !is_optimal()) {
      offer(plan_for(*best_choice_, in_part_of_time(is_small ? end_of_changes : end_of_short_plans, 1)));
    }
    if (!best_) return *problem_;
    return *std::move(best_);
  }

 private:
  /// What chooses, or plans, takes longer than a short limit.
  [[nodiscard]] bool has_time(double part) const {
    return !options_.go_on || options_.go_on(PlanningProgress{.part = part});
  }

  [[nodiscard]] PlanningOptions in_part_of_time(double from, double to) const {
    return swapmm::planning::in_part_of_time(options_, from, to);
  }

  /// The k-th of n equal parts of the time between two parts of it.
  [[nodiscard]] PlanningOptions part(double from, double to, std::size_t k, std::size_t n) const {
    const double length = (to - from) / static_cast<double>(n);
    const double begin = from + length * static_cast<double>(k);
    return in_part_of_time(begin, begin + length);
  }

  void choose(const Trace& allowed, const swapmm::Machine& merged, MemoryId device) {
    const std::vector<double> all = speeds_of(machine_, merged, device);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!has_time(end_of_choices)) return;
      const PlanningOptions limits = part(end_of_copies, end_of_choices, i, all.size());
      const Result<PlanWithWays> made =
          plan_with_ways(allowed, swapmm::planning::with_slower_links(merged, all[i]), limits, quick_choice());
      if (!made) {
        if (!problem_) problem_ = made.problem();
        continue;
      }
      const bool is_new = made->ways != WaysBack{} && std::ranges::find(choices_, made->ways) == choices_.end();
      if (is_new) choices_.push_back(made->ways);
    }
  }

  /// A short plan for the ways. They become the best choice if it is no slower than that of the last one.
  void try_ways(const WaysBack& ways, const PlanningOptions& limits) {
    const Result<Plan> plan = plan_for(ways, swapmm::planning::for_short_search(limits, short_search));
    if (plan && (!best_choice_ || plan->predicted.iteration <= time_of_choice_)) {
      best_choice_ = ways;
      time_of_choice_ = plan->predicted.iteration;
    }
    offer(plan);
  }

  /// Changes it at random.
  void change_best(const Trace& allowed, const swapmm::Machine& merged) {
    const Trace plain = swapmm::planning::without_ways(allowed);
    const auto planning = swapmm::planning::make_planning_case(plain, merged);
    if (!planning) return;
    const swapmm::planning::ValueHistory history(allowed);
    swapmm::planning::WayChanges changes(allowed, history, *planning);
    if (changes.empty()) return;
    int failures = 0;
    for (int i = 0; i < most_changes && failures < most_failures && has_time(end_of_changes) && !is_optimal(); ++i) {
      const WaysBack ways = changes.change(best_choice_.value_or(WaysBack{}));
      if (std::ranges::find(choices_, ways) != choices_.end()) continue;
      choices_.push_back(ways);
      const std::chrono::nanoseconds before = time_of_choice_;
      try_ways(ways, in_part_of_time(end_of_short_plans, end_of_changes));
      failures = time_of_choice_ < before ? 0 : failures + 1;
    }
  }

  [[nodiscard]] Result<Plan> plan_for(const WaysBack& ways, const PlanningOptions& options) const {
    const Result<WrittenTrace> written = with_ways(trace_, ways);
    if (!written) return written.problem();
    Result<Plan> moves = copies_(written->trace, options, bound_);
    if (!moves) return moves;
    Plan plan = with_commands_of_ways(trace_, *written, ways, *std::move(moves));
    if (const auto violations = validate(trace_, plan); !violations.empty()) {
      return Problem{"the plan is not valid, which is a mistake of swapmm: " + violations.front().message};
    }
    predict(trace_, plan);
    return plan;
  }

  void offer(const Result<Plan>& plan) {
    if (!plan) {
      if (!problem_) problem_ = plan.problem();
    } else if (!best_ || plan->predicted.iteration < best_->predicted.iteration) {
      best_ = *plan;
    }
  }

  [[nodiscard]] bool is_optimal() const {
    return best_ && best_->predicted.iteration <= bound_(best_->predicted.iteration);
  }

  const Trace& trace_;
  const Machine& machine_;
  const PlanningOptions& options_;
  const CopyPlanner& copies_;
  const LazyBound& bound_;
  std::vector<WaysBack> choices_;        // that were tried
  std::optional<WaysBack> best_choice_;  // with the fastest short plan
  std::chrono::nanoseconds time_of_choice_{0};
  std::optional<Plan> best_;
  std::optional<Problem> problem_;
};

}  // namespace

Result<Plan> search_ways(const Trace& trace, const Machine& machine, const PlanningOptions& options,
                         const CopyPlanner& copies, const LazyBound& bound) {
  return ManyWaysSearch(trace, machine, options, copies, bound).run();
}

}  // namespace swapmm::v2::planning
