// SPDX-License-Identifier: Apache-2.0
// How long values live: as declared, as observed, and what happens where the two differ.
#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/small_program.hpp"
#include "support/tensor_names.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

// A loop over `weights` that is larger than the budget, with `value` written whole in the middle of each iteration.
struct LifetimesLoop {
  explicit LifetimesLoop(Lifetime lifetime, Scheduler scheduler = Scheduler())
      : manager(device, {.device_budget = 256_bytes}, std::move(scheduler)),
        value(manager.tensor<int>({length}, "value", lifetime)) {
    for (int i = 0; i < 6; ++i) {
      weights.push_back(manager.tensor<int>({length}, "w" + std::to_string(i)));
      set(manager, weights.back(), i);
    }
  }
  ~LifetimesLoop() {
    for (const std::string& violation : device.violations()) FAIL_CHECK(violation);
  }

  void iterate(bool reads_value_first = false, bool host_reads = false) {
    auto iteration = manager.iteration("loop");
    if (reads_value_first) accumulate(manager, value, weights[0]);
    for (auto& weight : weights) increase(manager, weight, 1);
    set(manager, value, ++rounds);
    for (auto& weight : weights) accumulate(manager, value, weight);
    if (host_reads) CHECK(holds(value, rounds));
  }

  Simulated device;
  MemoryManager<Simulated> manager;
  Tensor<int, Simulated> value;
  std::vector<Tensor<int, Simulated>> weights;
  int rounds = 0;
};

std::uint64_t followed(LifetimesLoop& loop) { return loop.manager.report().iterations_followed; }

TensorKind kind_of_value(LifetimesLoop& loop) {
  const auto trace = loop.manager.scheduler().trace("loop");
  REQUIRE(trace.has_value());
  for (const TraceTensor& tensor : trace->tensors) {
    if (tensor.name == "value") return tensor.kind;
  }
  FAIL("no such tensor");
  return TensorKind::persistent;
}

}  // namespace

TEST_CASE("a tensor that is made for each iteration, and prepared before it, keeps its value") {
  for (const std::size_t observe : {1, 2, 3}) {
    for (const Bytes budget : {128_bytes, 192_bytes, 4096_bytes}) {
      for (const DropRule drops : {DropRule::by_evidence, DropRule::observed, DropRule::proven}) {
        CAPTURE(observe);
        CAPTURE(budget.value);
        Simulated device;
        MemoryManager manager(device, {.device_budget = budget}, Scheduler({.observe = observe, .drops = drops}));
        auto sum = manager.tensor<int>({length}, "sum");
        auto weight = manager.tensor<int>({length}, "weight");
        set(manager, sum, 0);
        set(manager, weight, 2);
        int expected = 0;
        for (int i = 0; i < 9; ++i) {
          auto batch = manager.tensor<int>({length}, "batch");
          batch.upload(std::vector<int>(length, i));
          accumulate(manager, weight, batch);
          auto iteration = manager.iteration("loop");
          accumulate(manager, weight, sum);
          accumulate(manager, batch, sum);
          expected += 2 + i + 2;
        }
        CHECK(holds(sum, expected));
        CHECK(manager.report().iterations_followed == 0);
        for (const std::string& violation : device.violations()) FAIL_CHECK(violation);
      }
    }
  }
}

TEST_CASE("before a plan, a value that is not declared transient outlives its iteration") {
  LifetimesLoop loop(persistent, Scheduler({.observe = 0}));
  for (int i = 0; i < 4; ++i) loop.iterate();
  CHECK(holds(loop.value, 4));
}

TEST_CASE("a value that every observed iteration writes whole first is dead at its end, and a plan drops it") {
  LifetimesLoop loop(persistent);
  for (int i = 0; i < 5; ++i) loop.iterate();
  CHECK(followed(loop) == 3);
  CHECK(kind_of_value(loop) == TensorKind::transient);
  const auto error = thrown<DroppedValue>([&] { (void)loop.value.download(); });
  REQUIRE(error);
  CHECK(error->operation().empty());
  CHECK(names_are(error->lost(), {"value"}));
  CHECK(says(error->what(), {"\"value\"", "dropped", "swapmm::kept"}));
}

TEST_CASE("the plan after a dropped value keeps it, and nothing else was lost") {
  LifetimesLoop loop(persistent);
  for (int i = 0; i < 5; ++i) loop.iterate();
  CHECK_THROWS_AS((void)loop.value.download(), DroppedValue);
  for (int i = 0; i < 40; ++i) {  // a plan that may gain nothing waits
    loop.iterate();
    CHECK(holds(loop.value, 6 + i));
  }
  CHECK(followed(loop) > 5);
  loop.iterate();
  loop.iterate();
  CHECK(holds(loop.value, loop.rounds));
  // Weight 3 grew by 1 and by the round's value in each of them.
  CHECK(holds(loop.weights[3], 3 + loop.rounds + loop.rounds * (loop.rounds + 1) / 2));
}

TEST_CASE("an operation that reads a dropped value is an error by name, and the plan after it keeps the value") {
  LifetimesLoop loop(persistent);
  for (int i = 0; i < 5; ++i) loop.iterate();
  const auto error = thrown<DroppedValue>([&] { loop.iterate(true); });
  REQUIRE(error);
  CHECK(error->operation() == "accumulate");
  CHECK(names_are(error->lost(), {"value"}));
  CHECK(error->lost()[0].id == loop.value.id());
  for (int i = 0; i < 120; ++i) loop.iterate();  // a plan that may gain nothing waits
  const std::uint64_t before = followed(loop);
  loop.iterate();
  CHECK(followed(loop) == before + 1);
  loop.iterate(true);
  CHECK(holds(loop.value, loop.rounds));
}

TEST_CASE("a dropped value that another kind of iteration needs is kept by the next plan of the one that dropped it") {
  LifetimesLoop loop(persistent);
  auto sum = loop.manager.tensor<int>({length}, "sum");
  const auto other = [&] {
    auto iteration = loop.manager.iteration("other");
    add(loop.manager, loop.value, sum, 1);
  };
  for (int i = 0; i < 5; ++i) loop.iterate();
  CHECK_THROWS_AS(other(), DroppedValue);
  for (int i = 0; i < 40; ++i) {
    loop.iterate();
    other();
    CHECK(holds(sum, loop.rounds + 1));
  }
  CHECK(followed(loop) > 5);
}

TEST_CASE("a value that turned out to be needed is dropped by no plan for another budget either") {
  LifetimesLoop loop(persistent);
  for (int i = 0; i < 5; ++i) loop.iterate();
  loop.manager.set_budget(320_bytes);
  for (int i = 0; i < 2; ++i) loop.iterate();
  CHECK(followed(loop) == 5);
  CHECK_THROWS_AS((void)loop.value.download(), DroppedValue);
  loop.manager.set_budget(256_bytes);
  for (int i = 0; i < 40; ++i) loop.iterate();
  CHECK(followed(loop) > 5);
  CHECK(holds(loop.value, loop.rounds));
}

TEST_CASE("a value that turned out to be needed while there was no plan is dropped by none of those to come") {
  LifetimesLoop loop(persistent);
  for (int i = 0; i < 5; ++i) loop.iterate();
  loop.manager.set_budget(320_bytes);
  for (int i = 0; i < 2; ++i) loop.iterate();
  REQUIRE(followed(loop) == 5);
  loop.manager.set_budget(32_bytes);  // of no use to this program, which is known to the budget all the same
  CHECK_THROWS_AS(loop.iterate(), BundleTooLarge);
  CHECK_THROWS_AS((void)loop.value.download(), DroppedValue);
  loop.manager.set_budget(384_bytes);
  for (int i = 0; i < 40; ++i) loop.iterate();
  CHECK(followed(loop) > 5);
  CHECK(holds(loop.value, loop.rounds));
}

TEST_CASE("a kept value survives every iteration, though each one writes it whole first") {
  LifetimesLoop loop(kept);
  for (int i = 0; i < 6; ++i) loop.iterate();
  CHECK(followed(loop) == 4);
  CHECK(holds(loop.value, 6));
  loop.iterate();
  loop.iterate(true);
  CHECK(holds(loop.value, 8));
}

TEST_CASE("a value that the host reads in every iteration is not dropped, wherever in the iteration it reads") {
  for (const bool before_the_write : {false, true}) {
    LifetimesLoop loop(persistent);
    for (int i = 0; i < 8; ++i) {
      if (before_the_write && i > 0) CHECK(holds(loop.value, i));
      loop.iterate();
      if (!before_the_write) CHECK(holds(loop.value, i + 1));
    }
    CHECK(followed(loop) > 4);
    CHECK(loop.manager.report().divergences == 0);
  }
}

TEST_CASE("a value that the host read in one of the observed iterations is not dropped, whichever of them it was") {
  for (const DropRule drops : {DropRule::by_evidence, DropRule::observed}) {
    for (const int observe : {2, 4}) {
      for (int read_in = 0; read_in < observe; ++read_in) {
        CAPTURE(observe);
        CAPTURE(read_in);
        SchedulerOptions options;
        options.observe = static_cast<std::size_t>(observe);
        options.drops = drops;
        LifetimesLoop loop(persistent, Scheduler(options));
        for (int i = 0; i < 60; ++i) {
          loop.iterate(false, i == read_in || i > 55);
        }
        CHECK(followed(loop) > 20);
        CHECK(loop.manager.report().divergences == 0);
      }
    }
  }
}

TEST_CASE("what the host reads at other places in equal iterations is remembered from all of them") {
  for (const int places : {1, 2, 3, 5}) {  // bits: before the write, after it
    SchedulerOptions options;
    options.observe = 3;
    options.drops = DropRule::observed;
    LifetimesLoop loop(persistent, Scheduler(options));
    set(loop.manager, loop.value, 0);
    for (int i = 0; i < 12; ++i) {
      const bool before = i > 8 ? (places & 1) != 0 : i == 0 && (places & 1) != 0;
      const bool after = i > 8 ? (places & 2) != 0 : i == 1 && (places & 2) != 0;
      const bool at_weight = i > 8 ? (places & 4) != 0 : i == 2 && (places & 4) != 0;
      auto iteration = loop.manager.iteration("loop");
      for (auto& weight : loop.weights) increase(loop.manager, weight, 1);
      if (before) CHECK(holds(loop.value, loop.rounds));
      if (at_weight) CHECK(holds(loop.weights[0], i == 0 ? 1 : 2 + i));
      set(loop.manager, loop.value, ++loop.rounds);
      for (auto& weight : loop.weights) accumulate(loop.manager, loop.value, weight);
      if (after) CHECK(holds(loop.value, loop.rounds));
      for (auto& weight : loop.weights) set(loop.manager, weight, 2 + i);
    }
    CHECK(followed(loop) > 5);
  }
}

TEST_CASE("a kept value survives, also if its tensor is made and destroyed within the iteration") {
  SchedulerOptions options;
  options.drops = DropRule::observed;
  LifetimesLoop loop(persistent, Scheduler(options));
  loop.iterate();
  for (int i = 0; i < 12; ++i) {
    auto iteration = loop.manager.iteration("with its own");
    const auto own = loop.manager.tensor<int>({length}, "own", kept);
    set(loop.manager, own, i);
    for (auto& weight : loop.weights) accumulate(loop.manager, weight, loop.value);
    if (i % 4 == 3) CHECK(holds(own, i));
  }
  CHECK(followed(loop) > 4);
  CHECK(loop.manager.report().divergences == 0);
}

TEST_CASE("a value that the next iteration reads before it writes it is kept from the start") {
  LifetimesLoop loop(persistent);
  loop.iterate();
  for (int i = 0; i < 6; ++i) loop.iterate(true);
  CHECK(kind_of_value(loop) == TensorKind::persistent);
  CHECK(followed(loop) > 3);
  CHECK(holds(loop.value, 7));
}

TEST_CASE("a value read only every other iteration was seen to outlive one, and is kept") {
  LifetimesLoop loop(persistent);
  loop.iterate();
  loop.iterate(true);  // seen
  for (int i = 0; i < 5; ++i) loop.iterate();
  CHECK(followed(loop) > 2);
  loop.iterate(true);
  CHECK(holds(loop.value, loop.rounds));
}

TEST_CASE("a transient value costs no copy, from the first iteration on") {
  Simulated device;
  MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes}, Scheduler({.observe = 0}));
  auto passing = manager.tensor<int>({length}, "passing", transient);
  auto out = manager.tensor<int>({length}, "out");
  std::vector<Tensor<int, Simulated>> others;
  for (int i = 0; i < 4; ++i) others.push_back(manager.tensor<int>({length}, "other", transient));
  for (int i = 0; i < 4; ++i) {
    auto iteration = manager.iteration();
    set(manager, passing, i);
    add(manager, passing, out, 1);
    CHECK(holds(out, i + 1));
  }
  const std::uint64_t before = manager.report().swap_outs;
  for (auto& other : others) {
    auto iteration = manager.iteration();  // each is dead when the next one comes
    set(manager, other, 1);
  }
  CHECK(manager.report().swap_outs == before);
}

TEST_CASE("a tensor that ends gives its device and host bytes back at once") {
  Simulated device;
  MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes});
  std::optional<Tensor<int, Simulated>> a(manager.tensor<int>({length}, "a"));
  set(manager, *a, 1);
  (void)a->download();
  CHECK(manager.report().device_used == tensor_bytes);
  CHECK(manager.report().tensors == 1);
  a.reset();
  CHECK(manager.report().device_used == 0_bytes);
  CHECK(manager.report().tensors == 0);
  // Its host bytes serve the next tensor of that size.
  const std::uint64_t made = device.counters().host_memories.made;
  auto b = manager.tensor<int>({length}, "b");
  b.upload(std::vector<int>(length, 2));
  CHECK(device.counters().host_memories.made == made);
}

TEST_CASE("a host value uploaded in each iteration and changed by operations can be read before the next upload") {
  Simulated device;
  MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes});
  std::vector<Tensor<int, Simulated>> weights;
  for (int i = 0; i < 6; ++i) {
    weights.push_back(manager.tensor<int>({length}, "w"));
    set(manager, weights.back(), i);
  }
  auto x = manager.tensor<int>({length}, "x");
  for (int i = 0; i < 50; ++i) {
    auto iteration = manager.iteration();
    if (i > 0) CHECK(holds(x, i - 1 + 5));
    x.upload(std::vector<int>(length, i));
    for (auto& weight : weights) accumulate(manager, x, weight);
    increase(manager, x, 5);
    for (auto& weight : weights) increase(manager, weight, 1);
  }
  CHECK(manager.report().iterations_followed > 4);
  for (const std::string& violation : device.violations()) FAIL_CHECK(violation);
}

TEST_CASE("an input that operations change keeps its value where the program was seen to need it later") {
  Simulated device;
  MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes});
  std::vector<Tensor<int, Simulated>> weights;
  for (int i = 0; i < 6; ++i) {
    weights.push_back(manager.tensor<int>({length}, "w"));
    set(manager, weights.back(), i);
  }
  auto x = manager.tensor<int>({length}, "x", kept);
  for (int i = 0; i < 8; ++i) {
    auto iteration = manager.iteration();
    x.upload(std::vector<int>(length, i));
    increase(manager, x, 5);
    for (auto& weight : weights) increase(manager, weight, 1);
  }
  CHECK(manager.report().iterations_followed > 4);
  CHECK(holds(x, 7 + 5));
}
