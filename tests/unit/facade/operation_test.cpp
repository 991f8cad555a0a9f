// SPDX-License-Identifier: Apache-2.0
// What an operation's callable is given: kernel arguments by address, and work areas of any size, also of none.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/error_desk.hpp"
#include "support/faulty_simulated.hpp"
#include "support/small_program.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

/// The pointer that a kernel would find at that argument.
int* pointer_in(const Argument& argument) {
  REQUIRE(argument.size() == sizeof(int*));
  return reinterpret_cast<int*>(*static_cast<std::byte**>(argument.data()));
}

}  // namespace

TEST_CASE("an argument is the address of a tensor's or a view's device pointer") {
  ErrorDesk desk;
  auto a = desk.tensor("a");
  auto b = desk.tensor("b");
  set(desk.manager, a, 1);
  for (int round = 0; round < 6; ++round) {  // on demand, then by a plan
    const auto iteration = desk.manager.iteration("arguments");
    desk.manager.run("launch", reads(a), writes(b), [&](auto& op) {
      // As an array for a launch by pointers: nothing of it may depend on how long an Argument lives.
      const std::vector<void*> arguments{op.argument(a).data(), op.argument(b).data(),
                                         op.argument(b.slice(4, 8)).data()};
      CHECK(*static_cast<std::byte**>(arguments[0]) == reinterpret_cast<std::byte*>(op[a].data()));
      CHECK(*static_cast<std::byte**>(arguments[1]) == reinterpret_cast<std::byte*>(op[b].data()));
      CHECK(*static_cast<std::byte**>(arguments[2]) == reinterpret_cast<std::byte*>(op[b].data() + 4));
      const int* const from = pointer_in(op.argument(a));
      int* const to = pointer_in(op.argument(b));
      op.queue().launch("launch", operation_time, {Touch::read(op[a]), Touch::write(op[b])}, [from, to, round] {
        std::transform(from, from + length, to, [&](int i) { return i + round; });
      });
    });
    CHECK(holds(b, 1 + round));
  }
}

TEST_CASE("an argument that is not in the bundle is refused as op[tensor] is") {
  ErrorDesk desk;
  auto in = desk.tensor("in");
  auto out = desk.tensor("out");
  set(desk.manager, in, 3);
  desk.manager.run("narrow", reads(in), [&](auto& op) {
    CHECK(says(text_of<UsageError>([&] { (void)op.argument(out); }), {"\"narrow\"", "\"out\"", "not in its bundle"}));
    CHECK(says(text_of<UsageError>([&] { (void)op.argument(out.slice(0, 2)); }), {"\"narrow\"", "\"out\""}));
    CHECK(pointer_in(op.argument(in.slice(4, 2))) == op[in].data() + 4);
  });
}

TEST_CASE("an argument works through the fault adaptor") {
  const Simulated device;
  MemoryManager<FaultySimulated> manager{FaultySimulated(device), {.device_budget = 256_bytes}};
  auto a = manager.tensor<int>({length}, "a");
  set(manager, a, 1);
  manager.run("launch", reads(a), [&](auto& op) { CHECK(pointer_in(op.argument(a)) == op[a].data()); });
}

TEST_CASE("a work area of 0 bytes is empty, and takes no room") {
  ErrorDesk desk;
  auto a = desk.tensor("a", 64);  // all of the budget
  const auto is_empty = [](const auto& area) {
    return area.size() == 0 && area.bytes() == 0 && area.data() == nullptr;
  };
  for (int round = 0; round < 6; ++round) {
    const auto iteration = desk.manager.iteration("empty");
    set(desk.manager, a, round);
    desk.manager.run("use", updates(a), scratch(0), [&](auto& op) { CHECK(is_empty(op.scratch())); });
    desk.manager.run("use", updates(a), scratch(0_bytes), scratch(0), [&](auto& op) { CHECK(is_empty(op.scratch())); });
  }
  CHECK(desk.manager.report().iterations_followed > 0);

  set(desk.manager, a, 1);
  Bundle<Simulated> bundle;
  bundle.updates(a).scratch(0_bytes);
  desk.manager.run("bundled", bundle, [&](auto& op) { CHECK(is_empty(op.scratch())); });
  bundle.clear();
  bundle.updates(a);
  desk.manager.run("bundled", bundle, [&](auto& op) {
    CHECK(says(text_of<UsageError>([&] { (void)op.scratch(); }), {"\"bundled\"", "declares no scratch"}));
  });
}

TEST_CASE("several work areas are one, and those of 0 bytes add nothing") {
  ErrorDesk desk;
  auto a = desk.tensor("a");
  set(desk.manager, a, 1);
  desk.manager.run("areas", reads(a), scratch(16), scratch(0), scratch(32), [&](auto& op) {
    CHECK(op.scratch().size() == 48);
    CHECK(op.scratch().data() != nullptr);
  });
}
