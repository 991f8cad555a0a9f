// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace swapmm::planning {

/// Who had which bytes last. Segments by ascending offset, without overlap; gaps between them nobody had yet.
class PlaceHistory {
 public:
  /// Gives [offset, end) to `owner`, and appends to `former` the owners of any of these bytes before, each once. About
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
