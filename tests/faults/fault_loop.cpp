// SPDX-License-Identifier: Apache-2.0
#include "faults/fault_loop.hpp"

#include <algorithm>
#include <array>
#include <iomanip>
#include <ostream>
#include <utility>

namespace swapmm::test {
namespace {

constexpr std::uint64_t most_sites = 100'000;
// Values of n that no stride leaves out.
#ifdef SWAPMM_TEST_IS_SLOW
constexpr std::uint64_t always = 3;
#else
constexpr std::uint64_t always = 8;
#endif
constexpr std::size_t most_problems = 5;

simulated::Options device_for(const Scenario& scenario, std::uint64_t seed) {
  using simulated::Order;
  constexpr std::array<Order, 6> orders{Order::uniform,      Order::virtual_time, Order::pct,
                                        Order::copies_first, Order::copies_last,  Order::starved};
  simulated::Options options;
  options.device_bytes = Bytes{8192};
  options.seed = seed;
  options.order = orders[seed % orders.size()];
  options.starved_queue = static_cast<QueueKind>(seed / orders.size() % queue_count);
  options.pct_depth = 2 + static_cast<int>(seed % 2);
  options.pieces = 3;
  options.needs_flush = seed % 2 == 0;
  scenario.device(options);
  return options;
}

bool same(const FaultKind& a, const FaultKind& b) {
  return a.source == b.source && a.fault_class == b.fault_class && a.mode == b.mode;
}

}  // namespace

std::string FaultKind::row() const {
  switch (source) {
    case Fault::Source::nothing: break;
    case Fault::Source::backend: return std::string(to_string(fault_class));
    case Fault::Source::operator_new: return "operator_new";
    case Fault::Source::kernel: return "kernel";
    case Fault::Source::stream: return "file";
  }
  return "nothing";
}

std::string FaultKind::column() const {
  if (source == Fault::Source::stream) return mode == FaultMode::once ? "full" : "throws";
  return std::string(to_string(mode));
}

const std::vector<FaultKind>& fault_kinds() {
  static const std::vector<FaultKind> kinds = [] {
    std::vector<FaultKind> all;
    for (std::size_t c = 0; c < fault_class_count; ++c) {
      for (std::size_t m = 0; m < fault_mode_count; ++m) {
        const auto fault_class = static_cast<FaultClass>(c);
        const auto mode = static_cast<FaultMode>(m);
        if (applicable(fault_class, mode)) all.push_back({Fault::Source::backend, fault_class, mode});
      }
    }
    all.push_back({Fault::Source::operator_new, {}, FaultMode::once});
    all.push_back({Fault::Source::kernel, {}, FaultMode::late});
    all.push_back({Fault::Source::stream, {}, FaultMode::once});
    all.push_back({Fault::Source::stream, {}, FaultMode::thrown});
    return all;
  }();
  return kinds;
}

RunResult run_with_fault(const Scenario& scenario, const Fault& fault, std::uint64_t seed, AllocationSites* sites) {
  RunResult result;
  World world(device_for(scenario, seed), fault, sites);
  scenario.run(world);
  if (fault.source == Fault::Source::nothing && !scenario.achieved(world)) {
    result.problems.push_back("the scenario does not do what it is for");
  }
  world.probe();
  const std::size_t errors = world.errors();
  result.fired = world.fired();
  if (fault.source == Fault::Source::nothing && errors != 0) result.problems.push_back(world.error_texts().front());
  if (!fault.repeats() && !fault.loses_device() && errors > 1) {
    result.problems.push_back("one fault, " + std::to_string(errors) + " errors: " + world.error_texts()[0] + " | " +
                              world.error_texts()[1]);
  }
  result.hidden = result.fired && errors == 0 && world.reads_of_lost() == 0;
  const bool harmless = fault.source == Fault::Source::backend && fault.mode == FaultMode::slow;
  if (harmless && errors != 0) result.problems.push_back("a slow device is no error: " + world.error_texts().front());
  world.tear_down(seed + fault.n);
  for (const std::string& problem : world.problems()) result.problems.push_back(problem);
  for (std::string& problem : result.problems) {
    problem = std::string(scenario.name) + ", " + fault.text() + ", seed " + std::to_string(seed) + ": " + problem;
    if (errors != 0) problem += " [first error: " + world.error_texts().front() + "]";
  }
  return result;
}

void LoopResult::add(RunResult run) {
  if (run.fired) {
    ++sites;
    ++runs;
    if (run.hidden) ++hidden;
  }
  for (std::string& problem : run.problems) {
    if (problems.size() < most_problems) problems.push_back(std::move(problem));
  }
}

namespace {

/// A plan alone takes thousands of allocations, most of them in the same place: the first one of each place fails.
LoopResult loop_over_allocations(const Scenario& scenario, std::uint64_t seed, std::uint64_t stride) {
  AllocationSites sites(1);
  (void)run_with_fault(scenario, Fault{}, seed, &sites);
  LoopResult result;
  for (std::size_t i = 0; i < sites.numbers().size(); i += i < always ? 1 : stride) {
    result.add(run_with_fault(scenario, {Fault::Source::operator_new, {}, FaultMode::once, sites.numbers()[i]}, seed));
  }
  return result;
}

}  // namespace

LoopResult loop(const Scenario& scenario, const FaultKind& kind, std::uint64_t round, std::uint64_t stride) {
  LoopResult result;
  if (kind.source == Fault::Source::stream && !scenario.streams) return result;
  if (kind.source == Fault::Source::operator_new) {
    return loop_over_allocations(scenario, round * 1'000'003, stride * scenario.stride);
  }
  // Events are made in loops, one like the other.
  const bool is_like_many = kind.source == Fault::Source::backend && kind.fault_class == FaultClass::event_creation;
  const std::uint64_t step = stride * scenario.stride * (is_like_many ? 3 : 1);
  for (std::uint64_t n = 1; n <= most_sites; n += n < always ? 1 : step) {
    RunResult run = run_with_fault(scenario, {kind.source, kind.fault_class, kind.mode, n}, round * 1'000'003 + n);
    const bool done = !run.fired;
    result.add(std::move(run));
    if (done) break;
  }
  return result;
}

const FaultTable::Cell* FaultTable::find(const FaultKind& kind) const {
  const auto found =
      std::find_if(cells_.begin(), cells_.end(), [&](const Cell& cell) { return same(cell.kind, kind); });
  return found == cells_.end() ? nullptr : &*found;
}

void FaultTable::add(const FaultKind& kind, const LoopResult& result, bool new_places) {
  if (find(kind) == nullptr) cells_.push_back({kind, 0, 0, 0});
  const auto cell = std::find_if(cells_.begin(), cells_.end(), [&](const Cell& c) { return same(c.kind, kind); });
  cell->runs += result.runs;
  if (!new_places) return;
  cell->sites += result.sites;
  cell->hidden += result.hidden;
}

std::size_t FaultTable::runs() const {
  std::size_t sum = 0;
  for (const Cell& cell : cells_) sum += cell.runs;
  return sum;
}
std::size_t FaultTable::sites(const FaultKind& kind) const {
  const Cell* const cell = find(kind);
  return cell == nullptr ? 0 : cell->sites;
}
void FaultTable::print(std::ostream& out) const {
  std::vector<std::string> rows;
  std::vector<std::string> columns;
  const auto note = [](std::vector<std::string>& list, std::string text) {
    if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
  };
  for (const FaultKind& kind : fault_kinds()) {
    note(rows, kind.row());
    note(columns, kind.column());
  }
  out << "distinct places (scenario, class, mode, n) that failed, in brackets those that nobody had to be told of\n"
      << std::setw(20) << "";
  for (const std::string& column : columns) out << std::setw(14) << column;
  out << '\n';
  for (const std::string& row : rows) {
    out << std::left << std::setw(20) << row << std::right;
    for (const std::string& column : columns) {
      const auto cell = std::find_if(cells_.begin(), cells_.end(),
                                     [&](const Cell& c) { return c.kind.row() == row && c.kind.column() == column; });
      std::string text;
      if (cell != cells_.end()) {
        text = std::to_string(cell->sites);
        if (cell->hidden != 0) text += " (" + std::to_string(cell->hidden) + ")";
      }
      out << std::setw(14) << text;
    }
    out << '\n';
  }
  out << runs() << " runs with a fault\n";
}

}  // namespace swapmm::test
