// SPDX-License-Identifier: Apache-2.0
//
// The time predicted for a plan is the virtual time of running it. From a drained device, the ends of all followed
// iterations are those that iteration_ends() gives, to the nanosecond, counted from the moment at which the moves that
// make the plan's start have ended.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/backend/simulated.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/simulator.hpp>
#include <swapmm/plan/validator.hpp>
#include <swapmm/swapmm.hpp>

using namespace swapmm;
using simulated::Random;
using std::chrono::nanoseconds;

namespace {

using Device = simulated::Backend;

struct Step {
  nanoseconds duration{0};
  std::vector<std::pair<std::size_t, Access>> bundle;  // tensors
  Bytes scratch;
  bool host_reads = false;  // the first tensor of the bundle, behind the operation
};

struct Loop {
  std::vector<Bytes> tensors;
  std::vector<std::size_t> inputs;  // uploaded at the start of each iteration
  std::vector<Step> steps;
  simulated::Options device;
  Options manager;
  SchedulerOptions scheduler;
};

Loop random_loop(std::uint64_t seed) {
  Random random(seed);
  const auto chance = [&](std::uint32_t percent) { return random.below(100) < percent; };
  Loop loop;
  loop.device.alignment = Bytes{std::uint64_t{1} << random.below(7)};
  const auto padded = [&](Bytes bytes) { return round_up(bytes, loop.device.alignment); };
  Bytes total;
  for (std::uint32_t i = 0, count = 2 + random.below(8); i < count; ++i) {
    loop.tensors.push_back(Bytes{(8U << random.below(8)) + random.below(100)});
    total += padded(loop.tensors.back());
    if (chance(20)) loop.inputs.push_back(i);
  }
  Bytes largest;
  for (std::uint32_t i = 0, count = 1 + random.below(14); i < count; ++i) {
    Step step;
    step.duration = nanoseconds{chance(10) ? 0 : random.below(4000)};
    Bytes sum;
    for (std::size_t t = random.below(3); t < loop.tensors.size() && step.bundle.size() < 4; t += 1 + random.below(4)) {
      step.bundle.emplace_back(t, static_cast<Access>(random.below(3)));
      sum += padded(loop.tensors[t]);
    }
    step.host_reads = !step.bundle.empty() && chance(15);
    if (chance(20)) step.scratch = Bytes{1 + random.below(500)};
    largest = std::max(largest, sum + padded(step.scratch));
    loop.steps.push_back(std::move(step));
  }
  loop.manager.device_budget =
      std::max(largest + Bytes{random.below(static_cast<std::uint32_t>(total.value))}, loop.device.alignment);
  loop.device.device_bytes = padded(loop.manager.device_budget);
  loop.manager.run_ahead = 2 + random.below(2);
  for (simulated::CopySpeed* const speed : {&loop.device.h2d, &loop.device.d2h}) {
    speed->bytes_per_second = 50'000'000U << random.below(8);
    speed->latency = nanoseconds{chance(50) ? 0 : random.below(500)};
  }
  loop.device.half_duplex = chance(40);
  loop.device.log = true;
  Machine machine;
  machine.h2d = {loop.device.h2d.bytes_per_second, loop.device.h2d.latency};
  machine.d2h = {loop.device.d2h.bytes_per_second, loop.device.d2h.latency};
  machine.duplex = loop.device.half_duplex ? Duplex::half : Duplex::full;
  loop.scheduler.machine = machine;
  loop.scheduler.observe = 1;
  loop.scheduler.planner = std::string(planners()[seed % planners().size()].name);
  return loop;
}

/// A loop under way on a device of its own.
class Running {
 public:
  explicit Running(const Loop& loop)
      : device(loop.device), manager(device, loop.manager, Scheduler(loop.scheduler)), loop_(loop) {
    tensors_.reserve(loop.tensors.size());
    for (std::size_t i = 0; i < loop.tensors.size(); ++i) {
      tensors_.push_back(manager.tensor<std::byte>({loop.tensors[i].value}, "t" + std::to_string(i)));
      data_.emplace_back(loop.tensors[i].value, std::byte{1});
      tensors_.back().upload(data_.back());
    }
  }

  void iterate() {
    promised_.clear();
    auto iteration = manager.iteration("loop");
    for (const std::size_t input : loop_.inputs) tensors_[input].upload(data_[input]);
    for (const Step& step : loop_.steps) {
      bundle_.clear();
      for (const auto& [tensor, access] : step.bundle) {
        if (access == Access::read) bundle_.reads(tensors_[tensor]);
        if (access == Access::write) bundle_.writes(tensors_[tensor]);
        if (access == Access::update) bundle_.updates(tensors_[tensor]);
      }
      bundle_.scratch(step.scratch);
      manager.run("step", bundle_, [&](auto& op) { op.queue().launch("step", step.duration, {}, [] {}); });
      if (!step.host_reads) continue;
      const std::size_t tensor = step.bundle.front().first;
      promised_.push_back(tensors_[tensor].download_async(data_[tensor]));
    }
  }

  /// When the last operation of each iteration since that entry of the log ended.
  [[nodiscard]] std::vector<nanoseconds> ends_since(std::size_t entry) const {
    std::vector<nanoseconds> ends;
    std::size_t kernels = 0;
    for (; entry < device.log().size(); ++entry) {
      if (device.log()[entry].kind != simulated::CommandKind::kernel) continue;
      if (++kernels % loop_.steps.size() == 0) ends.push_back(device.log()[entry].end);
    }
    return ends;
  }

  Device device;
  MemoryManager<Device> manager;

 private:
  const Loop& loop_;
  std::vector<Tensor<std::byte, Device>> tensors_;
  std::vector<std::vector<std::byte>> data_;
  Bundle<Device> bundle_;
  std::vector<PendingDownload<Device>> promised_;
};

/// When the moves that make the start of a plan have ended: the first copies behind that entry of the log, as many
/// bytes as the report says.
nanoseconds start_of_plan(const Running& run, std::size_t entry, nanoseconds drained) {
  const Report report = run.manager.report();
  Bytes in = report.start_h2d;
  Bytes out = report.start_d2h;
  nanoseconds end = drained;
  for (; (in.value != 0 || out.value != 0) && entry < run.device.log().size(); ++entry) {
    const simulated::LogEntry& copy = run.device.log()[entry];
    if (copy.kind == simulated::CommandKind::copy_to_device) in -= copy.bytes;
    if (copy.kind == simulated::CommandKind::copy_to_host) out -= copy.bytes;
    end = std::max(end, copy.end);
  }
  return end;
}

constexpr std::size_t followed_iterations = 9;

/// Nothing where no plan was followed.
std::optional<bool> prediction_holds(const Loop& loop) {
  Running run(loop);
  run.iterate();  // the first one has the values that all tensors start with as inputs
  run.iterate();
  run.manager.synchronize();
  const std::size_t entry = run.device.log().size();
  const nanoseconds drained = run.device.now();
  for (std::size_t i = 0; i < followed_iterations; ++i) run.iterate();
  const Plan* const plan = run.manager.scheduler().plan("loop");
  if (plan == nullptr) return std::nullopt;
  const std::optional<Trace> trace = run.manager.scheduler().trace("loop");
  REQUIRE(trace.has_value());
  REQUIRE(digest(*trace) == plan->trace_digest);
  CHECK(run.manager.report().iterations_followed == followed_iterations);
  for (std::size_t i = 0; i < loop.steps.size(); ++i) CHECK(trace->operations[i].duration == loop.steps[i].duration);

  const std::vector<nanoseconds> predicted = iteration_ends(*trace, *plan, followed_iterations);
  const std::vector<nanoseconds> seen = run.ends_since(entry);
  REQUIRE(seen.size() == followed_iterations);
  const nanoseconds start = start_of_plan(run, entry, drained);
  bool same = true;
  for (std::size_t i = 0; i < followed_iterations; ++i) same = same && seen[i] - start == predicted[i];
  if (same) return true;
  std::string text = "start " + std::to_string(start.count()) + " (drained at " + std::to_string(drained.count()) + ")";
  for (std::size_t i = 0; i < followed_iterations; ++i) {
    text += "\n" + std::to_string((seen[i] - start).count()) + " predicted " + std::to_string(predicted[i].count());
  }
  MESSAGE(text);
  return false;
}

}  // namespace

TEST_CASE("from a drained device, followed iterations end when the simulator says, to the nanosecond") {
  std::size_t followed = 0;
  constexpr std::uint64_t loops = 2000;
  for (std::uint64_t seed = 1; seed <= loops; ++seed) {
    const std::optional<bool> holds = prediction_holds(random_loop(seed));
    if (!holds) continue;
    ++followed;
    REQUIRE_MESSAGE(*holds, "seed " << seed);
  }
  CHECK(followed > loops * 3 / 4);
}
