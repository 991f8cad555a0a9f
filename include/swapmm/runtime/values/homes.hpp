// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/runtime/values/home.hpp>
#include <swapmm/runtime/values/record.hpp>
#include <swapmm/runtime/values/store.hpp>

namespace swapmm::runtime {

/// Makes sure that the tensor has a block, there if there is room. If its block elsewhere has no value that anybody
/// needs, another one takes its place.
template <Backend B>
void ensure_block_in(Home home, Record<B>& record, Store<B>& store) {
  std::unique_ptr<HostBlock<B>>& block = record.host.block;
  const bool may_go = !record.host.valid && !store.fixed_slots;
  if (block != nullptr && block->home() != home && block->pending == nullptr && may_go) {
    store.pool.release(std::move(block));
  }
  if (block != nullptr) return;
  block = home == Home::file ? store.pool.acquire_in_file(record.bytes) : store.pool.acquire(record.bytes);
}

/// Gives back the block of a value that is on the device, too. Queued work may still use it.
template <Backend B>
void leave_block(Record<B>& record, Store<B>& store) noexcept {
  if (record.host.block == nullptr || record.host.block->pending != nullptr || store.fixed_slots) return;
  if (record.tensor.constant) return;
  record.host.valid = false;
  store.pool.release(std::move(record.host.block));
}

/// Moves a value that is in a block to another one there, if there is room. Waits.
template <Backend B>
void move_value(Record<B>& record, Home home, Store<B>& store) {
  if (record.tensor.constant) return;
  if constexpr (FileBackend<B>) {
    HostBlock<B>& from = *record.host.block;
    store.settle_pending(from);
    store.timeline.host_wait(from.busy());
    std::unique_ptr<HostBlock<B>> to;
    try {
      to = home == Home::file ? store.pool.acquire_in_file(record.bytes) : store.pool.acquire_memory(record.bytes);
    } catch (const OutOfMemory&) {
      return;
    }
    if (to->home() != home) return store.pool.release(std::move(to));
    try {
      store.timeline.host_wait(to->busy());
      const auto bytes = static_cast<std::size_t>(record.bytes.value);
      HostBlock<B>& in_memory = home == Home::file ? from : *to;
      store.note_host_access(in_memory, Bytes{}, record.bytes, home == Home::host);
      if (home == Home::host) {
        store.read_block(from, Bytes{}, {in_memory.data(), bytes});
      } else {
        bool began = false;
        store.file_copies->write(*to, record.bytes, Bytes{}, {in_memory.data(), bytes}, began);
      }
    } catch (...) {
      store.pool.release(std::move(to));
      throw;
    }
    std::swap(record.host.block, to);
    store.pool.release(std::move(to));
  }
}

}  // namespace swapmm::runtime
