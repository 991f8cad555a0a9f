// SPDX-License-Identifier: Apache-2.0
#include "measuring.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <utility>

#include <swapmm/formats/trace_json.hpp>
#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/ilp.hpp>
#include <swapmm/plan/planners.hpp>

#include "table.hpp"

namespace swapmm::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr Bytes alignment{256};

}  // namespace

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

PlanningOptions within(double seconds) {
  PlanningOptions options;
  const auto start = std::chrono::steady_clock::now();
  if (seconds > 0)
    options.go_on = [start, seconds](const PlanningProgress& progress) {
      return seconds_since(start) < progress.part * seconds;
    };
  return options;
}

Trace load_trace(const std::string& name) {
  std::ifstream file(name);
  Result<Trace> trace = read_trace(file);
  if (!trace) throw std::runtime_error(name + ": " + trace.problem().message);
  return *std::move(trace);
}

Trace with_scaled_durations(Trace trace, double factor) {
  for (TraceOperation& operation : trace.operations) {
    operation.duration =
        std::chrono::nanoseconds{std::llround(static_cast<double>(operation.duration.count()) * factor)};
  }
  return trace;
}

Machine machine_with(Bytes budget, double bytes_per_second) {
  Machine machine;
  machine.device_budget = budget;
  machine.alignment = alignment;
  machine.h2d.bytes_per_second = static_cast<std::uint64_t>(bytes_per_second);
  machine.d2h.bytes_per_second = machine.h2d.bytes_per_second;
  return machine;
}

Bytes peak_of(const Trace& trace) { return analyze_liveness(trace, alignment).peak; }

Bytes part_of(Bytes bytes, double share) {
  return Bytes{static_cast<std::uint64_t>(static_cast<double>(bytes.value) * share)};
}

const std::vector<NamedPlanner>& all_planners() {
  static const std::vector<NamedPlanner> all = [] {
    std::vector<NamedPlanner> list(planners().begin(), planners().end());
#ifdef SWAPMM_BENCH_HAS_ILP
    list.push_back(ilp_planner());
#endif
    return list;
  }();
  return all;
}

Result<Plan> plan_by(std::string_view planner, const Trace& trace, const Machine& machine,
                     const PlanningOptions& options) {
  for (const NamedPlanner& known : all_planners()) {
    if (known.name == planner) return known.make(trace, machine, options);
  }
  return make_plan(planner, trace, machine, options);
}

Planned plan_within(std::string_view planner, const Trace& trace, const Machine& machine, double seconds) {
  const auto make = [planner](const Trace& of, const Machine& on, const PlanningOptions& options) {
    return plan_by(planner, of, on, options);
  };
  return plan_within(NamedPlanner{std::string(planner), make, ""}, trace, machine, seconds);
}

Planned plan_within(const NamedPlanner& planner, const Trace& trace, const Machine& machine, double seconds) {
  const auto start = Clock::now();
  Result<Plan> plan = planner.make(trace, machine, within(seconds));
  Planned planned;
  planned.seconds = seconds_since(start);
  if (plan) {
    planned.plan = *std::move(plan);
  } else {
    planned.problem = plan.problem().message;
  }
  return planned;
}

Progress::Progress(std::string what, std::size_t steps, bool quiet)
    : what_(std::move(what)), steps_(steps), quiet_(quiet), is_terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (quiet_ || done_ == 0) return;
  std::fprintf(stderr, "%s%s: %zu of %zu in %.0f s\n", is_terminal_ ? "\r\033[K" : "", what_.c_str(), done_, steps_,
               seconds_since(start_));
}

void Progress::step(const std::string& name) {
  ++done_;
  constexpr double now_and_then = 15;
  if (quiet_ || (!is_terminal_ && seconds_since(shown_) < now_and_then)) return;
  shown_ = Clock::now();
  std::fprintf(stderr, "%s%s: %zu of %zu, %.0f s, %s%s", is_terminal_ ? "\r\033[K" : "", what_.c_str(), done_, steps_,
               seconds_since(start_), name.c_str(), is_terminal_ ? "" : "\n");
}

void Ratios::add(double ratio) {
  ++count;
  log_sum += std::log(ratio);
  worst = std::max(worst, ratio);
}

double Ratios::geometric_mean() const { return count == 0 ? 1 : std::exp(log_sum / static_cast<double>(count)); }

std::string summary_of(const std::string& what, const Ratios& ratios) {
  return what + ": geometric mean " + fixed(ratios.geometric_mean(), 4) + ", largest " + fixed(ratios.worst, 4) + ", " +
         std::to_string(ratios.count) + " instances";
}

}  // namespace swapmm::bench
