// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/runtime/blocks/home.hpp>
#include <swapmm/runtime/links/probe_ends.hpp>
#include <swapmm/runtime/values/store.hpp>

namespace swapmm::runtime {

/// Measures the links of a device of which no copy was timed: where nothing was copied yet, and where the device tells
/// no times. Copies between free bytes of the device and a block of the host or of a neighbour, within all budgets.
template <Backend B>
class LinkProbe {
 public:
  /// The larger of two sizes that are copied, if as much is free.
  static constexpr Bytes most{4U << 20U};
  static constexpr Bytes least = ProbeEnds<B>::least;

  /// `home`: the host, or neighbours of a path if there are any.
  explicit LinkProbe(Store<B>& store, Home home = Home::host) : store_(store), home_(home) {}

  /// Times copies each way. No plan may be followed. Waits for the device. Without free bytes on both sides it measures
  /// nothing. Throws BackendError; then nothing is in flight, and all bytes are free as before.
  void measure() {
    ProbeEnds<B> ends(store_, home_);
    if (!ends.take_up_to(std::min(most, store_.budget()))) return;
    store_.timeline.host_wait(store_.timeline.everything());  // what uses the block, too
    ends.prepare();
    store_.with_times([&] { time_copies(ends); });
    store_.end_link_samples();
  }

 private:
  void time_copies(ProbeEnds<B>& ends) {
    const Bytes small = std::max(least, ends.aligned(Bytes{ends.size().value / 16}));
    typename B::Event end = store_.backend.make_event();
    for (const Bytes bytes : {ends.size(), small}) {
      for (const bool is_first : {true, false}) {  // the first time, pages and queues are new
        for (const CopyWay way : {CopyWay::in, CopyWay::out}) {
          const ProbeCopy<B> copy{ends, bytes, end};
          const auto time = runtime::time_copies<B>(store_, way, {&copy, 1});
          if (!is_first) store_.link(queue_of(home_, way)).add(bytes, time);
        }
      }
      if (small == ends.size()) return;
    }
  }

  Store<B>& store_;
  Home home_;
};

}  // namespace swapmm::runtime
