// SPDX-License-Identifier: Apache-2.0
// The operations and copies of one round, timed one by one.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <swapmm/runtime/timing/sampler.hpp>

#include "support/failing_new.hpp"
#include "support/null_backend.hpp"
#include "support/scripted_backend.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::runtime;
using namespace swapmm::test;
using std::chrono::nanoseconds;

struct SampledWork {
  QueueKind queue = QueueKind::compute;
  Bytes bytes;
  nanoseconds time{0};
  friend bool operator==(const SampledWork&, const SampledWork&) = default;
};

struct SamplerDesk {
  explicit SamplerDesk(std::size_t works = 4) { sampler.reserve(works); }

  void begin(QueueKind queue, std::uint64_t bytes, std::int64_t at) {
    device.script().now = nanoseconds{at};
    sampler.begin(queue, Bytes{bytes});
  }
  void end(QueueKind queue, std::int64_t at) {
    device.script().now = nanoseconds{at};
    sampler.end(queue);
  }
  void work(QueueKind queue, std::uint64_t bytes, std::int64_t time) {
    begin(queue, bytes, 1000);
    end(queue, 1000 + time);
  }
  std::vector<SampledWork> collect() {
    std::vector<SampledWork> works;
    sampler.collect([&](QueueKind queue, Bytes bytes, std::uint32_t, nanoseconds time) {
      works.push_back({queue, bytes, time});
    });
    return works;
  }

  ScriptedBackend device;
  Sampler<ScriptedBackend> sampler{device};
};

using SampledWorks = std::vector<SampledWork>;

}  // namespace

TEST_CASE("each work of a round has its queue, its bytes and its time, in the order in which it was queued") {
  SamplerDesk desk;
  CHECK(!desk.sampler.active());
  CHECK(!desk.sampler.waiting());
  CHECK(!desk.sampler.ready());
  desk.sampler.start();
  CHECK(desk.sampler.active());
  desk.work(QueueKind::h2d, 64, 30);
  desk.work(QueueKind::compute, 0, 20);
  desk.work(QueueKind::d2h, 32, 50);
  CHECK(desk.sampler.active());
  CHECK(!desk.sampler.ready());
  desk.sampler.finish();
  CHECK(!desk.sampler.active());
  CHECK(desk.sampler.waiting());
  REQUIRE(desk.sampler.ready());
  CHECK(desk.device.recorded() == 6);
  CHECK(desk.device.queue_of(1) == QueueKind::h2d);
  CHECK(desk.device.queue_of(4) == QueueKind::compute);
  CHECK(desk.collect() == SampledWorks{{QueueKind::h2d, Bytes{64}, nanoseconds{30}},
                                       {QueueKind::compute, Bytes{0}, nanoseconds{20}},
                                       {QueueKind::d2h, Bytes{32}, nanoseconds{50}}});
  CHECK(!desk.sampler.waiting());
  CHECK(!desk.sampler.ready());
}

TEST_CASE("a sample is ready once the last work of each queue has ended") {
  SamplerDesk desk;
  desk.sampler.start();
  desk.work(QueueKind::d2h, 1, 10);
  desk.work(QueueKind::h2d, 2, 10);
  desk.work(QueueKind::d2h, 3, 10);
  desk.work(QueueKind::compute, 4, 10);
  desk.sampler.finish();
  for (std::uint64_t ended = 0; ended < 8; ++ended) {
    desk.device.script().ended = ended;
    CHECK(!desk.sampler.ready());
    CHECK(desk.sampler.waiting());
  }
  desk.device.script().ended = 8;
  CHECK(desk.sampler.ready());
}

TEST_CASE("a sample in which the last work of a queue failed is given up") {
  for (const std::uint64_t failed : {2U, 4U}) {
    SamplerDesk desk;
    desk.sampler.start();
    desk.work(QueueKind::compute, 1, 10);
    desk.work(QueueKind::h2d, 2, 10);
    desk.sampler.finish();
    desk.device.script().failed = {failed};
    CHECK(!desk.sampler.ready());
    CHECK(!desk.sampler.waiting());
  }
}

TEST_CASE("a sample that is given up has no times, and another one can begin") {
  SamplerDesk desk;
  desk.sampler.start();
  desk.work(QueueKind::compute, 1, 10);
  desk.sampler.give_up();
  CHECK(!desk.sampler.active());
  CHECK(!desk.sampler.waiting());
  desk.sampler.start();
  desk.work(QueueKind::compute, 2, 20);
  desk.sampler.finish();
  desk.sampler.give_up();
  CHECK(!desk.sampler.ready());
  desk.sampler.start();
  desk.work(QueueKind::h2d, 3, 30);
  desk.sampler.finish();
  CHECK(desk.sampler.ready());
  CHECK(desk.collect() == SampledWorks{{QueueKind::h2d, Bytes{3}, nanoseconds{30}}});
}

TEST_CASE("a round with more work than there was room for, or with none, gives no sample") {
  SamplerDesk desk(2);
  desk.sampler.start();
  for (int i = 0; i < 3; ++i) desk.work(QueueKind::compute, 1, 10);
  desk.sampler.finish();
  CHECK(!desk.sampler.active());
  CHECK(!desk.sampler.waiting());
  desk.sampler.start();
  desk.sampler.finish();
  CHECK(!desk.sampler.active());
  CHECK(!desk.sampler.waiting());
  // As much as there is room for.
  desk.sampler.start();
  for (int i = 0; i < 2; ++i) desk.work(QueueKind::compute, 1, 10);
  desk.sampler.finish();
  CHECK(desk.sampler.waiting());
  CHECK(desk.collect().size() == 2);
  CHECK(desk.device.counters().objects_made == 4);
}

TEST_CASE("making more room keeps the times of the round before") {
  SamplerDesk desk(1);
  desk.sampler.start();
  desk.work(QueueKind::h2d, 5, 40);
  desk.sampler.finish();
  desk.sampler.reserve(100);
  CHECK(desk.device.counters().objects_made == 200);
  const std::uint64_t made = allocations();
  desk.sampler.reserve(100);
  CHECK(allocations() == made);
  desk.sampler.reserve(50);
  CHECK(desk.device.counters().objects_made == 200);
  CHECK(desk.sampler.ready());
  CHECK(desk.collect() == SampledWorks{{QueueKind::h2d, Bytes{5}, nanoseconds{40}}});
  desk.sampler.start();
  for (int i = 0; i < 100; ++i) desk.work(QueueKind::compute, 1, i);
  desk.sampler.finish();
  CHECK(desk.collect().size() == 100);
}

TEST_CASE("room for a round is made by one allocation, and timing it makes none") {
  NullBackend device;
  Sampler<NullBackend> sampler(device);
  const std::uint64_t before = allocations();
  sampler.reserve(100);
  CHECK(allocations() == before + 1);
  sampler.start();
  for (int i = 0; i < 100; ++i) {
    sampler.begin(QueueKind::compute, Bytes{0});
    sampler.end(QueueKind::compute);
  }
  sampler.finish();
  REQUIRE(sampler.ready());
  sampler.collect([](QueueKind, Bytes, std::uint32_t, nanoseconds) {});
  CHECK(allocations() == before + 1);
}

TEST_CASE("only the end of the work that began last counts, and only once") {
  SamplerDesk desk;
  desk.sampler.start();
  desk.end(QueueKind::compute, 5);  // nothing has begun
  CHECK(desk.device.recorded() == 0);
  desk.begin(QueueKind::compute, 1, 10);
  desk.end(QueueKind::h2d, 20);  // another queue
  desk.end(QueueKind::compute, 30);
  desk.end(QueueKind::compute, 40);
  CHECK(desk.device.recorded() == 2);
  desk.begin(QueueKind::d2h, 2, 50);  // never ends
  desk.sampler.finish();
  CHECK(desk.sampler.ready());
  CHECK(desk.collect() ==
        SampledWorks{{QueueKind::compute, Bytes{1}, nanoseconds{20}}, {QueueKind::d2h, Bytes{2}, nanoseconds{0}}});
  // In the next round nothing of this has ended.
  desk.sampler.start();
  desk.begin(QueueKind::compute, 3, 100);
  desk.begin(QueueKind::d2h, 4, 100);
  desk.end(QueueKind::d2h, 107);
  desk.sampler.finish();
  CHECK(desk.collect() ==
        SampledWorks{{QueueKind::compute, Bytes{3}, nanoseconds{0}}, {QueueKind::d2h, Bytes{4}, nanoseconds{7}}});
}

TEST_CASE("a sample waits for no work of the rounds before it") {
  SamplerDesk desk;
  desk.sampler.start();
  for (int i = 0; i < 3; ++i) desk.work(QueueKind::h2d, 1, 10);
  desk.sampler.finish();
  CHECK(desk.collect().size() == 3);
  desk.sampler.start();
  desk.work(QueueKind::compute, 2, 10);
  desk.sampler.finish();
  desk.device.script().failed = {6};
  CHECK(desk.sampler.ready());
  desk.device.script().failed = {8};
  CHECK(!desk.sampler.ready());
}

TEST_CASE("a work whose time the device does not know takes 0") {
  SamplerDesk desk;
  desk.sampler.start();
  desk.work(QueueKind::compute, 1, 10);
  desk.work(QueueKind::compute, 2, 20);
  desk.sampler.finish();
  desk.device.script().timeless = {2};
  CHECK(desk.collect() ==
        SampledWorks{{QueueKind::compute, Bytes{1}, nanoseconds{0}}, {QueueKind::compute, Bytes{2}, nanoseconds{20}}});
}

TEST_CASE("a failure before a work is thrown at once, one behind it at the end of the round") {
  SamplerDesk desk;
  desk.sampler.start();
  desk.device.script().refused = 1;
  CHECK_THROWS_AS(desk.begin(QueueKind::compute, 1, 0), std::runtime_error);
  desk.work(QueueKind::compute, 2, 20);
  desk.sampler.finish();
  CHECK(desk.collect() == SampledWorks{{QueueKind::compute, Bytes{2}, nanoseconds{20}}});

  desk.sampler.start();
  desk.device.script().refused = 5;
  desk.work(QueueKind::compute, 1, 10);
  CHECK_THROWS_WITH_AS(desk.sampler.finish(), "record 5 refused", std::runtime_error);
  CHECK(!desk.sampler.active());
  CHECK(!desk.sampler.waiting());
  CHECK_NOTHROW(desk.sampler.finish());

  // Neither a round that is given up nor one that begins anew throws what happened before.
  for (const bool give_up : {true, false}) {
    desk.sampler.start();
    desk.device.script().refused = desk.device.recorded() + 2;
    desk.work(QueueKind::compute, 1, 10);
    if (give_up) desk.sampler.give_up();
    if (!give_up) desk.sampler.start();
    if (!give_up) desk.work(QueueKind::compute, 1, 10);
    CHECK_NOTHROW(desk.sampler.finish());
    CHECK(desk.sampler.waiting() == !give_up);
  }
}
