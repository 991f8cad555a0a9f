// SPDX-License-Identifier: Apache-2.0
// Prints what each planner makes of traces at several budgets: the predicted iteration time in milliseconds, and how
// long planning took. Takes traces as arguments (format swapmm-trace), else those of this repository, run from its
// root. The machine is simulated: 15.754 GB/s each way, budgets in parts of the peak of live bytes.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/ir/trace_json.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/validator.hpp>

using namespace swapmm;

namespace {

double milliseconds(std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1e6; }

void print_row(const Trace& trace, const Machine& machine, double share, const NamedPlanner& planner) {
  const auto start = std::chrono::steady_clock::now();
  const Result<Plan> plan = planner.make(trace, machine);
  const auto planning = std::chrono::steady_clock::now() - start;
  std::printf("| %s | %.2f | %.*s | ", trace.name.c_str(), share, static_cast<int>(planner.name.size()),
              planner.name.data());
  if (!plan) {
    std::printf("%s |\n", plan.problem().message.c_str());
    return;
  }
  const Prediction& predicted = plan->predicted;
  std::printf("%.1f | %.1f | %.2f | %.2f | %.3f | %.0f | %zu |\n", milliseconds(predicted.iteration),
              milliseconds(predicted.compute), static_cast<double>(predicted.h2d.value) / 1e9,
              static_cast<double>(predicted.d2h.value) / 1e9,
              static_cast<double>(predicted.peak.value) / static_cast<double>(machine.device_budget.value),
              milliseconds(planning), validate(trace, *plan).size());
}

}  // namespace

int main(int argc, char** argv) {
  std::printf(
      "| trace | budget / peak | planner | iteration ms | compute ms | in GB | out GB | peak / budget |"
      " planning ms | violations |\n|---|---|---|---|---|---|---|---|---|---|\n");
  std::vector<std::string> names(argv + 1, argv + argc);
  if (names.empty()) {
    names = {"tests/data/traces/g10/BERT_Base_b256.json", "tests/data/traces/g10/VIT_b512.json"};
  }
  for (const std::string& name : names) {
    std::ifstream file(name);
    const Result<Trace> trace = read_trace(file);
    if (!trace) {
      std::fprintf(stderr, "%s: %s\n", name.c_str(), trace.problem().message.c_str());
      return 1;
    }
    Machine machine;
    machine.alignment = Bytes{256};
    machine.h2d.bytes_per_second = 15'754'000'000;
    machine.d2h.bytes_per_second = 15'754'000'000;
    const Liveness liveness = analyze_liveness(*trace, machine.alignment);
    for (const double share : {0.7, 0.5, 0.35}) {
      machine.device_budget = Bytes{static_cast<std::uint64_t>(static_cast<double>(liveness.peak.value) * share)};
      for (const NamedPlanner& planner : planners()) print_row(*trace, machine, share, planner);
    }
  }
  return 0;
}
