// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <swapmm/plan/validate.hpp>

#include "bounds.hpp"
#include "parts.hpp"

namespace swapmm::bench {
namespace {

struct Workload {
  const char* file;
  double published;  ///< fraction of ideal that G10's authors simulated for their policy, on their machine
};

constexpr Workload workloads[] = {{"BERT_Base_b256", 0.997},
                                  {"VIT_b1280", 0.671},
                                  {"Inceptionv3_b1536", 0.977},
                                  {"ResNet152_b1280", 0.984},
                                  {"SENet154_b1024", 0.934}};
constexpr double bytes_per_second = 15.754e9;
constexpr Bytes budget{40'000'000'000};

}  // namespace

Report run_published(const Settings& settings) {
  std::vector<Instance> instances;
  for (const Workload& workload : workloads) {
    Trace trace = load_trace(std::string("tests/data/traces/g10/") + workload.file + ".json");
    std::string name = trace.name;
    instances.push_back({std::move(name), std::move(trace), machine_with(budget, bytes_per_second)});
  }
  Bounds bounds(settings);
  std::vector<const Instance*> to_bound;
  to_bound.reserve(instances.size());
  for (const Instance& instance : instances) to_bound.push_back(&instance);
  bounds.provide(to_bound);

  const double limit = settings.limit_or(10);
  Report report;
  report.rows = {settings.planner + ", " + fixed(limit, 1) + " s each, 40 GB, 15.754 GB/s each way:",
                 {"workload", "compute ms", "iteration ms", "bound ms", "fraction of ideal", "most there is",
                  "published G10", "planning s", "violations"},
                 {}};
  Ratios ours, theirs, most;
  Progress progress("published", instances.size(), settings.quiet);
  for (std::size_t i = 0; i < instances.size(); ++i) {
    const Instance& instance = instances[i];
    const Planned planned = plan_within(settings.planner, instance.trace, instance.machine, limit);
    progress.step(instance.name);
    if (!planned.plan) {
      report.lines.push_back(instance.name + ": " + planned.problem);
      report.is_sound = false;
      continue;
    }
    const double bound = std::max(bounds.of(instance).value_or(0), planned.compute());
    const std::size_t violations = validate(instance.trace, *planned.plan).size();
    if (violations > 0 || planned.iteration() < bound * (1 - 1e-9) - 1) report.is_sound = false;
    ours.add(planned.compute() / planned.iteration());
    most.add(planned.compute() / bound);
    theirs.add(workloads[i].published);
    report.rows.rows.push_back({instance.name, fixed(planned.compute() / 1e6, 1), fixed(planned.iteration() / 1e6, 1),
                                fixed(bound / 1e6, 1), fixed(planned.compute() / planned.iteration(), 4),
                                fixed(planned.compute() / bound, 4), fixed(workloads[i].published, 3),
                                fixed(planned.seconds, 2), std::to_string(violations)});
  }
  report.rows.rows.push_back({"geometric mean", "", "", "", fixed(ours.geometric_mean(), 4),
                              fixed(most.geometric_mean(), 4), fixed(theirs.geometric_mean(), 3), "", ""});
  report.lines.emplace_back(
      "Ideal is the sum of the durations. The machine simulated here has no SSD and unlimited host memory; that of the "
      "published figures has 128 GB of host memory and an SSD at 3.2 GB/s.");
  return report;
}

}  // namespace swapmm::bench
