// SPDX-License-Identifier: Apache-2.0
// Captured iterations, by their values: runs, ordinary iterations and the host's accesses in any order.

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "support/effort.hpp"
#include "support/numbers.hpp"
#include "support/replaying_backend.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

const std::uint64_t seeds = test::effort(300, 30);

using Device = ReplayingBackend;
using Manager = MemoryManager<Device>;
using NumberTensor = Tensor<Number, Device>;

constexpr std::size_t field_length = 16;
constexpr Bytes field_bytes{field_length * sizeof(Number)};
constexpr std::size_t fields_count = 6;

/// A loop on some tensors and a temporary that each iteration makes, and its model.
struct Loop {
  explicit Loop(std::size_t room, std::size_t period_ = 1, const PlannerChoice& planner = SchedulerOptions().planner)
      : period(period_),
        manager(backend, {.device_budget = Bytes{room * field_bytes.value}},
                Scheduler({.planner = planner, .trial_iterations = 4})) {
    for (std::size_t i = 0; i < fields_count; ++i) {
      fields.push_back(manager.tensor<Number>({field_length}, "field" + std::to_string(i)));
      expected.push_back(numbers(field_length, static_cast<Number>(i)));
      fields.back().upload(expected.back());
    }
  }

  void grow_on_device(const NumberTensor& by, const NumberTensor& to) {
    manager.run("grow", reads(by), updates(to), [&](auto& op) {
      op.queue().launch([from = op[by].span(), into = op[to].span()] {
        for (std::size_t i = 0; i < into.size(); ++i) into[i] = 7U * into[i] + from[i];
      });
    });
  }
  void body() {
    const auto temporary = manager.tensor<Number>({field_length}, "temporary", transient);
    manager.run("copy", reads(fields[0]), writes(temporary), [&](auto& op) {
      op.queue().launch([from = op[fields[0]].span(), into = op[temporary].span()] {
        for (std::size_t i = 0; i < into.size(); ++i) into[i] = 3U * from[i] + 1U;
      });
    });
    if (!temporary_lives_long) grow_on_device(temporary, fields[0]);
    for (std::size_t i = 0; i + 1 < fields_count; ++i) grow_on_device(fields[i], fields[i + 1]);
    if (temporary_lives_long) grow_on_device(temporary, fields[0]);
    if (period == 2) std::swap(fields[1], fields[2]);  // a cycle of two iterations
  }
  void model() {
    Numbers temporary(field_length);
    affine(expected[0], temporary, 1);
    grow(temporary, expected[0]);
    for (std::size_t i = 0; i + 1 < fields_count; ++i) grow(expected[i], expected[i + 1]);
    if (period == 2) std::swap(expected[1], expected[2]);
  }
  void iterate(int times = 1) {
    for (int i = 0; i < times; ++i) {
      {
        const auto iteration = manager.iteration("loop");
        body();
      }
      model();
    }
  }
  auto capture() {
    // A cycle of two iterations is captured from its beginning.
    if (period == 2 && !manager_is_at_start()) iterate();
    auto captured = manager.capture("loop", [&] { body(); });
    for (std::size_t i = 0; i < period; ++i) model();
    return captured;
  }
  /// The plan of two iterations began with an iteration of that number's parity.
  bool manager_is_at_start() {
    const Report report = manager.report();
    return report.iterations_followed % 2 == 0;
  }
  void launch(CapturedIteration<Device>& captured) {
    captured.launch();
    for (std::size_t i = 0; i < period; ++i) model();
  }
  void check(std::size_t field) { CHECK(fields[field].download() == expected[field]); }
  void check_all() {
    for (std::size_t i = 0; i < fields_count; ++i) check(i);
  }

  std::size_t period;
  bool temporary_lives_long = false;  // of no use to the model
  Device backend;
  Manager manager;
  std::vector<NumberTensor> fields;
  std::vector<Numbers> expected;
};

}  // namespace

TEST_CASE("runs of a captured iteration give the values that its iterations give") {
  for (const std::size_t room : {3U, 4U, 5U, 8U}) {
    for (const std::size_t period : {1U, 2U}) {
      Loop loop(room, period);
      loop.iterate(10);
      REQUIRE(loop.manager.report().iterations_followed > 0);
      auto captured = loop.capture();
      loop.check_all();
      for (int i = 0; i < 5; ++i) loop.launch(captured);
      loop.check_all();
      loop.iterate(static_cast<int>(period));
      loop.launch(captured);
      loop.check_all();
      CHECK(loop.manager.report().divergences == 0);
    }
  }
}

TEST_CASE("runs, iterations, waits and downloads in any order give the right values") {
  std::size_t runs = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    std::mt19937_64 random(seed);
    CAPTURE(seed);
    Loop loop(3 + random() % 4, 1 + random() % 2);
    loop.iterate(10);
    std::optional<CapturedIteration<Device>> captured(loop.capture());
    std::vector<Numbers> targets(fields_count, Numbers(field_length));
    std::vector<std::pair<std::size_t, std::optional<PendingDownload<Device>>>> pending;
    std::vector<Numbers> promised(fields_count);
    const auto collect = [&] {
      for (auto& [field, download] : pending) {
        download->wait();
        CHECK(targets[field] == promised[field]);
      }
      pending.clear();
    };
    for (int step = 0; step < 30; ++step) {
      const std::size_t field = random() % fields_count;
      switch (random() % 8) {
        case 0: loop.check(field); break;
        case 1: loop.manager.synchronize(); break;
        case 2: loop.iterate(static_cast<int>(loop.period)); break;
        case 3:
          collect();
          promised[field] = loop.expected[field];
          pending.emplace_back(field, loop.fields[field].download_async(targets[field]));
          break;
        case 4: collect(); break;
        case 5:
          if (random() % 4 == 0) captured.emplace(loop.capture());
          break;
        default:
          loop.launch(*captured);
          ++runs;
          break;
      }
    }
    collect();
    loop.check_all();
  }
  CHECK(runs > 3 * seeds);
}

TEST_CASE("what ends a plan ends its graph, and values stay right") {
  Loop loop(4);
  loop.iterate(6);
  auto captured = loop.capture();
  loop.fields[2].upload(numbers(field_length, 99));
  loop.expected[2] = numbers(field_length, 99);
  CHECK_THROWS_AS(captured.launch(), UsageError);
  loop.check_all();
  loop.iterate(6);
  loop.check_all();
  CHECK_THROWS_AS(captured.launch(), UsageError);
  captured = loop.capture();
  loop.launch(captured);
  loop.grow_on_device(loop.fields[0], loop.fields[1]);
  grow(loop.expected[0], loop.expected[1]);
  CHECK_THROWS_AS(captured.launch(), UsageError);
  loop.check_all();
}

TEST_CASE("what a body throws passes through, and what it queued before has run") {
  Loop loop(4);
  loop.iterate(6);
  const auto incomplete = [&] { loop.grow_on_device(loop.fields[0], loop.fields[1]); };
  CHECK_THROWS_AS((void)loop.manager.capture("loop", incomplete), UsageError);  // not what the plan expects first
  loop.check_all();
  loop.iterate(6);
  const auto thrower = [&] {
    loop.body();
    throw 7;
  };
  CHECK_THROWS_AS((void)loop.manager.capture("loop", thrower), int);
  loop.model();
  loop.check_all();
  loop.iterate(6);
  auto captured = loop.capture();
  loop.launch(captured);
  loop.check_all();
}

TEST_CASE("a capture that the API refuses takes the values it was to give, and says so") {
  Loop loop(4);
  loop.iterate(6);
  loop.backend.let_captures_fail(true);
  CHECK_THROWS_AS((void)loop.capture(), WorkFailed);
  loop.backend.let_captures_fail(false);
  for (std::size_t i = 0; i < fields_count; ++i) {
    CHECK_THROWS_AS((void)loop.fields[i].download(), WorkFailed);
    loop.fields[i].upload(loop.expected[i]);
  }
  loop.iterate(6);
  loop.check_all();
}

TEST_CASE("a capture that fails behind a body that threw takes the values, too") {
  for (const std::size_t room : {3U, 8U}) {  // swapped, and resident: then no point stands behind an operation
    for (const bool recorded : {false, true}) {
      Loop loop(room);
      loop.iterate(6);
      loop.backend.let_captures_fail(true);
      const auto thrower = [&] {
        loop.body();
        if (recorded) loop.manager.run("throws", reads(loop.fields[0]), [](auto&) { throw 7; });
        throw 8;
      };
      CHECK_THROWS((void)loop.manager.capture("loop", thrower));
      loop.backend.let_captures_fail(false);
      for (std::size_t i = 0; i < fields_count; ++i) {
        bool told = false;
        for (int tries = 0; tries < 2 && !told; ++tries) {  // the first call may give the postponed error
          try {
            (void)loop.fields[i].download();
          } catch (const WorkFailed& error) {
            told = std::string(error.what()).find("download") == 0;
          }
        }
        CHECK_MESSAGE(told, "field " << i << ", room for " << room);
        loop.fields[i].upload(loop.expected[i]);
      }
      loop.iterate(6);
      loop.check_all();
    }
  }
}

TEST_CASE("another manager of the same backend stays out of a capture") {
  Loop loop(4);
  loop.iterate(6);
  Manager other(loop.backend, {.device_budget = Bytes{4 * field_bytes.value}});
  auto mine = other.tensor<Number>({field_length}, "mine");
  mine.upload(numbers(field_length, 5));
  std::string text;
  const auto meddler = [&] {
    try {
      (void)mine.download();
    } catch (const UsageError& error) {
      text = error.what();
    }
    loop.body();
  };
  auto captured = loop.manager.capture("loop", meddler);
  loop.model();
  CHECK(text == "another manager of this backend is capturing an iteration, and would record this work into its graph");
  CHECK(mine.download() == numbers(field_length, 5));
  loop.launch(captured);
  loop.check_all();
}

TEST_CASE("behind an error in a body no other operation is taken into the graph") {
  Loop loop(4);
  loop.iterate(6);
  int refused = 0;
  const auto careless = [&] {
    for (int i = 0; i < 3; ++i) {
      try {
        loop.grow_on_device(loop.fields[4], loop.fields[3]);  // not what the plan expects
      } catch (const UsageError&) {
        ++refused;
      }
    }
  };
  CHECK_THROWS_AS((void)loop.manager.capture("loop", careless), UsageError);
  CHECK(refused == 3);
  loop.check_all();
}

TEST_CASE("a launch that may have happened or not takes the values it was to give") {
  Loop loop(4);
  loop.iterate(6);
  auto captured = loop.capture();
  loop.check_all();  // host copies, which another run makes old
  loop.backend.let_launches_fail(true);
  CHECK_THROWS_AS(captured.launch(), BackendError);
  loop.backend.let_launches_fail(false);
  for (std::size_t i = 0; i < fields_count; ++i) {
    CHECK_THROWS_AS((void)loop.fields[i].download(), WorkFailed);
    loop.fields[i].upload(loop.expected[i]);
  }
  CHECK_THROWS_AS(captured.launch(), UsageError);
  loop.iterate(6);
  loop.check_all();
}

TEST_CASE("a tensor made in ordinary iterations between runs is not the graph's business") {
  for (const std::size_t room : {4U, 8U}) {
    Loop loop(room);
    loop.iterate(6);
    auto captured = loop.capture();
    for (int i = 0; i < 4; ++i) {
      loop.iterate();
      // Takes the record that a temporary of an earlier iteration had.
      auto other = loop.manager.tensor<Number>({field_length}, "other");
      other.upload(numbers(field_length, 77));
      CHECK(other.download() == numbers(field_length, 77));
      if (loop.manager.report().divergences == 0) {
        loop.iterate(6);
        captured = loop.capture();
        loop.launch(captured);
      }
      CHECK(other.download() == numbers(field_length, 77));
    }
    loop.check_all();
  }
}

TEST_CASE("what has no lasting place in page-locked memory cannot be captured") {
  Device backend;
  Manager manager(backend, {.device_budget = Bytes{3 * field_bytes.value}, .pinned_budget = Bytes{0}});
  std::vector<NumberTensor> fields;
  for (Number i = 0; i < 5; ++i) {
    fields.push_back(manager.tensor<Number>({field_length}, "field" + std::to_string(i)));
    fields.back().upload(numbers(field_length, i));
  }
  const auto body = [&] {
    for (std::size_t i = 0; i < 5; ++i) {
      manager.run("add", reads(fields[i]), updates(fields[(i + 1) % 5]), [&](auto& op) {
        op.queue().launch([from = op[fields[i]].span(), into = op[fields[(i + 1) % 5]].span()] {
          for (std::size_t at = 0; at < into.size(); ++at) into[at] += from[at];
        });
      });
    }
  };
  for (int i = 0; i < 6; ++i) {
    const auto iteration = manager.iteration("add");
    body();
  }
  REQUIRE(manager.report().iterations_followed > 0);
  std::string text;
  try {
    (void)manager.capture("add", body);
  } catch (const UsageError& error) {
    text = error.what();
  }
  CHECK_MESSAGE(text.find("raise Options::pinned_budget") != std::string::npos, text);
}

TEST_CASE("a temporary that is swapped out has no lasting place on the host, and cannot be captured") {
  Loop loop(3, 1, "per-operation");  // everything goes out behind every operation
  loop.temporary_lives_long = true;
  loop.iterate(8);
  REQUIRE(loop.manager.report().iterations_followed > 0);
  CHECK_THROWS_WITH_AS(
      (void)loop.capture(),
      "iteration \"loop\" makes and swaps out tensor \"temporary\", whose host memory does not stay the same: make the "
      "tensor before the iteration",
      UsageError);
}

TEST_CASE("uploads belong to no captured iteration") {
  Device backend;
  Manager manager(backend, {.device_budget = Bytes{3 * field_bytes.value}});
  auto input = manager.tensor<Number>({field_length}, "input");
  auto sum = manager.tensor<Number>({field_length}, "sum");
  sum.upload(Numbers(field_length));
  const auto body = [&](Number seed) {
    input.upload(numbers(field_length, seed));
    manager.run("add", reads(input), updates(sum), [&](auto& op) {
      op.queue().launch([from = op[input].span(), into = op[sum].span()] {
        for (std::size_t i = 0; i < into.size(); ++i) into[i] += from[i];
      });
    });
  };
  for (Number step = 0; step < 6; ++step) {
    const auto iteration = manager.iteration("add");
    body(step);
  }
  REQUIRE(manager.report().iterations_followed > 0);
  CHECK_THROWS_WITH_AS((void)manager.capture("add", [&] { body(7); }),
                       "iteration \"add\" uploads a tensor, and a graph contains no uploads", UsageError);
}

TEST_CASE("a captured plan is held: it is not left to see whether on demand is faster") {
  for (const bool captured : {false, true}) {
    Loop loop(4);
    loop.iterate(4);
    REQUIRE(loop.manager.report().iterations_followed > 0);
    loop.backend.let_everything_take(std::chrono::nanoseconds{5000});  // in the trial, longer than on demand before
    std::optional<CapturedIteration<Device>> graph;
    if (captured) graph.emplace(loop.capture());
    loop.iterate(20);
    CHECK((loop.manager.report().plan_starts == 1) == captured);
    if (!captured) continue;
    loop.launch(*graph);
    loop.iterate(2);
    CHECK(loop.manager.report().plan_starts == 1);
    loop.check_all();
  }
}

TEST_CASE("where a captured plan is slower than on demand was, the host does not wait to find out more") {
  Loop loop(4);
  loop.iterate(3);
  loop.backend.let_everything_take(std::chrono::nanoseconds{5000});
  loop.iterate(5);
  const auto captured = loop.capture();
  loop.iterate(8);
  const PlanSummary plan = loop.manager.report().plans.at(0);
  REQUIRE(plan.state == PlanState::on_trial);
  REQUIRE(plan.measured > plan.on_demand);
  const auto& timeline = loop.fields[0].ref().core->session_state()->store.timeline;
  const auto iteration = loop.manager.iteration("loop");
  CHECK(timeline.confirmed(QueueKind::compute) < timeline.issued(QueueKind::compute));
}

TEST_CASE("after another budget an iteration must be captured again") {
  Loop loop(4);
  loop.iterate(10);
  auto graph = loop.capture();
  loop.launch(graph);
  loop.manager.set_budget(Bytes{5 * field_bytes.value});
  CHECK_THROWS_AS(graph.launch(), UsageError);
  loop.iterate(2);
  CHECK_THROWS_AS(graph.launch(), UsageError);
  auto again = loop.capture();
  loop.launch(again);
  loop.check_all();
}
