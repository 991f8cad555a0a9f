// SPDX-License-Identifier: Apache-2.0
#include <swapmm/backend/testing/simulated/shadow.hpp>

#include <algorithm>

namespace swapmm::simulated::detail {

namespace {

void add_conflict(std::vector<Conflict>& conflicts, const Conflict& found) {
  for (Conflict& conflict : conflicts) {
    if (conflict.agent == found.agent && conflict.clock == found.clock && conflict.was_write == found.was_write &&
        conflict.end == found.begin) {
      conflict.end = found.end;
      return;
    }
  }
  const auto same_agent = [&](const Conflict& conflict) { return conflict.agent == found.agent; };
  if (std::none_of(conflicts.begin(), conflicts.end(), same_agent)) conflicts.push_back(found);
}

}  // namespace

/// Returns the position of the segment that begins at `at`. If there is none, splits the segment that contains `at`.
std::size_t Shadow::split(std::uint64_t at) {
  const auto after =
      std::upper_bound(segments_.begin(), segments_.end(), at,
                       [](std::uint64_t value, const Segment& segment) { return value < segment.begin; });
  const auto holder = after - 1;
  if (holder->begin == at) return static_cast<std::size_t>(holder - segments_.begin());
  Segment copy = *holder;
  copy.begin = at;
  const auto position = after - segments_.begin();
  segments_.insert(after, copy);
  return static_cast<std::size_t>(position);
}

void Shadow::reset(std::uint64_t begin, std::uint64_t end) {
  const std::size_t first = split(begin);
  const std::size_t last = split(end);
  segments_[first] = Segment{};
  segments_[first].begin = begin;
  segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(first) + 1,
                  segments_.begin() + static_cast<std::ptrdiff_t>(last));
}

void Shadow::prepare(std::uint64_t begin, std::uint64_t end) {
  if (segments_.capacity() < segments_.size() + 2) segments_.reserve(2 * segments_.size() + 2);
  split(begin);
  split(end);
}

void Shadow::access(const Access& access, const VectorClock& known, std::vector<Conflict>& conflicts) {
  if (access.begin == access.end) return;
  const std::size_t first = split(access.begin);
  const std::size_t last = split(access.end);
  for (std::size_t i = first; i < last; ++i) {
    Segment& segment = segments_[i];
    const std::uint64_t segment_end = i + 1 < segments_.size() ? segments_[i + 1].begin : access.end;
    if (segment.write_clock > known.of[segment.writer]) {
      add_conflict(conflicts, {segment.writer, segment.write_clock, true, segment.begin, segment_end});
    }
    if (access.write) {
      for (std::size_t agent = 0; agent < agent_count; ++agent) {
        if (segment.read_clock[agent] > known.of[agent]) {
          add_conflict(conflicts, {agent, segment.read_clock[agent], false, segment.begin, segment_end});
        }
      }
    } else {
      segment.read_clock[access.agent] = known.of[access.agent];
    }
  }
  if (!access.write) return;
  Segment written;
  written.begin = access.begin;
  written.write_clock = known.of[access.agent];
  written.writer = access.agent;
  segments_[first] = written;
  segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(first) + 1,
                  segments_.begin() + static_cast<std::ptrdiff_t>(last));
}

}  // namespace swapmm::simulated::detail
