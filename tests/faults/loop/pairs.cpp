// SPDX-License-Identifier: Apache-2.0
#include "faults/loop/pairs.hpp"

#include <algorithm>
#include <bit>
#include <random>
#include <vector>

namespace swapmm::test {
namespace {

using Random = std::mt19937_64;

std::uint64_t up_to(Random& random, std::uint64_t most) { return 1 + random() % most; }

std::uint64_t calls_of_class(const ScenarioCalls& calls, CallClass call) {
  return calls.calls[static_cast<std::size_t>(call)];
}

/// Small numbers as likely as large ones, by their order of magnitude.
std::uint64_t soon(Random& random, std::uint64_t most) {
  const auto magnitudes = static_cast<std::uint64_t>(std::bit_width(most));
  return std::min(most, up_to(random, std::uint64_t{1} << (random() % magnitudes)));
}

Fault first_fault(Random& random, const ScenarioCalls& calls) {
  for (;;) {
    const FaultKind kind = fault_kinds()[random() % fault_kinds().size()];
    const std::uint64_t most = calls_of_class(calls, kind.call);
    if (most == 0) continue;
    const bool by_stack = kind.call == CallClass::operator_new && !calls.allocation_sites.empty() && random() % 2 == 0;
    if (by_stack) return {kind, calls.allocation_sites[random() % calls.allocation_sites.size()]};
    return {kind, random() % 2 == 0 ? up_to(random, most) : soon(random, most)};
  }
}

Fault second_fault(Random& random, const ScenarioCalls& calls) {
  for (;;) {
    const FaultKind kind = fault_kinds()[random() % fault_kinds().size()];
    // Calls that only come about where something has failed are not among those of a run without a fault.
    const std::uint64_t most = std::max<std::uint64_t>(calls_of_class(calls, kind.call), 8);
    if (kind.of_file() && calls_of_class(calls, kind.call) == 0) continue;
    return {kind, soon(random, most)};
  }
}

const Scenario& draw_scenario(Random& random) {
  for (;;) {
    const Scenario& scenario = scenarios()[random() % scenarios().size()];
    if (scenario.stride == 1 || random() % scenario.stride == 0) return scenario;  // the others take long
  }
}

// Two losses of the device in a row: the probe meets the second one where only the first one is looked for.
bool lost_twice(const RunResult& run) {
  return std::all_of(run.hits.begin(), run.hits.end(), [](const Hit& hit) { return hit.kind.loses_device(); });
}

}  // namespace

LoopResult run_pairs(std::uint64_t seed, std::size_t count) {
  LoopResult result;
  Random random(seed);
  for (std::size_t i = 0; i < count; ++i) {
    const Scenario& scenario = draw_scenario(random);
    const ScenarioCalls& calls = calls_of(scenario);
    const Faults faults{first_fault(random, calls), second_fault(random, calls)};
    RunResult run = run_with_faults(scenario, faults, random() % 1'000'000);
    if (lost_twice(run)) continue;
    // One that was found out and one that nobody need be told of look alike from outside: only where both passed
    // without a word must both be such.
    if (run.hits.size() == 2 && run.hidden &&
        (why_hidden(run.hits[0].kind, scenario).empty() && why_hidden(run.hits[1].kind, scenario).empty())) {
      run.problems.push_back(std::string(scenario.name) + ", " + text_of(faults) + ": nobody was told of either");
    }
    result.add(run, 2);
  }
  return result;
}

}  // namespace swapmm::test
