// SPDX-License-Identifier: Apache-2.0
// Places and copies of values, as the store books them.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include <swapmm/error.hpp>
#include <swapmm/runtime/values/store.hpp>

#include "support/small_program.hpp"
#include "support/value_desk.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;
using runtime::Clock;
using runtime::CommandLabel;
using runtime::MissingReason;

std::optional<runtime::QueueFailure> failure_of_wait(ValueDesk& desk, QueueKind queue) {
  try {
    desk.store.timeline.host_wait(Clock::point(queue, desk.store.timeline.issued(queue)));
  } catch (const runtime::QueueFailure& failure) {
    return failure;
  }
  return std::nullopt;
}

}  // namespace

// ---- places

TEST_CASE(
    "bytes beyond the budget are a fault of the library, whatever is in use, and it names a tensor if there is one") {
  ValueDesk desk;
  CHECK(
      text_of<InternalError>([&] { desk.store.book(1025_bytes, {}); }) ==
      "internal error of swapmm: 1025 bytes of the device are taken, and 0 of a budget of 1024 are in use; no value is "
      "lost. Please report it");
  auto& record = desk.tensor("a");
  const auto error =
      thrown<InternalError>([&] { desk.store.book(1_KiB, {}, ValueDesk::Store::When::after_clock, record.id); });
  REQUIRE(error);
  REQUIRE(error->tensors().size() == 1);
  CHECK(error->tensors()[0].name == "a");
  CHECK(desk.store.used() == 64_bytes);
  desk.store.book(960_bytes, {});
  CHECK(desk.store.used() == 1_KiB);
}

TEST_CASE("device memory is one arena where the device can allocate the budget in one piece") {
  struct Limited : NullBackend {
    explicit Limited(Bytes largest) : limited(NullBackend::capabilities()) { limited.max_allocation = largest; }
    [[nodiscard]] const Capabilities& capabilities() const { return limited; }
    Capabilities limited;
  };
  using LimitedStore = runtime::Store<Limited>;
  for (const Bytes largest : {1_KiB, 1100_bytes, 1_MiB}) {
    CHECK(LimitedStore::places_of(1_KiB, Limited(largest)).arena() == 1_KiB);
  }
  CHECK(LimitedStore::places_of(1_KiB, Limited(1023_bytes)).arena() == 960_bytes);
  CHECK(LimitedStore::places_of(1_KiB, Limited(10_bytes)).arena() == 64_bytes);
}

TEST_CASE("a tensor has no value in a place that it was just given, and the bytes are free after what used them") {
  ValueDesk desk;
  auto& record = desk.tensor("a");
  record.device.ready = Clock{{7, 7, 7}};
  const Clock after{{1, 2, 3}};
  desk.place(record, after);
  CHECK(record.device.resident);
  CHECK(!record.device.valid);
  CHECK(record.device.ready == after);
  CHECK(record.device.busy == after);
}

TEST_CASE("a value that loses its place is dropped only if the host does not have it") {
  ValueDesk desk;
  auto& only_here = desk.tensor("only here");
  desk.store.clear_place(only_here);
  CHECK(only_here.value.missing_reason == MissingReason::dropped);
  auto& on_both = desk.tensor("on both");
  desk.swap_out(on_both);
  desk.store.clear_place(on_both);
  CHECK(on_both.has_value());
  CHECK(on_both.value.missing_reason == MissingReason::never_written);
  auto& nowhere = desk.tensor("nowhere", false);
  desk.store.clear_place(nowhere);
  CHECK(nowhere.value.missing_reason == MissingReason::never_written);
  CHECK(desk.store.used() == 0_bytes);
}

// ---- copies

TEST_CASE("a queue waits once for what two copies in a row need") {
  ValueDesk desk;
  auto& first = desk.tensor("first");
  auto& second = desk.tensor("second");
  desk.store.timeline.mark(QueueKind::compute);
  const Clock operation = Clock::point(QueueKind::compute, 1);
  for (auto* const record : {&first, &second}) desk.store.ensure_block(*record);
  (void)desk.calls();
  for (auto* const record : {&first, &second}) desk.store.swap_out(*record, operation);
  for (auto* const record : {&first, &second}) desk.store.swap_in(*record, operation);
  CHECK(desk.calls() == Calls{"flush", "copy of 64 bytes to host after 1", "copy of 64 bytes to host after 0",
                              "copy of 64 bytes to device after 1", "copy of 64 bytes to device after 0"});
  CHECK(desk.store.timeline.waits_queued() == 2);
}

TEST_CASE("a swap-out on demand comes after the last write, and after every copy that uses the host block") {
  ValueDesk desk;
  auto& record = desk.tensor("a");
  desk.store.ensure_block(record);
  record.device.ready = Clock{{5, 1, 0}};
  record.host.block->read = 3;
  record.host.block->written = 2;
  CHECK(desk.store.before_swap_out(record) == Clock{{5, 3, 2}});
}

TEST_CASE("a copy has the number of its command, so that a failure before it takes the value with it") {
  ValueDesk desk;
  auto& record = desk.tensor("a");
  desk.swap_out(record);
  CHECK(record.host.issue == 1);
  desk.store.swap_in(record, {});
  CHECK(record.device.issue == 2);
}

TEST_CASE("a copy that fails is found as what it was, with its tensor") {
  for (const QueueKind queue : {QueueKind::d2h, QueueKind::h2d}) {
    ValueDesk desk;
    (void)desk.tensor("other");
    auto& record = desk.tensor("a");
    desk.store.ensure_block(record);
    desk.told.failed = {1};
    if (queue == QueueKind::d2h) desk.store.swap_out(record, {});
    if (queue == QueueKind::h2d) desk.store.swap_in(record, {});
    const auto failure = failure_of_wait(desk, queue);
    REQUIRE(failure.has_value());
    CHECK(failure->queue == queue);
    CHECK(failure->label.what ==
          (queue == QueueKind::d2h ? CommandLabel::What::swap_out : CommandLabel::What::swap_in));
    CHECK(failure->label.tensor == record.id);
  }
}

// ---- host blocks

TEST_CASE("a tensor that is to have two blocks has both, also if it had none") {
  ValueDesk desk;
  auto& record = desk.tensor("a");
  desk.store.ensure_spare(record);
  CHECK(record.host.block != nullptr);
  CHECK(record.host.spare != nullptr);
  ValueDesk poor(64_bytes);
  auto& other = poor.tensor("a");
  poor.store.ensure_spare(other);
  CHECK(other.host.block != nullptr);
  CHECK(other.host.spare == nullptr);
}

TEST_CASE("a tensor that ends gives both of its blocks to the next one") {
  ValueDesk desk(128_bytes);
  auto& record = desk.tensor("a");
  desk.store.ensure_spare(record);
  desk.store.free_host(record);
  CHECK(record.host.block == nullptr);
  CHECK(record.host.spare == nullptr);
  CHECK(!record.host.valid);
  auto& next = desk.tensor("next");
  desk.store.ensure_spare(next);
  CHECK(next.host.spare != nullptr);
  CHECK(desk.store.pool.budget().in_use() == 128_bytes);
}

// ---- calls that fail

TEST_CASE("a call that fails throws its error when nothing is in flight, unless the device is lost") {
  ValueDesk desk;
  CHECK_THROWS_AS(desk.store.issue([] { throw std::runtime_error("not of the backend"); }), std::runtime_error);
  CHECK(desk.calls() == Calls{"finish"});
  auto& record = desk.tensor("a");
  desk.store.ensure_block(record);
  desk.told.refused_copies = 2;
  CHECK_THROWS_AS(desk.store.swap_out(record, {}), BackendError);
  CHECK(desk.calls() == Calls{"copy of 64 bytes to host after 0", "finish"});
  desk.told.refusal = BackendError::Kind::device_lost;
  CHECK_THROWS_AS(desk.store.swap_out(record, {}), BackendError);
  CHECK(desk.calls() == Calls{"copy of 64 bytes to host after 0"});
  CHECK(!record.host.valid);
}

TEST_CASE("a wait for everything that fails is tried once more, unless the device is lost") {
  ValueDesk desk;
  desk.told.refused_finishes = 1;
  desk.store.drain();
  CHECK(desk.calls() == Calls{"finish", "finish"});
  desk.told.refused_finishes = 2;
  CHECK_THROWS_AS(desk.store.drain(), BackendError);
  CHECK(desk.calls() == Calls{"finish", "finish"});
  desk.told.refused_finishes = 1;
  desk.told.refusal = BackendError::Kind::device_lost;
  CHECK_THROWS_AS(desk.store.drain(), BackendError);
  CHECK(desk.calls() == Calls{"finish"});
}
