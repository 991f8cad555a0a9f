// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/ways/search_ways.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <swapmm/plan/problem/part_of_time.hpp>
#include <swapmm/plan/problem/slower_links.hpp>
#include <swapmm/plan/v2/schedule/prediction.hpp>
#include <swapmm/plan/v2/validate.hpp>
#include <swapmm/plan/v2/ways/way_parts.hpp>
#include <swapmm/plan/v2/ways/written_plan.hpp>
#include <swapmm/plan/ways.hpp>
#include <swapmm/plan/ways/candidate.hpp>
#include <swapmm/plan/ways/changes.hpp>
#include <swapmm/plan/ways/program/history.hpp>

namespace swapmm::v2::planning {
namespace {

/// For how many speeds of the merged host ways are chosen, down to that of the slowest link.
constexpr int most_speeds = 3;
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
/// The same with several engines, where a plan takes longer.
constexpr int most_changes_of_engines = 40;

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
  for (int i = most_speeds - 1; i > 0 && slowest < 1; --i)
    all.push_back(std::pow(slowest, static_cast<double>(i) / (most_speeds - 1)));
  all.push_back(1);
  return all;
}

/// The ways of each part.
using Choice = std::vector<WaysBack>;

class ManyWaysSearch {
 public:
  ManyWaysSearch(const Trace& trace, const Machine& machine, const PlanningOptions& options, const CopyPlanner& copies,
                 const LazyBound& bound)
      : trace_(trace), machine_(machine), options_(options), copies_(copies), bound_(bound) {}

  Result<Plan> run() {
    const Trace allowed = swapmm::planning::only_ways(trace_, options_.ways);
    if (swapmm::planning::has_ways(allowed)) parts_ = way_parts(allowed, machine_);
    if (parts_.empty()) return copies_(trace_, options_, bound_, SearchFor::plan);
    offer(copies_(trace_, in_part_of_time(0, end_of_copies), bound_, SearchFor::plan));
    if (is_optimal()) return *std::move(best_);
    choose();
    const std::size_t count = choices_.size();
    for (std::size_t c = 0; c < count && (c == 0 || has_time(1)); ++c) {
      try_ways(choices_[c], part(end_of_choices, end_of_short_plans, c, count));
    }
    const bool is_small = swapmm::planning::changes_of(allowed, WaysOptions().planned) > 0;
    if (is_small && !is_optimal()) change_best();
    if (best_choice_ && has_time(1) && !is_optimal()) {
      offer(
          plan_for(*best_choice_, in_part_of_time(is_small ? end_of_changes : end_of_short_plans, 1), SearchFor::plan));
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

  void choose() {
    std::vector<std::vector<double>> speeds;  // of each part
    for (const WayPart& part : parts_) speeds.push_back(speeds_of(machine_, part.machine, part.memory));
    const std::size_t count = std::ranges::max(speeds, {}, &std::vector<double>::size).size();
    const std::vector<Ways> kinds = kinds_to_choose();
    for (std::size_t i = 0; i < count * kinds.size(); ++i) {
      if (!has_time(end_of_choices)) return;
      PlanningOptions limits = part(end_of_copies, end_of_choices, i, count * kinds.size());
      limits.ways = kinds[i / count];
      Choice choice;
      for (std::size_t p = 0; p < parts_.size(); ++p) {
        const double speed = speeds[p][std::min(i % count, speeds[p].size() - 1)];
        const swapmm::Machine machine = swapmm::planning::with_slower_links(parts_[p].machine, speed);
        Result<PlanWithWays> made = plan_with_ways(parts_[p].trace, machine, limits, quick_choice());
        if (!made && !problem_) problem_ = made.problem();
        choice.push_back(made ? std::move(made->ways) : WaysBack{});
      }
      const bool is_new = choice != Choice(parts_.size()) && std::ranges::find(choices_, choice) == choices_.end();
      if (is_new) choices_.push_back(std::move(choice));
    }
  }

  /// What is allowed. Where operations have engines, a part's times are estimates, so each kind is chosen alone, too.
  [[nodiscard]] std::vector<Ways> kinds_to_choose() const {
    std::vector<Ways> kinds{options_.ways};
    const Ways there = swapmm::planning::ways_in(swapmm::planning::only_ways(trace_, options_.ways));
    if (trace_.engines.empty() || !there.recompute || !there.compress) return kinds;
    kinds.push_back(options_.ways);
    kinds.back().compress = false;
    kinds.push_back(options_.ways);
    kinds.back().recompute = false;
    return kinds;
  }

  /// A short plan for the ways. They become the best choice if it is no slower than that of the last one.
  void try_ways(const Choice& choice, const PlanningOptions& limits) {
    const Result<Plan> plan =
        plan_for(choice, swapmm::planning::for_short_search(limits, short_search), SearchFor::worth);
    if (plan && (!best_choice_ || plan->predicted.iteration <= time_of_choice_)) {
      best_choice_ = choice;
      time_of_choice_ = plan->predicted.iteration;
    }
    offer(plan);
  }

  /// How the ways of a part can change.
  struct PartChanges {
    explicit PartChanges(const WayPart& part)
        : plain(swapmm::planning::without_ways(part.trace)),
          planning(swapmm::planning::make_planning_case(plain, part.machine)),
          history(part.trace) {
      if (planning) changes.emplace(part.trace, history, *planning);
      if (changes && changes->empty()) changes.reset();
    }
    PartChanges(const PartChanges&) = delete;
    PartChanges& operator=(const PartChanges&) = delete;

    Trace plain;
    Result<swapmm::planning::PlanningCase> planning;
    swapmm::planning::ValueHistory history;
    std::optional<swapmm::planning::WayChanges> changes;
  };

  /// Changes it at random, one part after another.
  void change_best() {
    std::deque<PartChanges> parts;
    for (const WayPart& part : parts_) parts.emplace_back(part);
    if (std::ranges::none_of(parts, [](const PartChanges& part) { return part.changes.has_value(); })) return;
    int failures = 0;
    const int most = trace_.engines.size() > 1 ? most_changes_of_engines : most_changes;
    for (int i = 0; i < most && failures < most_failures && has_time(end_of_changes) && !is_optimal(); ++i) {
      const std::size_t p = static_cast<std::size_t>(i) % parts.size();
      if (!parts[p].changes) continue;
      Choice choice = best_choice_.value_or(Choice(parts_.size()));
      choice[p] = parts[p].changes->change(std::move(choice[p]));
      if (std::ranges::find(choices_, choice) != choices_.end()) continue;
      choices_.push_back(choice);
      const std::chrono::nanoseconds before = time_of_choice_;
      try_ways(choice, in_part_of_time(end_of_short_plans, end_of_changes));
      failures = time_of_choice_ < before ? 0 : failures + 1;
    }
  }

  [[nodiscard]] WaysBack of_whole(const Choice& choice) const {
    WaysBack ways;
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      WaysBack part = parts_[p].of_whole(choice[p]);
      std::ranges::move(part.replays, std::back_inserter(ways.replays));
      std::ranges::move(part.codings, std::back_inserter(ways.codings));
      std::ranges::move(part.pieces, std::back_inserter(ways.pieces));
    }
    std::ranges::sort(ways.pieces, {}, &TensorPieces::tensor);
    return ways;
  }

  [[nodiscard]] Result<Plan> plan_for(const Choice& choice, const PlanningOptions& options, SearchFor searched) const {
    const WaysBack ways = of_whole(choice);
    const Result<WrittenTrace> written = with_ways(trace_, ways);
    if (!written) return written.problem();
    Result<Plan> moves = copies_(written->trace, options, bound_, searched);
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
  std::vector<WayPart> parts_;
  std::vector<Choice> choices_;        // that were tried
  std::optional<Choice> best_choice_;  // with the fastest short plan
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
