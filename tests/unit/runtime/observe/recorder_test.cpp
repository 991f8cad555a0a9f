// SPDX-License-Identifier: Apache-2.0
// The log of one iteration as the recorder writes it, and what it keeps of it when the iteration is over.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/options.hpp>
#include <swapmm/runtime/observe/recorder.hpp>

#include "support/scripted_backend.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::literals;
using namespace swapmm::test;
using runtime::BundleItem;
using runtime::IterationLog;
using runtime::LogEvent;
using runtime::Recorder;
using runtime::Request;
using std::chrono::nanoseconds;

/// A recorder, and a program that does what it is told to log.
struct RecorderDesk {
  using Tensor = runtime::Record<ScriptedBackend>;

  Tensor& tensor(std::string_view name, Bytes bytes = 64_bytes) {
    return store.records.add(name, bytes, persistent, store.iteration);
  }

  void log_operation(std::string_view name, std::initializer_list<std::pair<Tensor*, Access>> bundle,
                     Bytes scratch = {}) {
    std::vector<BundleItem<ScriptedBackend>> items;
    for (const auto& [record, access] : bundle) items.push_back({record, access, record->tensor.serial});
    recorder.operation({.name = name, .items = items, .scratch = scratch});
  }
  /// Logs and runs an operation that takes `time`.
  void run(std::string_view name, nanoseconds time, std::initializer_list<std::pair<Tensor*, Access>> bundle = {}) {
    log_operation(name, bundle);
    queue(QueueKind::compute, time, recorder.operation_timing());
  }
  /// Copies so many bytes in `time`.
  void copy(QueueKind queue_kind, Bytes size, nanoseconds time) {
    queue(queue_kind, time, store.timed_copies.add(queue_kind, size));
  }

  ScriptedBackend device;
  runtime::Store<ScriptedBackend> store{device, {.device_budget = 1_KiB}};
  Recorder<ScriptedBackend> recorder{store};

 private:
  void queue(QueueKind queue_kind, nanoseconds time, std::uint32_t timing) {
    auto& slot = store.timeline.next(queue_kind);
    device.record(queue_kind, slot.start);
    device.script().now += time;
    device.record(queue_kind, slot.event);
    runtime::CommandLabel label;
    label.issue = store.timeline.next_issue();
    label.timing = timing;
    store.timeline.commit(queue_kind, label);
  }
};

}  // namespace

TEST_CASE("a log has the operations by name, with their bundles in order, and the work area last") {
  RecorderDesk desk;
  auto& a = desk.tensor("a");
  auto& b = desk.tensor("b", 32_bytes);
  desk.recorder.open("train", false);
  desk.log_operation("first", {{&a, Access::read}, {&b, Access::write}});
  desk.log_operation("second", {{&b, Access::update}}, 16_bytes);
  const IterationLog& log = desk.recorder.log();
  REQUIRE(log.operations.size() == 2);
  CHECK(log.operations[0].name == "first");
  CHECK(log.operations[1].name == "second");
  CHECK(log.operations[1].first_access == 2);
  CHECK(log.operations[1].access_count == 2);
  REQUIRE(log.tensors.size() == 3);
  CHECK(log.tensors[0].name == "a");
  CHECK(log.tensors[1].bytes == 32_bytes);
  CHECK(log.tensors[2].name == "second.scratch");
  CHECK(log.tensors[2].bytes == 16_bytes);
  CHECK(log.tensors[2].scratch());
  REQUIRE(log.accesses.size() == 4);
  CHECK(log.accesses[2].tensor == 1);
  CHECK(log.accesses[3].tensor == 2);
}

TEST_CASE("nothing of a log that was taken is in the recorder any more") {
  RecorderDesk desk;
  desk.recorder.open("train", true);
  desk.run("step", nanoseconds{5});
  desk.recorder.mark_broken();
  desk.recorder.close();
  CHECK(!desk.recorder.is_open());
  const IterationLog taken = desk.recorder.take();
  CHECK(taken.broken);
  CHECK(taken.timed);
  CHECK(taken.operations.size() == 1);
  CHECK(!desk.recorder.broken());
  CHECK(!desk.recorder.has_operations());
  CHECK(!desk.recorder.log().timed);
}

TEST_CASE("a log that is cleared is as a new one") {
  IterationLog log;
  log.tensors.resize(1);
  log.accesses.resize(1);
  log.operations.resize(1);
  log.events.resize(1);
  log.broken = true;
  log.timed = true;
  log.clear();
  CHECK(log.tensors.empty());
  CHECK(log.accesses.empty());
  CHECK(log.operations.empty());
  CHECK(log.events.empty());
  CHECK(!log.broken);
  CHECK(!log.timed);
}

TEST_CASE("a log that is given up is closed, and nothing is timed for it any more") {
  for (const bool quietly : {false, true}) {
    RecorderDesk desk;
    desk.recorder.open("train", true);
    CHECK(desk.recorder.is_open());
    CHECK(desk.store.timing);
    if (quietly) {
      desk.recorder.abandon_quietly();
    } else {
      desk.recorder.abandon();
    }
    CHECK(!desk.recorder.is_open());
    CHECK(!desk.store.timing);
  }
}

TEST_CASE("a log that is closed has the times of its operations, and the links those of its copies") {
  RecorderDesk desk;
  auto& a = desk.tensor("a");
  desk.recorder.open("train", true);
  desk.copy(QueueKind::h2d, 1000_bytes, nanoseconds{1000});
  desk.run("first", nanoseconds{30}, {{&a, Access::write}});
  desk.copy(QueueKind::d2h, 1000_bytes, nanoseconds{2000});
  desk.run("second", nanoseconds{40}, {{&a, Access::read}});
  desk.recorder.close();
  const IterationLog log = desk.recorder.take();
  REQUIRE(log.operations.size() == 2);
  CHECK(log.operations[0].duration == nanoseconds{30});
  CHECK(log.operations[1].duration == nanoseconds{40});
  CHECK(desk.store.link(QueueKind::h2d).link() == Link{1'000'000'000, nanoseconds{0}});
  CHECK(desk.store.link(QueueKind::d2h).link() == Link{500'000'000, nanoseconds{0}});
}

TEST_CASE("the copies of each iteration are a sample of their own: the slow ones of another one do no harm") {
  for (const QueueKind queue : {QueueKind::h2d, QueueKind::d2h}) {
    RecorderDesk desk;
    for (const nanoseconds time : {nanoseconds{2000}, nanoseconds{1000}, nanoseconds{5000}}) {
      desk.recorder.open("train", true);
      desk.copy(queue, 1000_bytes, time);
      desk.recorder.close();
    }
    const auto& link = queue == QueueKind::h2d ? desk.store.link(QueueKind::h2d) : desk.store.link(QueueKind::d2h);
    CHECK(link.link() == Link{1'000'000'000, nanoseconds{0}});
  }
}

TEST_CASE("the times of a log that was given up are not asked of the next one") {
  RecorderDesk desk;
  desk.recorder.open("train", true);
  for (const char* name : {"first", "second", "third"}) desk.run(name, nanoseconds{10});
  desk.copy(QueueKind::h2d, 1000_bytes, nanoseconds{1000});
  desk.recorder.abandon();
  desk.recorder.open("train", true);
  CHECK(desk.store.timed_copies.count() == 0);
  desk.run("alone", nanoseconds{70});
  desk.recorder.close();
  const IterationLog log = desk.recorder.take();
  REQUIRE(log.operations.size() == 1);
  CHECK(log.operations[0].duration == nanoseconds{70});
  CHECK(!desk.store.link(QueueKind::h2d).link());
}

TEST_CASE("a copy of a log that was given up is not taken for the copy of the next one in its place") {
  RecorderDesk desk;
  desk.recorder.open("train", true);
  desk.copy(QueueKind::h2d, 1000_bytes, nanoseconds{1000});
  desk.recorder.abandon();
  desk.recorder.open("train", true);
  desk.copy(QueueKind::d2h, 4000_bytes, nanoseconds{8000});
  desk.recorder.close();
  CHECK(desk.store.link(QueueKind::d2h).link() == Link{500'000'000, nanoseconds{0}});
}

namespace {

/// Late times as the recorder passes them on.
struct LateSink {
  std::vector<std::uint64_t> sequences;
  std::vector<std::vector<nanoseconds>> durations;

  void collect(RecorderDesk& desk) {
    desk.recorder.collect_late([&](std::uint64_t sequence, const std::vector<nanoseconds>& times) {
      sequences.push_back(sequence);
      durations.push_back(times);
    });
  }
};

/// A log that is closed before its times are known.
IterationLog close_late(RecorderDesk& desk, std::uint64_t sequence) {
  desk.recorder.close(false);
  IterationLog log = desk.recorder.take();
  desk.recorder.times_are_of(sequence);
  return log;
}

}  // namespace

TEST_CASE("the times of a log that nobody waits for come later, and so do those of its copies") {
  RecorderDesk desk;
  desk.recorder.open("train", true);
  desk.copy(QueueKind::h2d, 1000_bytes, nanoseconds{1000});
  desk.run("first", nanoseconds{30});
  desk.run("second", nanoseconds{40});
  const IterationLog log = close_late(desk, 7);
  CHECK(!desk.recorder.is_open());
  CHECK(!desk.store.timing);
  CHECK(log.timed);
  CHECK(log.times_are_late);
  CHECK(log.operations[0].duration == nanoseconds{0});
  desk.recorder.open("train", true);
  desk.run("third", nanoseconds{50});
  desk.recorder.close();  // waits for all of them
  CHECK(!desk.recorder.log().times_are_late);
  LateSink sink;
  sink.collect(desk);
  CHECK(sink.sequences == std::vector<std::uint64_t>{7});
  REQUIRE(sink.durations.size() == 1);
  CHECK(sink.durations[0] == std::vector<nanoseconds>{nanoseconds{30}, nanoseconds{40}});
  CHECK(desk.recorder.take().operations[0].duration == nanoseconds{50});
  CHECK(desk.store.link(QueueKind::h2d).link() == Link{1'000'000'000, nanoseconds{0}});
  sink.collect(desk);
  CHECK(sink.sequences.size() == 1);
}

TEST_CASE("late times come log by log, the oldest first, once all of the log has ended, without a wait") {
  RecorderDesk desk;
  LateSink sink;
  desk.device.script().ended = 0;
  std::vector<std::uint64_t> ends;
  for (const std::uint64_t sequence : {3U, 0U, 5U}) {  // nobody needs those of the second
    desk.recorder.open("train", true);
    desk.run("step", nanoseconds{static_cast<std::int64_t>(10 + sequence)});
    desk.run("step", nanoseconds{100});
    (void)close_late(desk, sequence);
    ends.push_back(desk.device.recorded());
  }
  for (const std::uint64_t end : ends) {
    desk.device.script().ended = end - 1;
    const std::size_t before = sink.sequences.size();
    sink.collect(desk);
    CHECK(sink.sequences.size() == before);
    desk.device.script().ended = end;
    sink.collect(desk);
  }
  CHECK(sink.sequences == std::vector<std::uint64_t>{3, 5});
  REQUIRE(sink.durations.size() == 2);
  CHECK(sink.durations[0] == std::vector<nanoseconds>{nanoseconds{13}, nanoseconds{100}});
  CHECK(sink.durations[1] == std::vector<nanoseconds>{nanoseconds{15}, nanoseconds{100}});
  CHECK(desk.store.timeline.host_waits() == 0);
}

TEST_CASE("if many logs wait for their times, the host waits for the oldest") {
  RecorderDesk desk;
  LateSink sink;
  desk.device.script().ended = 0;
  for (std::uint64_t sequence = 1; sequence <= 8; ++sequence) {
    CHECK(sink.sequences.empty());
    desk.recorder.open("train", true);
    desk.run("step", nanoseconds{10});
    (void)close_late(desk, sequence);
    if (sequence < 8) sink.collect(desk);
  }
  sink.collect(desk);
  CHECK(sink.sequences == std::vector<std::uint64_t>{1});
}

TEST_CASE("a log without times has none that are late") {
  RecorderDesk desk;
  desk.recorder.open("train", false);
  desk.log_operation("step", {});
  CHECK(!close_late(desk, 4).times_are_late);
  desk.store.timeline.host_wait(desk.store.timeline.everything());
  LateSink sink;
  sink.collect(desk);
  CHECK(sink.sequences.empty());
}

TEST_CASE("the times of operations that come after others that were written to the log are those of these operations") {
  for (const bool waits : {true, false}) {
    RecorderDesk desk;
    desk.recorder.open("train", true);
    desk.recorder.log().operations.resize(2);  // what a plan did until it was left
    desk.run("third", nanoseconds{30});
    desk.run("fourth", nanoseconds{40});
    desk.recorder.close(waits);
    const IterationLog log = desk.recorder.take();
    desk.recorder.times_are_of(6);
    desk.recorder.open("train", true);
    desk.run("of the next log", nanoseconds{70});
    (void)close_late(desk, 7);
    desk.store.timeline.host_wait(desk.store.timeline.everything());
    LateSink sink;
    sink.collect(desk);
    std::vector<nanoseconds> times;
    for (const runtime::LogOperation& operation : log.operations) times.push_back(operation.duration);
    const std::vector<nanoseconds> expected{nanoseconds{0}, nanoseconds{0}, nanoseconds{30}, nanoseconds{40}};
    CHECK((waits ? times : sink.durations.at(0)) == expected);
    CHECK(sink.durations.back() == std::vector<nanoseconds>{nanoseconds{70}});
  }
}

TEST_CASE("copies are forgotten with the logs whose times have come") {
  RecorderDesk desk;
  LateSink sink;
  for (std::uint64_t sequence = 1; sequence <= 100; ++sequence) {
    desk.recorder.open("train", true);
    for (int i = 0; i < 3; ++i) desk.copy(QueueKind::h2d, 1000_bytes, nanoseconds{1000});
    desk.run("step", nanoseconds{10});
    if (sequence % 5 == 0) {  // one whose times nobody needs
      (void)close_late(desk, 0);
    } else {
      (void)close_late(desk, sequence);
      sink.collect(desk);
    }
    CHECK(desk.store.timed_copies.count() <= 6);
  }
  CHECK(sink.sequences.size() == 80);
  CHECK(desk.store.link(QueueKind::h2d).link() == Link{1'000'000'000, nanoseconds{0}});
}

TEST_CASE("times of a log that the book did not take are not given to the next one") {
  RecorderDesk desk;
  desk.recorder.open("train", true);
  desk.run("step", nanoseconds{10});
  desk.recorder.close(false);
  (void)desk.recorder.take();  // and then something throws
  desk.recorder.open("train", false);
  desk.log_operation("step", {});
  desk.recorder.close();
  CHECK(!desk.recorder.last_was_late());
  (void)desk.recorder.take();
  desk.recorder.times_are_of(9);
  desk.store.timeline.host_wait(desk.store.timeline.everything());
  LateSink sink;
  sink.collect(desk);
  CHECK(sink.sequences.empty());
}
