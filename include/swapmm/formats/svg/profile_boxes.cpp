// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/svg/profile_boxes.hpp>

#include <algorithm>

namespace swapmm::svg {

using std::chrono::nanoseconds;

std::vector<Box> boxes_of(std::span<const chart::Span> spans, nanoseconds fine) {
  std::vector<Box> boxes;
  bool last_is_short = false;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const chart::Span& span = spans[i];
    const nanoseconds length = span.end - span.start;
    const bool is_short = length < fine;
    if (is_short && last_is_short && span.start - boxes.back().end < fine &&
        span.end - boxes.back().start <= 4 * fine) {
      Box& box = boxes.back();
      box.end = std::max(box.end, span.end);
      box.busy = std::min(box.busy + length, box.end - box.start);
      box.last = i;
      ++box.spans;
      box.bytes += span.bytes;
      if (length > box.longest) {
        box.longest = length;
        box.kind = span.kind;
      }
    } else {
      boxes.push_back({span.start, span.end, length, i, i, 1, span.bytes, span.kind, length});
      last_is_short = is_short;
    }
  }
  return boxes;
}

std::vector<Gap> gaps_between(const std::vector<Box>& boxes, nanoseconds end) {
  std::vector<Gap> gaps;
  nanoseconds busy_until{0};
  for (const Box& box : boxes) {
    if (box.start >= end) break;
    if (box.start > busy_until) gaps.push_back({busy_until, box.start});
    busy_until = std::max(busy_until, box.drawn_end());
  }
  if (busy_until < end) gaps.push_back({busy_until, end});
  return gaps;
}

std::vector<ProfileLevel> coarser(std::span<const ProfileLevel> levels, nanoseconds fine) {
  std::vector<ProfileLevel> kept;
  for (std::size_t i = 0; i < levels.size();) {
    const nanoseconds until = levels[i].time + fine;
    ProfileLevel highest = levels[i];
    std::size_t next = i + 1;
    for (; next < levels.size() && levels[next].time < until; ++next) {
      highest.used = std::max(highest.used, levels[next].used);
    }
    kept.push_back(highest);
    const ProfileLevel& last = levels[next - 1];
    if (last.used != highest.used) kept.push_back(last);
    i = next;
  }
  return kept;
}

}  // namespace swapmm::svg
