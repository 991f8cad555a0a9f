// SPDX-License-Identifier: Apache-2.0
#include <swapmm/backend/testing/simulated.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>

#include <swapmm/backend/testing/simulated/pattern.hpp>
#include <swapmm/error.hpp>

#include "support/small_device.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace std::chrono_literals;
using simulated::Order;
using simulated::Touch;

namespace {

using ByteView = simulated::View<std::byte>;

}  // namespace

TEST_CASE("virtual times do not depend on the order of steps") {
  std::set<std::int64_t> ends;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto options = ordered(seed == 0 ? Order::virtual_time : Order::uniform, seed);
    options.pieces = 8;
    SmallDevice small(options);
    small.upload(0, 0);
    small.launch(100ns);
    small.b.wait(QueueKind::compute, SimulatedEvents{&small.event[0]});
    small.launch(50ns);
    small.b.record(QueueKind::compute, small.event[1]);
    small.download(0, 2, {&small.event[1]});
    small.b.finish();
    ends.insert(small.b.now().count());
  }
  CHECK(ends == std::set<std::int64_t>{2050});
}

TEST_CASE("exhaustive search takes every interleaving once") {
  const auto count_runs = [](bool steps_in_calls, int pieces, auto&& program) {
    simulated::Choices choices;
    std::size_t runs = 0;
    std::set<std::uint64_t> hashes;
    do {
      auto options = ordered(Order::chosen);
      options.choices = &choices;
      options.pieces = pieces;
      options.steps_in_calls = steps_in_calls;
      SmallDevice small(options);
      program(small);
      small.b.finish();
      hashes.insert(small.b.trace_hash());
      ++runs;
    } while (choices.next_path());
    CHECK(hashes.size() == runs);
    return runs;
  };
  const auto three_and_three = [](SmallDevice& small) {
    for (std::size_t i = 0; i < 3; ++i) small.launch(1ns);
    for (std::size_t i = 0; i < 3; ++i) small.upload(0, i);
  };
  CHECK(count_runs(false, 1, three_and_three) == 20);  // 6 over 3
  CHECK(count_runs(false, 2, three_and_three) == 84);  // 9 over 3
  CHECK(count_runs(false, 1, [](SmallDevice& small) {
          small.launch(1ns);
          small.upload(0, 0);
          small.download(1, 1);
        }) == 6);
  CHECK(count_runs(false, 1, [](SmallDevice& small) {
          small.upload(0, 0);
          small.b.wait(QueueKind::compute, SimulatedEvents{&small.event[0]});
          small.launch(1ns);  // behind the first upload
          small.upload(1, 1);
        }) == 2);
  // With steps in calls the host takes part: the upload runs within launch(), or the two run in either order later.
  CHECK(count_runs(true, 1, [](SmallDevice& small) {
          small.upload(0, 0);
          small.launch(1ns);
        }) == 3);
}

TEST_CASE("exhaustive search finds the one interleaving that tears a value") {
  simulated::Choices choices;
  std::size_t runs = 0;
  std::size_t torn = 0;
  do {
    auto options = ordered(Order::chosen);
    options.choices = &choices;
    options.pieces = 2;
    options.steps_in_calls = false;
    SmallDevice small(options);
    simulated::fill(small.bytes(), 1, 1);
    const ByteView view(small.first, SmallDevice::size);
    simulated::fill(std::span(view), 1, 0);
    simulated::Finding finding;
    small.upload(0, 0);
    small.b.queue().launch("look", 1ns, {Touch::read(view)},
                           [&] { finding = simulated::check(std::span(view), 1, 1); });
    small.b.finish();
    torn += finding.found == simulated::Found::torn ? 1U : 0U;
    ++runs;
  } while (choices.next_path());
  CHECK(runs == 3);
  CHECK(torn == 1);
}

TEST_CASE("the same seed gives the same run, other seeds others") {
  const auto run = [](Order order, std::uint64_t seed) {
    auto options = ordered(order, seed);
    options.pieces = 4;
    SmallDevice small(options);
    for (std::size_t i = 0; i < 10; ++i) {
      small.upload(0, 0);
      small.launch(1ns);
      small.download(1, 1);
      if (i % 3 == 0) small.b.wait(small.event[i % 2]);
    }
    small.b.finish();
    return small.b.trace_hash();
  };
  for (const Order order :
       {Order::virtual_time, Order::uniform, Order::pct, Order::starved, Order::copies_first, Order::copies_last}) {
    std::set<std::uint64_t> hashes;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      CHECK(run(order, seed) == run(order, seed));
      hashes.insert(run(order, seed));
    }
    CHECK((hashes.size() == 1) == (order == Order::virtual_time));
  }
}

TEST_CASE("PCT runs whole queues before others, either way, and changes in the middle") {
  for (const int depth : {2, 3}) {
    std::set<std::string> orders;
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {  // queues that nothing uses get priorities, too
      auto options = ordered(Order::pct, seed);
      options.pct_depth = depth;
      options.steps_in_calls = false;
      SmallDevice small(options);
      std::string order;
      for (std::size_t i = 0; i < 4; ++i) {
        small.b.queue().launch("note", 1ns, {}, [&order] { order += 'k'; });
      }
      for (std::size_t i = 0; i < 4; ++i) small.upload(0, i);
      for (std::uint64_t before = 0; small.b.step() == 1; before = order.size()) {
        if (order.size() == before) order += 'c';
      }
      orders.insert(order);
    }
    CHECK(orders.contains("kkkkcccc"));
    CHECK(orders.contains("cccckkkk"));
    CHECK(orders.contains("kkccccck") == false);  // five copies there are not
    CHECK(orders.contains("kcccckkk"));           // one change of priority
    CHECK(orders.contains("kkcccckk"));
    CHECK(orders.contains("kcckkkcc") == (depth == 3));  // two changes
  }
}

TEST_CASE("copies first, copies last and a starved queue do as their names say") {
  const auto done_after_two_steps = [](Order order, QueueKind starved) {
    auto options = ordered(order);
    options.starved_queue = starved;
    options.steps_in_calls = false;
    SmallDevice small(options);
    for (int i = 0; i < 2; ++i) small.launch(1ns);
    small.b.record(QueueKind::compute, small.event[2]);
    small.upload(0, 0);
    small.download(1, 1);
    small.b.step(2);
    return std::pair(small.b.status(small.event[0]) == EventStatus::complete,
                     small.b.status(small.event[1]) == EventStatus::complete);
  };
  CHECK(done_after_two_steps(Order::copies_first, {}) == std::pair(true, true));
  CHECK(done_after_two_steps(Order::copies_last, {}) == std::pair(false, false));
  CHECK(done_after_two_steps(Order::starved, QueueKind::compute) == std::pair(true, true));
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto options = ordered(Order::starved, seed);
    options.starved_queue = QueueKind::h2d;
    SmallDevice small(options);
    small.upload(0, 0);
    for (int i = 0; i < 50; ++i) small.launch(1ns);
    CHECK(small.b.status(small.event[0]) == EventStatus::running);
    small.b.record(QueueKind::compute, small.event[1]);
    small.b.wait(small.event[1]);
    CHECK(small.b.status(small.event[0]) == EventStatus::running);
  }
}

TEST_CASE("a delayed command runs after everything else that can") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SmallDevice small(ordered(Order::uniform, seed));
    small.b.delay(QueueKind::h2d);
    small.upload(0, 0);
    for (int i = 0; i < 10; ++i) small.launch(1ns);
    small.b.record(QueueKind::compute, small.event[1]);
    small.b.wait(small.event[1]);
    CHECK(small.b.status(small.event[0]) == EventStatus::running);
    small.b.wait(small.event[0]);
  }
}

TEST_CASE("waiting for a queue that was not flushed is reported where the device asks for flushes") {
  for (const bool flushed : {false, true}) {
    auto options = ordered(Order::uniform);
    options.needs_flush = true;
    SmallDevice small(options);
    small.upload(0, 0);
    small.b.wait(QueueKind::compute, SimulatedEvents{&small.event[0]});
    small.launch(1ns);
    small.b.record(QueueKind::compute, small.event[1]);
    if (flushed) small.b.flush(QueueKind::h2d);
    small.b.wait(small.event[1]);  // flushes its own queue alone
    CHECK(small.reported("queue h2d was not flushed") == !flushed);
  }
}
