// SPDX-License-Identifier: Apache-2.0
// SWAPMM_TEST_SWAPS=n: a run of so many copies between device and host.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/failing_new.hpp"
#include "support/small_program.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

std::uint64_t swaps_wanted() {
  const char* const wish = std::getenv("SWAPMM_TEST_SWAPS");
  return wish == nullptr ? 20'000 : std::strtoull(wish, nullptr, 10);
}

/// What a run holds at one time.
struct Held {
  simulated::Counters::Objects memories, host_memories, addresses, events;
  Bytes device_bytes, host_bytes, used, host_used;
  std::size_t tensors = 0;

  Held(const Simulated& device, const Report& report)
      : memories(device.counters().device_memories),
        host_memories(device.counters().host_memories),
        addresses(device.counters().addresses),
        events(device.counters().events),
        device_bytes(device.counters().device_bytes),
        host_bytes(device.counters().host_bytes),
        used(report.device_used),
        host_used(report.host_used),
        tensors(report.tensors) {}
};

// Nothing more is there, and nothing was made anew.
void check_same(const Held& then, const Held& now) {
  const auto same = [](const simulated::Counters::Objects& a, const simulated::Counters::Objects& b) {
    CHECK(a.live == b.live);
    CHECK(a.made == b.made);
  };
  same(then.memories, now.memories);
  same(then.host_memories, now.host_memories);
  same(then.addresses, now.addresses);
  same(then.events, now.events);
  CHECK(then.device_bytes == now.device_bytes);
  CHECK(then.host_bytes == now.host_bytes);
  CHECK(then.used == now.used);
  CHECK(then.host_used == now.host_used);
  CHECK(then.tensors == now.tensors);
}

/// Weights in turn, a value made and dropped in each iteration, an upload and a download: more than fits.
struct Program {
  explicit Program(const SchedulerOptions& options)
      : manager(device, {.device_budget = 256_bytes}, Scheduler(options)), weights(uploaded_tensors(manager, 6)) {}

  void iterate() {
    const auto iteration = manager.iteration();
    auto passing = manager.tensor<int>({length}, "passing");
    set(manager, passing, 1);
    for (auto& weight : weights) accumulate(manager, passing, weight);
    input.upload(std::vector<int>(length, ++rounds));
    accumulate(manager, input, weights.front());
    input.download(std::span<int>(result));
  }
  void iterate_until(std::uint64_t swaps) {
    for (;;) {
      const Report report = manager.report();
      if (report.swap_ins + report.swap_outs >= swaps) return;
      for (int i = 0; i < 16; ++i) iterate();
    }
  }

  Simulated device;
  MemoryManager<Simulated> manager;
  std::vector<Tensor<int, Simulated>> weights;
  Tensor<int, Simulated> input = manager.tensor<int>({length}, "input");
  std::vector<int> result = std::vector<int>(length);
  int rounds = 0;
};

void check_flat(const SchedulerOptions& options) {
  const std::uint64_t warm = 4'000;
  const std::uint64_t wanted = swaps_wanted();
  Program program(options);
  program.iterate_until(warm);
  const Held then(program.device, program.manager.report());
  std::uint64_t window = 0;  // held of what was allocated in a first part of the run
  {
    const PeakMemory peak;
    program.iterate_until(2 * warm);
    window = peak.bytes();
  }
  std::uint64_t all = 0;
  {
    const PeakMemory peak;
    program.iterate_until(wanted);
    all = peak.bytes();
  }
  const Report report = program.manager.report();
  const std::uint64_t swaps = report.swap_ins + report.swap_outs;
  MESSAGE(swaps << " swaps; held of the heap: at most " << window << " bytes in the first " << warm << ", " << all
                << " in the rest");
  CHECK(swaps >= wanted);
  CHECK((report.iterations_followed > report.iterations_on_demand) == (options.observe != 0));
  CHECK(all <= window);
  check_same(then, Held(program.device, report));
  // Each round adds to the weights what it should.
  CHECK(program.result == std::vector<int>(length, program.rounds));
  for (std::size_t i = 1; i < program.weights.size(); ++i) {
    CHECK(holds(program.weights[i], static_cast<int>(i) + 1 + program.rounds));
  }
  for (const std::string& violation : program.device.violations()) FAIL_CHECK(violation);
}

}  // namespace

TEST_CASE("swaps on demand take no more memory the longer they go on") {
  SchedulerOptions options;
  options.observe = 0;
  check_flat(options);
}

TEST_CASE("swaps by a plan take no more memory the longer they go on") { check_flat({}); }
