// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/baselines/slack.hpp>

#include <chrono>
#include <cstdint>
#include <vector>

#include <swapmm/plan/schedule/absence_stays.hpp>
#include <swapmm/plan/schedule/fit.hpp>

namespace swapmm::planning {
namespace {

using std::chrono::nanoseconds;

class Slack {
 public:
  Slack(const PlanningCase& planning, const SlackOptions& options)
      : planning_(planning),
        options_(options),
        ledger_(planning),
        n_(planning.operations),
        starts_(2 * std::size_t{n_} + 1) {
    crowded_before_.resize(starts_.size());
    for (std::uint32_t i = 0; i < 2 * n_; ++i) {
      starts_[i + 1] = starts_[i] + ledger_.time[i % n_];
      const bool is_crowded = planning.liveness.live[i % n_].value > planning.budget;
      crowded_before_[i + 1] = crowded_before_[i] + (is_crowded ? 1 : 0);
    }
    for (Absence& a : ledger_.absences) decide(a);
  }

  OverlapLedger take() && { return std::move(ledger_); }

 private:
  void decide(Absence& a) const {
    const nanoseconds in = ledger_.copy_in[index(a.tensor)];
    const nanoseconds out = a.version == no_version ? nanoseconds{0} : ledger_.copy_out[index(a.tensor)];
    const bool is_large =
        options_.least_part == 0 || planning_.sizes[index(a.tensor)] > planning_.budget / options_.least_part;
    const bool has_slack = !options_.needs_slack || starts_[a.end] - starts_[a.first] > in + out;
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
  const OverlapLedger policy = Slack(planning, options).take();
  return build_fitting_plan(planning, planner, Pace::overlapped, options.fitting, [&](std::uint64_t bytes) {
    OverlapLedger ledger = policy;
    let_go_until_it_fits(ledger, bytes);
    return stays_of(ledger);
  });
}

}  // namespace swapmm::planning
