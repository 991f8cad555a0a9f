// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/ilp.hpp>
#include <swapmm/plan/validate.hpp>

#include "parts.hpp"

namespace swapmm::bench {
namespace {

constexpr double bytes_per_second = 12e9;

/// Training steps of so many layers forward and back, with seeds from 1 on.
struct Steps {
  std::size_t layers = 0;
  std::uint64_t seeds = 0;
  double share = 0;  ///< of the peak
};
// The first ones are so small that every plan can be compared with the best one there is: 6 operations and 15 absences.
// Of the others, windows are decided exactly.
constexpr Steps all_steps[] = {{3, 6, 0.5}, {4, 3, 0.65}, {5, 3, 0.65}, {6, 3, 0.5}};

/// Without windows for programs that are too large to be decided as a whole, too.
std::vector<NamedPlanner> planners_for(const Steps& steps) {
  std::vector<NamedPlanner> chosen;
  for (const NamedPlanner& planner : all_planners()) {
    if (planner.name == "best" || planner.name == "ilp") chosen.push_back(planner);
  }
#ifdef SWAPMM_BENCH_HAS_ILP
  if (steps.layers > 3) chosen.push_back({"ilp, no windows", ilp_planner({.windows = {.most = 0}}).make, ""});
#else
  (void)steps;
#endif
  return chosen;
}

class Step {
 public:
  Step(std::size_t layers, std::uint64_t seed) : layers_(layers), random_(seed) {
    trace_.name = "step " + std::to_string(seed);
    if (layers != 3) trace_.name += " of " + std::to_string(layers) + " layers";
  }

  Trace build() {
    std::vector<TensorId> weights, values{add("input", TensorKind::input)}, gradients;
    for (std::size_t i = 0; i < layers_; ++i)
      weights.push_back(add("weight" + std::to_string(i), TensorKind::persistent));
    for (std::size_t i = 0; i < layers_; ++i) values.push_back(add("value" + std::to_string(i), TensorKind::transient));
    for (std::size_t i = 0; i < layers_; ++i)
      gradients.push_back(i == 0 ? values.back() : add("gradient" + std::to_string(i), TensorKind::transient));
    // gradients[0] is what the last layer made: with it the way back begins.
    for (std::size_t i = 0; i < layers_; ++i) {
      trace_.operations.push_back(
          {"forward" + std::to_string(i), duration(0.1), {weights[i], values[i]}, {values[i + 1]}, {}});
    }
    for (std::size_t done = 0; done < layers_; ++done) {
      const std::size_t i = layers_ - 1 - done;
      TraceOperation operation{
          "backward" + std::to_string(i), duration(0.2), {values[i], gradients[done]}, {}, {weights[i]}};
      if (done + 1 < layers_) operation.writes.push_back(gradients[done + 1]);
      trace_.operations.push_back(std::move(operation));
    }
    return std::move(trace_);
  }

 private:
  std::uint64_t between(std::uint64_t least, std::uint64_t most) { return least + random_() % (most - least + 1); }
  /// From 5 to 60 times that many milliseconds.
  std::chrono::nanoseconds duration(double milliseconds) {
    return std::chrono::nanoseconds{
        static_cast<std::int64_t>(static_cast<double>(between(5, 60)) * milliseconds * 1e6)};
  }
  /// 10 to 30 MB; weights twice as much, so that half of the peak holds most bundles.
  TensorId add(const std::string& name, TensorKind kind) {
    const std::uint64_t megabytes = between(10, 30) * (kind == TensorKind::persistent ? 2 : 1);
    trace_.tensors.push_back({name, Bytes{megabytes * 1'000'000}, kind, 0});
    return static_cast<TensorId>(trace_.tensors.size() - 1);
  }

  std::size_t layers_;
  std::mt19937_64 random_;
  Trace trace_;
};

}  // namespace

Report run_steps(const Settings& settings) {
  const double limit = settings.limit_or(10);
  Report report;
  report.rows = {"", {"trace", "planner", "iteration ms", "bound ms", "time / bound", "seconds"}, {}};
  int proven = 0;
  std::size_t count = 0;
  for (const Steps& steps : all_steps) count += steps.seeds * planners_for(steps).size();
  Progress progress("steps", count, settings.quiet);
  for (const Steps& steps : all_steps) {
    for (std::uint64_t seed = 1; seed <= steps.seeds; ++seed) {
      const Trace trace = Step(steps.layers, seed).build();
      Machine machine = machine_with(part_of(peak_of(trace), steps.share), bytes_per_second);
      machine.device_budget =
          std::max(machine.device_budget, analyze_liveness(trace, machine.alignment).largest_bundle);
      for (const NamedPlanner& planner : planners_for(steps)) {
        progress.step(trace.name);
        const Planned planned = plan_within(planner, trace, machine, limit);
        if (!planned.plan || !validate(trace, *planned.plan).empty()) {
          report.lines.push_back(trace.name + ", " + planner.name + ": " +
                                 (planned.plan ? "breaks a rule" : planned.problem));
          report.is_sound = false;
          continue;
        }
        const auto bound = static_cast<double>(planned.plan->predicted.lower_bound.count());
        const double ratio = planned.iteration() / bound;
        constexpr double precision = 2e-5;  // that of the integer program's arithmetic
        if (steps.layers == 3 && planner.name == "ilp" && ratio <= 1 + precision) ++proven;
        report.rows.rows.push_back({trace.name, planner.name, fixed(planned.iteration() / 1e6, 3),
                                    fixed(bound / 1e6, 3), fixed(ratio, 5), fixed(planned.seconds, 2)});
      }
    }
  }
  report.lines.push_back("three layers, proven optimal by ilp: " + std::to_string(proven) + " of " +
                         std::to_string(all_steps[0].seeds));
  return report;
}

}  // namespace swapmm::bench
