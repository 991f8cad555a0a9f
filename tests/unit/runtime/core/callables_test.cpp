// SPDX-License-Identifier: Apache-2.0
// What may go wrong inside an operation, beside it, and after its manager: the same manager works on.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/error_desk.hpp"
#include "support/small_program.hpp"
#include "support/weight_desk.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

TEST_CASE("a second thread inside is told so, and neither waits nor breaks anything") {
  ErrorDesk desk;
  auto a = desk.tensor("a");
  set(desk.manager, a, 1);
  std::string text;
  desk.manager.run("long", updates(a), [&](auto&) {
    std::thread other([&] { text = text_of<ConcurrentUse>([&] { (void)a.download(); }); });
    other.join();
  });
  CHECK(says(text, {"two threads"}));
  CHECK(holds(a, 1));
}

TEST_CASE("a tensor destroyed by another thread while the manager is busy is given back by the next call") {
  ErrorDesk desk;
  auto a = desk.tensor("a");
  std::optional<Tensor<int, Simulated>> b(desk.tensor("b"));
  set(desk.manager, a, 1);
  set(desk.manager, *b, 2);
  desk.manager.run("long", updates(a), [&](auto&) {
    std::thread other([&] { b.reset(); });
    other.join();
  });
  set(desk.manager, a, 3);
  CHECK(desk.manager.report().tensors == 1);
  CHECK(desk.manager.report().device_used == tensor_bytes);
}

TEST_CASE("inside an operation every other call of the manager is refused, and the operation goes on") {
  ErrorDesk desk;
  auto a = desk.tensor("a");
  auto b = desk.tensor("b");
  set(desk.manager, b, 2);
  std::vector<int> data(length);
  desk.manager.run("outer", writes(a), [&](auto& op) {
    const auto nested = [&](auto&& call) {
      const auto error = thrown<NestedOperation>(call);
      REQUIRE(error);
      CHECK(error->operation() == "outer");
      CHECK(says(error->what(), {"\"outer\"", "cannot nest"}));
    };
    nested([&] { set(desk.manager, b, 1, "inner"); });
    nested([&] { b.upload(data); });
    nested([&] { b.download(data); });
    nested([&] { (void)b.download_async(data); });
    nested([&] { (void)desk.manager.iteration(); });
    nested([&] { (void)desk.manager.tensor<int>({length}); });
    nested([&] { desk.manager.synchronize(); });
    nested([&] { (void)desk.manager.report(); });
    nested([&] { (void)desk.manager.machine(); });
    const auto out = op[a];
    op.queue().launch("outer", operation_time, {Touch::write(out)}, [out] { std::fill(out.begin(), out.end(), 8); });
  });
  CHECK(holds(a, 8));
  CHECK(holds(b, 2));
}

TEST_CASE("an iteration inside an iteration is refused, and the outer one goes on") {
  ErrorDesk desk;
  auto a = desk.tensor("a");
  auto outer = desk.manager.iteration("outer");
  set(desk.manager, a, 1);
  CHECK(says(desk.refused<UsageError>([&] { (void)desk.manager.iteration("inner"); }), {"\"inner\"", "\"outer\""}));
  increase(desk.manager, a, 1);
  CHECK(holds(a, 2));
  { auto ends = std::move(outer); }
}

TEST_CASE("an iteration that ends inside an operation has ended when the operation has") {
  ErrorDesk desk;
  auto a = desk.tensor("a");
  std::optional<Iteration<Simulated>> iteration(desk.manager.iteration("first"));
  desk.manager.run("last", writes(a), [&](auto&) { iteration.reset(); });
  { auto next = desk.manager.iteration("second"); }
  CHECK(desk.manager.report().iterations_on_demand == 2);
}

TEST_CASE("what a callable throws passes, and leaves what it was to write undefined by name") {
  ErrorDesk desk;
  auto in = desk.tensor("in");
  auto out = desk.tensor("out");
  auto changed = desk.tensor("changed");
  set(desk.manager, in, 1);
  set(desk.manager, out, 2);
  set(desk.manager, changed, 3);
  struct Own {
    int value;
  };
  int caught = 0;
  try {
    desk.manager.run("broken", reads(in), writes(out), updates(changed), scratch(16_bytes),
                     [](auto&) -> void { throw Own{42}; });
  } catch (const Own& own) {
    caught = own.value;
  }
  CHECK(caught == 42);
  CHECK(holds(in, 1));
  const auto read = thrown<WorkFailed>([&] { (void)out.download(); });
  REQUIRE(read);
  CHECK(read->work == WorkFailed::Work::earlier);
  CHECK(names_are(read->lost(), {"out"}));
  CHECK(read->operation().empty());
  const auto next = thrown<WorkFailed>([&] { increase(desk.manager, changed, 1, "next"); });
  REQUIRE(next);
  CHECK(next->operation() == "next");
  CHECK(names_are(next->lost(), {"changed"}));
  set(desk.manager, out, 5);
  CHECK(holds(out, 5));
  CHECK(desk.manager.report().device_used <= 256_bytes);
}

TEST_CASE("what a callable of the second form throws passes in the same way") {
  ErrorDesk desk;
  auto out = desk.tensor("out");
  set(desk.manager, out, 2);
  CHECK_THROWS_AS(
      desk.manager.run("broken", writes(out),
                       [](auto&, Simulated::WaitList) -> Simulated::NativeEvent { throw std::runtime_error("own"); }),
      std::runtime_error);
  CHECK(says(text_of<WorkFailed>([&] { (void)out.download(); }), {"\"out\""}));
}

TEST_CASE("an operation behind one that got its waits and threw waits for the same copies itself") {
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    CAPTURE(seed);
    simulated::Options options = only_when_waited_for();
    options.seed = seed;
    ErrorDesk desk(options);
    auto in = desk.tensor("in");
    auto out = desk.tensor("out");
    in.upload(std::vector<int>(length, 7));
    CHECK_THROWS_AS(
        desk.manager.run("broken", reads(in),
                         [](auto&, Simulated::WaitList) -> Simulated::NativeEvent { throw std::runtime_error("own"); }),
        std::runtime_error);
    add(desk.manager, in, out, 1);
    CHECK(holds(out, 8));
  }
}

TEST_CASE("a callable that throws while a plan is followed leaves the plan, and the next iterations find it again") {
  ErrorDesk desk;
  auto w = uploaded_tensors(desk.manager, 6);
  auto out = desk.manager.tensor<int>({length}, "out", kept);
  const auto iterate = [&](bool breaks) {
    auto iteration = desk.manager.iteration("train");
    for (auto& tensor : w) increase(desk.manager, tensor, 1);
    desk.manager.run("end", writes(out), [&](auto& op) {
      if (breaks) throw std::runtime_error("own");
      const auto to = op[out];
      op.queue().launch("end", operation_time, {Touch::write(to)}, [to] { std::fill(to.begin(), to.end(), 1); });
    });
  };
  for (int i = 0; i < 5; ++i) iterate(false);  // the first one differs: the uploads before it belong to it
  CHECK(desk.manager.report().iterations_followed == 2);
  CHECK_THROWS_AS(iterate(true), std::runtime_error);
  CHECK(says(text_of<WorkFailed>([&] { (void)out.download(); }), {"\"out\""}));
  for (int i = 0; i < 3; ++i) iterate(false);
  CHECK(desk.manager.report().iterations_followed == 5);
  CHECK(holds(w[5], 6 + 9));
  CHECK(holds(out, 1));
}

TEST_CASE("an operation's callable gets nothing that is not in its bundle") {
  ErrorDesk desk;
  MemoryManager<Simulated> other(desk.device, {.device_budget = 256_bytes});
  auto in = desk.tensor("in");
  auto out = desk.tensor("out");
  auto foreign = other.tensor<int>({length}, "foreign");
  set(desk.manager, out, 1);
  desk.manager.run("narrow", writes(in), [&](auto& op) {
    CHECK(says(text_of<UsageError>([&] { (void)op[out]; }), {"\"narrow\"", "\"out\"", "not in its bundle"}));
    CHECK(says(text_of<UsageError>([&] { (void)op[out.slice(0, 2)]; }), {"\"narrow\"", "\"out\""}));
    CHECK(says(text_of<UsageError>([&] { (void)op[foreign]; }), {"\"narrow\"", "\"foreign\""}));
    CHECK(says(text_of<UsageError>([&] { (void)op.scratch(); }), {"\"narrow\"", "no scratch"}));
    CHECK(op.name() == "narrow");
    const auto to = op[in];
    op.queue().launch("narrow", operation_time, {Touch::write(to)}, [to] { std::fill(to.begin(), to.end(), 4); });
  });
  CHECK(holds(in, 4));
}

TEST_CASE("tensors, iterations and downloads may outlive their manager, and say so when used") {
  Simulated device;
  {
    std::optional<MemoryManager<Simulated>> manager(std::in_place, device, Options{.device_budget = 256_bytes});
    MemoryManager<Simulated> other(device, {.device_budget = 256_bytes});
    auto a = manager->tensor<int>({length}, "a");
    auto iteration = manager->iteration();
    set(*manager, a, 5);
    const auto view = a.slice(0, 4);
    std::vector<int> target(length);
    auto promised = a.download_async(target);
    manager.reset();
    CHECK(promised.ready());
    promised.wait();
    CHECK(target == std::vector<int>(length, 5));
    const auto gone = [&](auto&& call) { CHECK(says(text_of<UsageError>(call), {"no longer exists"})); };
    gone([&] { (void)a.download(); });
    gone([&] { a.upload(std::vector<int>(length)); });
    gone([&] { (void)view.download(); });
    gone([&] { a.upload(std::vector<int>(length + 1)); });
    gone([&] { a.slice(0, 4).download(target); });
    CHECK(a.name().empty());
    CHECK(a.size() == length);
    CHECK(says(text_of<UsageError>([&] { other.run("foreign", reads(a), nothing); }),
               {"\"foreign\"", "another manager"}));
    auto moved = std::move(a);
    CHECK(moved.size() == length);
  }
  check_clean(device);
}
