// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/machine.hpp>

namespace swapmm::v2::planning {

/// Bytes per second of a link if nothing else uses its capacities.
[[nodiscard]] std::uint64_t rate_alone(const Machine& machine, const Link& link);

/// The fastest link between two memories, as if nothing else used its capacities.
[[nodiscard]] std::optional<LinkId> fastest_link(const Machine& machine, MemoryId from, MemoryId to);

/// Calls f(i, memory) for each memory between the ends of a way: that which link i leads to.
template <class F>
void for_each_passed(const Machine& machine, const std::vector<LinkId>& way, F&& f) {
  for (std::size_t i = 0; i + 1 < way.size(); ++i) f(i, machine.links[index(way[i])].to);
}

/// The mean size of a tensor, at least 1.
[[nodiscard]] Bytes typical_size(const Trace& trace);

/// The fastest ways between memories, one copy after another, for a typical size of a copy. Capacities count as if
/// nothing else used them.
class Paths {
 public:
  /// `ends_only`: memories that no way passes, for each memory of the machine; empty: none. Takes memories squared, and
  /// links times their logarithm for each memory.
  Paths(const Machine& machine, Bytes typical, const std::vector<bool>& ends_only = {});

  /// Whether there is a way; a memory reaches itself.
  [[nodiscard]] bool reach(MemoryId from, MemoryId to) const { return at(from, to).seconds < unreachable; }
  /// Seconds of a typical copy; 0 from a memory to itself.
  [[nodiscard]] double seconds(MemoryId from, MemoryId to) const { return at(from, to).seconds; }
  /// The links of the way, in order. There must be one.
  [[nodiscard]] std::vector<LinkId> links(MemoryId from, MemoryId to) const;

 private:
  static constexpr double unreachable = 1e300;
  struct Way {
    double seconds = unreachable;
    LinkId last{};
  };

  [[nodiscard]] const Way& at(MemoryId from, MemoryId to) const { return ways_[index(from) * memories_ + index(to)]; }
  void search(const Machine& machine, std::size_t from, const std::vector<std::vector<LinkId>>& links_from,
              const std::vector<double>& seconds, const std::vector<bool>& ends_only);

  const Machine& machine_;
  std::size_t memories_;
  std::vector<Way> ways_;
};

}  // namespace swapmm::v2::planning
