// SPDX-License-Identifier: Apache-2.0
#include "faults/loop/loop.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace swapmm::test {
namespace {

constexpr std::uint64_t most_calls = 100'000;
/// Values of n that no stride leaves out.
std::uint64_t always(const Scenario& scenario) {
#ifdef SWAPMM_TEST_IS_SLOW
  return std::min<std::uint64_t>(scenario.first, 1);
#else
  return scenario.first;
#endif
}
constexpr std::size_t most_problems = 5;

simulated::Options device_for(const Scenario& scenario, std::uint64_t seed) {
  using simulated::Order;
  constexpr std::array<Order, 6> orders{Order::uniform,      Order::virtual_time, Order::pct,
                                        Order::copies_first, Order::copies_last,  Order::starved};
  simulated::Options options;
  options.device_bytes = Bytes{8192};
  options.seed = seed;
  options.order = orders[seed % orders.size()];
  options.starved_queue = static_cast<QueueKind>(seed / orders.size() % base_queue_count);
  options.pct_depth = 2 + static_cast<int>(seed % 2);
  options.pieces = 3;
  options.needs_flush = seed % 2 == 0;
  scenario.device(options);
  return options;
}

/// How many errors the faults that came about may give; none where there is no limit.
std::optional<std::size_t> most_errors(const Scenario& scenario, const std::vector<Hit>& hits, bool failures_stick) {
  std::size_t most = 0;
  for (const Hit& hit : hits) {
    if (hit.kind.repeats() || hit.kind.loses_device() || (failures_stick && hit.kind.late())) return std::nullopt;
    const bool is_error = hit.kind.way != Way::slow && hit.kind.way != Way::part;
    if (is_error) most += scenario.managers;
  }
  return most;
}

std::string listed(const std::vector<std::string>& texts) {
  std::string all;
  for (std::size_t i = 0; i < std::min<std::size_t>(texts.size(), 4); ++i) all += (i == 0 ? "" : " | ") + texts[i];
  return texts.size() > 4 ? all + " | and so on" : all;
}

}  // namespace

RunResult run_with_faults(const Scenario& scenario, const Faults& faults, std::uint64_t seed, AllocationSites* sites) {
  RunResult result;
  World world(device_for(scenario, seed), faults, sites);
  scenario.run(world);
  if (faults.empty() && !scenario.achieved(world)) {
    result.problems.emplace_back("the scenario does not do what it is for");
  }
  try {
    world.probe();
  } catch (const std::exception& error) {
    result.problems.push_back(std::string("the probe ends with: ") + error.what());
  }
  result.errors = world.error_texts();
  const std::vector<std::string>& errors = result.errors;
  result.hits = world.hits();
  const auto most = most_errors(scenario, result.hits, world.failures_stick());
  if (most && errors.size() > *most) {
    result.problems.push_back(std::to_string(*most) + " errors at most: " + listed(errors));
  }
  result.hidden = !result.hits.empty() && errors.empty() && world.reads_of_lost() == 0;
  world.tear_down(faults.empty() ? seed : seed + faults.front().n);
  for (const std::string& problem : world.problems()) result.problems.push_back(problem);
  for (std::string& problem : result.problems) {
    problem = std::string(scenario.name) + ", " + text_of(faults) + ", seed " + std::to_string(seed) + ": " + problem;
    if (!errors.empty()) problem += " [errors: " + listed(errors) + "]";
  }
  return result;
}

RunResult replay(std::string_view problem) {
  const auto scenario = std::find_if(scenarios().begin(), scenarios().end(), [&](const Scenario& known) {
    return problem.starts_with(std::string(known.name) + ", ");  // some names hold commas
  });
  if (scenario == scenarios().end()) return {.hits = {}, .problems = {"no scenario begins that text"}, .errors = {}};
  problem.remove_prefix(scenario->name.size() + 2);
  const Faults faults = faults_of(problem);
  constexpr std::string_view seed_follows = ", seed ";
  const std::size_t at = problem.find(seed_follows);
  if (faults.empty() || at == std::string_view::npos)
    return {.hits = {}, .problems = {"no faults, or no seed, in that text"}, .errors = {}};
  const std::string_view number = problem.substr(at + seed_follows.size());
  std::uint64_t seed = 0;
  std::from_chars(number.data(), number.data() + number.size(), seed);
  std::cout << scenario->name << ", " << text_of(faults) << ", seed " << seed << '\n';
  RunResult run = run_with_faults(*scenario, faults, seed);
  for (const Hit& hit : run.hits) std::cout << "  " << hit.kind.text() << " at " << hit.site << '\n';
  for (const std::string& error : run.errors) std::cout << "  " << error << '\n';
  return run;
}

void LoopResult::add(const RunResult& run, std::size_t faults) {
  for (const Hit& hit : run.hits) reached.add(hit);
  if (run.hits.size() == faults) {
    ++runs;
    if (run.hidden) ++hidden;
  }
  for (const std::string& problem : run.problems) {
    if (problems.size() < most_problems) problems.push_back(problem);
  }
}

void LoopResult::add(const LoopResult& other) {
  runs += other.runs;
  hidden += other.hidden;
  reached.add(other.reached);
  for (const std::string& problem : other.problems) {
    if (problems.size() < most_problems) problems.push_back(problem);
  }
}

const ScenarioCalls& calls_of(const Scenario& scenario) {
  static std::mutex mutex;
  static std::map<std::string_view, ScenarioCalls> known;
  {
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(scenario.name); found != known.end()) return found->second;
  }
  AllocationSites sites(1);
  World world(device_for(scenario, 1), {}, &sites);
  scenario.run(world);
  ScenarioCalls result;
  result.calls = world.calls();
  world.probe();
  result.allocation_sites = sites.numbers();
  const std::lock_guard lock(mutex);
  return known.emplace(scenario.name, std::move(result)).first->second;
}

namespace {

/// A plan alone takes thousands of allocations, most of them in the same place: the first one of each place fails. With
/// a stride each round leaves out others.
LoopResult loop_over_allocations(const Scenario& scenario, const FaultKind& kind, std::uint64_t round,
                                 std::uint64_t stride) {
  LoopResult result;
  const std::uint64_t first = always(scenario);
  const std::vector<std::uint64_t>& numbers = calls_of(scenario).allocation_sites;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i >= first && (i - first) % stride != round % stride) continue;
    result.add(run_with_faults(scenario, {{kind, numbers[i]}}, round * 1'000'003 + i), 1);
  }
  return result;
}

}  // namespace

LoopResult loop(const Scenario& scenario, const FaultKind& kind, std::uint64_t round, std::uint64_t stride) {
  LoopResult result;
  if (kind.of_file() && !scenario.streams) return result;
  if (kind.call != CallClass::operator_new && scenario.only_allocations) return result;
  if (kind.call == CallClass::operator_new) {
    // Where none is left after the first one, each call fails alike.
    const std::uint64_t more = kind.way == Way::for_ever ? 4 : 1;
    return loop_over_allocations(scenario, kind, round, stride * scenario.stride * more);
  }
  // Events are made in loops, one like the other.
  const bool is_like_many = kind.call == call_class(FaultClass::event_creation);
  const std::uint64_t first = always(scenario);
  const std::uint64_t step = stride * scenario.stride * (is_like_many ? 3 : 1);
  for (std::uint64_t n = 1; n <= most_calls; n += n < first ? 1 : step) {
    const RunResult run = run_with_faults(scenario, {{kind, n}}, round * 1'000'003 + n);
    result.add(run, 1);
    if (run.hits.empty()) break;
  }
  return result;
}

std::string_view why_hidden(const FaultKind& kind, const Scenario& scenario) {
  const bool closes = scenario.name == "build and tear down" || scenario.name == "two managers on one device" ||
                      scenario.name == "teardown with work in flight" || scenario.name == "plans saved and loaded";
  if (kind.way == Way::slow) return "a slow device is no error";
  if (kind.way == Way::part) return "what is left over after a short count comes next";
  if (kind.call == CallClass::operator_new) return "the standard library sorts without a buffer where it gets none";
  if (kind.of_file()) return {};
  const FaultMode mode = fault_mode(kind.way);
  switch (fault_class(kind.call)) {
    case FaultClass::pinned_allocation:
      if (mode == FaultMode::device_lost) return {};
      return mode == FaultMode::lazy ? "the second slot of an upload is never used" : "pageable memory takes its place";
    case FaultClass::pageable_allocation:
      return mode == FaultMode::once || mode == FaultMode::blind ? "kept memory is freed, then tried again" : "";
    case FaultClass::device_allocation:
      return mode == FaultMode::lazy && scenario.name == "changing budgets"
                 ? "memory that is only asked for to see whether there is any"
                 : "";
    case FaultClass::event_creation: return mode == FaultMode::lazy ? "the event is never used" : "";
    case FaultClass::record: return mode == FaultMode::late ? "the event only takes the time, or is not needed" : "";
    case FaultClass::copy_to_device:
    case FaultClass::copy_to_host:
    case FaultClass::launch:
    case FaultClass::adopt:
      return mode == FaultMode::late && closes ? "nobody asks for the value before its manager ends" : "";
    case FaultClass::host_wait: return "the event tells that the work has ended all the same";
    case FaultClass::status_query:
    case FaultClass::flush:
    case FaultClass::timing: return "a destructor tries again, or gives up what nobody asks for";
    case FaultClass::finish: return closes ? "the manager ends anyway" : "";
    default: return {};
  }
}

}  // namespace swapmm::test
