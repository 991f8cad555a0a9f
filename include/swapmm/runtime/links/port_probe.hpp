// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/runtime/blocks/home.hpp>
#include <swapmm/runtime/book/known_machine.hpp>
#include <swapmm/runtime/links/probe_ends.hpp>
#include <swapmm/runtime/values/store.hpp>

namespace swapmm::runtime {

/// A memory, and its links while no other one copies.
struct LinksAlone {
  Home home = Home::host;
  Link in;
  Link out;
};

/// Measures what the links of several memories carry together: neighbours often share the device's own port, and some
/// share the host's link.
template <Backend B>
class PortProbe {
 public:
  explicit PortProbe(Store<B>& store) : store_(store) {}

  /// Times copies of all of them at the same time, of sizes that take equally long alone. No plan may be followed.
  /// Waits for the device. None: there are no free bytes somewhere. Throws BackendError; then nothing is in flight, and
  /// all bytes are free as before.
  [[nodiscard]] std::optional<SharedRates> measure(std::span<const LinksAlone> links) {
    std::deque<Copy> copies;
    for (const LinksAlone& alone : links) {
      Copy& copy = copies.emplace_back(store_, alone);
      if (!copy.ends.take_up_to(Bytes{std::min(most.value, store_.budget().value / links.size())})) return std::nullopt;
    }
    store_.timeline.host_wait(store_.timeline.everything());
    for (Copy& copy : copies) copy.ends.prepare();
    SharedRates rates;
    try {
      store_.with_times([&] {
        rates.in = together(copies, CopyWay::in);
        rates.out = together(copies, CopyWay::out);
      });
    } catch (...) {
      finish_quietly();
      throw;
    }
    return rates;
  }

 private:
  static constexpr Bytes most{4U << 20U};
  using Seconds = std::chrono::duration<double>;

  struct Copy {
    Copy(Store<B>& store, const LinksAlone& links)
        : ends(store, links.home), alone(links), end(store.backend.make_event()) {}
    [[nodiscard]] const Link& link(CopyWay way) const { return way == CopyWay::in ? alone.in : alone.out; }
    ProbeEnds<B> ends;
    LinksAlone alone;
    Bytes bytes{};
    typename B::Event end;
  };

  // What they carry, or 0 if each is as fast as alone.
  std::uint64_t together(std::deque<Copy>& copies, CopyWay way) {
    const Seconds alone = choose_sizes(copies, way);
    (void)timed(copies, way);  // the first time, pages and queues are new
    const Seconds time = std::min(timed(copies, way), timed(copies, way));
    if (time <= 1.15 * alone) return 0;
    double bytes = 0;
    for (const Copy& copy : copies) bytes += static_cast<double>(copy.bytes.value);
    return static_cast<std::uint64_t>(std::max(1.0, bytes / time.count()));
  }

  // So that they take equally long. Returns how long the longest one takes alone.
  Seconds choose_sizes(std::deque<Copy>& copies, CopyWay way) const {
    double time = std::numeric_limits<double>::infinity();  // in which each can copy all that it has room for
    for (const Copy& copy : copies) time = std::min(time, time_of(copy.ends.size(), copy.link(way)).count());
    Seconds longest{};
    for (Copy& copy : copies) {
      const Bytes wanted{static_cast<std::uint64_t>(time * static_cast<double>(copy.link(way).bytes_per_second))};
      copy.bytes = std::clamp(copy.ends.aligned(wanted), ProbeEnds<B>::least, copy.ends.size());
      longest = std::max<Seconds>(longest, time_of(copy.bytes, copy.link(way)) + copy.link(way).latency);
    }
    return longest;
  }
  static Seconds time_of(Bytes bytes, const Link& link) {
    return Seconds{static_cast<double>(bytes.value) / static_cast<double>(link.bytes_per_second)};
  }

  // From the begin of the first copy to the end of the last one: as the device tells it; if it tells no times, by the
  // host's clock.
  std::chrono::nanoseconds timed(std::deque<Copy>& copies, CopyWay way) {
    typename B::Event begin = store_.backend.make_event();
    const auto before = std::chrono::steady_clock::now();
    store_.backend.record(queue_of(copies.front().ends.home(), way), begin);
    for (Copy& copy : copies) {
      copy.ends.copy(way, copy.bytes, copy.end);
      store_.backend.flush(queue_of(copy.ends.home(), way));
    }
    for (const Copy& copy : copies) store_.backend.wait(copy.end);
    const std::chrono::nanoseconds waited = std::chrono::steady_clock::now() - before;
    std::chrono::nanoseconds longest{0};
    for (const Copy& copy : copies) {
      const auto time = store_.backend.elapsed(begin, copy.end);
      if (!time) return waited;
      longest = std::max(longest, *time);
    }
    return longest;
  }

  void finish_quietly() noexcept {
    try {
      store_.backend.finish();
    } catch (...) {  // NOLINT(bugprone-empty-catch): the device is lost, and copies no more
    }
  }

  Store<B>& store_;
};

}  // namespace swapmm::runtime
