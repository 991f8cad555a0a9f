// SPDX-License-Identifier: Apache-2.0
//
// When a plan may lose a value: by what was observed, until the program shows that it branches.

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/small_program.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

/// Where the host reads, and for what.
enum class Read { none, inside, behind, asynchronously, to_pass_on };

/// Two values that each iteration writes whole, so that plans drop them, and weights that do not fit beside them.
struct DropDesk {
  explicit DropDesk(DropRule drops = DropRule::by_evidence, Lifetime lifetime = Lifetime::observed)
      : manager(device, {.device_budget = 256_bytes}, Scheduler({.trial_iterations = 0, .drops = drops})),
        weights(uploaded_tensors(manager, 6)),
        a(manager.tensor<int>({length}, "a", lifetime)),
        b(manager.tensor<int>({length}, "b", lifetime)) {}
  ~DropDesk() {
    for (const std::string& violation : device.violations()) FAIL_CHECK(violation);
  }
  DropDesk(const DropDesk&) = delete;
  DropDesk& operator=(const DropDesk&) = delete;

  void iterate(Read read, int times = 1) {
    for (int i = 0; i < times; ++i) {
      const auto iteration = manager.iteration("step");
      set(manager, a, 1);
      accumulate(manager, a, weights[0]);
      set(manager, b, 2);
      accumulate(manager, b, weights[0]);
      if (read == Read::inside) (void)weights[0].download();
      if (read == Read::asynchronously || read == Read::to_pass_on) {
        std::vector<int> values(length);
        PendingDownload<Simulated> download = weights[0].download_async(values);
        if (read == Read::to_pass_on) download.decides_nothing();
        download.wait();
      }
      for (auto& weight : weights) increase(manager, weight, 1);
      if (read == Read::behind) (void)weights[0].download();
    }
  }
  [[nodiscard]] bool proves() {
    for (const std::string& note : manager.report().notes) {
      if (note.find("only what is proven dead") != std::string::npos) return true;
    }
    return false;
  }

  Simulated device;
  MemoryManager<Simulated> manager;
  std::vector<Tensor<int, Simulated>> weights;
  Tensor<int, Simulated> a;
  Tensor<int, Simulated> b;
};

}  // namespace

TEST_CASE("a plan drops what observed iterations wrote first, also if the host reads when the iteration is over") {
  for (const Read read : {Read::none, Read::behind}) {
    DropDesk desk;
    desk.iterate(read, 7);
    REQUIRE(desk.manager.report().iterations_followed == 4);
    CHECK(!desk.proves());
    CHECK(desk.manager.report().values_saved == 0);
    CHECK_THROWS_AS((void)desk.a.download(), DroppedValue);
  }
}

TEST_CASE("if the host reads between two operations of an iteration, no value is lost from the first plan on") {
  DropDesk desk;
  desk.iterate(Read::inside, 7);
  REQUIRE(desk.manager.report().iterations_followed == 4);
  CHECK(desk.proves());
  CHECK(holds(desk.a, 1));
  CHECK(holds(desk.b, 2));
}

TEST_CASE("an asynchronous download counts, unless nothing depends on its value") {
  DropDesk counts;
  counts.iterate(Read::asynchronously, 7);
  REQUIRE(counts.manager.report().iterations_followed == 4);
  CHECK(counts.proves());
  CHECK(holds(counts.b, 2));
  DropDesk passes_on;
  passes_on.iterate(Read::to_pass_on, 7);
  REQUIRE(passes_on.manager.report().iterations_followed == 4);
  CHECK(!passes_on.proves());
  CHECK_THROWS_AS((void)passes_on.b.download(), DroppedValue);
}

TEST_CASE("what one download promises, later ones do not") {
  DropDesk desk;
  std::vector<int> values(length);
  {
    PendingDownload<Simulated> download = desk.weights[1].download_async(values);
    download.decides_nothing();
    download.wait();
  }
  desk.iterate(Read::asynchronously, 7);
  CHECK(desk.proves());
  CHECK(holds(desk.b, 2));
}

TEST_CASE("a read that comes first while a plan is followed ends its drops at once") {
  DropDesk desk;
  desk.iterate(Read::none, 7);
  REQUIRE(desk.manager.report().iterations_followed == 4);
  desk.iterate(Read::inside);  // what was dropped before the read is gone
  CHECK(desk.proves());
  desk.iterate(Read::none);
  CHECK(holds(desk.a, 1));
  CHECK(holds(desk.b, 2));
  desk.iterate(Read::none, 7);
  CHECK(desk.manager.report().iterations_followed >= 9);
  CHECK(holds(desk.a, 1));
}

TEST_CASE("DroppedValue is evidence for all values: there is none after it") {
  DropDesk desk;
  desk.iterate(Read::none, 7);
  CHECK_THROWS_AS((void)desk.a.download(), DroppedValue);
  CHECK(desk.proves());
  desk.iterate(Read::none, 7);
  CHECK(desk.manager.report().iterations_followed >= 8);
  CHECK(holds(desk.b, 2));
  CHECK(holds(desk.a, 1));
}

TEST_CASE("many different sequences under one name are evidence, and as many as a cycle may have are not") {
  DropDesk desk;
  const auto run = [&](std::size_t size) {
    const auto iteration = desk.manager.iteration("tree");
    for (std::size_t i = 0; i < size; ++i) increase(desk.manager, desk.weights[i % 6], 1);
  };
  for (std::size_t size = 1; size <= 8; ++size) run(size);
  run(8);
  CHECK(!desk.proves());
  run(9);
  run(10);
  CHECK(desk.proves());
}

TEST_CASE("the rule can be set: values are lost by observation in any case, or never") {
  DropDesk observed(DropRule::observed);
  observed.iterate(Read::inside, 7);
  CHECK(!observed.proves());
  CHECK_THROWS_AS((void)observed.b.download(), DroppedValue);

  DropDesk proven(DropRule::proven);
  proven.iterate(Read::none, 120);  // a plan that may gain nothing waits
  REQUIRE(proven.manager.report().iterations_followed >= 4);
  CHECK(holds(proven.a, 1));
  CHECK(holds(proven.b, 2));
  CHECK(proven.manager.report().values_saved == 0);  // the plan knew that they had to be kept
}

TEST_CASE("a transient value is proven dead when its iteration is over, so it is not copied then") {
  const auto copied = [](Lifetime lifetime) {
    DropDesk desk(DropRule::proven, lifetime);
    const auto end_with_a = [&] {
      const auto iteration = desk.manager.iteration("step");
      for (auto& weight : desk.weights) increase(desk.manager, weight, 1);
      set(desk.manager, desk.a, 1);
      accumulate(desk.manager, desk.a, desk.weights[0]);
    };
    for (int i = 0; i < 120; ++i) end_with_a();  // a plan that may gain nothing waits
    const Bytes before = desk.manager.report().d2h;
    const std::uint64_t followed = desk.manager.report().iterations_followed;
    for (int i = 0; i < 10; ++i) end_with_a();
    REQUIRE(desk.manager.report().iterations_followed == followed + 10);
    return (desk.manager.report().d2h - before).value / 10;
  };
  CHECK(copied(transient) + tensor_bytes.value <= copied(Lifetime::observed));
}
