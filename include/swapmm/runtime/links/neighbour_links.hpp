// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/runtime/blocks/home.hpp>
#include <swapmm/runtime/book/known_machine.hpp>
#include <swapmm/runtime/links/link_probe.hpp>
#include <swapmm/runtime/links/port_probe.hpp>
#include <swapmm/runtime/values/store.hpp>

namespace swapmm::runtime {

/// What was measured of the links to neighbours and to the host, while nothing else copied.
struct NeighbourLinks {
  std::vector<LinksAlone> alone;  ///< neighbours by their path, the host behind them; empty: nothing was measured
  SharedRates between;            ///< what the links of the neighbours carry together
  SharedRates with_host;          ///< what these and the host's carry together

  /// Whether copies of other memories slow down those of this one, to the device or from it. Then copies of the program
  /// tell less than its link carries.
  [[nodiscard]] bool slowed_in(Home home) const { return with_host.in != 0 || (is_neighbour(home) && between.in != 0); }
  [[nodiscard]] bool slowed_out(Home home) const {
    return with_host.out != 0 || (is_neighbour(home) && between.out != 0);
  }
  /// Null if it is not known.
  [[nodiscard]] const LinksAlone* of(Home home) const {
    for (const LinksAlone& links : alone) {
      if (links.home == home) return &links;
    }
    return nullptr;
  }
  /// The paths of neighbours, fastest first.
  [[nodiscard]] NeighbourOrder order() const {
    std::array<std::chrono::nanoseconds, neighbour_path_count> times{};
    for (const LinksAlone& links : alone) {
      if (is_neighbour(links.home)) times[neighbour_path(links.home)] = time_of(links.in) + time_of(links.out);
    }
    return fastest_first(times);
  }

 private:
  static std::chrono::nanoseconds time_of(const Link& link) {  // of a copy of 1 MiB
    constexpr std::uint64_t bytes = 1U << 20U;
    return link.latency + std::chrono::nanoseconds{bytes * 1'000'000'000 / link.bytes_per_second};
  }
};

/// Measures the links of a manager that has neighbours, and what they carry together. To be called while all memory is
/// free. If there are no free bytes somewhere, that is left out. Throws BackendError.
template <Backend B>
class NeighbourLinksProbe {
 public:
  /// `knows_host`: the host's link is given, so nothing is asked about it.
  explicit NeighbourLinksProbe(Store<B>& store, bool knows_host = false) : store_(store), knows_host_(knows_host) {}

  [[nodiscard]] NeighbourLinks measure() {
    NeighbourLinks links;
    for (std::size_t path = 0; path < neighbour_path_count; ++path) {
      if (store_.neighbours_budget()[path].value != 0) (void)add(links, neighbour_home(path));
    }
    if (links.alone.empty()) return links;
    const bool one_engine = store_.backend.capabilities().copy_engines == 1;  // then nothing copies beside anything
    std::vector<LinksAlone> ways = links.alone;
    if (!one_engine && ways.size() > 1) links.between = together(ways);
    slow_down(ways, links.between);
    if (knows_host_ || !add(links, Home::host)) return links;
    ways.push_back(links.alone.back());
    if (!one_engine) links.with_host = together(ways);
    return links;
  }

 private:
  [[nodiscard]] SharedRates together(const std::vector<LinksAlone>& ways) {
    return PortProbe<B>(store_).measure(ways).value_or(SharedRates{});
  }

  // False: it could not be measured.
  bool add(NeighbourLinks& links, Home home) {
    LinkProbe<B>(store_, home).measure();
    const std::optional<Link> in = store_.link(in_queue(home)).link();
    const std::optional<Link> out = store_.link(out_queue(home)).link();
    if (!in || !out) return false;
    links.alone.push_back({home, *in, *out});
    return true;
  }

  // As fast as they are when all of them copy.
  static void slow_down(std::vector<LinksAlone>& ways, const SharedRates& rates) {
    double in = 0;
    double out = 0;
    for (const LinksAlone& way : ways) {
      in += static_cast<double>(way.in.bytes_per_second);
      out += static_cast<double>(way.out.bytes_per_second);
    }
    for (LinksAlone& way : ways) {
      if (rates.in != 0) slow_down(way.in, static_cast<double>(rates.in) / in);
      if (rates.out != 0) slow_down(way.out, static_cast<double>(rates.out) / out);
    }
  }
  static void slow_down(Link& link, double part) {
    const double rate = static_cast<double>(link.bytes_per_second) * part;
    link.bytes_per_second = rate < 1 ? 1 : static_cast<std::uint64_t>(rate);
  }

  Store<B>& store_;
  bool knows_host_;
};

}  // namespace swapmm::runtime
