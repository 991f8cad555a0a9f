// SPDX-License-Identifier: Apache-2.0
#pragma once

// What every backend must do, by behaviour. A backend runs all of it with an adaptor and one line:
//
//   struct MyAdaptor {
//     using Backend = my::Backend;
//     static Backend make();                            // a fresh device; at least 64 KiB, host memory likewise
//     static std::optional<Bytes> device_bytes(Backend&);    // more than that is refused; none: nothing is
//     // Queue on the compute queue: to[i] = from[i] + value, over size bytes of each.
//     static void add(Backend&, const Address& from, const Address& to, std::size_t size, std::uint8_t value);
//     // The same in the second form: behind the wait list, and its event.
//     static NativeEvent add(Backend&, const WaitList&, const Address& from, const Address& to, std::size_t size,
//                            std::uint8_t value);
//     static void verify(Backend&);                     // called at the end of each case: leaks, violations
//   };
//   SWAPMM_CONFORMANCE(MyAdaptor);

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/error.hpp>

namespace swapmm::conformance {

constexpr std::array<QueueKind, base_queue_count> all_queues{QueueKind::compute, QueueKind::h2d, QueueKind::d2h};

/// A device with memory, a place for each of `places` pieces in it, and host memory.
template <class Adaptor>
struct Bench {
  using B = typename Adaptor::Backend;
  using Event = typename B::Event;

  static constexpr std::size_t size = 1000;  // of each place: no multiple of 16
  static constexpr std::size_t places = 4;

  B backend = Adaptor::make();
  Bytes stride = round_up(Bytes{size}, backend.capabilities().alignment);
  typename B::DeviceMemory memory = backend.allocate(Bytes{stride.value * places});
  typename B::HostMemory source = backend.allocate_host(Bytes{size * places}, HostKind::pinned);
  typename B::HostMemory target = backend.allocate_host(Bytes{size * places}, HostKind::pinned);
  std::vector<typename B::Address> place;
  std::vector<Event> event;

  Bench() {
    static_assert(swapmm::Backend<B>);
    for (std::size_t i = 0; i < places; ++i) {
      place.push_back(backend.address(memory, Bytes{stride.value * i}, Bytes{size}));
    }
    for (int i = 0; i < 6; ++i) event.push_back(backend.make_event());
    for (std::size_t i = 0; i < size * places; ++i) source.data()[i] = original(i);
    std::fill_n(target.data(), size * places, std::byte{0});
  }

  [[nodiscard]] static std::byte original(std::size_t i) { return static_cast<std::byte>((i * 31 + i / 256) & 0xFFU); }

  void upload(std::size_t to, Event& done, std::span<const Event* const> waits = {}) {
    backend.copy_to_device(place[to], source, Bytes{size * to}, Bytes{size}, waits, done);
  }
  void download(std::size_t from, Event& done, std::span<const Event* const> waits) {
    backend.copy_to_host(target, Bytes{size * from}, place[from], Bytes{size}, waits, done);
  }
  void wait_on(QueueKind queue, std::initializer_list<const Event*> waits) {
    backend.wait(queue, std::span<const Event* const>(waits.begin(), waits.size()));
  }
  void flush() {
    for (const QueueKind queue : all_queues) backend.flush(queue);
  }
  /// Whether place `got` came back as the source's place `from` with `added` on each byte.
  [[nodiscard]] bool came_back(std::size_t got, std::size_t from, std::uint8_t added) {
    for (std::size_t i = 0; i < size; ++i) {
      const auto wanted =
          static_cast<std::byte>((std::to_integer<unsigned>(original(size * from + i)) + added) & 0xFFU);
      if (target.data()[size * got + i] != wanted) return false;
    }
    return true;
  }
};

template <class Event>
std::array<const Event*, 1> after(const Event& event) {
  return {&event};
}

}  // namespace swapmm::conformance

TEST_CASE_TEMPLATE_DEFINE("a copy to the device and back brings the bytes, with odd sizes and offsets", A, c_copies) {
  using namespace swapmm;
  conformance::Bench<A> bench;
  auto& b = bench.backend;
  for (const std::size_t size : {1U, 3U, 64U, 333U, 999U}) {
    for (const std::size_t offset : {0U, 1U, 7U}) {
      std::fill_n(bench.target.data(), bench.size * bench.places, std::byte{0});
      const std::size_t used = std::min(size, bench.size - offset);
      b.copy_to_device(bench.place[1], bench.source, Bytes{offset}, Bytes{used}, {}, bench.event[0]);
      b.copy_to_host(bench.target, Bytes{offset + 5}, bench.place[1], Bytes{used}, conformance::after(bench.event[0]),
                     bench.event[1]);
      bench.flush();
      b.wait(bench.event[1]);
      CHECK(std::equal(bench.target.data() + offset + 5, bench.target.data() + offset + 5 + used,
                       bench.source.data() + offset));
      CHECK(bench.target.data()[offset + 4] == std::byte{0});
      CHECK(bench.target.data()[offset + 5 + used] == std::byte{0});
    }
  }
  A::verify(b);
}

TEST_CASE_TEMPLATE_DEFINE("places in one memory are apart, and a place within a place shares its bytes", A, c_places) {
  using namespace swapmm;
  conformance::Bench<A> bench;
  auto& b = bench.backend;
  for (std::size_t i = 0; i < bench.places; ++i) bench.upload(i, bench.event[i]);
  const Bytes alignment = b.capabilities().alignment;
  for (std::size_t i = 0; i < bench.places; ++i) {
    bench.download(i, bench.event[4], conformance::after(bench.event[i]));
  }
  bench.flush();
  b.finish();
  for (std::size_t i = 0; i < bench.places; ++i) CHECK(bench.came_back(i, i, 0));

  if (alignment.value < bench.size) {
    const std::size_t inner_size = bench.size - alignment.value;
    auto inner = b.address(bench.memory, alignment, Bytes{inner_size});
    b.copy_to_host(bench.target, Bytes{0}, inner, Bytes{inner_size}, {}, bench.event[0]);
    b.wait(bench.event[0]);
    CHECK(std::equal(bench.target.data(), bench.target.data() + inner_size, bench.source.data() + alignment.value));
  }
  A::verify(b);
}

TEST_CASE_TEMPLATE_DEFINE("a queue runs in order", A, c_in_order) {
  using namespace swapmm;
  conformance::Bench<A> bench;
  auto& b = bench.backend;
  bench.upload(0, bench.event[0]);
  bench.wait_on(QueueKind::compute, {&bench.event[0]});
  A::add(b, bench.place[0], bench.place[1], bench.size, 1);
  A::add(b, bench.place[1], bench.place[2], bench.size, 2);
  A::add(b, bench.place[2], bench.place[1], bench.size, 4);
  b.record(QueueKind::compute, bench.event[1]);
  bench.download(1, bench.event[2], conformance::after(bench.event[1]));
  bench.download(2, bench.event[3], {});  // behind the copy before it, so behind its wait
  bench.flush();
  b.wait(bench.event[3]);
  CHECK(b.status(bench.event[2]) == EventStatus::complete);
  CHECK(bench.came_back(1, 0, 7));
  CHECK(bench.came_back(2, 0, 3));
  A::verify(b);
}

TEST_CASE_TEMPLATE_DEFINE("events order work across all three queues", A, c_across_queues) {
  using namespace swapmm;
  conformance::Bench<A> bench;
  auto& b = bench.backend;
  // The same place goes around several times: each user waits for the one before.
  for (std::uint8_t round = 0; round < 6; ++round) {
    const auto free_again = round == 0 ? std::vector<const typename A::Backend::Event*>{}
                                       : std::vector<const typename A::Backend::Event*>{&bench.event[2]};
    b.copy_to_device(bench.place[0], bench.source, Bytes{bench.size * (round % 4U)}, Bytes{bench.size}, free_again,
                     bench.event[0]);
    bench.wait_on(QueueKind::compute, {&bench.event[0]});
    A::add(b, bench.place[0], bench.place[0], bench.size, round);
    b.record(QueueKind::compute, bench.event[1]);
    b.copy_to_host(bench.target, Bytes{bench.size * (round % 4U)}, bench.place[0], Bytes{bench.size},
                   conformance::after(bench.event[1]), bench.event[2]);
  }
  bench.flush();
  b.wait(bench.event[2]);
  CHECK(bench.came_back(0, 0, 4));
  CHECK(bench.came_back(1, 1, 5));
  CHECK(bench.came_back(2, 2, 2));
  CHECK(bench.came_back(3, 3, 3));
  A::verify(b);
}

TEST_CASE_TEMPLATE_DEFINE("a wait refers to the recording of a slot at that time", A, c_rerecorded) {
  using namespace swapmm;
  conformance::Bench<A> bench;
  auto& b = bench.backend;
  // One slot, recorded anew while earlier waits for it are still queued.
  auto& slot = bench.event[0];
  bench.upload(0, slot);
  bench.wait_on(QueueKind::compute, {&slot});
  bench.upload(1, slot);
  A::add(b, bench.place[0], bench.place[2], bench.size, 9);  // behind the upload of 0, not of 1
  bench.wait_on(QueueKind::compute, {&slot});
  A::add(b, bench.place[1], bench.place[3], bench.size, 8);
  b.record(QueueKind::compute, slot);
  bench.download(2, bench.event[1], conformance::after(slot));
  bench.download(3, bench.event[2], conformance::after(slot));
  bench.flush();
  b.wait(bench.event[2]);
  CHECK(bench.came_back(2, 0, 9));
  CHECK(bench.came_back(3, 1, 8));
  A::verify(b);
}

TEST_CASE_TEMPLATE_DEFINE("a slot that was never recorded is complete", A, c_never_recorded) {
  using namespace swapmm;
  conformance::Bench<A> bench;
  auto& b = bench.backend;
  CHECK(b.status(bench.event[0]) == EventStatus::complete);
  b.wait(bench.event[0]);
  bench.wait_on(QueueKind::compute, {&bench.event[0], &bench.event[1]});
  bench.wait_on(QueueKind::compute, {});
  bench.upload(0, bench.event[2], conformance::after(bench.event[0]));
  auto list_waits = conformance::after(bench.event[1]);
  bench.wait_on(QueueKind::compute, {&bench.event[2]});
  b.adopt(bench.event[3], A::add(b, b.wait_list(list_waits), bench.place[0], bench.place[1], bench.size, 1));
  bench.download(1, bench.event[4], conformance::after(bench.event[3]));
  bench.flush();
  b.wait(bench.event[4]);
  CHECK(bench.came_back(1, 0, 1));
  CHECK(b.elapsed(bench.event[5], bench.event[5]) == std::nullopt);
  A::verify(b);
}

TEST_CASE_TEMPLATE_DEFINE("an operation of the second form waits for its list and gives its event", A, c_second_form) {
  using namespace swapmm;
  conformance::Bench<A> bench;
  auto& b = bench.backend;
  bench.upload(0, bench.event[0]);
  bench.upload(1, bench.event[1]);
  const std::array<const typename A::Backend::Event*, 2> waits{&bench.event[0], &bench.event[1]};
  b.flush(QueueKind::h2d);
  b.adopt(bench.event[2], A::add(b, b.wait_list(waits), bench.place[0], bench.place[2], bench.size, 3));
  b.adopt(bench.event[3], A::add(b, b.wait_list({}), bench.place[2], bench.place[3], bench.size, 3));
  bench.download(2, bench.event[4], conformance::after(bench.event[2]));
  bench.download(3, bench.event[5], conformance::after(bench.event[3]));
  bench.flush();
  b.wait(bench.event[5]);
  CHECK(b.status(bench.event[2]) == EventStatus::complete);
  CHECK(bench.came_back(2, 0, 3));
  CHECK(bench.came_back(3, 0, 6));
  A::verify(b);
}

TEST_CASE_TEMPLATE_DEFINE("a point is complete once waited for, and so is all before it on its queue", A, c_status) {
  using namespace swapmm;
  conformance::Bench<A> bench;
  auto& b = bench.backend;
  bench.upload(0, bench.event[0]);
  bench.upload(1, bench.event[1]);
  b.record(QueueKind::h2d, bench.event[2]);
  b.flush(QueueKind::h2d);
  CHECK(b.status(bench.event[2]) != EventStatus::failed);
  b.wait(bench.event[2]);
  for (std::size_t i = 0; i < 3; ++i) CHECK(b.status(bench.event[i]) == EventStatus::complete);
  b.wait(bench.event[0]);
  A::verify(b);
}

TEST_CASE_TEMPLATE_DEFINE("after finish nothing runs any more", A, c_finish) {
  using namespace swapmm;
  conformance::Bench<A> bench;
  auto& b = bench.backend;
  b.finish();
  for (std::size_t i = 0; i < bench.places; ++i) {
    bench.upload(i, bench.event[0]);
    bench.wait_on(QueueKind::compute, {&bench.event[0]});
    A::add(b, bench.place[i], bench.place[i], bench.size, 1);
    b.record(QueueKind::compute, bench.event[1]);
    bench.download(i, bench.event[2], conformance::after(bench.event[1]));
  }
  b.finish();  // no flush: finish gives everything to the device
  for (std::size_t i = 0; i < 3; ++i) CHECK(b.status(bench.event[i]) == EventStatus::complete);
  for (std::size_t i = 0; i < bench.places; ++i) CHECK(bench.came_back(i, i, 1));
  A::verify(b);
}

TEST_CASE_TEMPLATE_DEFINE("every offset that is a multiple of the alignment can be addressed", A, c_alignment) {
  using namespace swapmm;
  auto b = A::make();
  const Bytes alignment = b.capabilities().alignment;
  REQUIRE(alignment.value >= 1);
  const Bytes bytes{alignment.value * 5};
  auto memory = b.allocate(bytes);
  auto source = b.allocate_host(Bytes{1}, HostKind::pageable);
  auto target = b.allocate_host(Bytes{5}, HostKind::pageable);
  auto up = b.make_event();
  auto down = b.make_event();
  std::vector<typename A::Backend::Address> places;
  for (std::uint64_t i = 0; i < 5; ++i) {
    places.push_back(b.address(memory, Bytes{alignment.value * i}, Bytes{alignment.value}));
    source.data()[0] = static_cast<std::byte>(i + 1);
    b.copy_to_device(places.back(), source, Bytes{0}, Bytes{1}, {}, up);
    b.wait(up);
  }
  for (std::size_t i = 0; i < 5; ++i) {
    b.copy_to_host(target, Bytes{i}, places[i], Bytes{1}, {}, down);
  }
  b.wait(down);
  for (std::size_t i = 0; i < 5; ++i) CHECK(target.data()[i] == static_cast<std::byte>(i + 1));
  A::verify(b);
}

TEST_CASE_TEMPLATE_DEFINE("what the device cannot hold is refused, and it works on", A, c_too_large) {
  using namespace swapmm;
  conformance::Bench<A> bench;
  auto& b = bench.backend;
  const auto refuses = [&](Bytes bytes) {
    try {
      auto memory = b.allocate(bytes);
    } catch (const BackendError& error) {
      return error.kind == BackendError::Kind::out_of_device_memory && error.code != 0;
    }
    return false;
  };
  if (const auto device = A::device_bytes(b)) CHECK(refuses(*device + Bytes{1}));
  if (const auto largest = b.capabilities().max_allocation) {
    CHECK(refuses(*largest + Bytes{1}));
    auto memory = b.allocate(std::min(*largest, A::device_bytes(b).value_or(*largest) - Bytes{8 * bench.size}));
  }
  bench.upload(0, bench.event[0]);
  bench.download(0, bench.event[1], conformance::after(bench.event[0]));
  bench.flush();
  b.wait(bench.event[1]);
  CHECK(bench.came_back(0, 0, 0));
  A::verify(b);
}

TEST_CASE_TEMPLATE_DEFINE("objects may go while queued work uses them", A, c_release_in_flight) {
  using namespace swapmm;
  conformance::Bench<A> bench;
  auto& b = bench.backend;
  for (int round = 0; round < 4; ++round) {
    auto memory = b.allocate(bench.stride + bench.stride);
    auto source = b.allocate_host(Bytes{bench.size}, HostKind::pinned);
    std::copy_n(bench.source.data(), bench.size, source.data());
    auto first = b.address(memory, Bytes{0}, Bytes{bench.size});
    auto second = b.address(memory, bench.stride, Bytes{bench.size});
    auto up = b.make_event();
    auto added = b.make_event();
    b.copy_to_device(first, source, Bytes{0}, Bytes{bench.size}, {}, up);
    b.wait(QueueKind::compute, conformance::after(up));
    A::add(b, first, second, bench.size, 5);
    b.record(QueueKind::compute, added);
    b.copy_to_host(bench.target, Bytes{0}, second, Bytes{bench.size}, conformance::after(added), bench.event[0]);
    bench.flush();
    {
      auto goes_first = std::move(up);
      auto goes_second = std::move(source);
      auto goes_third = std::move(added);
      [[maybe_unused]] auto goes_fourth = std::move(second);
      auto goes_fifth = std::move(memory);
    }
    // New objects may get the same memory: they must not disturb what is still queued.
    auto other_memory = b.allocate(bench.stride);
    auto other_host = b.allocate_host(Bytes{bench.size}, HostKind::pinned);
    std::fill_n(other_host.data(), bench.size, std::byte{0x77});
    b.wait(bench.event[0]);
    CHECK(bench.came_back(0, 0, 5));
    std::fill_n(bench.target.data(), bench.size, std::byte{0});
  }
  A::verify(b);
}

TEST_CASE_TEMPLATE_DEFINE("objects outlive the handle, and go in any order", A, c_destruction) {
  using namespace swapmm;
  using B = typename A::Backend;
  for (int order = 0; order < 24; ++order) {
    std::optional<B> b = A::make();
    std::optional<typename B::DeviceMemory> memory = b->allocate(Bytes{4096});
    std::optional<typename B::HostMemory> host = b->allocate_host(Bytes{4096}, HostKind::pinned);
    std::optional<typename B::Address> place = b->address(*memory, Bytes{0}, Bytes{4096});
    std::optional<typename B::Event> event = b->make_event();
    std::fill_n(host->data(), 4096, std::byte{1});
    b->copy_to_device(*place, *host, Bytes{0}, Bytes{4096}, {}, *event);
    if (order % 2 == 0) b->finish();
    std::array<int, 5> turns{0, 1, 2, 3, 4};
    std::rotate(turns.begin(), turns.begin() + order % 5, turns.end());
    std::swap(turns[0], turns[static_cast<std::size_t>(order) % 4 + 1]);
    for (const int turn : turns) {
      if (turn == 0) b.reset();
      if (turn == 1) memory.reset();
      if (turn == 2) host.reset();
      if (turn == 3) place.reset();
      if (turn == 4) event.reset();
    }
  }
}

TEST_CASE_TEMPLATE_DEFINE("copies of a handle are the same device", A, c_handles) {
  using namespace swapmm;
  conformance::Bench<A> bench;
  auto copy = bench.backend;
  auto event = copy.make_event();
  bench.upload(0, bench.event[0]);
  copy.wait(QueueKind::compute, conformance::after(bench.event[0]));
  A::add(copy, bench.place[0], bench.place[1], bench.size, 2);
  bench.backend.record(QueueKind::compute, event);
  {
    auto third = copy;
    copy = third;
  }
  copy.copy_to_host(bench.target, Bytes{bench.size}, bench.place[1], Bytes{bench.size}, conformance::after(event),
                    bench.event[1]);
  bench.flush();
  copy.wait(bench.event[1]);
  CHECK(bench.backend.status(event) == EventStatus::complete);
  CHECK(bench.came_back(1, 0, 2));
  A::verify(bench.backend);
}

TEST_CASE_TEMPLATE_DEFINE("objects keep their value when moved", A, c_moves) {
  using namespace swapmm;
  conformance::Bench<A> bench;
  auto& b = bench.backend;
  auto other = b.allocate(Bytes{16});
  const std::byte* const address = bench.source.data();
  auto source = std::move(bench.source);
  CHECK(source.data() == address);
  other = std::move(bench.memory);
  auto place = b.address(other, Bytes{0}, Bytes{bench.size});
  b.copy_to_device(place, source, Bytes{0}, Bytes{bench.size}, {}, bench.event[0]);
  auto moved_event = std::move(bench.event[0]);
  auto other_event = b.make_event();
  other_event = std::move(moved_event);
  b.copy_to_host(bench.target, Bytes{0}, place, Bytes{bench.size}, conformance::after(other_event), bench.event[1]);
  bench.flush();
  b.wait(bench.event[1]);
  CHECK(std::equal(bench.target.data(), bench.target.data() + bench.size, source.data()));
  A::verify(b);
}

TEST_CASE_TEMPLATE_DEFINE("with timing on events know their time, and without it they do not", A, c_timing) {
  using namespace swapmm;
  conformance::Bench<A> bench;
  auto& b = bench.backend;
  bench.upload(0, bench.event[0]);
  b.wait(bench.event[0]);
  b.set_timing(true);
  b.record(QueueKind::h2d, bench.event[1]);
  bench.upload(1, bench.event[2]);
  b.wait(bench.event[2]);
  b.wait(QueueKind::compute, conformance::after(bench.event[2]));
  A::add(b, bench.place[1], bench.place[2], bench.size, 1);
  b.record(QueueKind::compute, bench.event[3]);
  b.wait(bench.event[3]);
  const auto copy = b.elapsed(bench.event[1], bench.event[2]);
  const auto all = b.elapsed(bench.event[1], bench.event[3]);
  REQUIRE(copy.has_value());
  REQUIRE(all.has_value());
  CHECK(*copy >= std::chrono::nanoseconds{0});
  CHECK(*all >= *copy);
  CHECK(b.elapsed(bench.event[2], bench.event[2]) == std::chrono::nanoseconds{0});
  CHECK(b.elapsed(bench.event[0], bench.event[2]) == std::nullopt);
  b.set_timing(false);
  b.record(QueueKind::h2d, bench.event[4]);
  b.wait(bench.event[4]);
  CHECK(b.elapsed(bench.event[1], bench.event[4]) == std::nullopt);
  A::verify(b);
}

TEST_CASE_TEMPLATE_DEFINE("pageable host memory holds what pinned memory does", A, c_pageable) {
  using namespace swapmm;
  conformance::Bench<A> bench;
  auto& b = bench.backend;
  auto source = b.allocate_host(Bytes{bench.size}, HostKind::pageable);
  auto target = b.allocate_host(Bytes{bench.size}, HostKind::pageable);
  std::copy_n(bench.source.data(), bench.size, source.data());
  b.copy_to_device(bench.place[0], source, Bytes{0}, Bytes{bench.size}, {}, bench.event[0]);
  bench.wait_on(QueueKind::compute, {&bench.event[0]});
  b.flush(QueueKind::h2d);
  A::add(b, bench.place[0], bench.place[0], bench.size, 1);
  b.record(QueueKind::compute, bench.event[1]);
  b.flush(QueueKind::compute);  // before a copy that may block
  b.copy_to_host(target, Bytes{0}, bench.place[0], Bytes{bench.size}, conformance::after(bench.event[1]),
                 bench.event[2]);
  b.flush(QueueKind::d2h);
  b.wait(bench.event[2]);
  std::copy_n(target.data(), bench.size, bench.target.data());
  CHECK(bench.came_back(0, 0, 1));
  A::verify(b);
}

TEST_CASE_TEMPLATE_DEFINE("an address is a kernel argument of its own, and a view may be empty", A, c_arguments) {
  using namespace swapmm;
  conformance::Bench<A> bench;
  auto& b = bench.backend;
  if constexpr (requires { bench.place[0].argument(); }) {
    const auto value = [](const Argument& argument) {
      const auto* const begin = static_cast<const std::byte*>(argument.data());
      return std::vector<std::byte>(begin, begin + argument.size());
    };
    const std::vector<std::byte> first = value(bench.place[0].argument());
    CHECK(!first.empty());
    CHECK(value(bench.place[0].argument()) == first);
    CHECK(bench.place[0].argument().data() == bench.place[0].argument().data());  // of the address, not of a copy
    CHECK(value(bench.place[1].argument()) != first);
    const auto moved = std::move(bench.place[0]);
    CHECK(value(moved.argument()) == first);
  }
  const typename A::Backend::template View<std::uint32_t> empty;
  CHECK(empty.size() == 0);
  CHECK(empty.bytes() == 0);
  auto view = typename A::Backend::template View<std::uint32_t>(bench.place[1], 2);
  CHECK(view.size() == 2);
  view = empty;
  CHECK(view.size() == 0);
  A::verify(b);
}

#define SWAPMM_CONFORMANCE_CASE(CASE, ADAPTOR) TEST_CASE_TEMPLATE_INVOKE(CASE, ADAPTOR)
#define SWAPMM_CONFORMANCE(ADAPTOR)                      \
  SWAPMM_CONFORMANCE_CASE(c_copies, ADAPTOR);            \
  SWAPMM_CONFORMANCE_CASE(c_places, ADAPTOR);            \
  SWAPMM_CONFORMANCE_CASE(c_in_order, ADAPTOR);          \
  SWAPMM_CONFORMANCE_CASE(c_across_queues, ADAPTOR);     \
  SWAPMM_CONFORMANCE_CASE(c_rerecorded, ADAPTOR);        \
  SWAPMM_CONFORMANCE_CASE(c_never_recorded, ADAPTOR);    \
  SWAPMM_CONFORMANCE_CASE(c_second_form, ADAPTOR);       \
  SWAPMM_CONFORMANCE_CASE(c_status, ADAPTOR);            \
  SWAPMM_CONFORMANCE_CASE(c_finish, ADAPTOR);            \
  SWAPMM_CONFORMANCE_CASE(c_alignment, ADAPTOR);         \
  SWAPMM_CONFORMANCE_CASE(c_too_large, ADAPTOR);         \
  SWAPMM_CONFORMANCE_CASE(c_release_in_flight, ADAPTOR); \
  SWAPMM_CONFORMANCE_CASE(c_destruction, ADAPTOR);       \
  SWAPMM_CONFORMANCE_CASE(c_handles, ADAPTOR);           \
  SWAPMM_CONFORMANCE_CASE(c_moves, ADAPTOR);             \
  SWAPMM_CONFORMANCE_CASE(c_arguments, ADAPTOR);         \
  SWAPMM_CONFORMANCE_CASE(c_timing, ADAPTOR);            \
  SWAPMM_CONFORMANCE_CASE(c_pageable, ADAPTOR)
