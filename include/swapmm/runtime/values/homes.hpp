// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/runtime/blocks/home.hpp>
#include <swapmm/runtime/values/record.hpp>
#include <swapmm/runtime/values/store.hpp>

namespace swapmm::runtime {

/// Makes sure that the tensor has a block, there if there is room. If its block elsewhere has no value that anybody
/// needs, another one takes its place.
template <Backend B>
void ensure_block_in(Home home, Record<B>& record, Store<B>& store) {
  std::unique_ptr<HostBlock<B>>& block = record.host.block;
  if (home == Home::encoded && record.host.wanted) home = Home::host;
  const bool may_go = !record.host.valid && !store.fixed_slots;
  if (block != nullptr && block->home() != home && block->pending == nullptr && may_go) {
    std::unique_ptr<HostBlock<B>> other = home == Home::encoded ? store.encodings.acquire(record, store.pool) : nullptr;
    if (home == Home::encoded && other == nullptr) return;  // any block is as good as the next one
    store.pool.release(std::exchange(block, std::move(other)));
  }
  if (block != nullptr) return;
  block = store.acquire_in(home, record);
}

/// Gives back the block of a value that is on the device, too. Queued work may still use it.
template <Backend B>
void leave_block(Record<B>& record, Store<B>& store) noexcept {
  if (record.host.block == nullptr || record.host.block->pending != nullptr || store.fixed_slots) return;
  if (record.tensor.constant) return;
  record.host.valid = false;
  store.pool.rest(std::move(record.host.block));
}

/// Waits until the host and any copy may use the block at once: what was queued before has ended, and what was promised
/// from it has been read.
template <Backend B>
void await_free(HostBlock<B>& block, Store<B>& store) {
  store.settle_pending(block);
  store.timeline.host_wait(block.busy());
}

/// Memory of the host that nothing uses any more. Waits. Throws OutOfMemory.
template <Backend B>
[[nodiscard]] std::unique_ptr<HostBlock<B>> acquire_free(Store<B>& store, Bytes size) {
  std::unique_ptr<HostBlock<B>> block = store.pool.acquire_memory(size);
  try {
    await_free(*block, store);
  } catch (...) {
    store.pool.release(std::move(block));
    throw;
  }
  return block;
}

/// Copies a value from one block to another. No work may use them. Waits.
template <Backend B>
void copy_by_host(HostBlock<B>& from, HostBlock<B>& to, Bytes size, Store<B>& store) {
  const auto bytes = static_cast<std::size_t>(size.value);
  if (to.in_host()) {
    store.note_host_access(to, Bytes{}, size, true);
    return store.read_block(from, Bytes{}, {to.data(), bytes});
  }
  bool began = false;
  if (from.in_host()) {
    store.note_host_access(from, Bytes{}, size, false);
    return store.away.write(to, size, Bytes{}, {from.data(), bytes}, began);
  }
  // Neither is addressed by the host. Parts begin where every memory allows it.
  constexpr std::size_t part = std::size_t{1} << 20U;
  std::vector<std::byte> passing(std::min(part, bytes));
  for (std::size_t at = 0; at < bytes; at += part) {
    const std::span<std::byte> now = std::span(passing).first(std::min(part, bytes - at));
    store.away.read(from, Bytes{at}, now);
    store.away.write(to, size, Bytes{at}, now, began);
  }
}

/// Moves a value that is in a block to another one there, if there is room. Waits.
template <Backend B>
void move_value(Record<B>& record, Home home, Store<B>& store) {
  if (record.tensor.constant) return;
  HostBlock<B>& from = *record.host.block;
  store.settle_pending(from);
  store.timeline.host_wait(from.busy());
  std::unique_ptr<HostBlock<B>> to;
  try {
    to = home == Home::host ? store.pool.acquire_memory(record.bytes) : store.acquire_in(home, record);
  } catch (const OutOfMemory&) {
    return;
  }
  if (to->home() != home) return store.pool.release(std::move(to));
  try {
    await_free(*to, store);
    copy_by_host(from, *to, record.bytes, store);
  } catch (...) {
    store.pool.release(std::move(to));
    throw;
  }
  std::swap(record.host.block, to);
  store.pool.release(std::move(to));
}

}  // namespace swapmm::runtime
