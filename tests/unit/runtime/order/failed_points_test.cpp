// SPDX-License-Identifier: Apache-2.0
// What the timeline tells of work that failed, of calls that fail while it asks, and what it asks of the device at all.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/runtime/order/timeline.hpp>

#include "support/scripted_backend.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using runtime::Clock;
using runtime::CommandLabel;
using runtime::QueueFailure;
using runtime::QueuePoint;
using runtime::Timeline;
using AskedCalls = std::vector<std::string>;

constexpr std::uint64_t none_failed = ~std::uint64_t{0};

/// What a test says of the calls of an asked device, and what it was asked.
struct Asked {
  Capabilities capabilities;
  std::optional<BackendError::Kind> wait_error;  ///< each wait of the host throws this
  bool ends_all_the_same = true;                 ///< what a wait that threw was for has ended
  std::size_t status_errors = 0;                 ///< that many questions for a status throw
  BackendError::Kind status_error = BackendError::Kind::failed;
  AskedCalls calls;  ///< flushes, waits and finishes
};

/// A scripted device whose calls fail, and that knows which calls came.
class AskedBackend : public ScriptedBackend {
 public:
  [[nodiscard]] Asked& asked() { return *asked_; }
  [[nodiscard]] const Capabilities& capabilities() const { return asked_->capabilities; }

  void flush(QueueKind queue) { asked_->calls.push_back("flush " + std::to_string(index(queue))); }
  using ScriptedBackend::wait;
  void wait(const Event& event) {
    asked_->calls.push_back("wait " + std::to_string(event.at));
    if (!asked_->wait_error || asked_->ends_all_the_same) script().ended = std::max(script().ended, event.at);
    if (asked_->wait_error) throw BackendError(*asked_->wait_error, 7, "wait");
    if (script().failed.contains(event.at)) throw BackendError(BackendError::Kind::failed, 9, "the work");
  }
  void finish() {
    asked_->calls.emplace_back("finish");
    script().ended = recorded();
  }
  [[nodiscard]] EventStatus status(const Event& event) {
    if (asked_->status_errors != 0) {
      --asked_->status_errors;
      throw BackendError(asked_->status_error, 8, "status");
    }
    return ScriptedBackend::status(event);
  }

 private:
  std::shared_ptr<Asked> asked_ = std::make_shared<Asked>();
};

static_assert(Backend<AskedBackend>);

/// Nothing on the device ends before the host waits for it.
struct FailedPointsDesk {
  FailedPointsDesk() { device.script().ended = 0; }

  /// Queues a command behind `after`. Its issue number is its position among all commands.
  QueuePoint queue(QueueKind kind, std::string_view name, const Clock& after = {}) {
    const auto waits = timeline.waits(kind, after);
    auto& slot = timeline.next(kind);
    device.record(kind, slot.event);
    timeline.gained(kind, waits);
    CommandLabel label;
    label.what = CommandLabel::What::operation;
    label.set_name(name);
    label.issue = timeline.next_issue();
    return timeline.commit(kind, label);
  }
  /// Queues work on the compute queue that records no point.
  void queue_without_point() { timeline.unrecorded(QueueKind::compute, timeline.next_issue()); }

  AskedBackend device;
  Timeline<AskedBackend> timeline{device, 16};
};

Clock after_compute(QueuePoint point) { return Clock::point(QueueKind::compute, point); }
Clock after_h2d(QueuePoint point) { return Clock::point(QueueKind::h2d, point); }

/// The queue and the name of the command that failed, as `call` throws it; "" if it throws nothing.
template <class Call>
std::string failed_command(Call&& call) {
  try {
    call();
  } catch (const QueueFailure& failure) {
    return std::to_string(index(failure.queue)) + " " + failure.label.name.data();
  }
  return "";
}

/// The code of the error of the backend that `call` throws; 0 if it throws none.
template <class Call>
long backend_code(Call&& call) {
  try {
    call();
  } catch (const BackendError& error) {
    return error.code;
  }
  return 0;
}

}  // namespace

TEST_CASE("a failure is told to the host that waits for the command, that asks for its end, or that queues behind it") {
  for (int way = 0; way < 3; ++way) {
    FailedPointsDesk desk;
    const QueuePoint point = desk.queue(QueueKind::h2d, "copy");
    desk.device.script().failed = {1};
    if (way != 0) desk.device.script().ended = 1;
    CHECK(failed_command([&] {
            if (way == 0) desk.timeline.host_wait(after_h2d(point));
            if (way == 1) (void)desk.timeline.ended(after_h2d(point));
            if (way == 2) (void)desk.timeline.waits(QueueKind::compute, after_h2d(point));
          }) == "1 copy");
    CHECK(desk.timeline.confirmed(QueueKind::h2d) == 0);
  }
}

TEST_CASE("a command that ended well behind one that failed has not ended well") {
  FailedPointsDesk desk;
  desk.queue(QueueKind::compute, "first");
  desk.queue(QueueKind::compute, "second");
  desk.queue(QueueKind::compute, "third");
  const QueuePoint direct = desk.queue(QueueKind::h2d, "behind it", after_compute(3));
  const QueuePoint later = desk.queue(QueueKind::d2h, "behind that", after_h2d(direct));
  desk.device.script().ended = 5;
  desk.device.script().failed = {2};
  CHECK(failed_command([&] { desk.timeline.host_wait(after_compute(3)); }) == "0 second");
  CHECK(failed_command([&] { desk.timeline.host_wait(after_h2d(direct)); }) == "0 second");
  CHECK(failed_command([&] { desk.timeline.host_wait(Clock::point(QueueKind::d2h, later)); }) == "0 second");
  CHECK(failed_command([&] { desk.timeline.host_wait(after_compute(1)); }).empty());
}

TEST_CASE("where failures stick, every event reads failed, and the command that the host waited for is named") {
  FailedPointsDesk desk;
  desk.device.asked().capabilities.failures_stick = true;
  desk.queue(QueueKind::compute, "ended well");
  const QueuePoint point = desk.queue(QueueKind::compute, "waited for");
  desk.device.script().ended = 2;
  desk.device.script().failed = {1, 2};
  CHECK(failed_command([&] { desk.timeline.host_wait(after_compute(point)); }) == "0 waited for");
}

TEST_CASE("a call of the host that fails while it waits is a failure of the command only if its event says so") {
  const auto waiting = [](BackendError::Kind error, bool ended, bool failed) {
    FailedPointsDesk desk;
    const QueuePoint point = desk.queue(QueueKind::compute, "step");
    Asked& asked = desk.device.asked();
    asked.wait_error = error;
    asked.ends_all_the_same = ended;
    if (failed) desk.device.script().failed = {1};
    long code = 0;
    const std::string command =
        failed_command([&] { code = backend_code([&] { desk.timeline.host_wait(after_compute(point)); }); });
    return std::pair(command, code);
  };
  using Told = std::pair<std::string, long>;
  CHECK(waiting(BackendError::Kind::failed, true, false) == Told{"", 0});
  CHECK(waiting(BackendError::Kind::failed, true, true) == Told{"0 step", 0});
  CHECK(waiting(BackendError::Kind::failed, false, false) == Told{"", 7});
  // Of a device that is gone nothing more is asked.
  for (const bool ended : {false, true}) {
    for (const bool failed : {false, true}) {
      CHECK(waiting(BackendError::Kind::device_lost, ended, failed) == Told{"", 7});
    }
  }
}

TEST_CASE("giving up waits for all work, and tells the first command of it that failed") {
  FailedPointsDesk desk;
  for (const char* name : {"first", "second", "third"}) desk.queue(QueueKind::compute, name);
  desk.queue(QueueKind::h2d, "fourth");
  desk.device.script().failed = {4, 2, 3};
  CHECK(desk.timeline.abandon() == 2);
  CHECK(desk.device.asked().calls == AskedCalls{"finish"});
  CHECK(desk.timeline.points() == Clock{{4, 2, 1}});  // each queue has one more, behind all of its work
  for (const QueueKind queue : runtime::base_queues) {
    CHECK(desk.timeline.confirmed(queue) == desk.timeline.issued(queue));
  }
  CHECK(desk.timeline.abandon() == none_failed);
}

TEST_CASE("giving up tells the failure of work without a point as that of the first such work") {
  FailedPointsDesk desk;
  desk.queue(QueueKind::compute, "first");
  desk.queue_without_point();
  desk.queue_without_point();
  SUBCASE("by the point behind it") { desk.device.script().failed = {2}; }
  SUBCASE("where that point cannot be had") { desk.device.script().refused = 2; }
  CHECK(desk.timeline.abandon() == 2);
  // It is told once. All of it has ended, so nothing is left to get a point.
  CHECK(desk.timeline.everything() == desk.timeline.points());
  CHECK(desk.timeline.abandon() == none_failed);
}

TEST_CASE("a point that cannot be had behind work that has one tells of no failure") {
  FailedPointsDesk desk;
  desk.queue(QueueKind::compute, "first");
  desk.device.script().refused = 2;
  CHECK(desk.timeline.abandon() == none_failed);
  CHECK(desk.timeline.points() == Clock{{1, 1, 1}});
}

TEST_CASE("giving up asks once more for a status that it did not get, and takes no answer for a failure") {
  for (const std::size_t errors : {1U, 2U}) {
    FailedPointsDesk desk;
    desk.queue(QueueKind::compute, "first");
    desk.device.asked().status_errors = errors;
    CHECK(desk.timeline.abandon() == (errors == 1 ? none_failed : 1));
    CHECK(desk.device.asked().status_errors == 0);
  }
}

TEST_CASE("giving up does not ask again where the device is gone") {
  FailedPointsDesk desk;
  desk.queue(QueueKind::compute, "first");
  desk.device.asked().status_errors = 1;
  desk.device.asked().status_error = BackendError::Kind::device_lost;
  CHECK(backend_code([&] { (void)desk.timeline.abandon(); }) == 8);
}

TEST_CASE("a queue is flushed before another queue or the host waits for it, once for all that was queued") {
  FailedPointsDesk desk;
  desk.queue(QueueKind::compute, "first");
  desk.queue(QueueKind::compute, "second");
  desk.queue(QueueKind::h2d, "behind it", after_compute(1));
  CHECK(desk.device.asked().calls == AskedCalls{"flush 0"});
  desk.queue(QueueKind::d2h, "behind it too", after_compute(2));
  desk.timeline.host_wait(after_compute(2));
  CHECK(desk.device.asked().calls == AskedCalls{"flush 0", "wait 2"});
  desk.timeline.host_wait(after_h2d(1));
  CHECK(desk.device.asked().calls == AskedCalls{"flush 0", "wait 2", "flush 1", "wait 3"});
}

TEST_CASE("work without a point is something to flush") {
  FailedPointsDesk desk;
  const auto flush = [&] { desk.timeline.flush(QueueKind::compute); };
  flush();
  CHECK(desk.device.asked().calls.empty());
  desk.queue_without_point();
  flush();
  flush();
  CHECK(desk.device.asked().calls == AskedCalls{"flush 0"});
  desk.queue_without_point();
  flush();
  CHECK(desk.device.asked().calls == AskedCalls{"flush 0", "flush 0"});
}

TEST_CASE("a host that waits for one queue waits for no other that this one does not come after") {
  FailedPointsDesk desk;
  desk.queue(QueueKind::h2d, "copy");
  for (int i = 0; i < 16; ++i) desk.queue(QueueKind::compute, "slow");
  desk.timeline.host_wait(after_h2d(1));
  CHECK(desk.device.asked().calls == AskedCalls{"flush 1", "wait 1"});
  CHECK(desk.timeline.host_waits() == 1);
}

TEST_CASE("work without a point whose own event says that it failed is told with the next point, by its name") {
  FailedPointsDesk desk;
  const auto queue_lone = [&](std::string_view name) {
    desk.device.record(QueueKind::compute, desk.timeline.next_without_point());
    CommandLabel label;
    label.what = CommandLabel::What::operation;
    label.set_name(name);
    label.issue = desk.timeline.next_issue();
    desk.timeline.commit_without_point(label);
  };
  desk.queue(QueueKind::compute, "first");
  queue_lone("second");
  queue_lone("third");
  const QueuePoint behind = desk.queue(QueueKind::compute, "fourth");
  for (int i = 0; i < 40; ++i) queue_lone("later");  // more than there was room for
  const QueuePoint last = desk.queue(QueueKind::h2d, "copy", after_compute(behind));
  desk.device.script().ended = 45;
  SUBCASE("it failed") {
    desk.device.script().failed = {3};
    CHECK(failed_command([&] { desk.timeline.host_wait(after_compute(1)); }).empty());
    // The copy comes after it, too.
    CHECK(failed_command([&] { desk.timeline.host_wait(after_h2d(last)); }) == "0 third");
  }
  SUBCASE("it ended well") {
    desk.timeline.host_wait(after_h2d(last));
    CHECK(desk.timeline.confirmed(QueueKind::compute) == behind);
  }
  SUBCASE("it failed, and nobody waits before all is given up") {
    desk.device.script().failed = {30};
    CHECK(desk.timeline.abandon() == 30);
    CHECK(desk.timeline.abandon() == none_failed);
  }
}
