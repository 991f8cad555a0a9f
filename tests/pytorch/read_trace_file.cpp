// SPDX-License-Identifier: Apache-2.0
// Reads a trace, plans it with half of the bytes that it needs at its peak, and checks the plan. Prints, as one object
// of JSON, what it read; says what is wrong, and fails, where any of this does. usage: swapmm_read_trace_file FILE
#include <cstdint>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <swapmm/formats/trace_json.hpp>
#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/validate.hpp>

using namespace swapmm;

namespace {

int fail(const std::string& text) {
  std::cerr << text << '\n';
  return 1;
}

int run(const char* name) {
  std::ifstream file(name);
  const Result<Trace> trace = read_trace(file);
  if (!trace) return fail(trace.problem().message);

  Machine machine;
  machine.alignment = Bytes{256};
  machine.h2d.bytes_per_second = 15'754'000'000;
  machine.d2h.bytes_per_second = 15'754'000'000;
  const Liveness liveness = analyze_liveness(*trace, machine.alignment);
  machine.device_budget = Bytes{liveness.peak.value / 2};
  const Result<Plan> plan = make_plan("excess-overlap", *trace, machine);
  if (!plan) return fail(plan.problem().message);
  const std::vector<Violation> violations = validate(*trace, *plan);
  for (const Violation& violation : violations) std::cerr << violation.message << '\n';
  if (!violations.empty()) return 1;

  std::cout << "{\"tensors\": " << trace->tensors.size() << ", \"operations\": " << trace->operations.size()
            << ", \"host_reads\": " << trace->host_reads.size() << ", \"peak_live_bytes\": " << liveness.peak.value
            << ", \"largest_bundle\": " << liveness.largest_bundle.value << ", \"digest\": \"" << digest(*trace)
            << "\", \"planned_peak_bytes\": " << plan->predicted.peak.value
            << ", \"commands\": " << plan->commands.size() << "}\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return fail("usage: swapmm_read_trace_file FILE");
  return run(argv[1]);
}
