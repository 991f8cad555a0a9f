// SPDX-License-Identifier: Apache-2.0
// What an operation leaves that failed before, in, or behind its own work.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/faulty_simulated.hpp"
#include "support/small_program.hpp"
#include "support/weight_desk.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

using LateDevice = FaultySimulated;

/// A device whose calls fail as a test says, and a manager with a budget of four tensors on it.
struct LateDesk {
  explicit LateDesk(Options options = {}, const simulated::Options& device_options = {},
                    Scheduler scheduler = Scheduler())
      : device(Simulated(device_options)), manager(device, with_budget(options), std::move(scheduler)) {}
  ~LateDesk() {
    for (const std::string& violation : device.inner().violations()) FAIL_CHECK(violation);
  }
  static Options with_budget(Options options) {
    options.device_budget = 256_bytes;
    return options;
  }
  /// Queues work that sets the tensor, and throws 7 after it.
  void set_and_throw(const Tensor<int, LateDevice>& tensor, const FaultPlan& plan = {}) {
    manager.run("throws", writes(tensor), [&](auto& op) {
      const auto out = op[tensor];
      op.queue().launch("throws", operation_time, {Touch::write(out)}, [out] { std::fill(out.begin(), out.end(), 9); });
      device.restart(plan);
      throw 7;
    });
  }

  LateDevice device;
  MemoryManager<LateDevice> manager;
};

}  // namespace

TEST_CASE("an operation that could not be queued gives its work area back") {
  LateDesk desk;
  auto tensors = uploaded_tensors(desk.manager, 1);
  desk.device.restart({FaultClass::barrier_wait, FaultMode::once, 1});
  CHECK_THROWS_AS(
      desk.manager.run("works", updates(tensors[0]), scratch(64_bytes), [](auto&) { FAIL_CHECK("the operation ran"); }),
      BackendError);
  CHECK(desk.device.fired() == 1);
  CHECK(desk.manager.report().device_used == tensor_bytes);
  bool ran = false;
  desk.manager.run("works", scratch(256_bytes), [&](auto&) { ran = true; });
  CHECK(ran);
  CHECK(holds(tensors[0], 1));
}

TEST_CASE("what comes after an operation that threw waits for the work that it had queued") {
  for (const bool is_recorded : {true, false}) {
    CAPTURE(is_recorded);
    LateDesk desk({}, only_when_waited_for());
    auto tensors = uploaded_tensors(desk.manager, 2);
    increase(desk.manager, tensors[0], 1);
    desk.manager.synchronize();
    const FaultPlan plan{FaultClass::record, FaultMode::once, is_recorded ? 0U : 1U};
    CHECK_THROWS_AS(desk.set_and_throw(tensors[0], plan), int);
    CHECK(desk.device.fired() == (is_recorded ? 0 : 1));
    desk.device.restart({});
    CHECK_THROWS_AS((void)tensors[0].download(), WorkFailed);
    tensors[0].upload(std::vector<int>(length, 3));
    increase(desk.manager, tensors[0], 1);  // copies into the bytes that the failed work writes
    CHECK(holds(tensors[0], 4));
    CHECK(holds(tensors[1], 2));
  }
}

TEST_CASE("that work failed is told though its callable threw, and though no point behind it could be recorded") {
  for (const bool is_recorded : {true, false}) {
    CAPTURE(is_recorded);
    LateDesk desk;
    auto tensors = uploaded_tensors(desk.manager, 1);
    increase(desk.manager, tensors[0], 1);
    desk.manager.synchronize();
    desk.device.inner().fail(QueueKind::compute);
    CHECK_THROWS_AS(desk.set_and_throw(tensors[0], {FaultClass::record, FaultMode::once, is_recorded ? 0U : 1U}), int);
    CHECK(desk.device.fired() == (is_recorded ? 0 : 1));
    CHECK_THROWS_AS(desk.manager.synchronize(), WorkFailed);
    desk.manager.synchronize();
  }
}

TEST_CASE("where the swap behind an operation cannot be queued, the next call says so, and the iteration counts") {
  LateDesk desk({.device_budget = {}, .demand_mode = DemandMode::per_operation}, {}, Scheduler({.observe = 9}));
  auto tensors = uploaded_tensors(desk.manager, 2);
  const auto& state = *tensors[0].ref().core->session_state();
  {
    const auto iteration = desk.manager.iteration("train");
    desk.device.restart({FaultClass::copy_to_host, FaultMode::once, 1});
    increase(desk.manager, tensors[0], 1);
    CHECK(desk.device.fired() == 1);
    CHECK(!state.recorder.broken());
    CHECK(says(text_of<BackendError>([&] { increase(desk.manager, tensors[1], 1); }),
               {"swapping behind operation \"increase\""}));
    increase(desk.manager, tensors[1], 1);
    CHECK(!state.recorder.broken());
  }
  CHECK(holds(tensors[0], 2));
  CHECK(holds(tensors[1], 3));
}

TEST_CASE("a device that is lost in the swap behind an operation is lost in that call") {
  LateDesk desk({.device_budget = {}, .demand_mode = DemandMode::per_operation});
  auto tensors = uploaded_tensors(desk.manager, 1);
  desk.device.restart({FaultClass::copy_to_host, FaultMode::device_lost, 1});
  CHECK_THROWS_AS(increase(desk.manager, tensors[0], 1), DeviceLost);
}

TEST_CASE("where an operation cannot be checked behind its work, the next call says so, and its values count") {
  LateDesk desk({.device_budget = {}, .check_access = true});
  auto tensors = uploaded_tensors(desk.manager, 1);
  const auto grow = [&](const FaultPlan& plan) {
    desk.manager.run("grow", updates(tensors[0]), [&](auto& op) {
      const auto out = op[tensors[0]];
      op.queue().launch("grow", operation_time, {Touch::read(out), Touch::write(out)}, [out] {
        for (int& element : out) ++element;
      });
      desk.device.restart(plan);
    });
  };
  grow({FaultClass::host_wait, FaultMode::once, 1});
  CHECK(desk.device.fired() == 1);
  desk.device.restart({});
  CHECK(says(text_of<BackendError>([&] { desk.manager.synchronize(); }), {"checking operation \"grow\""}));
  CHECK(holds(tensors[0], 2));
  CHECK_THROWS_AS(grow({FaultClass::host_wait, FaultMode::device_lost, 1}), DeviceLost);
}

TEST_CASE("a profile that could not be waited for has ended, and another one may begin") {
  LateDesk desk;
  auto tensors = uploaded_tensors(desk.manager, 1);
  desk.manager.start_profile();
  increase(desk.manager, tensors[0], 1);
  desk.device.restart({FaultClass::record, FaultMode::for_ever, 1});
  CHECK_THROWS_AS((void)desk.manager.stop_profile(), BackendError);
  desk.device.restart({});
  CHECK(!desk.manager.profiling());
  desk.manager.start_profile();
  increase(desk.manager, tensors[0], 1);
  CHECK(desk.manager.stop_profile().spans.size() == 1);
}

TEST_CASE("a download whose copy failed says so, and says that the device is lost once it is") {
  for (const bool is_lost : {false, true}) {
    CAPTURE(is_lost);
    LateDesk desk({}, only_when_waited_for());
    auto tensors = uploaded_tensors(desk.manager, 2);
    for (auto& tensor : tensors) increase(desk.manager, tensor, 1);
    desk.manager.synchronize();
    std::vector<int> target(length);
    desk.device.restart({FaultClass::copy_to_host, FaultMode::late, 1});
    auto promised = tensors[0].download_async(target);
    CHECK_THROWS_AS(desk.manager.synchronize(), WorkFailed);
    desk.device.restart({});
    if (is_lost) {
      desk.device.restart({FaultClass::record, FaultMode::device_lost, 1});
      CHECK_THROWS_AS(increase(desk.manager, tensors[1], 1), DeviceLost);
      CHECK_THROWS_AS(promised.wait(), DeviceLost);
    } else {
      CHECK(says(text_of<WorkFailed>([&] { promised.wait(); }), {"\"w0\""}));
    }
    CHECK(target == std::vector<int>(length));
  }
}

TEST_CASE("a download whose copy failed says so though its manager has ended") {
  LateDevice device{Simulated()};
  std::vector<int> target(length);
  std::optional<PendingDownload<LateDevice>> promised;
  {
    MemoryManager<LateDevice> manager(device, {.device_budget = 256_bytes});
    auto tensors = uploaded_tensors(manager, 1);
    increase(manager, tensors[0], 1);
    manager.synchronize();
    device.restart({FaultClass::copy_to_host, FaultMode::late, 1});
    promised.emplace(tensors[0].download_async(target));
    CHECK_THROWS_AS(manager.synchronize(), WorkFailed);
    device.restart({});
  }
  CHECK(says(text_of<WorkFailed>([&] { promised->wait(); }), {"\"w0\""}));
}
