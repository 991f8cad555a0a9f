// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/validate.hpp>

#include "parts.hpp"

namespace swapmm::bench {
namespace {

constexpr std::array traces = {"tests/data/traces/g10/VIT_b512.json", "tests/data/traces/g10/BERT_Base_b256.json"};
constexpr std::array oversubscriptions = {1.5, 2.0, 3.0, 4.0, 6.0, 8.0};  // peak of live bytes / budget
constexpr std::array link_ratios = {2, 4, 8, 12};                         // of a neighbour's link to the host's
constexpr std::array neighbours = {0, 1, 3};
constexpr std::uint64_t host_bytes_per_second = 15'754'000'000;
/// Computation takes a fifth of the recorded time, so that the host's link is the limit.
constexpr double compute_scale = 0.2;
/// What each neighbour spares, as part of the peak.
constexpr double spare_share = 0.25;

void add_links(v2::Machine& machine, v2::MemoryId memory, std::uint64_t rate) {
  const v2::MemoryId device{0};
  const std::string& name = machine.memories[index(memory)].name;
  machine.links.push_back({"from." + name, memory, device, rate, std::chrono::nanoseconds{0}, std::nullopt, {}});
  machine.links.push_back({"to." + name, device, memory, rate, std::chrono::nanoseconds{0}, std::nullopt, {}});
}

/// A device with a link each way to the host, which has no limit, and to spare memory of that many neighbours.
v2::Machine machine_of(Bytes budget, Bytes spare, int count, int ratio) {
  v2::Machine machine;
  machine.name = std::to_string(count) + " neighbours";
  machine.memories.push_back({"gpu", budget, Bytes{256}, std::nullopt});
  machine.memories.push_back({"host", std::nullopt, Bytes{1}, std::nullopt});
  machine.engines.push_back({"compute", v2::MemoryId{0}});
  machine.host = v2::MemoryId{1};
  add_links(machine, machine.host, host_bytes_per_second);
  for (int i = 0; i < count; ++i) {
    machine.memories.push_back({"neighbour" + std::to_string(i), spare, Bytes{256}, std::nullopt});
    add_links(machine, v2::MemoryId{static_cast<std::uint32_t>(2 + i)},
              host_bytes_per_second * static_cast<std::uint64_t>(ratio));
  }
  return machine;
}

}  // namespace

Report run_harvest(const Settings& settings) {
  Report report;
  report.rows.title = "Spare memory of neighbours before the host: slowdown over the computation";
  report.rows.columns = {"trace",         "peak / budget", "neighbour link / host link",
                         "host only",     "1 neighbour",   "3 neighbours",
                         "host only / 3", "1 / 3",         "bound, 1",
                         "bound, 3"};
  const double limit = settings.limit_or(3);
  Progress progress("harvest", traces.size() * oversubscriptions.size() * (1 + 2 * link_ratios.size()), settings.quiet);
  Ratios over_host;
  Ratios over_one;
  for (const char* const file : traces) {
    const Trace trace = with_scaled_durations(load_trace(file), compute_scale);
    const Bytes peak = peak_of(trace);
    for (const double k : oversubscriptions) {
      const Bytes budget = std::max(part_of(peak, 1 / k), analyze_liveness(trace, Bytes{256}).largest_bundle);
      double host_only = 0;
      for (const int ratio : link_ratios) {
        std::vector<double> slowdowns;
        std::vector<double> bounds;
        for (const int count : neighbours) {
          if (count == 0 && host_only > 0) {  // has no neighbour's link
            slowdowns.push_back(host_only);
            bounds.push_back(0);
            continue;
          }
          progress.step(trace.name + ", " + fixed(k, 1) + " x, ratio " + std::to_string(ratio));
          const v2::Machine machine = machine_of(budget, part_of(peak, spare_share), count, ratio);
          const auto plan = v2::make_plan(settings.planner, trace, machine, within(limit));
          if (!plan || !v2::validate(trace, *plan).empty()) {
            report.lines.push_back(trace.name + ": " + (plan ? "a plan breaks a rule" : plan.problem().message));
            report.is_sound = false;
            slowdowns.push_back(0);
            bounds.push_back(0);
            continue;
          }
          const auto compute = static_cast<double>(plan->predicted.compute.count());
          slowdowns.push_back(static_cast<double>(plan->predicted.iteration.count()) / compute);
          bounds.push_back(static_cast<double>(plan->predicted.lower_bound.count()) / compute);
          if (bounds.back() > slowdowns.back()) report.is_sound = false;
          if (count == 0) host_only = slowdowns.back();
        }
        over_host.add(slowdowns[0] / slowdowns[2]);
        over_one.add(slowdowns[1] / slowdowns[2]);
        report.rows.rows.push_back({trace.name, fixed(k, 1), std::to_string(ratio), fixed(slowdowns[0], 3),
                                    fixed(slowdowns[1], 3), fixed(slowdowns[2], 3),
                                    fixed(slowdowns[0] / slowdowns[2], 2), fixed(slowdowns[1] / slowdowns[2], 2),
                                    fixed(bounds[1], 3), fixed(bounds[2], 3)});
      }
    }
  }
  report.lines.push_back("three neighbours are up to " + fixed(over_host.worst, 2) +
                         " x as fast as the host alone, and up to " + fixed(over_one.worst, 2) + " x as fast as one");
  return report;
}

}  // namespace swapmm::bench
