// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/joint/device_plans.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include <swapmm/ir/same_program.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/schedule/best_plan.hpp>
#include <swapmm/plan/schedule/schedule.hpp>
#include <swapmm/plan/search/best_search.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/validate.hpp>

namespace swapmm::v2::planning {
namespace {

namespace v1 = swapmm::planning;

bool are_same(const SpreadCase& all, std::size_t a, std::size_t b) {
  return swapmm::detail::is_same_program(all.parts[a].trace, all.parts[b].trace) &&
         machine_of_part(all, a, 1) == machine_of_part(all, b, 1);
}

BestOptions search_options() {
  BestOptions options;
  // The relaxed problem is only a start here, and there is one for each device and speed.
  options.bound.usual = options.bound.long_traces = {.groups = 16, .options = 20'000, .rounds = 2};
  return options;
}

}  // namespace

/// The search of `best` for one device at one speed. It goes on from where it ended.
class DeviceSearch {
 public:
  DeviceSearch(const Trace& trace, swapmm::Machine machine, double speed)
      : speed_(speed), machine_(std::move(machine)), planning_(v1::make_planning_case(trace, machine_)) {
    limits_.go_on = [this](const PlanningProgress&) { return !go_on_ || go_on_(until_); };
    if (!planning_) return;
    Result<swapmm::Plan> first = v1::build_per_operation_plan(*planning_, v1::Pace::one_at_a_time, "best");
    if (!first) {
      problem_ = first.problem();
      return;
    }
    best_.emplace(*planning_, *std::move(first));
  }

  [[nodiscard]] double speed() const { return speed_; }
  [[nodiscard]] double patience() const { return patience_; }

  /// Goes on from this plan if it is better than the best one so far.
  void offer(const swapmm::Plan& plan) {
    if (best_) best_->offer(plan);
  }

  Result<swapmm::Plan> run(int rounds, const DevicePlans::GoOn& go_on, double until) {
    if (!planning_) return planning_.problem();
    if (problem_) return *problem_;
    go_on_ = go_on;
    until_ = until;
    if (!search_) search_.emplace(*planning_, options_, limits_, *best_, [this] { return !go_on_ || go_on_(1); });
    best_->count_as_equal(std::chrono::nanoseconds{0});  // the last run may have looked for fewer bytes
    search_->run({}, rounds);
    patience_ = go_on(until) ? 1 : 2 * patience_;
    if (!search_->is_near_bound()) search_->offer_belady();
    go_on_ = {};
    return best_->plan();
  }

 private:
  double speed_;
  swapmm::Machine machine_;
  Result<v1::PlanningCase> planning_;
  BestOptions options_ = search_options();
  PlanningOptions limits_;
  DevicePlans::GoOn go_on_;  // of the current call
  double until_ = 1;         // the same
  double patience_ = 1;
  std::optional<Problem> problem_;
  std::optional<v1::BestPlan> best_;
  std::optional<v1::BestSearch> search_;
};

DevicePlans::~DevicePlans() = default;

DevicePlans::DevicePlans(const SpreadCase& all) : all_(all) {
  for (std::size_t part = 0; part < all.parts.size(); ++part) {
    std::size_t kind = 0;
    while (kind < first_.size() && !are_same(all, first_[kind], part)) ++kind;
    if (kind == first_.size()) first_.push_back(part);
    kind_of_.push_back(kind);
  }
  plans_.resize(first_.size());
  searches_.resize(first_.size());
}

Result<std::size_t> DevicePlans::search(std::size_t kind, double speed, int rounds, const GoOn& go_on, double until) {
  auto& searches = searches_[kind];
  auto at = std::ranges::find_if(searches, [&](const auto& search) { return search->speed() == speed; });
  if (at == searches.end()) {
    const std::size_t part = first_[kind];
    searches.push_back(
        std::make_unique<DeviceSearch>(all_.parts[part].trace, machine_of_part(all_, part, speed), speed));
    at = std::prev(searches.end());
    for (const DevicePlan& known : plans_[kind]) {
      if (known.speed == speed) (*at)->offer(known.plan);
    }
  }
  const Result<swapmm::Plan> plan = (*at)->run(rounds, go_on, until);
  if (!plan) return plan.problem();
  return add(kind, speed, *plan);
}

double DevicePlans::patience(std::size_t kind, double speed) const {
  for (const auto& search : searches_[kind]) {
    if (search->speed() == speed) return search->patience();
  }
  return 1;
}

Result<std::size_t> DevicePlans::plan_alone(std::size_t kind, const PlanningOptions& options) {
  const std::size_t part = first_[kind];
  const Result<swapmm::Plan> plan =
      swapmm::make_plan("best", all_.parts[part].trace, machine_of_part(all_, part, 1), options);
  if (!plan) return plan.problem();
  return add(kind, 1, *plan);
}

std::optional<std::size_t> DevicePlans::know(std::size_t part, const swapmm::Plan& plan) {
  const std::size_t kind = kind_of_[part];
  const Trace& trace = all_.parts[first_[kind]].trace;
  swapmm::Plan here = plan;
  here.trace_digest = digest(trace);
  here.machine = machine_of_part(all_, first_[kind], 1);
  if (!validate(trace, here).empty()) return std::nullopt;
  return add(kind, 1, here);
}

std::size_t DevicePlans::add(std::size_t kind, double speed, const swapmm::Plan& plan) {
  std::deque<DevicePlan>& known = plans_[kind];
  const auto same = std::ranges::find_if(known, [&](const DevicePlan& other) {
    return other.plan.commands == plan.commands && other.plan.initial == plan.initial;
  });
  if (same != known.end()) return static_cast<std::size_t>(same - known.begin());
  DevicePlan& added = known.emplace_back();
  added.speed = speed;
  added.plan = plan;
  added.plan.machine = machine_of_part(all_, first_[kind], 1);
  const swapmm::Simulation simulation = simulate(all_.parts[first_[kind]].trace, added.plan);
  added.solo.iteration = static_cast<double>(simulation.iteration.count());
  for (const Span& span : simulation.commands) added.solo.starts.push_back(static_cast<double>(span.start.count()));
  return known.size() - 1;
}

}  // namespace swapmm::v2::planning
