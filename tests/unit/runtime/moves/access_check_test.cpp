// SPDX-License-Identifier: Apache-2.0
// With check_access on, an operation that does something else than it declares is found and named.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/faulty_simulated.hpp"
#include "support/small_program.hpp"
#include "support/tensor_names.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

struct AccessCheckDesk {
  Simulated device;
  MemoryManager<Simulated> manager{device, {.device_budget = 256_bytes, .check_access = true}};
  Tensor<int, Simulated> a = manager.tensor<int>({length}, "a");
  Tensor<int, Simulated> b = manager.tensor<int>({length}, "b");

  AccessCheckDesk() {
    set(manager, a, 1);
    set(manager, b, 2);
  }
  ~AccessCheckDesk() { CHECK(probe(manager)); }
  // Runs `body(a, b)` on the device, whatever the bundle says of it.
  template <class Part, class Body>
  void run(const Part& part, Body body) {
    manager.run("liar", part, [&](auto& op) {
      int* const bytes_of_a = op[a].data();
      op.queue().launch("liar", operation_time, {}, [bytes_of_a, body] { body(bytes_of_a); });
    });
  }
};

/// A simulated device that keeps what it is told of the host's accesses: their sizes, and which of them write. Counts
/// how often the host waits for a point while a copy is in a queue that was not told to begin.
class AccessNotingDevice : public Simulated {
 public:
  using Notes = std::vector<std::pair<Bytes, bool>>;
  struct Seen {
    Notes notes;
    std::array<bool, queue_count> unflushed{};
    std::uint64_t waits = 0;
    std::uint64_t waits_unflushed = 0;
  };
  using Waits = std::span<const Event* const>;

  void note_host_access(const HostMemory& memory, Bytes offset, Bytes size, bool write) {
    seen_->notes.emplace_back(size, write);
    Simulated::note_host_access(memory, offset, size, write);
  }
  void copy_to_device(const Address& to, const HostMemory& from, Bytes offset, Bytes size, Waits waits, Event& event) {
    seen_->unflushed[index(QueueKind::h2d)] = true;
    Simulated::copy_to_device(to, from, offset, size, waits, event);
  }
  void copy_to_host(HostMemory& to, Bytes offset, const Address& from, Bytes size, Waits waits, Event& event) {
    seen_->unflushed[index(QueueKind::d2h)] = true;
    Simulated::copy_to_host(to, offset, from, size, waits, event);
  }
  void flush(QueueKind queue) {
    seen_->unflushed[index(queue)] = false;
    Simulated::flush(queue);
  }
  void wait(QueueKind queue, Waits waits) { Simulated::wait(queue, waits); }
  void wait(const Event& event) {
    ++seen_->waits;
    for (const bool unflushed : seen_->unflushed) seen_->waits_unflushed += unflushed ? 1 : 0;
    Simulated::wait(event);
  }
  [[nodiscard]] Seen& seen() { return *seen_; }

 private:
  std::shared_ptr<Seen> seen_ = std::make_shared<Seen>();
};

/// How many bytes of a tensor of that size an operation is said to leave, if it writes none.
std::uint64_t left_of(std::size_t size) {
  Simulated device;
  MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes, .check_access = true});
  auto letters = manager.tensor<char>({size}, "letters");
  const auto error = thrown<AccessViolation>([&] { manager.run("forgets", writes(letters), [](auto&) {}); });
  return error ? error->unwritten.value : 0;
}

}  // namespace

TEST_CASE("a change of a tensor that is declared as read is named") {
  AccessCheckDesk desk;
  const auto error = thrown<AccessViolation>([&] { desk.run(reads(desk.a), [](int* a) { a[length - 1] = 3; }); });
  REQUIRE(error);
  CHECK(error->kind == AccessViolation::Kind::changed_read);
  CHECK(error->operation() == "liar");
  CHECK(names_are(error->tensors(), {"a"}));
  CHECK(says(error->what(), {"\"liar\"", "\"a\"", "read", "updates()"}));
}

TEST_CASE("a change of a tensor outside the bundle is named") {
  AccessCheckDesk desk;
  int* other = nullptr;
  desk.manager.run("look", reads(desk.b), [&](auto& op) { other = op[desk.b].data(); });
  const auto error = thrown<AccessViolation>([&] {
    desk.run(updates(desk.a), [other](int* a) {
      a[0] = 3;
      other[5] = 3;
    });
  });
  REQUIRE(error);
  CHECK(error->kind == AccessViolation::Kind::changed_undeclared);
  CHECK(error->operation() == "liar");
  CHECK(names_are(error->tensors(), {"b"}));
}

TEST_CASE("a declared whole write that leaves bytes as they were is named with their number") {
  AccessCheckDesk desk;
  const auto error =
      thrown<AccessViolation>([&] { desk.run(writes(desk.a), [](int* a) { std::fill_n(a, length - 4, 3); }); });
  REQUIRE(error);
  CHECK(error->kind == AccessViolation::Kind::left_unwritten);
  CHECK(error->unwritten == 16_bytes);
  CHECK(error->operation() == "liar");
  CHECK(names_are(error->tensors(), {"a"}));
  CHECK(says(error->what(), {"\"liar\"", "\"a\"", "16 of its 64 bytes", "updates()"}));
}

TEST_CASE("a declared whole write that reads the old value gets poison instead, and is named where it passes it on") {
  AccessCheckDesk desk;
  const auto error = thrown<AccessViolation>([&] { desk.run(writes(desk.a), [](int*) {}); });
  REQUIRE(error);
  CHECK(error->kind == AccessViolation::Kind::left_unwritten);
  CHECK(error->unwritten == 64_bytes);
  CHECK(names_are(error->tensors(), {"a"}));
}

TEST_CASE("a single number that is declared as written and is not is named too") {
  AccessCheckDesk desk;
  auto loss = desk.manager.tensor<float>({1}, "loss");
  const auto error = thrown<AccessViolation>([&] { desk.manager.run("forgets", writes(loss), [](auto&) {}); });
  REQUIRE(error);
  CHECK(error->unwritten == 4_bytes);
  CHECK(error->operation() == "forgets");
  CHECK(names_are(error->tensors(), {"loss"}));
}

TEST_CASE("an honest program raises no alarm, and follows no plan") {
  AccessCheckDesk desk;
  auto odd = desk.manager.tensor<char>({13}, "odd");
  for (int i = 0; i < 4; ++i) {
    auto iteration = desk.manager.iteration();
    add(desk.manager, desk.a, desk.b, 1);
    accumulate(desk.manager, desk.b, desk.a);
    desk.manager.run("letters", writes(odd), scratch(32_bytes), [&](auto& op) {
      const auto to = op[odd];
      const auto work = op.scratch();
      op.queue().launch("letters", operation_time, {Touch::write(to), Touch::write(work)}, [to, work, i] {
        std::fill(work.begin(), work.end(), std::byte{1});
        std::fill(to.begin(), to.end(), static_cast<char>('a' + i));
      });
    });
    desk.a.upload(std::vector<int>(length, i));
  }
  CHECK(odd.download() == std::vector<char>(13, 'd'));
  CHECK(desk.manager.report().iterations_followed == 0);
  CHECK(desk.device.violation_count() == 0);
}

TEST_CASE("values that look alike are no violation: an update may leave everything as it was") {
  AccessCheckDesk desk;
  desk.run(updates(desk.a), [](int*) {});
  CHECK(holds(desk.a, 1));
}

TEST_CASE("of a tensor that ends within a word, the rest counts from half a word on") {
  CHECK(left_of(16) == 16);
  CHECK(left_of(13) == 13);
  CHECK(left_of(12) == 12);
  CHECK(left_of(11) == 8);
  CHECK(left_of(5) == 5);
}

TEST_CASE("a large tensor is checked up to its last word") {
  Simulated device;
  MemoryManager<Simulated> manager(device, {.device_budget = 512_KiB, .check_access = true});
  constexpr std::size_t count = 100'000;
  auto large = manager.tensor<int>({count}, "large");
  const auto error = thrown<AccessViolation>([&] {
    manager.run("stops early", writes(large), [&](auto& op) {
      const auto to = op[large];
      op.queue().launch("stops early", operation_time, {Touch::write(to)},
                        [to] { std::fill_n(to.data(), count - 2, 1); });
    });
  });
  REQUIRE(error);
  CHECK(error->unwritten == 8_bytes);
}

TEST_CASE("a value that looks like one that was never written may be updated") {
  AccessCheckDesk desk;
  std::vector<int> never_written(length);
  desk.run(writes(desk.a), [&](int* a) {
    std::copy_n(a, length, never_written.begin());
    std::fill_n(a, length, 1);
  });
  desk.a.upload(never_written);
  desk.run(updates(desk.a), [](int*) {});
  CHECK(desk.a.download() == never_written);
}

TEST_CASE("the check moves a tensor to the host only where its value is about to be replaced and is not there") {
  AccessCheckDesk desk;
  const auto moves = [&] {
    const Report report = desk.manager.report();
    return std::pair(report.swap_ins, report.swap_outs);
  };
  const auto before = moves();
  for (int i = 0; i < 2; ++i) {
    desk.run(reads(desk.a), [](int*) {});
    desk.run(updates(desk.a), [](int* a) { ++a[0]; });
  }
  CHECK(moves() == before);
  desk.run(writes(desk.a), [](int* a) { std::fill_n(a, length, 3); });
  CHECK(moves() == std::pair(before.first, before.second + 1));
  desk.a.upload(std::vector<int>(length, 4));
  desk.run(reads(desk.a), [](int*) {});
  desk.run(writes(desk.a), [](int* a) { std::fill_n(a, length, 5); });
  CHECK(moves() == std::pair(before.first + 1, before.second + 1));
  CHECK(holds(desk.a, 5));
}

TEST_CASE("an operation that is not queued because its check fails leaves the value that it was to replace") {
  using Device = FaultySimulated;
  for (std::uint64_t n = 1; n <= 2; ++n) {  // `a` is copied to the host, then `b` is looked at
    CAPTURE(n);
    Device device{Simulated()};
    MemoryManager<Device> manager(device, {.device_budget = 256_bytes, .check_access = true});
    auto a = manager.tensor<int>({length}, "a");
    auto b = manager.tensor<int>({length}, "b");
    set(manager, a, 1);
    set(manager, b, 2);
    device.restart({FaultClass::copy_to_host, FaultMode::once, n});
    const auto replace = [&] { manager.run("replace", writes(a), reads(b), [](auto&) { FAIL_CHECK("queued"); }); };
    CHECK(thrown<BackendError>(replace).has_value());
    CHECK(device.fired() == 1);
    device.restart({});
    increase(manager, a, 10);
    CHECK(holds(a, 11));
    CHECK(holds(b, 2));
  }
}

TEST_CASE("the check keeps one block of host memory, as large as the largest tensor that it has seen") {
  for (const bool large_first : {true, false}) {
    Simulated device;
    MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes, .check_access = true});
    auto small = manager.tensor<int>({length}, "small");
    auto large = manager.tensor<int>({2 * length}, "large");
    if (large_first) set(manager, large, 1);
    set(manager, small, 2);
    set(manager, large_first ? small : large, 3);
    increase(manager, small, 1);
    increase(manager, large, 1);
    const Report report = manager.report();
    CHECK(report.host_used == device.counters().host_bytes);
    // Where it grows, the block that was too small is kept for tensors. A value that is replaced needs one of its own.
    CHECK(report.host_used == 192_bytes);
    CHECK(report.swap_outs == (large_first ? 1 : 0));
  }
}

TEST_CASE("a backend is told of each access that the check makes on the host, and to begin each copy") {
  AccessNotingDevice device;
  MemoryManager<AccessNotingDevice> manager(device, {.device_budget = 256_bytes, .check_access = true});
  auto a = manager.tensor<int>({length}, "a");
  auto b = manager.tensor<int>({2 * length}, "b");
  using Notes = AccessNotingDevice::Notes;
  set(manager, a, 1);
  CHECK(std::exchange(device.seen().notes, {}) == Notes{{64_bytes, true}, {64_bytes, false}});
  set(manager, b, 2);
  CHECK(device.seen().notes == Notes{{64_bytes, false}, {128_bytes, true}, {64_bytes, false}, {128_bytes, false}});
  CHECK(device.seen().waits >= 6);
  CHECK(device.seen().waits_unflushed == 0);
}
