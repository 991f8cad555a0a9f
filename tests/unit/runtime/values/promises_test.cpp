// SPDX-License-Identifier: Apache-2.0
// Downloads that were promised and not collected yet.
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <set>
#include <vector>

#include <swapmm/error.hpp>
#include <swapmm/runtime/values/promises.hpp>

#include "support/failing_new.hpp"
#include "support/value_desk.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;
using runtime::PendingRead;
using ReadState = PendingRead::State;
using TellingBlock = runtime::HostBlock<TellingBackend>;

/// Where a download goes. No byte of it is that of new host memory.
struct DownloadTarget {
  std::array<std::byte, 64> bytes{};

  [[nodiscard]] bool came() const { return bytes[0] == std::byte{0x5A} && bytes[63] == std::byte{0x5A}; }
};

/// A block that a test can end while its bytes stay.
class BlockInBuffer {
 public:
  BlockInBuffer() : block_(new (buffer_.data()) TellingBlock) {}
  [[nodiscard]] TellingBlock* get() const { return block_; }
  /// From now on whoever looks at the block reads nonsense.
  void end() {
    block_->~TellingBlock();
    buffer_.fill(std::byte{0xFF});
  }

 private:
  alignas(TellingBlock) std::array<std::byte, sizeof(TellingBlock)> buffer_{};
  TellingBlock* block_;
};

}  // namespace

TEST_CASE("reads that were given back are used again, as good as new, before others are made") {
  runtime::ReadPool pool;
  std::set<PendingRead*> first;
  for (int i = 0; i < 5; ++i) first.insert(&pool.take());
  CHECK(first.size() == 5);
  for (PendingRead* const read : first) {
    read->state = ReadState::abandoned;
    pool.give_back(*read);
  }
  std::set<PendingRead*> second;
  for (int i = 0; i < 5; ++i) {
    PendingRead& read = pool.take();
    CHECK(read.state == ReadState::waiting);
    CHECK(read.next == nullptr);
    second.insert(&read);
  }
  CHECK(second == first);
  CHECK(!first.contains(&pool.take()));
}

TEST_CASE("only the preparation of a download allocates, and of many downloads few") {
  ValueDesk desk;
  auto& record = desk.tensor("a");
  std::deque<PendingRead> reads(200);
  std::deque<DownloadTarget> targets(200);
  desk.swap_out(record);
  std::uint64_t prepared = 0;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const std::uint64_t before = allocations();
    desk.promises.prepare(reads[i], record);
    const std::uint64_t between = allocations();
    desk.promises.add(reads[i], record, 0_bytes, targets[i].bytes);
    CHECK(allocations() == between);
    prepared += between - before;
  }
  CHECK(prepared <= 10);
  desk.promises.settle_all(desk.store);
  for (const DownloadTarget& target : targets) CHECK(target.came());
}

TEST_CASE(
    "a download that is collected has its bytes, is linked to nothing, and the checker hears of the host's read") {
  ValueDesk desk;
  auto& record = desk.tensor("a");
  std::array<PendingRead, 3> reads;
  std::array<DownloadTarget, 3> targets;
  for (std::size_t i = 0; i < 3; ++i) desk.promise(reads[i], record, targets[i].bytes);
  CHECK(reads[2].tensor == "a");
  (void)desk.calls();
  desk.promises.collect(desk.store, reads[1]);
  CHECK(desk.calls() == Calls{"flush", "host waits", "host reads 64 bytes at 0"});
  CHECK(reads[1].state == ReadState::done);
  CHECK(reads[1].next == nullptr);
  CHECK(targets[1].came());
  CHECK(!targets[0].came());
  CHECK(reads[0].state == ReadState::waiting);
  CHECK(record.host.block->pending == &reads[2]);
  CHECK(reads[2].next == &reads[0]);
  desk.promises.cancel(reads[2]);
  CHECK(record.host.block->pending == &reads[0]);
  desk.promises.cancel(reads[0]);
  CHECK(record.host.block->pending == nullptr);
  CHECK(!targets[0].came());
}

TEST_CASE("a read that was promised nothing can be given up") {
  ValueDesk desk;
  auto& record = desk.tensor("a");
  PendingRead read;
  desk.promises.prepare(read, record);
  desk.promises.cancel(read);
  CHECK(read.state == ReadState::waiting);
}

TEST_CASE("a download that is done is given up, or settled, without a look at its block, which may be gone") {
  for (const bool settle : {false, true}) {
    CAPTURE(settle);
    ValueDesk desk;
    auto& record = desk.tensor("a");
    BlockInBuffer buffer;
    const auto own = desk.store.pool.acquire(64_bytes);
    buffer.get()->own.emplace(std::move(*own->own));
    buffer.get()->size = own->size;
    record.host.block.reset(buffer.get());
    PendingRead read;
    DownloadTarget target;
    desk.promise(read, record, target.bytes);
    desk.store.settle_pending(*record.host.block);
    CHECK(read.state == ReadState::done);
    (void)record.host.block.release();
    buffer.end();
    if (settle) {
      desk.promises.settle_all(desk.store);
    } else {
      desk.promises.cancel(read);
    }
    CHECK(read.state == ReadState::done);
    CHECK(target.came());
  }
}

TEST_CASE("a read that is done, or was given up, may take the value of another tensor") {
  enum class End { collected, settled, abandoned };
  for (const End end : {End::collected, End::settled, End::abandoned}) {
    CAPTURE(static_cast<int>(end));
    ValueDesk desk;
    auto& first = desk.tensor("first");
    auto& second = desk.tensor("second");
    PendingRead read;
    DownloadTarget target;
    desk.promise(read, first, target.bytes);
    if (end == End::collected) desk.promises.collect(desk.store, read);
    if (end == End::settled) desk.promises.settle(desk.store, *first.host.block);
    if (end == End::abandoned) desk.promises.abandon_since(read.issue);
    CHECK(read.state == (end == End::abandoned ? ReadState::abandoned : ReadState::done));
    read.state = ReadState::waiting;
    desk.promise(read, second, target.bytes);
    std::memset(second.host.block->data(), 0x77, 64);
    desk.promises.collect(desk.store, read);
    CHECK(target.bytes[0] == std::byte{0x77});
    CHECK(second.host.block->pending == nullptr);
  }
}

TEST_CASE("after a failure the downloads of later copies are given up, and those of earlier ones keep their value") {
  ValueDesk desk;
  std::array<PendingRead, 4> reads;
  std::array<DownloadTarget, 4> targets;
  std::vector<ValueDesk::Record*> records;
  for (std::size_t i = 0; i < 4; ++i) {
    records.push_back(&desk.tensor("t"));
    desk.promise(reads[i], *records[i], targets[i].bytes);
  }
  desk.store.settle_pending(*records[3]->host.block);
  desk.promises.abandon_since(reads[1].issue);
  CHECK(reads[0].state == ReadState::waiting);
  CHECK(reads[1].state == ReadState::abandoned);
  CHECK(reads[2].state == ReadState::abandoned);
  CHECK(reads[3].state == ReadState::done);
  CHECK(records[0]->host.block->pending == &reads[0]);
  CHECK(records[1]->host.block->pending == nullptr);
  CHECK(records[2]->host.block->pending == nullptr);
  desk.promises.collect(desk.store, reads[0]);
  CHECK(reads[0].state == ReadState::done);
  CHECK(targets[0].came());
  CHECK(!targets[1].came());
}

TEST_CASE("if the host cannot wait for a copy, a block that is released waits for all work, and its downloads come") {
  ValueDesk desk;
  auto& record = desk.tensor("a");
  std::array<PendingRead, 2> reads;
  std::array<DownloadTarget, 2> targets;
  for (std::size_t i = 0; i < 2; ++i) desk.promise(reads[i], record, targets[i].bytes);
  desk.told.refused_waits = 5;
  (void)desk.calls();
  desk.promises.settle(desk.store, *record.host.block);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(reads[i].state == ReadState::done);
    CHECK(targets[i].came());
  }
  CHECK(record.host.block->pending == nullptr);
  CHECK(desk.calls() == Calls{"flush", "host waits", "finish", "host reads 64 bytes at 0", "host reads 64 bytes at 0"});
}

TEST_CASE("downloads of a copy that failed are given up when their block is released") {
  ValueDesk desk;
  auto& record = desk.tensor("a");
  std::array<PendingRead, 2> reads;
  std::array<DownloadTarget, 2> targets;
  desk.told.failed = {1};
  for (std::size_t i = 0; i < 2; ++i) desk.promise(reads[i], record, targets[i].bytes);
  desk.promises.settle(desk.store, *record.host.block);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(reads[i].state == ReadState::abandoned);
    CHECK(!targets[i].came());
  }
  CHECK(record.host.block->pending == nullptr);
}
