// SPDX-License-Identifier: Apache-2.0
// Links of which no copy was timed are measured before the first plan, or said to be unknown.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/faulty_simulated.hpp"
#include "support/null_manager.hpp"
#include "support/small_program.hpp"
#include "support/weight_desk.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;
using std::chrono::nanoseconds;

namespace {

simulated::Options uneven_links() {
  simulated::Options options;
  options.h2d = {2'000'000'000, nanoseconds{100}};
  options.d2h = {1'000'000'000, nanoseconds{300}};
  return options;
}

bool is_said_to_be_unknown(const Report& report) {
  return std::any_of(report.notes.begin(), report.notes.end(),
                     [](const std::string& note) { return note.find("no copy was timed") != std::string::npos; });
}

bool is_about(std::uint64_t value, std::uint64_t expected) {
  return value > expected - expected / 200 && value < expected + expected / 200;
}

}  // namespace

TEST_CASE("links over which nothing was copied are measured before a plan is made, and nothing else changes") {
  WeightDesk desk(uneven_links(), {.device_budget = 512_KiB}, Scheduler(), 2);
  CHECK(desk.manager.machine().h2d.bytes_per_second == 100'000'000);  // unknown
  for (int i = 0; i < 4; ++i) desk.increase_all("train");
  const Machine machine = desk.manager.machine();
  CHECK(is_about(machine.h2d.bytes_per_second, 2'000'000'000));
  CHECK(machine.h2d.latency == nanoseconds{100});
  CHECK(is_about(machine.d2h.bytes_per_second, 1'000'000'000));
  CHECK(machine.d2h.latency == nanoseconds{300});
  const Report report = desk.report();
  CHECK(report.iterations_followed > 0);
  CHECK(report.swap_ins + report.swap_outs == 0);
  CHECK(report.device_peak == 128_bytes);
  CHECK(report.notes.empty());
  CHECK(desk.weights[0].download()[0] == 4);
  CHECK(desk.weights[1].download()[0] == 5);
}

TEST_CASE("given links are not measured") {
  Machine given;
  given.h2d.bytes_per_second = given.d2h.bytes_per_second = 5'000'000'000;
  WeightDesk desk(uneven_links(), {.device_budget = 512_KiB}, Scheduler({.machine = given}), 2);
  for (int i = 0; i < 4; ++i) desk.increase_all("train");
  CHECK(desk.manager.machine().h2d == given.h2d);
  CHECK(desk.report().host_peak.value == 0);  // no block for a measurement
}

TEST_CASE("given links without speed are refused") {
  Machine given;
  given.h2d.bytes_per_second = 5'000'000'000;
  CHECK_THROWS_WITH_AS(Scheduler({.machine = given}), doctest::Contains("SchedulerOptions::machine: d2h"), UsageError);
}

TEST_CASE("without free bytes the links stay unknown, and the report says so") {
  WeightDesk desk(uneven_links(), {.device_budget = 256_bytes}, Scheduler(), 4);
  for (int i = 0; i < 4; ++i) desk.increase_all("train");
  CHECK(desk.manager.machine().h2d.bytes_per_second == 100'000'000);
  CHECK(is_said_to_be_unknown(desk.report()));
  CHECK(desk.followed() > 0);
}

TEST_CASE("without host memory, too") {
  WeightDesk desk(uneven_links(), {.device_budget = 512_KiB, .host_budget = 16_bytes}, Scheduler(), 2);
  for (int i = 0; i < 4; ++i) desk.increase_all("train");
  CHECK(is_said_to_be_unknown(desk.report()));
}

TEST_CASE("where the device tells no times the host's clock does") {
  MemoryManager<NullBackend> manager(NullBackend(), {.device_budget = 512_KiB});
  auto value = manager.tensor<int>({length}, "value");
  for (int i = 0; i < 4; ++i) {
    const auto iteration = manager.iteration("train");
    manager.run("set", writes(value), [](auto&) {});
  }
  CHECK(manager.machine().h2d.bytes_per_second != 100'000'000);
  CHECK(!is_said_to_be_unknown(manager.report()));
}

TEST_CASE("a measurement that fails is one error, takes no room, and is made the next time") {
  for (const FaultClass which : {FaultClass::copy_to_device, FaultClass::copy_to_host}) {
    FaultySimulated device{Simulated(uneven_links())};
    MemoryManager<FaultySimulated> manager(device, {.device_budget = 512_KiB});
    auto value = manager.tensor<int>({length}, "value");
    set(manager, value, 7);
    const auto iterate = [&] {
      const auto iteration = manager.iteration("train");
      increase(manager, value, 1);
    };
    iterate();
    device.restart({which, FaultMode::once, 1});
    CHECK_THROWS_AS(iterate(), BackendError);
    device.restart({});
    for (int i = 0; i < 4; ++i) iterate();
    CHECK(is_about(manager.machine().h2d.bytes_per_second, 2'000'000'000));
    CHECK(manager.report().device_peak == 64_bytes);
    auto large = manager.tensor<std::byte>({512 * 1024 - 64}, "large");  // all that is left
    manager.run("fill", writes(large),
                [&](auto& op) { op.queue().launch("fill", operation_time, {Touch::write(op[large])}, [] {}); });
    CHECK(value.download()[0] == 12);
  }
}
