// SPDX-License-Identifier: Apache-2.0
// Points of queues: the fewest waits that make a need true, and what a wait of the host tells.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/backend/testing/faulty.hpp>
#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/runtime/order/timeline.hpp>

#include "support/null_backend.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using runtime::Clock;
using runtime::CommandLabel;
using runtime::QueueFailure;
using runtime::QueuePoint;
using runtime::Timeline;

constexpr QueueKind compute = QueueKind::compute;
constexpr QueueKind h2d = QueueKind::h2d;
constexpr QueueKind d2h = QueueKind::d2h;

Clock needs(QueuePoint on_compute, QueuePoint on_h2d, QueuePoint on_d2h) { return Clock{{on_compute, on_h2d, on_d2h}}; }

// Queues a command on `queue` behind `after`, as the runtime does; its waits are counted.
template <class B>
std::size_t queue_command(B& backend, Timeline<B>& timeline, QueueKind queue, const Clock& after,
                          CommandLabel label = {}) {
  const auto waits = timeline.waits(queue, after);
  auto& slot = timeline.next(queue);
  if (waits.count != 0) backend.wait(queue, waits.span());
  backend.record(queue, slot.event);
  timeline.gained(queue, waits);
  label.issue = timeline.next_issue();
  timeline.commit(queue, label);
  return waits.count;
}

struct TimelineDesk {
  explicit TimelineDesk(bool lazy = true, std::size_t events = 16) : backend(lazy), timeline(backend, events) {}
  std::size_t queue(QueueKind kind, const Clock& after = {}) { return queue_command(backend, timeline, kind, after); }
  NullBackend backend;
  Timeline<NullBackend> timeline;
};

}  // namespace

TEST_CASE("a queue waits for no point of its own, and for none that it waited for before") {
  TimelineDesk desk;
  CHECK(desk.queue(compute) == 0);
  CHECK(desk.queue(compute, needs(1, 0, 0)) == 0);
  CHECK(desk.queue(h2d, needs(1, 0, 0)) == 1);
  CHECK(desk.queue(h2d, needs(1, 0, 0)) == 0);
  CHECK(desk.queue(h2d, needs(2, 0, 0)) == 1);
  CHECK(desk.queue(h2d, needs(1, 0, 0)) == 0);
  CHECK(desk.timeline.waits_queued() == 2);
}

TEST_CASE("a point that another awaited one came after needs no wait of its own") {
  TimelineDesk desk;
  desk.queue(compute);
  desk.queue(h2d, needs(1, 0, 0));
  CHECK(desk.queue(d2h, needs(1, 1, 0)) == 1);  // h2d came after compute
  CHECK(desk.queue(d2h, needs(1, 0, 0)) == 0);
  desk.queue(compute);
  CHECK(desk.queue(d2h, needs(2, 1, 0)) == 1);
}

TEST_CASE("what a queue came after passes on through other queues") {
  TimelineDesk desk;
  desk.queue(compute);
  desk.queue(h2d, needs(1, 0, 0));
  desk.queue(d2h, needs(0, 1, 0));
  CHECK(desk.queue(d2h, needs(1, 0, 0)) == 0);
  CHECK(desk.queue(compute, needs(1, 1, 1)) == 1);  // d2h came after both
}

TEST_CASE("two points of queues that know nothing of each other need two waits") {
  TimelineDesk desk;
  desk.queue(h2d);
  desk.queue(d2h);
  CHECK(desk.queue(compute, needs(0, 1, 1)) == 2);
}

TEST_CASE("nobody waits for what the host has seen to end") {
  TimelineDesk desk;
  desk.queue(h2d);
  desk.timeline.host_wait(needs(0, 1, 0));
  CHECK(desk.timeline.host_waits() == 1);
  CHECK(desk.queue(compute, needs(0, 1, 0)) == 0);
  desk.timeline.host_wait(needs(0, 1, 0));
  CHECK(desk.timeline.host_waits() == 1);
}

TEST_CASE("a need of work without a point records one") {
  TimelineDesk desk;
  desk.timeline.unrecorded(compute, desk.timeline.next_issue());
  CHECK(desk.timeline.everything()[compute] == 1);
  CHECK(desk.timeline.points()[compute] == 0);
  CHECK(desk.queue(h2d, desk.timeline.everything()) == 1);
  CHECK(desk.timeline.issued(compute) == 1);
}

TEST_CASE("asking whether something has ended never waits") {
  TimelineDesk desk;
  desk.queue(h2d);
  CHECK(!desk.timeline.ended(needs(0, 1, 0)));
  CHECK(!desk.timeline.ended(needs(0, 2, 0)));  // not even queued
  desk.backend.finish();
  CHECK(desk.timeline.ended(needs(0, 1, 0)));
  CHECK(desk.timeline.host_waits() == 0);
  CHECK(desk.timeline.confirmed(h2d) == 1);
}

TEST_CASE("a queue needs no point behind its own work, for what comes next on it comes after that") {
  TimelineDesk desk;
  desk.timeline.unrecorded(compute, desk.timeline.next_issue());
  CHECK(desk.queue(compute, desk.timeline.everything()) == 0);
  CHECK(desk.timeline.issued(compute) == 1);
}

TEST_CASE("one point tells of the work before it that has none, and a wait for a point records no other") {
  TimelineDesk desk;
  desk.timeline.unrecorded(compute, desk.timeline.next_issue());
  desk.queue(compute);
  CHECK(desk.timeline.everything()[compute] == 1);
  desk.timeline.host_wait(needs(1, 0, 0));
  CHECK(desk.timeline.issued(compute) == 1);
}

TEST_CASE("a point that was seen to end has ended, also where its event is used again") {
  TimelineDesk desk(true, 2);
  for (int i = 0; i < 3; ++i) desk.queue(compute);  // the third takes the event of the first
  CHECK(desk.timeline.confirmed(compute) == 1);
  CHECK(desk.timeline.ended(needs(1, 0, 0)));
  CHECK(!desk.timeline.ended(needs(3, 0, 0)));
}

TEST_CASE("the time of a command is told once") {
  TimelineDesk desk;
  CommandLabel label;
  label.timing = 7;
  queue_command(desk.backend, desk.timeline, compute, {}, label);
  desk.timeline.host_wait(needs(1, 0, 0));
  std::size_t told = 0;
  const auto count = [&](std::uint32_t timing, std::chrono::nanoseconds) {
    CHECK(timing == 7);
    ++told;
  };
  desk.timeline.collect(count);
  desk.timeline.collect(count);
  CHECK(told == 1);
}

TEST_CASE("room for more points lets the host run further ahead, and what is there is not made again") {
  TimelineDesk desk(true, 4);
  for (int i = 0; i < 4; ++i) desk.queue(compute);
  CHECK(desk.timeline.host_waits() == 0);
  desk.timeline.reserve(compute, 16);  // waits, for points change their places
  CHECK(desk.timeline.confirmed(compute) == 4);
  const std::uint64_t waits = desk.timeline.host_waits();
  for (int i = 0; i < 16; ++i) desk.queue(compute);
  desk.timeline.reserve(compute, 16);
  desk.timeline.reserve(compute, 5);
  CHECK(desk.timeline.host_waits() == waits);
  CHECK(desk.timeline.confirmed(compute) == 4);
  desk.queue(compute);
  CHECK(desk.timeline.confirmed(compute) == 5);
}

TEST_CASE("a label keeps the name of an operation, cut to fit") {
  const auto name_of = [](CommandLabel& label, std::string_view text) {
    label.set_name(text);
    return std::string(label.name.data());
  };
  CommandLabel label;
  const std::string all(100, 'x');
  CHECK(name_of(label, all) == all.substr(0, 39));
  CHECK(name_of(label, std::string_view(all).substr(0, 40)) == all.substr(0, 39));
  CHECK(name_of(label, std::string_view(all).substr(0, 39)) == all.substr(0, 39));
  // What stands behind a shorter one, here and in the label, is no part of it.
  CHECK(name_of(label, std::string_view(all).substr(0, 5)) == "xxxxx");
  CHECK(name_of(label, "").empty());
}

TEST_CASE("the host runs ahead by the size of the ring, and then waits for one point at a time") {
  TimelineDesk desk(true, 8);
  for (int i = 0; i < 8; ++i) desk.queue(compute);
  CHECK(desk.timeline.host_waits() == 0);
  for (int i = 0; i < 5; ++i) desk.queue(compute);
  CHECK(desk.timeline.host_waits() == 5);
  CHECK(desk.timeline.confirmed(compute) == 5);
  desk.timeline.reserve(compute, 100);  // waits for all of it
  for (int i = 0; i < 100; ++i) desk.queue(compute);
  CHECK(desk.timeline.host_waits() == 6);
}

TEST_CASE("a host wait that rests on a long chain of waits to and fro takes no more room than one") {
  TimelineDesk desk(true, std::size_t{1} << 18U);
  for (QueuePoint i = 1; i <= 200'000; ++i) {
    desk.queue(compute, needs(0, i - 1, 0));
    desk.queue(h2d, needs(i, 0, 0));
  }
  desk.timeline.host_wait(needs(0, 200'000, 0));
  CHECK(desk.timeline.confirmed(compute) == 200'000);
  CHECK(desk.timeline.host_waits() == 1);
}

TEST_CASE("a failure of what a point came after is found by whoever waits for the point") {
  simulated::Options options;
  options.order = simulated::Order::uniform;
  Faulty<simulated::Backend> backend(simulated::Backend(options), {FaultClass::record, FaultMode::late, 2});
  Timeline<Faulty<simulated::Backend>> timeline(backend, 16);
  CommandLabel label;
  label.what = CommandLabel::What::operation;
  label.set_name("first");
  queue_command(backend, timeline, compute, {}, label);
  label.set_name("second");
  queue_command(backend, timeline, compute, {}, label);  // fails
  label.set_name("third");
  queue_command(backend, timeline, h2d, needs(2, 0, 0), label);
  bool thrown = false;
  try {
    timeline.host_wait(needs(0, 1, 0));
  } catch (const QueueFailure& failure) {
    thrown = true;
    CHECK(failure.label.issue >= 2);
  }
  CHECK(thrown);
  CHECK(timeline.abandon() == 2);
  timeline.host_wait(timeline.everything());
}

TEST_CASE("random needs: each is met, by no more waits than a search over all choices finds") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    TimelineDesk desk(true, 64);
    // The model: what each point of each queue came after, itself included.
    std::array<std::vector<Clock>, queue_count> history;
    std::array<Clock, queue_count> now{};
    for (int step = 0; step < 40; ++step) {
      const auto queue = static_cast<QueueKind>(random() % base_queue_count);
      Clock wanted;
      for (const QueueKind other : runtime::all_queues) {
        const std::size_t count = history[index(other)].size();
        if (count != 0 && random() % 2 == 0) wanted.set(other, 1 + random() % count);
      }
      // Fewest: any set of points, one per other queue, that covers the need together with what is known.
      std::size_t fewest = 9;
      for (unsigned set = 0; set < 1U << base_queue_count; ++set) {
        Clock known = now[index(queue)];
        std::size_t count = 0;
        for (const QueueKind other : runtime::all_queues) {
          if ((set >> index(other) & 1U) == 0 || other == queue || wanted[other] == 0) continue;
          known.join(history[index(other)][wanted[other] - 1]);
          ++count;
        }
        Clock own = wanted;
        own.set(queue, 0);
        Clock both = known;
        both.join(own);
        if (both == known) fewest = std::min(fewest, count);
      }
      const std::size_t used = desk.queue(queue, wanted);
      REQUIRE(used == fewest);
      for (const QueueKind other : runtime::all_queues) {
        if (other != queue && wanted[other] > now[index(queue)][other]) {
          now[index(queue)].join(history[index(other)][wanted[other] - 1]);
        }
      }
      now[index(queue)].set(queue, history[index(queue)].size() + 1);
      history[index(queue)].push_back(now[index(queue)]);
    }
  }
}
