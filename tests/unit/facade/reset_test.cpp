// SPDX-License-Identifier: Apache-2.0
// Tensor::reset(): the storage goes before the handle does.
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/error_desk.hpp"
#include "support/small_program.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

TEST_CASE("reset gives the bytes back, and leaves an empty tensor") {
  ErrorDesk desk;
  auto gone = desk.tensor("gone");
  auto other = desk.tensor("other");
  set(desk.manager, gone, 1);
  set(desk.manager, other, 2);
  REQUIRE(desk.manager.report().tensors == 2);
  REQUIRE(desk.manager.report().device_used == Bytes{2 * tensor_bytes.value});
  gone.reset();
  desk.manager.synchronize();
  CHECK(desk.manager.report().tensors == 1);
  CHECK(desk.manager.report().device_used == tensor_bytes);
  CHECK(gone.name().empty());
  CHECK(gone.ref().record == nullptr);
  CHECK(gone.shape() == Shape{length});  // as made

  gone.reset();  // nothing more to give back
  CHECK(desk.manager.report().tensors == 1);
  CHECK(holds(other, 2));
}

TEST_CASE("a tensor that was reset is refused as one that was moved from is") {
  ErrorDesk desk;
  auto first = desk.tensor("first");
  auto second = desk.tensor("second");
  set(desk.manager, first, 1);
  set(desk.manager, second, 2);
  first.reset();
  std::vector<int> target(length);
  CHECK(says(desk.refused<UsageError>([&] { (void)first.download(); }), {"moved from or reset"}));
  CHECK(says(desk.refused<UsageError>([&] { (void)first.download_async(target); }), {"moved from or reset"}));
  CHECK(says(desk.refused<UsageError>([&] { first.upload(target); }), {"moved from or reset"}));
  CHECK(says(desk.refused<UsageError>([&] { (void)first.view(); }), {"moved from or reset"}));
  CHECK(says(desk.refused<UsageError>([&] { desk.manager.run("late", writes(second), reads(first), nothing); }),
             {"\"late\"", "tensor 1", "moved from or reset"}));
  desk.manager.run("op", reads(second), [&](auto& op) {
    CHECK(says(text_of<UsageError>([&] { (void)op[first]; }), {"\"op\"", "moved from or reset"}));
    CHECK(says(text_of<UsageError>([&] { (void)op.argument(first); }), {"\"op\"", "moved from or reset"}));
  });
  CHECK(holds(second, 2));
}

TEST_CASE("a view of a tensor that was reset is refused, also where another tensor took its storage") {
  ErrorDesk desk;
  auto a = desk.tensor("a");
  set(desk.manager, a, 1);
  auto view = a.slice(0, 4);
  a.reset();
  auto other = desk.tensor("other");
  set(desk.manager, other, 2);
  CHECK(says(desk.refused<UsageError>([&] { (void)view.download(); }), {"no longer exists"}));
  CHECK(says(desk.refused<UsageError>([&] { view.upload(std::vector<int>(4, 3)); }), {"no longer exists"}));
  CHECK(says(desk.refused<UsageError>([&] { desk.manager.run("late", writes(view), nothing); }),
             {"\"late\"", "no longer exists"}));
  CHECK(holds(other, 2));
}

TEST_CASE("a tensor that was reset takes another storage by assignment") {
  ErrorDesk desk;
  auto a = desk.tensor("a");
  set(desk.manager, a, 1);
  a.reset();
  a = desk.tensor("again", 8);
  a.upload(std::vector<int>(8, 5));
  CHECK(holds(a, 5));
  CHECK(a.name() == "again");
  CHECK(desk.manager.report().tensors == 1);
}

TEST_CASE("reset inside an operation that uses the tensor waits for its end") {
  ErrorDesk desk;
  auto in = desk.tensor("in");
  auto out = desk.tensor("out");
  set(desk.manager, in, 1);
  desk.manager.run("last use", reads(in), writes(out), [&](auto& op) {
    const auto from = op[in];
    const auto to = op[out];
    in.reset();
    op.queue().launch("last use", operation_time, {Touch::read(from), Touch::write(to)},
                      [from, to] { std::copy(from.begin(), from.end(), to.begin()); });
  });
  auto others = uploaded_tensors(desk.manager, 3);  // where it lay
  for (auto& each : others) increase(desk.manager, each, 1);
  CHECK(holds(out, 1));
  CHECK(desk.manager.report().tensors == 4);
}

TEST_CASE("tensors that are made and reset inside an iteration take places of a plan") {
  ErrorDesk desk;
  auto weights = uploaded_tensors(desk.manager, 4);
  for (int round = 0; round < 8; ++round) {
    const auto iteration = desk.manager.iteration("early");
    for (auto& weight : weights) {
      auto passing = desk.tensor("passing");
      set(desk.manager, passing, round);
      accumulate(desk.manager, passing, weight);
      passing.reset();
      CHECK(desk.manager.report().tensors == 4);
    }
  }
  CHECK(desk.manager.report().iterations_followed > 0);
  for (int i = 0; i < 4; ++i) CHECK(holds(weights[static_cast<std::size_t>(i)], i + 1 + 28));
}

TEST_CASE("reset after the manager is gone does nothing") {
  const Simulated device;
  std::optional<MemoryManager<Simulated>> manager(std::in_place, device, Options{.device_budget = 256_bytes});
  auto a = manager->tensor<int>({length}, "a");
  set(*manager, a, 1);
  manager.reset();
  a.reset();
  a.reset();
  CHECK(a.name().empty());
  CHECK(device.violation_count() == 0);
}
