// SPDX-License-Identifier: Apache-2.0
// The manager behind its facade: what the end of a manager leaves, what a call that comes too early postpones, and what
// is refused in a captured iteration.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/runtime/book/program_book.hpp>
#include <swapmm/runtime/core/core.hpp>
#include <swapmm/runtime/core/running_operation.hpp>
#include <swapmm/swapmm.hpp>

#include "support/error_desk.hpp"
#include "support/failing_new.hpp"
#include "support/numbers.hpp"
#include "support/replaying_backend.hpp"
#include "support/small_program.hpp"
#include "support/weight_desk.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

using SimulatedCore = runtime::Core<Simulated>;

std::shared_ptr<SimulatedCore> core_on(const Simulated& device) {
  return std::make_shared<SimulatedCore>(device, Options{.device_budget = 256_bytes},
                                         std::make_shared<runtime::ProgramBook>(SchedulerOptions{}));
}

runtime::TensorKey<Simulated> key_of(runtime::Record<Simulated>& record) { return {&record, record.tensor.serial}; }

/// A loop that follows a plan, on a device that captures.
struct CaptureDesk {
  CaptureDesk() {
    for (std::size_t i = 0; i < 6; ++i) {
      fields.push_back(manager.tensor<Number>({length}, "field" + std::to_string(i)));
      fields.back().upload(numbers(length, static_cast<Number>(i)));
    }
    for (int i = 0; i < 6; ++i) {
      const auto iteration = manager.iteration("loop");
      body();
    }
    REQUIRE(manager.report().iterations_followed > 0);
  }
  void body() {
    for (std::size_t i = 0; i + 1 < fields.size(); ++i) {
      manager.run("grow", reads(fields[i]), updates(fields[i + 1]), [&](auto& op) {
        op.queue().launch([from = op[fields[i]].span(), into = op[fields[i + 1]].span()] {
          for (std::size_t at = 0; at < into.size(); ++at) into[at] += from[at];
        });
      });
    }
  }
  [[nodiscard]] std::uint64_t operations() { return manager.report().operations; }
  [[nodiscard]] runtime::Core<ReplayingBackend>& core() { return *fields[0].ref().core; }

  ReplayingBackend backend;
  MemoryManager<ReplayingBackend> manager{backend, {.device_budget = Bytes{4 * length * sizeof(Number)}}};
  std::vector<Tensor<Number, ReplayingBackend>> fields;
};

}  // namespace

TEST_CASE("the state of a manager can be seen until it is closed") {
  const Simulated device;
  const auto core = core_on(device);
  REQUIRE(core->session_state() != nullptr);
  CHECK(core->session_state()->store.budget() == 256_bytes);
  core->close();
  CHECK(core->session_state() == nullptr);
  core->close();
  CHECK(core->closed());
}

TEST_CASE("the records of tensors that outlive their manager stay, and hold nothing of the device") {
  const Simulated device;
  const auto core = core_on(device);
  std::vector<runtime::Record<Simulated>*> records;
  for (int i = 0; i < 3; ++i) {
    records.push_back(&core->create("t" + std::to_string(i), tensor_bytes, Lifetime::observed));
    const std::vector<int> data(length, i);
    core->upload(key_of(*records.back()), Bytes{}, std::as_bytes(std::span(data)));
  }
  core->close();
  for (std::size_t i = 0; i < records.size(); ++i) {
    CHECK(records[i]->name == "t" + std::to_string(i));
    CHECK(records[i]->bytes == tensor_bytes);
    CHECK(key_of(*records[i]).exists());
    CHECK_FALSE(records[i]->has_value());
    CHECK(records[i]->host.block == nullptr);
    CHECK(records[i]->device.address == nullptr);
  }
  check_clean(device);
  for (auto* const record : records) core->destroy(*record);
}

TEST_CASE("a manager that nobody closes closes itself: nothing is in flight, and promises are kept") {
  const Simulated device(only_when_waited_for());
  const std::vector<int> data(length, 7);
  std::vector<int> target(length);
  {
    const auto core = core_on(device);
    auto& record = core->create("a", tensor_bytes, Lifetime::observed);
    core->upload(key_of(record), Bytes{}, std::as_bytes(std::span(data)));
    const runtime::BundleItem<Simulated> item{&record, Access::read, record.tensor.serial};
    const runtime::Request<Simulated> request{"read", {&item, 1}, Bytes{}, false};
    runtime::RunningOperation<Simulated>(*core, request, false).complete();
    (void)core->promise(key_of(record), Bytes{}, std::as_writable_bytes(std::span(target)));
  }
  CHECK(target == data);
  check_clean(device);
}

TEST_CASE("on a backend that cannot capture there is no captured round") {
  const Simulated device;
  const auto core = core_on(device);
  core->begin_capture("loop");
  CHECK_FALSE(core->within_captured_round());
  core->give_up_capture();
  (void)core->create("a", tensor_bytes, Lifetime::observed);
}

TEST_CASE("a tensor that ended while the manager was busy is given back when the next one ends") {
  ErrorDesk desk;
  auto a = desk.tensor("a");
  std::optional<Tensor<int, Simulated>> b(desk.tensor("b"));
  set(desk.manager, a, 1);
  set(desk.manager, *b, 2);
  desk.manager.run("long", updates(a), [&](auto&) {
    std::thread other([&] { b.reset(); });
    other.join();
  });
  CHECK(desk.manager.report().tensors == 2);  // a report gives nothing back
  a.reset();
  CHECK(desk.manager.report().tensors == 0);
  CHECK(desk.manager.report().device_used == 0_bytes);
}

TEST_CASE("downloads that are refused cost the same each time") {
  ErrorDesk desk;
  const auto empty = desk.tensor("empty");
  std::vector<int> target(length);
  std::vector<std::uint64_t> costs;
  for (int i = 0; i < 40; ++i) {
    const std::uint64_t before = allocations();
    bool refused = false;
    try {
      (void)empty.download_async(target);
    } catch (const UndefinedValue&) {
      refused = true;
    }
    costs.push_back(allocations() - before);
    CHECK(refused);
  }
  CHECK(std::vector<std::uint64_t>(costs.begin() + 1, costs.end()) == std::vector<std::uint64_t>(39, costs[1]));
}

TEST_CASE("downloads that were collected or given up leave their place to the next ones") {
  ErrorDesk desk;
  auto tensor = desk.tensor("t");
  set(desk.manager, tensor, 3);
  std::vector<int> target(length);
  const auto download = [&](bool collects) {
    auto promised = tensor.download_async(target);
    if (collects) promised.wait();
  };
  for (int i = 0; i < 10; ++i) download(i % 2 == 0);
  const std::uint64_t before = allocations();
  for (int i = 0; i < 100; ++i) download(i % 2 == 0);
  CHECK(allocations() == before);
}

TEST_CASE("an iteration that ends inside an operation lasts until the next call, and ends once") {
  ErrorDesk desk;
  auto a = desk.tensor("a");
  const auto* const state = a.ref().core->session_state();
  std::optional<Iteration<Simulated>> iteration(desk.manager.iteration("first"));
  const std::uint64_t first = state->store.iteration;
  set(desk.manager, a, 1);
  desk.manager.run("last", updates(a), [&](auto&) {
    iteration.reset();
    CHECK(state->store.iteration == first);
  });
  CHECK(state->store.iteration == first);
  desk.manager.synchronize();
  CHECK(state->store.iteration == first + 1);
  {
    const auto second = desk.manager.iteration("second");
    increase(desk.manager, a, 1);
    CHECK(says(desk.refused<UsageError>([&] { desk.manager.set_budget(128_bytes); }), {"inside iteration \"second\""}));
    CHECK(state->store.iteration == first + 1);
  }
  CHECK(state->store.iteration == first + 2);
  CHECK(holds(a, 2));
}

TEST_CASE("each run of a captured iteration counts its operations") {
  CaptureDesk desk;
  const std::uint64_t before = desk.operations();
  auto captured = desk.manager.capture("loop", [&] { desk.body(); });
  CHECK(desk.operations() == before + 5);
  for (std::uint64_t run = 2; run <= 4; ++run) {
    captured.launch();
    CHECK(desk.operations() == before + 5 * run);
  }
}

TEST_CASE("no profile starts inside a captured iteration, which goes on") {
  CaptureDesk desk;
  std::string text;
  auto captured = desk.manager.capture("loop", [&] {
    text = text_of<UsageError>([&] { desk.manager.start_profile(); });
    desk.body();
  });
  CHECK(text == "start_profile() inside a captured iteration");
  CHECK_FALSE(desk.manager.profiling());
  captured.launch();
}

TEST_CASE("the budget does not change inside a capture, not even between two iterations") {
  CaptureDesk desk;
  const Bytes budget = desk.manager.report().device_budget;
  desk.core().begin_capture("loop");
  CHECK(text_of<UsageError>([&] { desk.manager.set_budget(128_bytes); }) == "set_budget() inside a captured iteration");
  desk.core().give_up_capture();
  CHECK(desk.manager.report().device_budget == budget);
  CHECK(desk.manager.report().budget_changes == 0);
}

TEST_CASE("what goes wrong while a capture is given up is told by the next call") {
  CaptureDesk desk;
  desk.backend.let_captures_fail(true);
  const auto thrower = [&] {
    desk.body();
    throw 8;
  };
  CHECK_THROWS_AS((void)desk.manager.capture("loop", thrower), int);
  const auto error = thrown<WorkFailed>([&] { desk.manager.synchronize(); });
  REQUIRE(error);
  CHECK(says(error->operation(), {"captured iteration"}));
  desk.manager.synchronize();
}

TEST_CASE("a capture of a closed manager is given up without a word") {
  CaptureDesk desk;
  desk.core().close();
  desk.core().give_up_capture();
  CHECK(says(text_of<UsageError>([&] { desk.manager.synchronize(); }), {"no longer exists"}));
}
