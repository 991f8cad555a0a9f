// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/v2/validate.hpp>
#include <swapmm/plan/v2/ways.hpp>
#include <swapmm/plan/ways.hpp>

#include "parts.hpp"

namespace swapmm::bench {
namespace {

constexpr double piece_shares[] = {0.35, 0.5, 0.7};

/// Every operation works in pieces, so every tensor may be divided.
Trace with_pieces_allowed(Trace trace) {
  for (TraceOperation& operation : trace.operations) operation.in_pieces = true;
  return trace;
}

struct PiecesCase {
  std::string name;
  Trace trace;
  double share = 0;
};

const std::string& name_of(const PiecesCase& one) { return one.name; }

std::vector<PiecesCase> pieces_cases(const Settings& settings) {
  std::vector<PiecesCase> all;
  for (const std::string& name : settings.traces) {
    const Trace trace = load_trace(name);
    for (const double share : piece_shares) all.push_back({trace.name, trace, share});
  }
  return chosen_of(all, settings);
}

}  // namespace

Report run_pieces(const Settings& settings) {
  Report report;
  report.rows.title = "Whole tensors, and tensors in pieces: time / bound";
  report.rows.columns = {"trace",  "budget / peak", "bound / computation", "whole",          "in pieces",
                         "pieces", "divided",       "pieces / whole",      "seconds, pieces"};
  const double limit = settings.limit_or(30);
  const std::vector<PiecesCase> chosen = pieces_cases(settings);
  Progress progress("pieces", chosen.size(), settings.quiet);
  Ratios whole_over_bound;
  Ratios over_bound;
  Ratios gains;
  for (const PiecesCase& one : chosen) {
    progress.step(one.name);
    const Trace trace = with_pieces_allowed(one.trace);
    const Bytes least = analyze_liveness(one.trace, Bytes{256}).largest_bundle;
    const Machine machine = machine_with(std::max(part_of(peak_of(one.trace), one.share), least), 15.754e9);
    const Planned whole = plan_within("best", one.trace, machine, limit);
    const auto start = std::chrono::steady_clock::now();
    PlanningOptions options = within(limit);
    options.ways = {.recompute = false, .compress = false, .pieces = true};
    const Result<PlanWithWays> divided = plan_with_ways(trace, machine, options);
    const double seconds = seconds_since(start);
    const Result<v2::Plan> plan = divided ? v2::from_ways(trace, *divided) : Result<v2::Plan>(divided.problem());
    if (!whole.plan || !plan || !v2::validate(trace, *plan).empty()) {
      report.lines.push_back(one.name + ": " + (plan ? "no plan, or one that breaks a rule" : plan.problem().message));
      report.is_sound = false;
      continue;
    }
    const auto time = static_cast<double>(divided->plan.predicted.iteration.count());
    // Both hold for both: the relaxed problem lets parts of tensors leave.
    const auto bound = static_cast<double>(
        std::max(divided->plan.predicted.lower_bound.count(), whole.plan->predicted.lower_bound.count()));
    if (bound > time) report.is_sound = false;
    whole_over_bound.add(whole.iteration() / bound);
    over_bound.add(time / bound);
    gains.add(time / whole.iteration());
    std::size_t pieces = 0;
    for (const TensorPieces& tensor : divided->ways.pieces) pieces += tensor.at.size() + 1;
    report.rows.rows.push_back({one.name, fixed(one.share, 2), fixed(bound / whole.compute(), 3),
                                fixed(whole.iteration() / bound, 4), fixed(time / bound, 4), std::to_string(pieces),
                                std::to_string(divided->ways.pieces.size()), fixed(time / whole.iteration(), 4),
                                fixed(seconds, 1)});
  }
  const auto line = [&](const std::string& what, const Ratios& ratios) {
    if (ratios.count != 0) report.lines.push_back(summary_of(what, ratios));
  };
  line("whole tensors / bound", whole_over_bound);
  line("in pieces / bound", over_bound);
  line("in pieces / whole", gains);
  return report;
}

}  // namespace swapmm::bench
