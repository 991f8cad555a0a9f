// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/planner.hpp>

namespace swapmm::bench {

/// planners(), and `ilp` if that was built.
[[nodiscard]] const std::vector<NamedPlanner>& all_planners();
/// make_plan() with those.
[[nodiscard]] Result<Plan> plan_by(std::string_view planner, const Trace& trace, const Machine& machine,
                                   const PlanningOptions& options);

/// What the command line says.
struct Settings {
  std::string planner = "best";
  std::optional<double> limit;         ///< seconds a plan may be searched; 0: without PlanningOptions::go_on
  unsigned jobs = 2;                   ///< threads that compute bounds; plans are made one by one
  std::size_t sample = 1;              ///< of the grid, every so-manieth
  std::vector<std::string> traces;     ///< of the grid
  std::string only;                    ///< of memories, those whose name contains this
  std::size_t largest = 100'000;       ///< operations, of the part `scale`
  std::string out = "build/planning";  ///< folder of the CSV files and of the bounds computed so far
  bool quiet = false;

  [[nodiscard]] double limit_or(double seconds) const { return limit.value_or(seconds); }
};

/// Those whose name contains Settings::only, of every Settings::sample-th.
template <class Instance>
[[nodiscard]] std::vector<Instance> chosen_of(const std::vector<Instance>& instances, const Settings& settings) {
  std::vector<Instance> chosen;
  for (std::size_t i = 0; i < instances.size(); i += std::max<std::size_t>(settings.sample, 1)) {
    if (name_of(instances[i]).find(settings.only) != std::string::npos) chosen.push_back(instances[i]);
  }
  return chosen;
}

/// A search that ends after so many seconds; 0: by itself.
[[nodiscard]] PlanningOptions within(double seconds);

/// A trace from a file; a std::runtime_error where it cannot be read.
[[nodiscard]] Trace load_trace(const std::string& name);
/// All durations times `factor`.
[[nodiscard]] Trace with_scaled_durations(Trace trace, double factor);
/// A machine with such a link each way, alignment 256, one arena, full duplex.
[[nodiscard]] Machine machine_with(Bytes budget, double bytes_per_second);
/// Of live bytes, rounded up to that alignment.
[[nodiscard]] Bytes peak_of(const Trace& trace);
[[nodiscard]] Bytes part_of(Bytes bytes, double share);

/// A plan, and how long it took.
struct Planned {
  std::optional<Plan> plan;
  std::string problem;  ///< where there is no plan
  double seconds = 0;

  [[nodiscard]] double iteration() const { return static_cast<double>(plan->predicted.iteration.count()); }
  [[nodiscard]] double compute() const { return static_cast<double>(plan->predicted.compute.count()); }
};

/// Asks the planner to search no longer than that many seconds; 0: as long as it takes by itself.
[[nodiscard]] Planned plan_within(const NamedPlanner& planner, const Trace& trace, const Machine& machine,
                                  double seconds);
[[nodiscard]] Planned plan_within(std::string_view planner, const Trace& trace, const Machine& machine, double seconds);

[[nodiscard]] double seconds_since(std::chrono::steady_clock::time_point start);

/// How far the benchmark has come, on stderr: one line that changes on a terminal, else a line now and then.
class Progress {
 public:
  Progress(std::string what, std::size_t steps, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void step(const std::string& name);

 private:
  std::string what_;
  std::size_t steps_;
  std::size_t done_ = 0;
  bool quiet_;
  bool is_terminal_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point shown_{};
};

/// Of ratios above 0.
struct Ratios {
  std::size_t count = 0;
  double log_sum = 0;
  double worst = 0;

  void add(double ratio);
  [[nodiscard]] double geometric_mean() const;
};

/// A line for a report: what the ratios are of, their mean, and the largest.
[[nodiscard]] std::string summary_of(const std::string& what, const Ratios& ratios);

}  // namespace swapmm::bench
