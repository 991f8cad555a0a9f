// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/schedule/place_history.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace swapmm::planning {

void PlaceHistory::take(std::uint64_t offset, std::uint64_t end, std::uint32_t owner,
                        std::vector<std::uint32_t>& former) {
  if (offset == end) return;
  const std::size_t known = former.size();
  auto at = segments_.upper_bound(offset);
  if (at != segments_.begin() && std::prev(at)->second.end > offset) --at;
  if (at != segments_.end() && at->first < offset) {  // the part before it stays
    const Segment whole = at->second;
    at->second.end = offset;
    at = segments_.emplace_hint(std::next(at), offset, whole);
  }
  while (at != segments_.end() && at->first < end) {
    const Segment former_one = at->second;
    if (std::find(former.begin() + static_cast<std::ptrdiff_t>(known), former.end(), former_one.owner) ==
        former.end()) {
      former.push_back(former_one.owner);
    }
    if (former_one.end > end) segments_.emplace_hint(std::next(at), end, former_one);  // the part after it stays
    at = segments_.erase(at);
  }
  segments_.emplace_hint(at, offset, Segment{end, owner});
}

}  // namespace swapmm::planning
