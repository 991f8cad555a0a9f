// SPDX-License-Identifier: Apache-2.0
#include <swapmm/backend/testing/simulated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

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

TEST_CASE("a missing wait shows torn bytes under some seeds and is reported under all") {
  std::set<simulated::Found> seen;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    auto options = ordered(Order::uniform, seed);
    options.pieces = 8;
    SmallDevice small(options);
    simulated::fill(small.bytes(), 7, 1);
    small.upload(0, 0);
    small.b.wait(small.event[0]);
    simulated::fill(small.bytes(), 7, 2);
    small.upload(0, 0);
    simulated::Finding finding;
    const ByteView view(small.first, SmallDevice::size);
    small.b.queue().launch("look", 1ns, {Touch::read(view)},
                           [&] { finding = simulated::check(std::span(view), 7, 2); });
    small.b.finish();
    seen.insert(finding.found);
    CHECK(small.b.violation_count() == 1);
    CHECK(small.reported("unordered: 'look' reads device bytes [0, 1000) that h2d command 1 writes"));
  }
  CHECK(seen == std::set{simulated::Found::exact, simulated::Found::stale, simulated::Found::torn});
}

TEST_CASE("with the wait in place every seed brings the right bytes and no report") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    auto options = ordered(Order::uniform, seed);
    options.pieces = 8;
    SmallDevice small(options);
    simulated::fill(small.bytes(), 7, 2);
    small.upload(0, 0);
    small.b.wait(QueueKind::compute, SimulatedEvents{&small.event[0]});
    simulated::Finding finding{simulated::Found::foreign, 0, 0};
    const ByteView view(small.first, SmallDevice::size);
    small.b.queue().launch("look", 1ns, {Touch::read(view)},
                           [&] { finding = simulated::check(std::span(view), 7, 2); });
    small.b.finish();
    CHECK(finding.found == simulated::Found::exact);
    CHECK(small.b.violation_count() == 0);
  }
}

TEST_CASE("a kernel of two phases lets other queues move between its reads and its writes") {
  std::set<std::byte> seen;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SmallDevice small(ordered(Order::uniform, seed));
    std::fill_n(small.host.data(), SmallDevice::size, std::byte{1});
    const ByteView view(small.first, SmallDevice::size);
    std::byte before{};
    small.b.queue().launch(
        "update", 1ns, {Touch::write(view)}, [&] { before = view[0]; },
        [&] { view[0] = static_cast<std::byte>(std::to_integer<int>(before) + 1); });
    small.upload(0, 0);  // not ordered with the kernel: its byte may get lost
    small.b.finish();
    seen.insert(view[0]);
  }
  CHECK(seen == std::set{std::byte{1}, std::byte{2}, std::byte{0xDD}});
}

TEST_CASE("the checker sees what the host does to memory that copies use") {
  SmallDevice small(ordered(Order::virtual_time));
  small.b.note_host_access(small.host, Bytes{0}, Bytes{SmallDevice::size}, true);
  small.upload(0, 0);
  CHECK(small.b.violation_count() == 0);

  SUBCASE("writing what an upload reads") {
    small.b.note_host_access(small.host, Bytes{999}, Bytes{1}, true);
    CHECK(small.reported("'the host' writes host memory bytes [999, 1000) that h2d command 0 reads"));
  }
  SUBCASE("reading what an upload reads is fine") {
    small.b.note_host_access(small.host, Bytes{0}, Bytes{SmallDevice::size}, false);
    CHECK(small.b.violation_count() == 0);
  }
  SUBCASE("writing after having waited is fine") {
    small.b.wait(small.event[0]);
    small.b.note_host_access(small.host, Bytes{0}, Bytes{SmallDevice::size}, true);
    CHECK(small.b.violation_count() == 0);
  }
  SUBCASE("reading what a download has not finished to write") {
    small.download(0, 1, {&small.event[0]});
    small.b.note_host_access(small.other_host, Bytes{0}, Bytes{1}, false);
    CHECK(small.reported("'the host' reads host memory bytes [0, 1) that d2h command 0 writes"));
  }
  SUBCASE("a status that says complete is as good as a wait") {
    small.b.drain();
    REQUIRE(small.b.status(small.event[0]) == EventStatus::complete);
    small.b.note_host_access(small.host, Bytes{0}, Bytes{SmallDevice::size}, true);
    CHECK(small.b.violation_count() == 0);
  }
  SUBCASE("one memory has room for several copies and the host, each with bytes of its own") {
    simulated::Event& event = small.event[1];
    small.b.copy_to_host(small.other_host, Bytes{100}, small.second, Bytes{50}, {}, event);
    small.b.note_host_access(small.other_host, Bytes{0}, Bytes{100}, true);
    small.b.note_host_access(small.other_host, Bytes{150}, Bytes{50}, true);
    small.b.copy_to_device(small.first, small.other_host, Bytes{200}, Bytes{50}, {}, small.event[2]);
    CHECK(small.b.violation_count() == 0);
    small.b.note_host_access(small.other_host, Bytes{149}, Bytes{1}, false);
    CHECK(small.reported("'the host' reads host memory bytes [149, 150) that d2h command 0 writes"));
    small.b.clear_violations();
    small.b.copy_to_device(small.first, small.other_host, Bytes{149}, Bytes{1}, {}, small.event[3]);
    CHECK(small.reported("'copy to device' reads host memory bytes [149, 150) that d2h command 0 writes"));
  }
  SUBCASE("outside of the memory") {
    small.b.note_host_access(small.host, Bytes{SmallDevice::size}, Bytes{1}, false);
    CHECK(small.reported("out of bounds"));
  }
}

TEST_CASE("order through a chain of events counts, order in time alone does not") {
  SmallDevice small(ordered(Order::virtual_time));
  small.upload(0, 0);
  small.b.wait(QueueKind::compute, SimulatedEvents{&small.event[0]});
  small.b.record(QueueKind::compute, small.event[1]);
  small.download(0, 2, {&small.event[1]});  // upload -> compute -> download
  CHECK(small.b.violation_count() == 0);
  small.upload(0, 3);  // may overtake the download
  CHECK(small.b.violation_count() == 1);
  CHECK(small.reported("'copy to device' writes device bytes [0, 1000) that d2h command 0 reads"));
}

TEST_CASE("a use after release is reported, and meets the bytes of whoever is there now") {
  SmallDevice small(ordered(Order::virtual_time));
  auto memory = std::optional(small.b.allocate(Bytes{512}));
  const auto address = small.b.address(*memory, Bytes{0}, Bytes{512});
  CHECK(address.data()[511] == simulated::fresh_byte);
  memory.reset();
  CHECK(address.data()[0] == simulated::freed_byte);

  auto next = small.b.allocate(Bytes{256});  // the bytes freed last come first
  const auto next_address = small.b.address(next, Bytes{0}, Bytes{256});
  CHECK(next_address.data() == address.data());
  CHECK(next_address.data()[0] == simulated::fresh_byte);
  CHECK(next_address.data()[256] == simulated::freed_byte);

  small.b.queue().launch("late", 1ns, {Touch::write(address)}, [] {});
  CHECK(small.reported("use after release: 'late' uses device bytes"));
  small.b.copy_to_device(address, small.host, Bytes{0}, Bytes{8}, {}, small.event[0]);
  CHECK(small.b.violation_count() == 2);
}

TEST_CASE("a kernel that touches more than its place is reported") {
  SmallDevice small(ordered(Order::virtual_time));
  const simulated::View<float> view(small.first, 251);
  small.b.queue().launch("wide", 1ns, {Touch::read(view)}, [] {});
  CHECK(small.reported("out of bounds: 'wide' uses 1004 bytes of a place of 1000"));
}

TEST_CASE("a copy that leaves its place or its host memory is refused and reported") {
  SmallDevice small(ordered(Order::virtual_time));
  const auto up = [&](std::uint64_t offset, std::uint64_t size) {
    return kind_of_error(
        [&] { small.b.copy_to_device(small.first, small.host, Bytes{offset}, Bytes{size}, {}, small.event[0]); });
  };
  CHECK(up(0, 1001) == BackendError::Kind::failed);
  CHECK(up(1, 1000) == BackendError::Kind::failed);
  CHECK(up(~std::uint64_t{0}, 2) == BackendError::Kind::failed);
  CHECK(small.b.violation_count() == 3);
  CHECK(small.b.status(small.event[0]) == EventStatus::complete);
  CHECK(small.b.counters().count(simulated::CommandKind::copy_to_device) == 0);
}

TEST_CASE("with the checker off nothing is poisoned and nothing reported") {
  auto options = ordered(Order::virtual_time);
  options.check = false;
  SmallDevice small(options);
  small.upload(0, 0);
  small.download(0, 1);
  small.b.finish();
  CHECK(small.b.violation_count() == 0);
}

TEST_CASE("the pattern tells where wrong bytes come from") {
  using simulated::Found;
  for (const std::size_t size : {7U, 8U, 64U, 1003U}) {
    std::vector<std::byte> bytes(size);
    const auto found = [&] { return simulated::check(std::span<const std::byte>(bytes), 4, 10); };
    simulated::fill(bytes, 4, 10);
    CHECK(found().found == Found::exact);
    simulated::fill(bytes, 4, 8);
    CHECK(found().found == Found::stale);
    CHECK(found().version == 8);
    simulated::fill(bytes, 5, 10);
    CHECK(found().found == Found::foreign);
    std::fill(bytes.begin(), bytes.end(), simulated::fresh_byte);
    CHECK(found().found == Found::poison);
    simulated::fill(bytes, 4, 10);
    bytes.back() = simulated::freed_byte;
    CHECK(found().found == Found::freed);
    CHECK(found().offset == size - 1);

    std::vector<std::byte> old(size);
    simulated::fill(bytes, 4, 10);
    simulated::fill(old, 4, 9);
    std::copy(old.begin() + static_cast<std::ptrdiff_t>(size / 2), old.end(),
              bytes.begin() + static_cast<std::ptrdiff_t>(size / 2));
    CHECK(found().found == Found::torn);
    CHECK(found().version == 9);
  }
}
