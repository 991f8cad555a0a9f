// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/search/places/known_places.hpp>

#include <cstddef>
#include <limits>

#include <swapmm/plan/packing.hpp>

namespace swapmm::planning {

std::vector<Bytes> KnownPlaces::of(const std::vector<Stay>& stays) const {
  std::vector<Bytes> offsets;
  if (places_.empty()) return offsets;
  offsets.reserve(stays.size());
  for (const Stay& stay : stays) {
    Bytes offset = no_preferred_offset;
    std::uint32_t nearest = std::numeric_limits<std::uint32_t>::max();
    const auto [first, last] = places_.equal_range(stay.tensor);
    for (auto place = first; place != last; ++place) {
      const std::uint32_t start = place->second.first;
      const std::uint32_t distance = start > stay.start ? start - stay.start : stay.start - start;
      if (distance >= nearest) continue;
      nearest = distance;
      offset = place->second.second;
    }
    offsets.push_back(offset);
  }
  return offsets;
}

void KnownPlaces::remember(const std::vector<Stay>& stays, const std::vector<Bytes>& offsets) {
  places_.clear();
  for (std::size_t s = 0; s < stays.size(); ++s) {
    places_.emplace(stays[s].tensor, std::pair(stays[s].start, offsets[s]));
  }
}

}  // namespace swapmm::planning
