// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/baselines/slack.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <swapmm/plan/schedule/absence_stays.hpp>
#include <swapmm/plan/schedule/best_plan.hpp>
#include <swapmm/plan/schedule/fit.hpp>
#include <swapmm/plan/schedule/known_stalls.hpp>

namespace swapmm::planning {
namespace {

using std::chrono::nanoseconds;

class Slack {
 public:
  /// `start`: with the times that operations leave for copies.
  Slack(const OverlapLedger& start, const SlackOptions& options)
      : planning_(start.planning),
        options_(options),
        ledger_(start),
        n_(start.planning.operations),
        starts_(2 * std::size_t{n_} + 1) {
    crowded_before_.resize(starts_.size());
    for (std::uint32_t i = 0; i < 2 * n_; ++i) {
      starts_[i + 1] = starts_[i] + ledger_.time[i % n_];
      const bool is_crowded = planning_.liveness.live[i % n_].value > planning_.budget;
      crowded_before_[i + 1] = crowded_before_[i] + (is_crowded ? 1 : 0);
    }
    for (Absence& a : ledger_.absences) decide(a);
  }

  OverlapLedger take() && { return std::move(ledger_); }

 private:
  void decide(Absence& a) const {
    const nanoseconds in = ledger_.copy_back(a);
    const nanoseconds out = a.version == no_version ? nanoseconds{0} : ledger_.copy_out[index(a.tensor)];
    const std::uint64_t size = planning_.sizes[index(a.tensor)];
    const bool is_large = size >= options_.least_bytes.value &&
                          (options_.least_part == 0 || size > planning_.budget / options_.least_part);
    const auto slack = static_cast<double>((starts_[a.end] - starts_[a.first]).count());
    const bool has_slack =
        options_.least_slack == 0 || slack > options_.least_slack * static_cast<double>((in + out).count());
    const bool room_lacks = !options_.needs_lack_of_room || crowded_before_[a.end] > crowded_before_[a.first];
    a.stays = !a.is_arrival && !(is_large && has_slack && room_lacks);
    a.leaves = a.first;
    while (a.leaves < a.end && starts_[a.leaves] - starts_[a.first] < out) ++a.leaves;
    a.returns = a.end;
    while (a.returns > a.leaves && starts_[a.end] - starts_[a.returns] < in) --a.returns;
    a.queued = a.returns;
  }

  const PlanningCase& planning_;
  const SlackOptions& options_;
  OverlapLedger ledger_;
  std::uint32_t n_;
  std::vector<nanoseconds> starts_;            ///< start times of the operations of two iterations, without stalls
  std::vector<std::uint32_t> crowded_before_;  ///< number of earlier operations at which more is live than fits
};

}  // namespace

Result<Plan> build_slack_plan(const PlanningCase& planning, const SlackOptions& options, std::string_view planner) {
  OverlapLedger times(planning);
  std::optional<BestPlan> best;
  for (int round = 0; round < std::max(options.rounds, 1); ++round) {
    const OverlapLedger policy = Slack(times, options).take();
    Result<Plan> plan =
        build_fitting_plan(planning, planner, Pace::overlapped, options.fitting, [&](std::uint64_t bytes) {
          OverlapLedger ledger = policy;
          let_go_until_it_fits(ledger, bytes);
          return stays_of(ledger);
        });
    if (!plan) return plan;
    if (!best) {
      best.emplace(planning, *std::move(plan));
    } else if (!best->offer(*std::move(plan))) {
      break;
    }
    if (best->simulation().iteration == best->simulation().compute) break;
    count_stalls(best->simulation(), times);  // with them, some tensors have slack that had none
  }
  return std::move(*best).take();
}

}  // namespace swapmm::planning
