// SPDX-License-Identifier: Apache-2.0
// With check_access on, an operation that does something else than it declares is found and named.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
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

struct AccessCheckDesk {
  Simulated device;
  MemoryManager<Simulated> manager{device, {.device_budget = 256_bytes, .check_access = true}};
  Tensor<int, Simulated> a = manager.tensor<int>({length}, "a");
  Tensor<int, Simulated> b = manager.tensor<int>({length}, "b");

  AccessCheckDesk() {
    set(manager, a, 1);
    set(manager, b, 2);
  }
  ~AccessCheckDesk() { CHECK(probe(manager)); }
  // Runs `body(a, b)` on the device, whatever the bundle says of it.
  template <class Part, class Body>
  void run(const Part& part, Body body) {
    manager.run("liar", part, [&](auto& op) {
      int* const bytes_of_a = op[a].data();
      op.queue().launch("liar", operation_time, {}, [bytes_of_a, body] { body(bytes_of_a); });
    });
  }
};

}  // namespace

TEST_CASE("a change of a tensor that is declared as read is named") {
  AccessCheckDesk desk;
  const auto error = thrown<AccessViolation>([&] { desk.run(reads(desk.a), [](int* a) { a[length - 1] = 3; }); });
  REQUIRE(error);
  CHECK(error->kind == AccessViolation::Kind::changed_read);
  CHECK(error->operation() == "liar");
  CHECK(names_are(error->tensors(), {"a"}));
  CHECK(says(error->what(), {"\"liar\"", "\"a\"", "read", "updates()"}));
}

TEST_CASE("a change of a tensor outside the bundle is named") {
  AccessCheckDesk desk;
  int* other = nullptr;
  desk.manager.run("look", reads(desk.b), [&](auto& op) { other = op[desk.b].data(); });
  const auto error = thrown<AccessViolation>([&] {
    desk.run(updates(desk.a), [other](int* a) {
      a[0] = 3;
      other[5] = 3;
    });
  });
  REQUIRE(error);
  CHECK(error->kind == AccessViolation::Kind::changed_undeclared);
  CHECK(error->operation() == "liar");
  CHECK(names_are(error->tensors(), {"b"}));
}

TEST_CASE("a declared whole write that leaves bytes as they were is named with their number") {
  AccessCheckDesk desk;
  const auto error =
      thrown<AccessViolation>([&] { desk.run(writes(desk.a), [](int* a) { std::fill_n(a, length - 4, 3); }); });
  REQUIRE(error);
  CHECK(error->kind == AccessViolation::Kind::left_unwritten);
  CHECK(error->unwritten == 16_bytes);
  CHECK(error->operation() == "liar");
  CHECK(names_are(error->tensors(), {"a"}));
  CHECK(says(error->what(), {"\"liar\"", "\"a\"", "16 of its 64 bytes", "updates()"}));
}

TEST_CASE("a declared whole write that reads the old value gets poison instead, and is named where it passes it on") {
  AccessCheckDesk desk;
  const auto error = thrown<AccessViolation>([&] { desk.run(writes(desk.a), [](int*) {}); });
  REQUIRE(error);
  CHECK(error->kind == AccessViolation::Kind::left_unwritten);
  CHECK(error->unwritten == 64_bytes);
  CHECK(names_are(error->tensors(), {"a"}));
}

TEST_CASE("a single number that is declared as written and is not is named too") {
  AccessCheckDesk desk;
  auto loss = desk.manager.tensor<float>({1}, "loss");
  const auto error = thrown<AccessViolation>([&] { desk.manager.run("forgets", writes(loss), [](auto&) {}); });
  REQUIRE(error);
  CHECK(error->unwritten == 4_bytes);
  CHECK(error->operation() == "forgets");
  CHECK(names_are(error->tensors(), {"loss"}));
}

TEST_CASE("an honest program raises no alarm, and follows no plan") {
  AccessCheckDesk desk;
  auto odd = desk.manager.tensor<char>({13}, "odd");
  for (int i = 0; i < 4; ++i) {
    auto iteration = desk.manager.iteration();
    add(desk.manager, desk.a, desk.b, 1);
    accumulate(desk.manager, desk.b, desk.a);
    desk.manager.run("letters", writes(odd), scratch(32_bytes), [&](auto& op) {
      const auto to = op[odd];
      const auto work = op.scratch();
      op.queue().launch("letters", operation_time, {Touch::write(to), Touch::write(work)}, [to, work, i] {
        std::fill(work.begin(), work.end(), std::byte{1});
        std::fill(to.begin(), to.end(), static_cast<char>('a' + i));
      });
    });
    desk.a.upload(std::vector<int>(length, i));
  }
  CHECK(odd.download() == std::vector<char>(13, 'd'));
  CHECK(desk.manager.report().iterations_followed == 0);
  CHECK(desk.device.violation_count() == 0);
}

TEST_CASE("values that look alike are no violation: an update may leave everything as it was") {
  AccessCheckDesk desk;
  desk.run(updates(desk.a), [](int*) {});
  CHECK(holds(desk.a, 1));
}
