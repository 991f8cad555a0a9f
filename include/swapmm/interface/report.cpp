// SPDX-License-Identifier: Apache-2.0
#include <swapmm/interface/report.hpp>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>

#include <swapmm/base/text/figures.hpp>

namespace swapmm {
namespace {

// Times in a report are compared with each other, so all have the same unit.
constexpr text::FigureUnit milliseconds{"ms", 1'000'000};

}  // namespace

std::ostream& operator<<(std::ostream& out, const Report& report) {
  out << "swapmm on " << report.device
      << (report.host_shares_memory ? " (shares the host's memory: swapping works and saves nothing)" : "") << '\n'
      << "  device   " << text::size_text(report.device_used) << " used, peak " << text::size_text(report.device_peak)
      << " of a budget of " << text::size_text(report.device_budget)
      << (report.budget_changes == 0 ? "" : ", changed " + std::to_string(report.budget_changes) + " times") << ", "
      << report.tensors << " tensors\n"
      << "  host     " << text::size_text(report.host_used) << " used, peak " << text::size_text(report.host_peak)
      << ", " << text::size_text(report.pinned_used) << " of it pinned"
      << (report.pinned_slabs == 0 ? "" : " in slabs: " + std::to_string(report.pinned_slabs)) << '\n'
      << (report.file_peak.value == 0
              ? ""
              : "  file     " + text::size_text(report.file_used) + " used, peak " + text::size_text(report.file_peak) +
                    "; " + text::size_text(report.file_read) + " read, " + text::size_text(report.file_written) +
                    " written\n")
      << (report.neighbours_budget.value == 0
              ? ""
              : "  neighbours " + text::size_text(report.neighbours_used) + " used, peak " +
                    text::size_text(report.neighbours_peak) + " of " + text::size_text(report.neighbours_budget) +
                    "; " + text::size_text(report.neighbours_read) + " read, " +
                    text::size_text(report.neighbours_written) + " written\n")
      << (report.codec_staging.value == 0 ? ""
                                          : "  codec    " + text::size_text(report.codec_staging) +
                                                " of the device; values of " + text::size_text(report.encoded_out) +
                                                " encoded, of " + text::size_text(report.encoded_in) + " decoded\n")
      << "  ran      " << report.operations << " operations; iterations: " << report.iterations_on_demand
      << " on demand, " << report.iterations_followed << " by a plan\n"
      << "  moved    " << report.swap_ins << " swap-ins (" << text::size_text(report.h2d) << "), " << report.swap_outs
      << " swap-outs (" << text::size_text(report.d2h) << ")\n"
      << "  waits    " << report.queue_waits << " between queues, " << report.host_waits << " of the host\n";
  if (report.predictions != 0) {
    out << "  foresaw  " << report.predictions_right << " of " << report.predictions << " operations on demand; "
        << report.brought_ahead << " tensors brought ahead\n";
  }
  if (report.plan_starts != 0) {
    out << "  plans    begun " << report.plan_starts << " times (" << text::size_text(report.start_h2d) << " in, "
        << text::size_text(report.start_d2h) << " out to get there), left " << report.divergences << " times";
    if (!report.last_divergence.empty()) out << ", last because " << report.last_divergence;
    if (report.plans_found != 0) out << "; " << report.plans_found << " found in the store";
    out << '\n';
  }
  if (report.turns_taken != 0 || report.turns_missed != 0) {
    out << "  turns    " << report.turns_taken << " copies waited for another device's, " << report.turns_missed
        << " could not\n";
  }
  for (const PlanSummary& plan : report.plans) {
    const auto& predicted = plan.predicted;
    const auto stall = predicted.iteration - predicted.compute;
    out << "  plan     \"" << plan.iteration << "\" by " << plan.planner << ": " << plan.operations << " operations"
        << (plan.iterations_per_cycle > 1 ? " in " + std::to_string(plan.iterations_per_cycle) + " iterations" : "")
        << ", " << text::time_text(predicted.iteration, milliseconds) << " predicted, of it "
        << text::time_text(stall, milliseconds) << " stalls";
    if (plan.devices > 1)
      out << ", beside " << plan.devices - 1 << (plan.devices > 2 ? " other devices" : " other device");
    if (plan.measured.count() > 0) out << ", " << text::time_text(plan.measured, milliseconds) << " measured";
    if (plan.on_demand.count() > 0) out << ", " << text::time_text(plan.on_demand, milliseconds) << " on demand";
    if (plan.state != PlanState::settled) out << (plan.state == PlanState::left ? ", not followed" : ", on trial");
    if (predicted.lower_bound.count() > 0) {
      const double times =
          static_cast<double>(predicted.iteration.count()) / static_cast<double>(predicted.lower_bound.count());
      out << ", at most " << text::fixed_point(std::llround(std::min(times, 1e12) * 1000), 1000, 3)
          << " x the least possible";
    }
    if (plan.replays != 0) {
      out << "; " << plan.replays << " run again, " << text::time_text(plan.replay_time, milliseconds);
    }
    if (plan.encoded != 0) out << "; values of " << plan.encoded << " tensors encoded";
    out << "; " << text::size_text(predicted.h2d) << " in, " << text::size_text(predicted.d2h) << " out";
    if (plan.tells_file) {
      out << " (" << text::size_text(plan.file_in) << " and " << text::size_text(plan.file_out) << " with the file)";
    }
    if (plan.tells_neighbours) {
      out << " (" << text::size_text(plan.neighbours_in) << " and " << text::size_text(plan.neighbours_out)
          << " with neighbours)";
    }
    out << ", peak " << text::size_text(predicted.peak) << '\n';
    for (const StallSummary& one : plan.stalls)
      out << "    stall  " << text::time_text(one.time, milliseconds) << ": " << one.what << '\n';
    if (plan.stalled_operations > plan.stalls.size()) {
      out << "    and " << plan.stalled_operations - plan.stalls.size() << " operations that wait for less\n";
    }
  }
  for (const OnDemandSummary& one : report.on_demand) {
    out << "  on demand \"" << one.iteration << "\": " << one.why << '\n';
  }
  for (const std::string& note : report.notes) out << "  note     " << note << '\n';
  return out;
}

}  // namespace swapmm
