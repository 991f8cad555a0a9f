// SPDX-License-Identifier: Apache-2.0
#include "support/program/runner.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/shared_links.hpp>

#include "support/program/run.hpp"
#include "support/program/simulated.hpp"

namespace swapmm::test {
namespace {

std::vector<TestProgram> each_alone(const TestProgram& program) {
  std::vector<TestProgram> all{program};
  all.front().beside.clear();
  all.insert(all.end(), program.beside.begin(), program.beside.end());
  return all;
}

/// Adds the result of another device.
void add(RunResult& sum, std::size_t device, RunResult result) {
  if (sum.failure.empty() && !result.failure.empty()) {
    sum.failure = "device " + std::to_string(device) + ": " + result.failure;
    sum.accepted_wrongly = result.accepted_wrongly;
  }
  sum.outcomes.insert(sum.outcomes.end(), result.outcomes.begin(), result.outcomes.end());
  const auto mix = [](std::uint64_t& hash, std::uint64_t other) { hash = (hash ^ other) * 0x100000001B3U; };
  mix(sum.trace_hash, result.trace_hash);
  mix(sum.downloads, result.downloads);
  for (const auto count : {&RunResult::operations,
                           &RunResult::iterations_on_demand,
                           &RunResult::iterations_followed,
                           &RunResult::divergences,
                           &RunResult::plan_starts,
                           &RunResult::swaps,
                           &RunResult::dropped,
                           &RunResult::refused,
                           &RunResult::outlived_refused,
                           &RunResult::too_large,
                           &RunResult::too_large_inside,
                           &RunResult::too_large_followed,
                           &RunResult::too_large_in_flight,
                           &RunResult::budget_changes,
                           &RunResult::sampled_rounds,
                           &RunResult::plans_remade,
                           &RunResult::file_bytes,
                           &RunResult::neighbour_bytes,
                           &RunResult::encoded_bytes,
                           &RunResult::host_views,
                           &RunResult::view_faults,
                           &RunResult::view_bytes_in,
                           &RunResult::view_bytes_out,
                           &RunResult::outlived_looks,
                           &RunResult::turns_taken,
                           &RunResult::turns_missed}) {
    sum.*count += result.*count;
  }
  for (const auto flag :
       {&RunResult::plans_encodings, &RunResult::tells_neighbours, &RunResult::tells_file, &RunResult::replays}) {
    sum.*flag = sum.*flag || result.*flag;
  }
  std::move(result.notes.begin(), result.notes.end(), std::back_inserter(sum.notes));
  std::move(result.planners.begin(), result.planners.end(), std::back_inserter(sum.planners));
}

/// Programs that have begun, and in which order they go on.
class SideBySide {
 public:
  SideBySide(const TestProgram& program, const RunSettings& settings)
      : settings_{.planning = settings.planning},
        in_turn_(program.sharing.in_turn),
        random_(program.seed),
        links_(std::make_shared<SharedLinks>(program.sharing.capacities)),
        programs_(each_alone(program)) {
    std::shared_ptr<simulated::SharedClock> clock;
    if (program.sharing.one_clock) clock = std::make_shared<simulated::SharedClock>(program.sharing.capacities);
    for (TestProgram& each : programs_) {
      each.device.clock = clock;
      each.manager.shared_links = links_;
    }
  }

  RunResult run() {
    std::deque<ProgramRun<SimulatedProgramDevice>> runs;
    for (const TestProgram& each : programs_) runs.emplace_back(each, settings_).begin();
    std::vector<std::size_t> going(programs_.size());
    for (std::size_t i = 0; i < going.size(); ++i) going[i] = i;
    std::vector<RunResult> results(programs_.size());
    for (std::size_t next = 0; !going.empty();) {
      if (!in_turn_) next = random_() % going.size();
      next %= going.size();
      const std::size_t device = going[next];
      if (go_on(runs[device], programs_[device])) {
        ++next;
        continue;
      }
      results[device] = runs[device].end();  // the others go on without it
      going.erase(going.begin() + static_cast<std::ptrdiff_t>(next));
    }
    RunResult sum;
    for (std::size_t i = 0; i < results.size(); ++i) add(sum, i, std::move(results[i]));
    sum.joint_plans = links_->joint_plans();
    return sum;
  }

 private:
  /// The next action, or all until an iteration ends. False where there is none.
  bool go_on(ProgramRun<SimulatedProgramDevice>& run, const TestProgram& program) const {
    for (;;) {
      const std::size_t at = run.position();
      if (!run.step()) return false;
      if (!in_turn_ || program.actions[at].kind == ActionKind::end_iteration) return true;
    }
  }

  RunSettings settings_;
  bool in_turn_;
  std::mt19937_64 random_;
  std::shared_ptr<SharedLinks> links_;
  std::vector<TestProgram> programs_;
};

}  // namespace

RunResult run_program(const TestProgram& program, const RunSettings& settings) {
  if (!program.beside.empty()) return SideBySide(program, settings).run();
  return run_program_on<SimulatedProgramDevice>(program, settings);
}

RunResult run_one_by_one(const TestProgram& program) {
  RunResult sum;
  std::size_t device = 0;
  for (const TestProgram& each : each_alone(program)) add(sum, device++, run_program(each));
  return sum;
}

}  // namespace swapmm::test
