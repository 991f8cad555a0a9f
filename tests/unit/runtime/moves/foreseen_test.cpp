// SPDX-License-Identifier: Apache-2.0
// On demand, the tensor that will be used latest leaves first, and what comes next is brought before the host waits.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/small_program.hpp"
#include "support/weight_desk.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

constexpr std::size_t weights = 24;

Options two_thirds(DemandMode mode) { return {.device_budget = 1024_bytes, .demand_mode = mode}; }

// Copies of some rounds over all weights, after three others.
Report rounds(DemandMode mode) {
  WeightDesk desk({}, two_thirds(mode), Scheduler({.observe = 0}), weights);
  for (int i = 0; i < 3; ++i) desk.increase_all("round");
  const Report before = desk.report();
  for (int i = 0; i < 5; ++i) desk.increase_all("round");
  Report after = desk.report();
  after.swap_ins -= before.swap_ins;
  after.swap_outs -= before.swap_outs;
  for (std::size_t i = 0; i < weights; ++i) CHECK(holds(desk.weights[i], static_cast<int>(i) + 8));
  return after;
}

}  // namespace

TEST_CASE("rounds over more than fits: the least recently used is the next that is needed, the latest used is not") {
  const Report recent = rounds(DemandMode::least_recently_used);
  CHECK(recent.swap_ins == 5 * weights);
  CHECK(recent.predictions == 0);
  const Report foreseen = rounds(DemandMode::foreseen);
  CHECK(foreseen.swap_ins < 3 * weights);
  CHECK(foreseen.swap_outs < 3 * weights);
  CHECK(foreseen.predictions > 100);
  CHECK(foreseen.predictions_right + 2 >= foreseen.predictions);  // the first round came after others
}

TEST_CASE("a program that fits notes nothing") {
  WeightDesk desk({}, {.device_budget = 4096_bytes}, Scheduler({.observe = 0}), weights);
  for (int i = 0; i < 4; ++i) desk.increase_all("round");
  CHECK(desk.report().predictions == 0);
}

namespace {

// Rounds that read all weights one after another. Then the host gives the last four new values, which frees their room
// on the device, and waits for the result.
struct Readers {
  explicit Readers(DemandMode mode)
      : desk({}, two_thirds(mode), Scheduler({.observe = 0}), weights),
        copy(desk.manager.tensor<int>({length}, "copy")) {}

  void round() {
    for (std::size_t w = 0; w < weights; ++w) {
      add(desk.manager, desk.weights[w], copy, 1);
      if (w == 11) CHECK(holds(copy, 12));
    }
    const int next = last + 1;
    for (std::size_t w = weights - 4; w < weights; ++w) desk.weights[w].upload(std::vector<int>(length, next));
    CHECK(holds(copy, last + 1));
    last = next;
  }

  WeightDesk desk;
  Tensor<int, Simulated> copy;
  int last = static_cast<int>(weights) - 1;
};

}  // namespace

TEST_CASE("what the next operations read is brought while the host waits, if no value has to be saved for it") {
  for (const DemandMode mode : {DemandMode::least_recently_used, DemandMode::foreseen}) {
    Readers readers(mode);
    for (int i = 0; i < 10; ++i) readers.round();
    const Report report = readers.desk.report();
    CHECK((report.brought_ahead >= 6 * 4) == (mode == DemandMode::foreseen));
    CHECK(report.swap_outs <= 2 * (weights + 11));  // the first values, and those that the host read
  }
}

TEST_CASE("tensors that were brought ahead and are overwritten, uploaded or destroyed before their use") {
  Readers readers(DemandMode::foreseen);
  for (int i = 0; i < 6; ++i) readers.round();
  WeightDesk& desk = readers.desk;
  REQUIRE(desk.report().brought_ahead > 4);
  for (std::size_t w = 0; w < 11; ++w) {
    if (w % 3 == 0) set(desk.manager, desk.weights[w], 100);
    if (w % 3 == 1) desk.weights[w].upload(std::vector<int>(length, 100));
    if (w % 3 == 2) {
      desk.weights[w] = desk.manager.tensor<int>({length}, "new");
      set(desk.manager, desk.weights[w], 100);
    }
  }
  readers.round();
  for (std::size_t w = 0; w < 11; ++w) CHECK(holds(desk.weights[w], 100));
}
