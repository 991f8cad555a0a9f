// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/place_history.hpp>

#include <algorithm>
#include <cstddef>

namespace swapmm {

void PlaceHistory::take(std::uint64_t offset, std::uint64_t end, std::uint32_t owner,
                        std::vector<std::uint32_t>& former) {
  if (offset == end) return;
  const std::size_t known = former.size();
  const auto first = std::partition_point(segments_.begin(), segments_.end(),
                                          [&](const Segment& segment) { return segment.end <= offset; });
  auto last = first;
  Segment replacement[3];
  std::size_t count = 0;
  if (first != segments_.end() && first->offset < offset) replacement[count++] = {first->offset, offset, first->owner};
  replacement[count++] = {offset, end, owner};
  for (; last != segments_.end() && last->offset < end; ++last) {
    if (std::find(former.begin() + static_cast<std::ptrdiff_t>(known), former.end(), last->owner) == former.end()) {
      former.push_back(last->owner);
    }
    if (last->end > end) replacement[count++] = {end, last->end, last->owner};
  }

  const auto replaced = static_cast<std::size_t>(last - first);
  const std::size_t overwritten = std::min(replaced, count);
  const auto rest = std::copy_n(replacement, overwritten, first);
  if (replaced > overwritten) {
    segments_.erase(rest, last);
  } else {
    segments_.insert(rest, replacement + overwritten, replacement + count);
  }
}

}  // namespace swapmm
