// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace swapmm::planning {

/// Records which stay had which bytes last. Segments are sorted by offset and do not overlap; bytes between them were
/// never used.
class PlaceHistory {
 public:
  /// Gives [offset, end) to `owner`, and appends the former owners of these bytes to `former`, each once. Takes about
  /// log(segments).
  void take(std::uint64_t offset, std::uint64_t end, std::uint32_t owner, std::vector<std::uint32_t>& former);

 private:
  struct Segment {
    std::uint64_t end = 0;
    std::uint32_t owner = 0;
  };
  std::map<std::uint64_t, Segment> segments_;  ///< by offset
};

}  // namespace swapmm::planning
