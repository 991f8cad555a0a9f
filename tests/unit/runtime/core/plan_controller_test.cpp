// SPDX-License-Identifier: Apache-2.0
// When a plan begins, when it is left, and what is said of it.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/failing_new.hpp"
#include "support/faulty_simulated.hpp"
#include "support/null_manager.hpp"
#include "support/small_program.hpp"
#include "support/weight_desk.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

using FaultyDevice = FaultySimulated;

/// A device that gives no more than 128 bytes in one piece.
class PiecesBackend : public NullBackend {
 public:
  PiecesBackend() : capabilities_(NullBackend::capabilities()) { capabilities_.max_allocation = 128_bytes; }
  [[nodiscard]] const Capabilities& capabilities() const { return capabilities_; }

 private:
  Capabilities capabilities_;
};
static_assert(Backend<PiecesBackend>);

/// A desk whose program follows its plan.
struct FollowingDesk : WeightDesk {
  FollowingDesk() {
    for (int i = 0; i < 5; ++i) increase_all("train");
    REQUIRE(followed() == 3);
  }
};

/// `value` is written whole in each iteration, so that plans drop it at the end; the weights do not fit beside it.
struct DroppingDesk : WeightDesk {
  DroppingDesk() {
    for (int i = 0; i < 5; ++i) iterate();
    REQUIRE(followed() == 3);
  }
  void iterate() {
    const auto iteration = manager.iteration("dropping");
    for (auto& weight : weights) increase(manager, weight, 1);
    set(manager, other, 2);
    accumulate(manager, other, weights[0]);
    set(manager, value, 1);
    for (auto& weight : weights) accumulate(manager, value, weight);
  }
  [[nodiscard]] static std::uint32_t outlives(const Tensor<int, Simulated>& tensor) {
    return tensor.ref().record->value.outlives;
  }

  Tensor<int, Simulated> value = manager.tensor<int>({length}, "value");
  Tensor<int, Simulated> other = manager.tensor<int>({length}, "other");
};

}  // namespace

TEST_CASE("an operation between iterations leaves the plan, though it is the one that the plan expects next") {
  FollowingDesk desk;
  increase(desk.manager, desk.weights[0], 1);
  CHECK(desk.report().divergences == 1);
  CHECK(desk.report().last_divergence == "an operation ran between iterations");
}

TEST_CASE("the report says that the plan was left because an operation threw") {
  FollowingDesk desk;
  {
    const auto iteration = desk.manager.iteration("train");
    CHECK_THROWS_AS(desk.manager.run("throws", updates(desk.weights[0]), [](auto&) { throw 7; }), int);
    CHECK(desk.report().divergences == 1);
    CHECK(desk.report().last_divergence == "an operation threw");
  }
  CHECK(desk.report().divergences == 1);
}

TEST_CASE("the report says that the plan was left because an operation could not be queued") {
  FollowingDesk desk;
  const auto iteration = desk.manager.iteration("train");
  auto none = desk.manager.tensor<int>({length}, "none");
  CHECK_THROWS_AS(increase(desk.manager, none, 1, "reads nothing"), UndefinedValue);
  CHECK(desk.report().divergences == 1);
  CHECK(desk.report().last_divergence == "operation \"reads nothing\" in iteration \"train\" was not expected there");
}

TEST_CASE("a dropped value of another plan leaves the plan that is followed alone") {
  DroppingDesk desk;
  for (int i = 0; i < 5; ++i) desk.increase_all("train");
  const Report before = desk.report();
  REQUIRE(before.iterations_followed == 6);
  {
    const auto iteration = desk.manager.iteration("train");
    CHECK_THROWS_AS((void)desk.value.download(), DroppedValue);
    for (auto& weight : desk.weights) increase(desk.manager, weight, 1);
  }
  CHECK(desk.report().iterations_followed == 7);
  CHECK(desk.report().divergences == before.divergences);
}

TEST_CASE("of an operation's tensors only those that were dropped are kept from then on") {
  DroppingDesk desk;
  auto unwritten = desk.manager.tensor<int>({length}, "unwritten");
  desk.iterate();
  set(desk.manager, desk.other, 3);  // was dropped, and has a value again
  REQUIRE(DroppingDesk::outlives(desk.value) == 0);
  CHECK_THROWS_AS(desk.manager.run("needs", reads(desk.value, desk.other), writes(unwritten),
                                   [](auto&) { FAIL_CHECK("the operation ran"); }),
                  DroppedValue);
  CHECK(DroppingDesk::outlives(desk.value) == runtime::outlives_all);
  CHECK(DroppingDesk::outlives(desk.other) == 0);
  CHECK(DroppingDesk::outlives(unwritten) == 0);
}

TEST_CASE("an upload of a new tensor where the plan expects none leaves the plan") {
  FollowingDesk desk;
  {
    const auto iteration = desk.manager.iteration("train");
    auto local = desk.manager.tensor<int>({length}, "local");
    local.upload(std::vector<int>(length, 1));
    CHECK(desk.report().divergences == 1);
    CHECK(desk.report().last_divergence == "the upload of tensor \"local\" was not expected there");
    for (auto& weight : desk.weights) accumulate(desk.manager, local, weight);
  }
  CHECK(desk.report().divergences == 1);
}

TEST_CASE("an upload between iterations leaves the plan where it is one of the plan's tensors, and else does not") {
  for (const bool of_the_plan : {false, true}) {
    FollowingDesk desk;
    auto aside = desk.manager.tensor<int>({length}, "aside");
    desk.increase_all("train");
    (of_the_plan ? desk.weights[2] : aside).upload(std::vector<int>(length, 50));
    desk.increase_all("train");
    CHECK(desk.report().divergences == (of_the_plan ? 1 : 0));
    CHECK(desk.report().iterations_followed == (of_the_plan ? 4 : 5));
    CHECK(holds(desk.weights[2], of_the_plan ? 51 : 9));
  }
}

TEST_CASE("the upload of a tensor that was used before the plan began does not leave the plan") {
  FollowingDesk desk;
  auto aside = desk.manager.tensor<int>({length}, "aside");
  set(desk.manager, aside, 1);  // leaves the plan, which begins again in the next iteration
  {
    const auto iteration = desk.manager.iteration("train");
    increase(desk.manager, desk.weights[0], 1);
    aside.upload(std::vector<int>(length, 2));
    for (std::size_t i = 1; i < desk.weights.size(); ++i) increase(desk.manager, desk.weights[i], 1);
  }
  CHECK(desk.followed() == 4);
  CHECK(desk.report().divergences == 1);
  CHECK(holds(aside, 2));
}

TEST_CASE("a plan begins only where the iteration begins as it does, and the plan used last is the first one") {
  WeightDesk desk({}, {.device_budget = 256_bytes}, Scheduler({.planner = "belady", .trial_iterations = 0}));
  const auto forwards = [&] { desk.increase_all("train"); };
  const auto backwards = [&] {
    const auto iteration = desk.manager.iteration("train");
    for (std::size_t i = desk.weights.size(); i-- > 0;) increase(desk.manager, desk.weights[i], 1);
    increase(desk.manager, desk.weights[0], 0);  // so that it is another program
  };
  for (int i = 0; i < 4; ++i) forwards();
  for (int i = 0; i < 4; ++i) backwards();
  const auto last_used = [&] { return desk.manager.scheduler().plan("train")->trace_digest; };
  const std::string second = last_used();
  const std::uint64_t starts = desk.report().plan_starts;
  CHECK(starts == 2);
  forwards();
  CHECK(desk.report().plan_starts == starts + 1);
  const std::string first = last_used();
  CHECK(first != second);
  backwards();
  CHECK(desk.report().plan_starts == starts + 2);
  CHECK(last_used() == second);
  {
    const auto iteration = desk.manager.iteration("train");  // as neither begins
    increase(desk.manager, desk.weights[2], 1);
  }
  CHECK(desk.report().plan_starts == starts + 2);
  CHECK(last_used() == second);
  for (std::size_t i = 0; i < desk.weights.size(); ++i) {
    CHECK(holds(desk.weights[i], static_cast<int>(i) + (i == 2 ? 11 : 10)));
  }
}

TEST_CASE("the copies that starting a plan takes are counted apart, and those only") {
  WeightDesk desk({}, {.device_budget = 256_bytes}, Scheduler({.trial_iterations = 0}));
  const auto start = [](const Report& report) { return report.start_h2d + report.start_d2h; };
  for (int i = 0; i < 3; ++i) desk.increase_all("train");
  const Report first = desk.report();
  CHECK(start(first) <= 512_bytes);
  desk.increase_all("train");
  CHECK(start(desk.report()) == start(first));
  for (int i = 0; i < 3; ++i) {  // back to the plan again and again
    auto aside = desk.manager.tensor<int>({4 * length}, "aside");
    set(desk.manager, aside, 1);  // takes the whole device
    const Report before = desk.report();
    const auto iteration = desk.manager.iteration("train");
    increase(desk.manager, desk.weights[0], 1);
    const Report after = desk.report();
    CHECK(after.plan_starts == before.plan_starts + 1);
    CHECK(after.start_h2d > before.start_h2d);
    CHECK(after.start_h2d - before.start_h2d <= 256_bytes);
    CHECK(after.start_h2d - before.start_h2d <= after.h2d - before.h2d);
    CHECK(after.start_d2h - before.start_d2h <= after.d2h - before.d2h);
    for (std::size_t i = 1; i < desk.weights.size(); ++i) increase(desk.manager, desk.weights[i], 1);
  }
}

TEST_CASE("a new tensor in the place of the one that was uploaded is none of the plan's") {
  WeightDesk desk;
  const auto iterate = [&](bool into_another) {
    const auto iteration = desk.manager.iteration("train");
    auto local = desk.manager.tensor<int>({length}, "local");
    auto another = desk.manager.tensor<int>({length}, "another");
    local.upload(std::vector<int>(length, 5));
    set(desk.manager, into_another ? another : local, 7);
    for (auto& weight : desk.weights) accumulate(desk.manager, into_another ? another : local, weight);
    if (into_another) CHECK(holds(local, 5));
  };
  for (int i = 0; i < 5; ++i) iterate(false);
  CHECK(desk.followed() == 3);
  increase(desk.manager, desk.weights[0], 0);  // leaves the plan, which may begin again
  CHECK(desk.report().divergences == 1);
  iterate(true);
  CHECK(desk.followed() == 3);
  CHECK(desk.report().divergences == 1);  // none from the plan that did not begin
  iterate(false);
  CHECK(desk.followed() == 4);
  for (std::size_t i = 0; i < desk.weights.size(); ++i) CHECK(holds(desk.weights[i], static_cast<int>(i) + 7 * 7));
}

TEST_CASE("no plan begins where a tensor that was uploaded is gone before the first operation") {
  for (const bool replaced_at_once : {true, false}) {
    CAPTURE(replaced_at_once);
    WeightDesk desk;
    const auto iterate = [&](bool is_gone) {
      const auto iteration = desk.manager.iteration("train");
      std::optional local(desk.manager.tensor<int>({length}, "local"));
      local->upload(std::vector<int>(length, 5));
      if (is_gone) local.reset();
      if (is_gone && replaced_at_once) local.emplace(desk.manager.tensor<int>({length}, "replacement"));
      increase(desk.manager, desk.weights[0], 1);
      if (!local) local.emplace(desk.manager.tensor<int>({length}, "replacement"));
      if (is_gone) local->upload(std::vector<int>(length, 6));
      for (std::size_t i = 1; i < desk.weights.size(); ++i) accumulate(desk.manager, *local, desk.weights[i]);
    };
    for (int i = 0; i < 5; ++i) iterate(false);
    REQUIRE(desk.followed() == 3);
    increase(desk.manager, desk.weights[0], 0);  // leaves the plan, which may begin again
    const std::uint64_t starts = desk.report().plan_starts;
    iterate(true);
    CHECK(desk.report().plan_starts == starts);
    CHECK(desk.report().notes.empty());
    for (std::size_t i = 1; i < desk.weights.size(); ++i) CHECK(holds(desk.weights[i], static_cast<int>(i) + 31));
    iterate(false);
    CHECK(desk.followed() == 4);
  }
}

TEST_CASE("uploads between iterations that the plan expects are no reason to leave it") {
  WeightDesk desk({}, {.device_budget = 256_bytes}, Scheduler({.trial_iterations = 0}));
  auto x = desk.manager.tensor<int>({length}, "x");
  for (int i = 0; i < 8; ++i) {
    x.upload(std::vector<int>(length, i));
    const auto iteration = desk.manager.iteration("train");
    for (auto& weight : desk.weights) accumulate(desk.manager, x, weight);
  }
  CHECK(desk.followed() == 6);
  CHECK(desk.report().plan_starts == 1);
  CHECK(desk.report().divergences == 0);
}

TEST_CASE("of two uploads between iterations the first leaves the plan, though the plan expects the second") {
  WeightDesk desk({}, {.device_budget = 256_bytes}, Scheduler({.trial_iterations = 0}));
  auto x = desk.manager.tensor<int>({length}, "x");
  const auto iterate = [&] {
    x.upload(std::vector<int>(length, 1));
    const auto iteration = desk.manager.iteration("train");
    for (auto& weight : desk.weights) accumulate(desk.manager, x, weight);
  };
  for (int i = 0; i < 5; ++i) iterate();
  REQUIRE(desk.followed() == 3);
  desk.weights[2].upload(std::vector<int>(length, 50));
  iterate();
  CHECK(desk.report().divergences == 1);
  CHECK(desk.report().last_divergence == "a tensor of the plan was uploaded between iterations");
  CHECK(holds(desk.weights[1], 7));
  CHECK(holds(desk.weights[2], 51));
}

TEST_CASE("the upload of a tensor that is gone before the iteration begins is no part of it") {
  WeightDesk desk({}, {.device_budget = 256_bytes}, Scheduler({.trial_iterations = 0}));
  for (int i = 0; i < 5; ++i) {
    desk.manager.tensor<int>({length}, "gone").upload(std::vector<int>(length, i));
    desk.increase_all("train");
  }
  CHECK(desk.followed() == 3);
  CHECK(desk.report().divergences == 0);
}

TEST_CASE("an iteration that could not begin has not begun") {
  FaultyDevice device{Simulated()};
  MemoryManager<FaultyDevice> manager(device, {.device_budget = 256_bytes});
  auto t = manager.tensor<int>({length}, "t");
  set(manager, t, 1);
  std::uint64_t failures = 0;
  for (std::uint64_t n = 1; n <= 4; ++n) {
    device.restart({FaultClass::timing, FaultMode::once, n});
    try {
      const auto iteration = manager.iteration("train");
      device.restart({});
      increase(manager, t, 1);
    } catch (const BackendError&) {
      ++failures;
      device.restart({});
      const std::uint64_t before = manager.report().iterations_on_demand;
      { const auto iteration = manager.iteration("train"); }
      CHECK(manager.report().iterations_on_demand == before + 1);
    }
    device.restart({});
  }
  CHECK(failures >= 3);  // on and off around the beginning of the round, and on for the operations
}

TEST_CASE("an iteration whose end fails has ended, and the next call says why") {
  FaultyDevice device{Simulated()};
  MemoryManager<FaultyDevice> manager(device, {.device_budget = 256_bytes});
  auto t = manager.tensor<int>({length}, "t");
  set(manager, t, 1);
  const auto& state = *t.ref().core->session_state();
  const std::uint64_t number = state.store.iteration;
  {
    const auto iteration = manager.iteration("train");
    increase(manager, t, 1);
    device.restart({FaultClass::record, FaultMode::once, 1});
  }
  CHECK(device.fired() == 1);
  device.restart({});
  CHECK(state.store.iteration == number + 1);
  CHECK(state.recorder.broken());
  CHECK(says(text_of<BackendError>([&] { manager.synchronize(); }), {"ending iteration \"train\""}));
  CHECK(holds(t, 2));
}

TEST_CASE("an iteration whose copies could not be queued behind an operation is not learned from") {
  std::uint64_t behind = 0;
  for (std::uint64_t n = 1; n <= 6; ++n) {
    FaultyDevice device{Simulated()};
    MemoryManager<FaultyDevice> manager(device, {.device_budget = 256_bytes});
    auto weights = uploaded_tensors(manager, 6);
    const auto iterate = [&] {
      const auto iteration = manager.iteration("train");
      for (auto& weight : weights) increase(manager, weight, 1);
    };
    for (int i = 0; i < 5; ++i) iterate();
    REQUIRE(manager.report().iterations_followed > 0);
    const auto& state = *weights[0].ref().core->session_state();
    device.restart({FaultClass::copy_to_host, FaultMode::once, n});
    {
      const auto iteration = manager.iteration("train");
      for (auto& weight : weights) {
        try {
          increase(manager, weight, 1);
        } catch (const BackendError&) {
        }
        if (device.fired() != 0) break;
      }
      device.restart({});
      if (manager.report().last_divergence == "its commands could not be queued") {
        ++behind;
        CHECK(!state.executor.active());
        CHECK(state.recorder.broken());
      }
    }
  }
  CHECK(behind > 0);
}

TEST_CASE("where a plan began at its second try, an iteration that leaves it later is learned from") {
  FaultyDevice device{Simulated()};
  MemoryManager<FaultyDevice> manager(device, {.device_budget = 256_bytes});
  auto weights = uploaded_tensors(manager, 6);
  const auto rest = [&](std::size_t first) {
    for (std::size_t i = first; i < weights.size(); ++i) increase(manager, weights[i], 1);
  };
  for (int i = 0; i < 3; ++i) {
    const auto iteration = manager.iteration("train");
    rest(0);
  }
  {
    const auto iteration = manager.iteration("train");
    device.restart({FaultClass::copy_to_device, FaultMode::once, 1});
    CHECK_THROWS_AS(increase(manager, weights[0], 1), BackendError);
    CHECK(manager.report().plan_starts == 0);
    device.restart({});
    rest(0);
  }
  CHECK(manager.report().iterations_followed == 1);
  const auto iteration = manager.iteration("train");
  rest(5);
  const auto& state = *weights[0].ref().core->session_state();
  CHECK(state.recorder.is_open());
  CHECK(!state.recorder.broken());
}

TEST_CASE("a plan that cannot be left for want of memory is left without a log, and does not begin again at once") {
  bool fails = true;
  for (std::uint64_t n = 1; fails; ++n) {
    REQUIRE(n < 50);
    CAPTURE(n);
    NullBackend device;
    MemoryManager<NullBackend> manager(device, {.device_budget = 256_bytes});
    std::vector<Tensor<int, NullBackend>> weights;
    for (int i = 0; i < 6; ++i) {
      weights.push_back(manager.tensor<int>({length}, "w" + std::to_string(i)));
      manager.run("make", writes(weights.back()), [](auto&) {});
    }
    const auto step = [&](std::size_t i) { manager.run("step", updates(weights[i]), [](auto&) {}); };
    const auto iterate = [&] {
      const auto iteration = manager.iteration("train");
      for (std::size_t i = 0; i < weights.size(); ++i) step(i);
    };
    for (int i = 0; i < 5; ++i) iterate();
    REQUIRE(manager.report().iterations_followed == 3);
    const auto& state = *weights[0].ref().core->session_state();
    {
      const auto iteration = manager.iteration("train");
      step(0);
      step(1);
      std::optional<FailingNew> failing;
      try {
        manager.run("step", updates(weights[2]), [&](auto&) {
          failing.emplace(n);
          throw 7;
        });
      } catch (int) {
      }
      fails = failing->fired();
      failing.reset();
      CHECK(!state.executor.active());
      CHECK(state.recorder.is_open() == !fails);
      CHECK(state.recorder.broken());
      manager.run("make", writes(weights[2]), [](auto&) {});  // its value is lost
      const std::uint64_t starts = manager.report().plan_starts;
      step(0);
      CHECK(manager.report().plan_starts == starts);
    }
    for (int i = 0; i < 4; ++i) iterate();
    CHECK(manager.report().iterations_followed > 3);
  }
}

TEST_CASE("a plan in several allocations of the device is followed without allocating") {
  PiecesBackend device;
  MemoryManager<PiecesBackend> manager(device, {.device_budget = 256_bytes});
  std::vector<Tensor<int, PiecesBackend>> weights;
  for (int i = 0; i < 6; ++i) {
    weights.push_back(manager.tensor<int>({length}, "w" + std::to_string(i)));
    manager.run("make", writes(weights.back()), [](auto&) {});
  }
  const auto iterate = [&] {
    const auto iteration = manager.iteration("train");
    for (auto& weight : weights) manager.run("step", updates(weight), [](auto&) {});
  };
  for (int i = 0; i < 12; ++i) iterate();
  REQUIRE(manager.report().iterations_followed == 10);
  const std::uint64_t before = allocations();
  for (int i = 0; i < 10; ++i) iterate();
  CHECK(allocations() == before);
  CHECK(manager.report().iterations_followed == 20);
}
