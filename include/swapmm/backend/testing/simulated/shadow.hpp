// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <swapmm/backend/backend.hpp>

namespace swapmm::simulated::detail {

/// The agents that access bytes: the three queues, by index(QueueKind), and the host.
inline constexpr std::size_t agent_count = queue_count + 1;
inline constexpr std::size_t host_agent = queue_count;

/// A vector clock: for each agent the number of its actions that certainly came before (Mattern 1988; Fidge 1988).
struct VectorClock {
  std::array<std::uint64_t, agent_count> of{};

  void join(const VectorClock& other) {
    for (std::size_t i = 0; i < agent_count; ++i) of[i] = of[i] < other.of[i] ? other.of[i] : of[i];
  }
};

/// A conflict: an access that is not ordered with the new one, and the shared bytes.
struct Conflict {
  std::size_t agent = 0;
  std::uint64_t clock = 0;  ///< the agent's count of its own actions at that access
  bool was_write = false;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// The last write and the last reads of each byte of a range. Finds pairs of accesses of which one writes and neither
/// certainly comes before the other. Only the last accesses are stored, as in FastTrack (Flanagan, Freund 2009): a
/// conflict with an older one was found before. Accesses are added in issue order.
class Shadow {
 public:
  /// Forgets everything about [begin, end). Allocates.
  void reset(std::uint64_t begin, std::uint64_t end);

  /// Reserves memory, so that the next access to exactly these bytes allocates nothing. A failed call changes no
  /// recorded access.
  void prepare(std::uint64_t begin, std::uint64_t end);

  struct Access {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool write = false;
    std::size_t agent = 0;  ///< the agent of the access; known.of[agent] is its own count
  };
  /// Records an access by an agent with the clock `known`. Appends conflicts to `conflicts`, at most one per other
  /// agent.
  void access(const Access& access, const VectorClock& known, std::vector<Conflict>& conflicts);

 private:
  struct Segment {
    std::uint64_t begin = 0;  // up to the next segment's begin
    std::uint64_t write_clock = 0;
    std::size_t writer = 0;
    std::array<std::uint64_t, agent_count> read_clock{};
  };

  std::size_t split(std::uint64_t at);

  std::vector<Segment> segments_{Segment{}};  // sorted; the first begins at 0
};

}  // namespace swapmm::simulated::detail
