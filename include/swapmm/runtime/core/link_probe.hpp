// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/runtime/values/store.hpp>

namespace swapmm::runtime {

/// Measures the links of a device of which no copy was timed: where nothing was copied yet, and where the device tells
/// no times. Copies between free bytes of the device and a block of the host or of a neighbour, within all budgets.
template <Backend B>
class LinkProbe {
 public:
  /// The larger of two sizes that are copied, if as much is free.
  static constexpr Bytes most{4U << 20U};
  /// The least. So few take as long as a copy's start, so the link seems slow: until larger ones are seen, plans move
  /// less.
  static constexpr Bytes least{64};

  /// `home`: the host, or neighbours if there are any.
  explicit LinkProbe(Store<B>& store, Home home = Home::host) : store_(store), home_(home) {}

  /// Times copies each way. No plan may be followed. Waits for the device. Without free bytes on both sides it measures
  /// nothing. Throws BackendError; then nothing is in flight, and all bytes are free as before.
  void measure() {
    std::unique_ptr<HostBlock<B>> block;
    std::optional<FreePlace> place;
    Bytes size = round_down(std::min(most, store_.budget()), store_.places.alignment());
    while (size >= least && !(place = store_.places.take(size))) {
      size = round_down(Bytes{size.value / 4}, store_.places.alignment());
    }
    if (!place) return;
    const auto give_back = [&]() noexcept {
      store_.places.give_back(place->offset, size, place->after);
      if (block != nullptr) store_.pool.release(std::move(block));
    };
    try {
      block = home_ == Home::host ? store_.pool.acquire_memory(size) : store_.pool.acquire_in(home_, size);
      if (block->home() != home_) return give_back();
      store_.timeline.host_wait(store_.timeline.everything());  // what uses the block, too
      prepare(*block, size);
      store_.with_times([&] { time_copies(*place, *block, size); });
    } catch (const OutOfMemory&) {  // there is no room
      return give_back();
    } catch (...) {
      give_back();
      throw;
    }
    give_back();
    store_.end_link_samples();
  }

 private:
  using Time = std::chrono::nanoseconds;

  void prepare(HostBlock<B>& block, Bytes size) {
    if (!block.in_host()) return;
    store_.note_host_access(block, Bytes{}, size, true);
    std::memset(block.data(), 0, static_cast<std::size_t>(size.value));
  }

  void time_copies(const FreePlace& place, HostBlock<B>& block, Bytes size) {
    const Bytes small = std::max(least, round_down(Bytes{size.value / 16}, store_.places.alignment()));
    typename B::Event begin = store_.backend.make_event();
    typename B::Event end = store_.backend.make_event();
    for (const Bytes bytes : {size, small}) {
      const typename B::Address& address = *store_.addresses.at(place.offset, bytes);
      for (const bool is_first : {true, false}) {  // the first time, pages and queues are new
        const Time in = timed(in_queue(home_), begin, end, [&] { copy_in(address, block, bytes, end); });
        const Time out = timed(out_queue(home_), begin, end, [&] { copy_out(block, address, bytes, end); });
        if (is_first) continue;
        store_.link(in_queue(home_)).add(bytes, in);
        store_.link(out_queue(home_)).add(bytes, out);
      }
      if (small == size) return;
    }
  }

  using Address = typename B::Address;
  using Event = typename B::Event;

  void copy_in(const Address& to, HostBlock<B>& from, Bytes bytes, Event& end) {
    if (!from.in_host()) return store_.away.to_device(to, from, bytes, {}, {}, end);
    store_.backend.copy_to_device(to, from.memory(), from.offset, bytes, {}, end);
  }
  void copy_out(HostBlock<B>& to, const Address& from, Bytes bytes, Event& end) {
    if (!to.in_host()) return store_.away.from_device(to, from, bytes, {}, {}, {}, end);
    store_.backend.copy_to_host(to.memory(), to.offset, from, bytes, {}, end);
  }

  /// As the device tells it; if it tells no times, by the host's clock.
  template <class Copy>
  Time timed(QueueKind queue, typename B::Event& begin, typename B::Event& end, Copy&& copy) {
    const auto before = std::chrono::steady_clock::now();
    store_.backend.record(queue, begin);
    copy();
    store_.backend.flush(queue);
    store_.backend.wait(end);
    const Time waited = std::chrono::steady_clock::now() - before;
    return store_.backend.elapsed(begin, end).value_or(waited);
  }

  Store<B>& store_;
  Home home_;
};

}  // namespace swapmm::runtime
