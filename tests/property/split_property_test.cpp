// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/split/split.hpp>

#include "support/effort.hpp"
#include "support/split_program.hpp"

namespace swapmm::test::split_property_test {
using namespace swapmm::literals;

const int rounds = effort(40, 6);

/// Links with a given speed, so that the same trace always has the same prediction.
SchedulerOptions with_links(std::size_t observe) {
  SchedulerOptions options;
  options.observe = observe;
  options.planner = "belady";  // quick
  Machine machine;
  machine.device_budget = 1_bytes;
  machine.h2d.bytes_per_second = 2'000'000'000;
  machine.d2h.bytes_per_second = 1'000'000'000;
  options.machine = machine;
  return options;
}

/// Tensors in the order of their first use; unused ones are left out, and names do not count.
Trace canonical(const Trace& trace) {
  Trace made;
  std::map<TensorId, TensorId> ids;
  const auto id_of = [&](TensorId tensor) {
    const auto [known, is_new] = ids.emplace(tensor, id_at<TensorId>(made.tensors.size()));
    if (is_new) made.tensors.push_back(trace.tensors[index(tensor)]);
    return known->second;
  };
  for (const TraceOperation& operation : trace.operations) {
    TraceOperation copy = operation;
    for (auto* list : {&copy.reads, &copy.writes, &copy.updates}) {
      for (TensorId& id : *list) id = id_of(id);
    }
    made.operations.push_back(std::move(copy));
  }
  for (const HostRead& read : trace.host_reads) made.host_reads.push_back({id_of(read.tensor), read.after_operation});
  return made;
}

/// Some steps in so many pieces, and the trace that was recorded.
Trace recorded(const SplitProgram& program, std::size_t batch, std::size_t pieces) {
  simulated::Backend device;
  MemoryManager manager(device, {.device_budget = 1_MiB}, Scheduler(with_links(100)));
  SplitProgramRun run(program, manager, {.batch = batch, .pieces = pieces});
  for (std::uint32_t step = 0; step < 3; ++step) run.step(step);
  (void)manager.iteration("next");
  return manager.scheduler().trace("train").value();
}

TEST_CASE("a step that is written out for any number of pieces is the one that a program with as many pieces has") {
  std::mt19937_64 random(36);
  for (int round = 0; round < rounds; ++round) {
    CAPTURE(round);
    const SplitProgram program = random_split_program(random);
    const std::size_t batch = 5 + one_of(random, 60);
    simulated::Backend device;
    MemoryManager manager(device, {.device_budget = 1_MiB}, Scheduler(with_links(100)));
    SplitProgramRun run(program, manager, {.batch = batch});
    for (std::uint32_t step = 0; step < 3; ++step) run.step(step);
    REQUIRE(run.split().observed());
    for (int i = 0; i < 3; ++i) {
      const std::size_t pieces = i == 0 ? run.split().pieces() : 1 + one_of(random, batch);
      CAPTURE(pieces);
      const Result<Trace> written = written_out(*run.split().observed(), piece_sizes(batch, pieces));
      REQUIRE_MESSAGE(written, (written ? std::string() : written.problem().message));
      CHECK(canonical(*written) == canonical(recorded(program, batch, pieces)));
    }
    // An output of fixed size that is made of samples looks like a statistic.
    const bool fixed =
        std::ranges::any_of(program.layers, [](const SplitLayer& layer) { return layer.per_sample == 0; });
    CHECK(run.split().observed()->statistics.empty() != fixed);
  }
}

TEST_CASE("within a budget steps have the same results as without, and the predicted time is the plan's") {
  std::mt19937_64 random(63);
  int split = 0;
  const int budgets = rounds / 4 + 1;
  for (int round = 0; round < budgets; ++round) {
    CAPTURE(round);
    const SplitProgram program = random_split_program(random);
    const std::size_t batch = 16 + one_of(random, 60);
    simulated::Backend device;
    MemoryManager manager(device, {.device_budget = 1_MiB}, Scheduler(with_links(2)));
    SplitProgramRun whole(program, manager, {.batch = batch, .pieces = 1});
    // The bundles of observed pieces fit, and those of the whole batch often do not.
    const Trace traced = recorded(program, batch, 6);
    const Bytes least = analyze_liveness(traced, device.capabilities().alignment).largest_bundle;
    const Bytes budget = least + Bytes{one_of(random, 2000)};
    simulated::Backend small;
    MemoryManager limited(small, {.device_budget = budget}, Scheduler(with_links(2)));
    SplitProgramRun run(program, limited, {.batch = batch});
    for (std::uint32_t step = 0; step < 7; ++step) {
      CAPTURE(step);
      whole.step(step);
      run.step(step);
      if (step % 3 == 2) CHECK(run.values() == whole.values());
    }
    CHECK(run.values() == whole.values());
    const Report report = limited.report();
    CHECK(report.device_peak <= round_up(budget, small.capabilities().alignment));
    CHECK(report.divergences == 0);
    CHECK(report.iterations_followed > 0);
    split += run.split().pieces() > 1 ? 1 : 0;
    const SplitTry& chosen = run.split().choice()->chosen();
    bool found = false;
    for (const PlanSummary& plan : report.plans) {
      if (plan.iteration != "train") continue;
      found = true;
      CHECK(plan.predicted.iteration == chosen.predicted->iteration);
      CHECK(plan.predicted.peak == chosen.predicted->peak);
    }
    CHECK(found);
  }
  CHECK(split > budgets / 2);
}

}  // namespace swapmm::test::split_property_test
