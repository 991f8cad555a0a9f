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
      const Bytes share{store_.budget().value / links.size()};
      if (!copy.ends.take_up_to(std::min(wanted(alone), share))) return std::nullopt;
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
  using Seconds = std::chrono::duration<double>;
  /// Copies take so long alone, as far as there is room: the host queues them one after another meanwhile.
  static constexpr double long_enough = 300e-6;
  static constexpr Bytes least_wanted{4U << 20U};
  static constexpr Bytes most_wanted{64U << 20U};

  struct Copy {
    Copy(Store<B>& store, const LinksAlone& links)
        : ends(store, links.home), alone(links), end(store.backend.make_event()) {}
    [[nodiscard]] double rate(CopyWay way) const {
      return static_cast<double>((way == CopyWay::in ? alone.in : alone.out).bytes_per_second);
    }
    ProbeEnds<B> ends;
    LinksAlone alone;
    Bytes bytes{};
    typename B::Event end;
  };

  static Bytes wanted(const LinksAlone& links) {
    const auto rate = static_cast<double>(faster(links.in, links.out).bytes_per_second);
    return std::clamp(Bytes{static_cast<std::uint64_t>(rate * long_enough)}, least_wanted, most_wanted);
  }

  // What they carry, or 0 if each is as fast as alone. Of two sizes, so that what each copy takes to begin is left out.
  std::uint64_t together(std::deque<Copy>& copies, CopyWay way) {
    double alone = 0;                                          // bytes per second
    double longest = std::numeric_limits<double>::infinity();  // in which each can copy all that it has room for
    for (const Copy& copy : copies) {
      alone += copy.rate(way);
      longest = std::min(longest, static_cast<double>(copy.ends.size().value) / copy.rate(way));
    }
    const double large_bytes = choose_sizes(copies, way, longest);
    (void)timed(copies, way);  // the first time, pages and queues are new
    const Seconds large = std::min(timed(copies, way), timed(copies, way));
    const double small_bytes = choose_sizes(copies, way, longest / 4);
    const Seconds small = std::min(timed(copies, way), timed(copies, way));
    if (2 * small_bytes > large_bytes || large <= small) return 0;  // there is too little room to tell
    const double carried = (large_bytes - small_bytes) / (large - small).count();
    if (1.15 * carried >= alone) return 0;
    return static_cast<std::uint64_t>(std::max(1.0, carried));
  }

  // So that they take that long alone. Returns the sum.
  static double choose_sizes(std::deque<Copy>& copies, CopyWay way, double seconds) {
    double all = 0;
    for (Copy& copy : copies) {
      const Bytes bytes = copy.ends.aligned(Bytes{static_cast<std::uint64_t>(seconds * copy.rate(way))});
      copy.bytes = std::clamp(bytes, ProbeEnds<B>::least, copy.ends.size());
      all += static_cast<double>(copy.bytes.value);
    }
    return all;
  }

  std::chrono::nanoseconds timed(std::deque<Copy>& copies, CopyWay way) {
    std::vector<ProbeCopy<B>> timed;
    for (Copy& copy : copies) timed.push_back({copy.ends, copy.bytes, copy.end});
    return time_copies<B>(store_, way, timed);
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
