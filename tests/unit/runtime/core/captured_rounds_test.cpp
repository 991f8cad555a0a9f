// SPDX-License-Identifier: Apache-2.0
// Captured iterations, by what they count, whom they refuse, and what is left when they fail.

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "support/numbers.hpp"
#include "support/watched_loop.hpp"

using namespace swapmm;
using namespace swapmm::test;

TEST_CASE("a launch counts as what the plan's iterations count as") {
  for (const std::size_t room : {3U, 10U}) {
    for (const std::size_t period : {1U, 2U}) {
      CAPTURE(room);
      CAPTURE(period);
      WatchedLoop loop(room, period);
      loop.settle();
      const auto round = growth(loop, [&] { loop.iterate(period); });
      CHECK(round[0] == period * (row_count + 2));  // operations
      if (room == 3) {
        CHECK(round[1] > 0);
        CHECK(round[2] > 0);
      }
      CHECK(round[5] == period);
      std::optional<CapturedIteration<WatchedCaptures>> captured;
      CHECK(growth(loop, [&] { captured.emplace(loop.capture()); }) == round);
      CHECK(growth(loop, [&] { loop.launch(*captured); }) == round);
      CHECK(growth(loop, [&] { loop.launch(*captured); }) == round);
      CHECK(growth(loop, [&] { loop.iterate(period); }) == round);
      loop.check_rows();
    }
  }
}

TEST_CASE("after a launch the plan's tensors are as if its iterations had run") {
  for (const std::size_t room : {3U, 10U}) {
    for (const std::size_t period : {1U, 2U}) {
      CAPTURE(room);
      CAPTURE(period);
      WatchedLoop loop(room, period);
      loop.settle();
      auto captured = loop.capture();
      loop.check_rows();  // host copies, which the launch makes old
      const std::uint64_t iteration = loop.state().store.iteration;
      const std::uint64_t given = loop.input.ref().record->value.written_in;
      std::vector<std::uint64_t> written;
      for (const auto& row : loop.rows) written.push_back(row.ref().record->value.written_in);
      loop.launch(captured);
      const auto& timeline = loop.state().store.timeline;
      CHECK(loop.state().store.iteration == iteration + period);
      CHECK(loop.input.ref().record->value.written_in == given);
      for (std::size_t i = 0; i < row_count; ++i) {
        const auto& record = *loop.rows[i].ref().record;
        CHECK(record.value.written_in == written[i] + period);
        for (const QueueKind queue : runtime::base_queues) {
          CHECK(record.device.ready[queue] == timeline.issued(queue));
          CHECK(record.device.busy[queue] == timeline.issued(queue));
        }
        REQUIRE(record.host.block != nullptr);
        CHECK(record.host.block->written == timeline.issued(QueueKind::d2h));
        CHECK(record.host.block->read == timeline.issued(QueueKind::h2d));
      }
      loop.check_rows();
    }
  }
}

TEST_CASE("downloads that were asked for before a launch get the values from before it") {
  for (const std::size_t room : {3U, 10U}) {
    WatchedLoop loop(room);
    loop.settle();
    auto captured = loop.capture();
    std::vector<Numbers> targets(2 * row_count, Numbers(row_length));
    std::vector<Numbers> promised;
    std::vector<PendingDownload<WatchedCaptures>> pending;
    for (std::size_t i = 0; i < 2 * row_count; ++i) {  // two values of each row
      if (i == row_count) loop.launch(captured);
      promised.push_back(loop.expected[i % row_count]);
      pending.push_back(loop.rows[i % row_count].download_async(targets[i]));
    }
    loop.launch(captured);
    for (auto& each : pending) each.wait();
    CHECK(targets == promised);
    loop.check_rows();
  }
}

TEST_CASE("iterations between launches keep the host memory that the graph knows") {
  WatchedLoop loop(3);
  loop.settle();
  auto captured = loop.capture();
  for (int times = 0; times < 2; ++times) {
    std::vector<Numbers> targets(row_count, Numbers(row_length));
    const std::vector<Numbers> promised = loop.expected;
    std::vector<PendingDownload<WatchedCaptures>> pending;
    for (std::size_t i = 0; i < row_count; ++i) pending.push_back(loop.rows[i].download_async(targets[i]));
    loop.iterate();
    loop.launch(captured);
    for (auto& each : pending) each.wait();
    CHECK(targets == promised);
    loop.check_rows();
  }
}

TEST_CASE("a launch touches no tensor that took the storage of a temporary of its iteration") {
  WatchedLoop loop(rows_that_all_fit);
  loop.settle();
  auto captured = loop.capture();
  loop.iterate();
  auto first = loop.manager.tensor<Number>({row_length}, "first");
  loop.iterate();
  auto second = loop.manager.tensor<Number>({row_length}, "second");
  {
    const auto iteration = loop.manager.iteration("loop");
    first.upload(numbers(row_length, 70));
    loop.body();
  }
  loop.model();
  {
    const auto iteration = loop.manager.iteration("loop");
    second.upload(numbers(row_length, 71));
    loop.body();
  }
  loop.model();
  loop.launch(captured);
  CHECK(first.download() == numbers(row_length, 70));
  CHECK(second.download() == numbers(row_length, 71));
  loop.check_rows();
  CHECK(loop.manager.report().divergences == 0);
}

TEST_CASE("neither events nor times are asked for while an iteration is captured") {
  for (const std::size_t room : {3U, 10U}) {
    for (std::size_t iterations = 4; iterations < 9; ++iterations) {  // in the trial of the plan, and behind it
      CAPTURE(room);
      CAPTURE(iterations);
      WatchedLoop loop(room);
      loop.iterate(iterations);
      REQUIRE(loop.state().executor.active());
      loop.device.seen() = {};
      auto captured = loop.capture();
      CHECK(loop.device.seen().queries == 0);
      CHECK(loop.device.seen().switches_of_timing == 0);
      loop.launch(captured);
      loop.check_rows();
    }
  }
}

TEST_CASE("no event is asked for where the end of a captured operation could not be recorded") {
  WatchedLoop loop(4);
  loop.settle();
  loop.device.seen() = {};
  const auto body = [&] {
    loop.device.seen().next_record_fails = true;
    loop.body();
  };
  CHECK_THROWS_AS((void)loop.manager.capture("loop", body), Error);
  CHECK(!loop.device.seen().next_record_fails);
  CHECK(loop.device.seen().queries == 0);
}

TEST_CASE("what cannot be captured now is refused with the reason") {
  WatchedLoop loop(4);
  const std::string no_plan =
      "iteration \"loop\" follows no plan: run it until Report::iterations_followed grows, then capture it";
  CHECK(loop.refusal_to_capture() == no_plan);
  loop.iterate();
  CHECK(loop.refusal_to_capture() == no_plan);  // of that name, and on demand
  loop.settle();
  CHECK(loop.refusal_to_capture("other") ==
        "iteration \"other\" follows no plan: run it until Report::iterations_followed grows, then capture it");
  {
    const auto iteration = loop.manager.iteration("loop");
    CHECK(loop.refusal_to_capture() == "iteration \"loop\" must end before another one is captured or launched");
    loop.body();
  }
  loop.model();
  loop.manager.start_profile();
  const std::string profile = "no iteration can be captured or launched while a profile is being recorded";
  CHECK(loop.refusal_to_capture() == profile);
  (void)loop.manager.stop_profile();
  CHECK(loop.manager.report().divergences == 0);
  auto captured = loop.capture();
  loop.manager.start_profile();
  CHECK(WatchedLoop::refusal(captured) == profile);
  (void)loop.manager.stop_profile();
  {
    const auto iteration = loop.manager.iteration("loop");
    CHECK(WatchedLoop::refusal(captured) == "iteration \"loop\" must end before another one is captured or launched");
    loop.body();
  }
  loop.model();
  loop.launch(captured);
  loop.check_rows();
}

TEST_CASE("a cycle of two iterations is captured and launched from its beginning") {
  WatchedLoop loop(4, 2);
  loop.settle();
  auto captured = loop.capture();
  loop.iterate();
  const std::string middle =
      "iteration \"loop\" is in the middle of a cycle of several iterations: run the rest of them first";
  CHECK(loop.refusal_to_capture() == middle);
  CHECK(WatchedLoop::refusal(captured) == middle);
  loop.iterate();
  loop.launch(captured);
  loop.check_rows();
}

TEST_CASE("a capture that ends within a cycle of two iterations is refused, and its work has run") {
  WatchedLoop loop(4, 2);
  loop.settle();
  loop.core().begin_capture("loop");
  loop.iterate();
  CHECK(loop.core().within_captured_round());
  CHECK_THROWS_WITH_AS((void)loop.core().end_capture(), "the captured iteration ended before the plan's last operation",
                       UsageError);
  CHECK(loop.device.idle());
  loop.iterate();
  loop.check_rows();
}

TEST_CASE("an iteration that ends early is no captured iteration, and its work has run") {
  WatchedLoop loop(4);
  loop.settle();
  CHECK_THROWS_WITH_AS(
      (void)loop.manager.capture("loop", [&] { loop.manager.run("warm up", scratch(row_bytes), [](auto&) {}); }),
      "the captured iteration ended before the plan's last operation", UsageError);
  CHECK(loop.device.idle());
  loop.check_rows();
}

TEST_CASE("what a body queued before it threw has run when the exception comes out") {
  WatchedLoop loop(4);
  loop.settle();
  CHECK_THROWS_AS((void)loop.manager.capture("loop",
                                             [&] {
                                               loop.body();
                                               throw 7;
                                             }),
                  int);
  loop.model();
  CHECK(loop.device.idle());
  loop.check_rows();
}

TEST_CASE("a launch after the plan was left says that the iteration must be captured again") {
  const std::string left = "the plan of a captured iteration was left before launch(): capture the iteration again";
  WatchedLoop loop(4);
  loop.settle();
  auto captured = loop.capture();
  loop.grow_row(loop.rows[0], loop.rows[1]);
  grow(loop.expected[0], loop.expected[1]);
  CHECK(WatchedLoop::refusal(captured) == left);  // swapping on demand
  loop.settle();
  CHECK(WatchedLoop::refusal(captured) == left);  // the plan was started again
  loop.check_rows();
}

TEST_CASE("an iteration of another name ends a captured plan, and is no divergence from it") {
  WatchedLoop loop(4);
  loop.settle();
  auto captured = loop.capture();
  {
    const auto iteration = loop.manager.iteration("other");
    loop.grow_row(loop.rows[0], loop.rows[1]);
  }
  grow(loop.expected[0], loop.expected[1]);
  CHECK(loop.manager.report().divergences == 0);
  CHECK(WatchedLoop::refusal(captured) ==
        "the plan of a captured iteration was left before launch(): capture the iteration again");
  loop.check_rows();
}

TEST_CASE("a launch without one of the plan's tensors is refused") {
  WatchedLoop loop(4);
  loop.settle();
  auto captured = loop.capture();
  loop.rows[2].reset();
  const std::uint64_t queued = loop.device.queued();
  CHECK(WatchedLoop::refusal(captured) == "a captured iteration cannot be launched: tensor \"row2\" no longer exists");
  CHECK(loop.device.queued() == queued);
}

TEST_CASE("a launch that fails takes what it was to write, keeps what it was to read, and ends the plan") {
  WatchedLoop loop(rows_that_all_fit);
  loop.settle();
  auto captured = loop.capture();
  loop.device.let_launches_fail(true);
  CHECK_THROWS_AS(captured.launch(), BackendError);
  loop.device.let_launches_fail(false);
  CHECK(loop.manager.report().divergences == 1);
  CHECK(loop.manager.report().last_divergence == "a captured iteration could not be launched");
  CHECK(WatchedLoop::refusal(captured) ==
        "the plan of a captured iteration was left before launch(): capture the iteration again");
  CHECK(loop.input.download() == WatchedLoop::input_value());
  for (const auto& row : loop.rows) CHECK_THROWS_AS((void)row.download(), WorkFailed);
}

TEST_CASE("a capture that the API refuses is an operation that failed, and what it did not write stays") {
  WatchedLoop loop(rows_that_all_fit);  // values are on the device alone
  loop.settle();
  const auto all_but_the_last = [&] {
    loop.manager.run("warm up", scratch(row_bytes), [](auto&) {});
    const auto temporary = loop.manager.tensor<Number>({row_length}, "temporary", transient);
    loop.manager.run("make", reads(loop.input), writes(temporary), [](auto&) {});
    loop.grow_row(temporary, loop.rows[0]);
    for (std::size_t i = 0; i + 2 < row_count; ++i) loop.grow_row(loop.rows[i], loop.rows[i + 1]);
    throw 7;
  };
  loop.device.let_captures_fail(true);
  CHECK_THROWS_AS((void)loop.manager.capture("loop", all_but_the_last), int);
  loop.device.let_captures_fail(false);
  std::optional<WorkFailed> failure;
  try {
    loop.manager.synchronize();
  } catch (const WorkFailed& error) {
    failure = error;
  }
  REQUIRE(failure.has_value());
  CHECK(failure->work == WorkFailed::Work::operation);
  CHECK(failure->operation() == "captured iteration: the capture is inva");  // as long as a label may be
  std::vector<std::string> lost;
  for (const TensorName& tensor : failure->lost()) lost.push_back(tensor.name);
  CHECK(lost == std::vector<std::string>{"row0", "row1", "row2"});
  CHECK(loop.input.download() == WatchedLoop::input_value());
  CHECK(loop.rows[row_count - 1].download() == loop.expected[row_count - 1]);
}

TEST_CASE("a device that is lost at the end of a capture is lost") {
  WatchedLoop loop(4);
  loop.settle();
  loop.device.seen().lost_at_end = true;
  CHECK_THROWS_AS((void)loop.manager.capture("loop", [&] { loop.body(); }), DeviceLost);
  CHECK_THROWS_AS(loop.manager.synchronize(), DeviceLost);
}

TEST_CASE("the host's accesses are refused within a captured iteration, which goes on without them") {
  WatchedLoop loop(4);
  loop.settle();
  const std::string rest = " inside a captured iteration: a graph cannot take part in uploads and downloads";
  Numbers target(row_length);
  std::vector<std::string> refusals;
  const auto refused = [&](auto&& access) {
    try {
      access();
    } catch (const UsageError& error) {
      refusals.emplace_back(error.what());
    }
  };
  auto captured = loop.manager.capture("loop", [&] {
    refused([&] { loop.rows[1].upload(target); });
    refused([&] { loop.rows[1].download(target); });
    refused([&] { (void)loop.rows[1].download_async(target); });
    loop.body();
  });
  loop.model();
  CHECK(refusals == std::vector<std::string>{"upload to tensor \"row1\"" + rest, "download of tensor \"row1\"" + rest,
                                             "download of tensor \"row1\"" + rest});
  loop.launch(captured);
  loop.check_rows();
}

TEST_CASE("in a captured iteration even an operation that can never fit is told that it was not expected") {
  WatchedLoop loop(4);
  loop.settle();
  std::string text;
  try {
    (void)loop.manager.capture("loop",
                               [&] { loop.manager.run("huge", scratch(Bytes{5 * row_bytes.value}), [](auto&) {}); });
  } catch (const UsageError& error) {
    text = error.what();
  }
  CHECK(text ==
        "operation \"huge\" in iteration \"loop\" was not expected there: a captured iteration must do what its plan "
        "expects");
}

TEST_CASE("a captured plan is neither timed nor replaced, not even by one that is loaded") {
  WatchedLoop loop(4);
  loop.iterate(4);  // in the trial of the plan
  REQUIRE(loop.state().executor.active());
  auto captured = loop.capture();
  loop.device.seen() = {};
  loop.iterate(6);
  CHECK(loop.device.seen().switches_outside == 0);
  std::ostringstream out;
  loop.manager.scheduler().save_plan("loop", out);
  std::istringstream in(out.str());
  loop.manager.scheduler().load_plan("loop", in);
  loop.iterate(6);
  CHECK(loop.manager.report().plan_starts == 1);
  loop.launch(captured);
  loop.check_rows();
}

TEST_CASE("a backend that wants to know is told of each access of the host, with its place") {
  WatchedCaptures device;
  MemoryManager<WatchedCaptures> manager(device, {.device_budget = row_bytes});
  auto t = manager.tensor<Number>({row_length}, "t");
  const auto seen = [&](auto&& access) {
    device.seen().host_accesses.clear();
    access();
    return device.seen().host_accesses;
  };
  const Bytes part{4 * sizeof(Number)};
  const Bytes begin{2 * sizeof(Number)};
  using All = std::vector<HostAccessSeen>;
  CHECK(seen([&] { t.upload(numbers(row_length, 1)); }) == All{{Bytes{0}, row_bytes, true}});
  CHECK(seen([&] { t.slice(2, 4).upload(Numbers(4)); }) == All{{begin, part, true}});
  CHECK(seen([&] { (void)t.download(); }) == All{{Bytes{0}, row_bytes, false}});
  CHECK(seen([&] { (void)t.slice(2, 4).download(); }) == All{{begin, part, false}});
}
