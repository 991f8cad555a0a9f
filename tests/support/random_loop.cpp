// SPDX-License-Identifier: Apache-2.0
#include "support/random_loop.hpp"

#include <algorithm>

#include <swapmm/backend/testing/simulated/random.hpp>
#include <swapmm/plan/planners.hpp>

namespace swapmm::test {

using simulated::detail::Random;

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
    LoopStep step;
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
  loop.scheduler.trial_iterations = 0;  // followed, whatever it takes
  loop.scheduler.planning_time = std::chrono::milliseconds{0};
  loop.scheduler.planning_limit = std::chrono::milliseconds{0};
  loop.scheduler.planner = planners()[seed % planners().size()].name;
  return loop;
}

}  // namespace swapmm::test
