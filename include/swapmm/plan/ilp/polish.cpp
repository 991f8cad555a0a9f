// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ilp/polish.hpp>

#include <chrono>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include <swapmm/plan/schedule/absence_stays.hpp>
#include <swapmm/plan/schedule/schedule.hpp>

namespace swapmm::planning::ilp {
namespace {

class Polish {
 public:
  Polish(OverlapLedger& ledger, std::string_view planner, std::uint32_t packing_steps, BestPlan& best)
      : ledger_(ledger), planner_(planner), packing_steps_(packing_steps), best_(best), score_(score()) {}

  void try_change() {
    const std::vector<Absence> absences = ledger_.absences;
    const std::vector<Version> versions = ledger_.versions;
    for (std::uint32_t changes = 1 + below(3); changes > 0; --changes) change();
    const Score now = score();
    if (now <= score_) {
      score_ = now;
    } else {
      ledger_.absences = absences;
      ledger_.versions = versions;
    }
  }

 private:
  /// Height of the packing if it does not fit, else 0; iteration time; bytes moved.
  using Score = std::tuple<std::uint64_t, std::chrono::nanoseconds, Bytes>;

  Score score() {
    const PackingEffort effort{.ejection_steps = packing_steps_};
    Result<BuiltPlan> built = build_plan(ledger_.planning, {Pace::overlapped, stays_of(ledger_)}, planner_, effort);
    if (!built) return {UINT64_MAX, {}, {}};
    if (!built->plan) return {built->height.value, {}, {}};
    Simulation outcome = simulate(ledger_.planning.trace, *built->plan);
    const Score score{0, outcome.iteration, outcome.h2d + outcome.d2h};
    best_.offer(*std::move(built->plan), std::move(outcome));
    return score;
  }

  // Not a standard distribution, because those give different results in different standard libraries.
  std::uint32_t below(std::size_t count) { return static_cast<std::uint32_t>(random_() % count); }

  void change() {
    if (!ledger_.versions.empty() && below(5) == 0) {
      Version& version = ledger_.versions[below(ledger_.versions.size())];
      version.copied = version.write + 1 + below(ledger_.planning.operations);
      return;
    }
    Absence& a = ledger_.absences[below(ledger_.absences.size())];
    if (!a.is_arrival && a.first == a.end) return;  // no operation lies in between, so nothing needs the room
    if (!a.is_arrival && below(3) == 0) a.stays = !a.stays;
    if (!a.is_arrival) a.leaves = a.first + below(a.end - a.first);
    const std::uint32_t soonest = a.is_arrival ? a.first : a.leaves + 1;  // earlier, it would not have gone
    a.returns = soonest + below(a.end + 1 - soonest);
    if (a.lingers) a.returns = a.end;
    a.queued = a.returns;
  }

  OverlapLedger& ledger_;
  std::string_view planner_;
  std::uint32_t packing_steps_;
  BestPlan& best_;
  std::mt19937_64 random_{1};
  Score score_;
};

}  // namespace

void polish(OverlapLedger& ledger, std::string_view planner, const PolishEffort& effort,
            const std::function<bool()>& is_done, BestPlan& best) {
  if (ledger.absences.empty() || effort.tries == 0) return;
  Polish search(ledger, planner, effort.packing_steps, best);
  for (std::uint32_t i = 0; i < effort.tries && !is_done(); ++i) search.try_change();
}

}  // namespace swapmm::planning::ilp
