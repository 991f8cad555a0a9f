// SPDX-License-Identifier: Apache-2.0
#include "segments.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace swapmm::opencl::layer {
namespace {

using std::chrono::nanoseconds;

/// 0, or earlier if something began before the profile did.
nanoseconds first_time(const Profile& profile) {
  nanoseconds first{0};
  if (!profile.spans.empty()) first = std::min(first, profile.spans.front().start);
  if (!profile.levels.empty()) first = std::min(first, profile.levels.front().time);
  return first;
}

void append(Profile& to, const Profile& from, nanoseconds shift) {
  for (ProfileSpan span : from.spans) {
    span.start += shift;
    span.end += shift;
    to.spans.push_back(std::move(span));
  }
  for (const ProfileLevel& level : from.levels) {
    const nanoseconds time = level.time + shift;
    if (!to.levels.empty() && to.levels.back().time == time) to.levels.pop_back();
    to.levels.push_back({time, level.used});
  }
  for (const nanoseconds end : from.iteration_ends) to.iteration_ends.push_back(end + shift);
  to.device = from.device;
  to.device_budget = std::max(to.device_budget, from.device_budget);
}

}  // namespace

void add_segment(Recorded& recorded, Segment segment, std::uint64_t most) {
  recorded.spans += segment.profile.spans.size();
  recorded.commands += segment.commands;
  recorded.segments.push_back(std::move(segment));
  while (recorded.segments.size() > 1) {
    const Segment& oldest = recorded.segments.front();
    if (recorded.spans - oldest.profile.spans.size() < most) return;
    recorded.spans -= oldest.profile.spans.size();
    recorded.commands -= oldest.commands;
    recorded.commands_lost += oldest.commands;
    recorded.segments.pop_front();
  }
}

Profile joined(const Recorded& recorded, nanoseconds origin) {
  Profile whole;
  std::optional<nanoseconds> end;  // of all before
  for (const Segment& segment : recorded.segments) {
    nanoseconds shift = segment.start - origin;
    if (end) shift = std::max(shift, *end - first_time(segment.profile));
    append(whole, segment.profile, shift);
    end = profile_end(segment.profile) + shift;
  }
  return whole;
}

std::optional<TypicalIteration> typical_iteration(const Recorded& recorded) {
  struct Length {
    std::uint64_t all = 0;  // commands of iterations of this length
    const Segment* segment = nullptr;
    std::size_t last = 0;
  };
  std::map<std::uint64_t, Length> lengths;
  for (const Segment& segment : recorded.segments) {
    for (const WholeIteration& iteration : segment.iterations) {
      Length& length = lengths[iteration.commands];
      length = {length.all + iteration.commands, &segment, iteration.index};
    }
  }
  const auto most = std::max_element(lengths.begin(), lengths.end(),
                                     [](const auto& a, const auto& b) { return a.second.all < b.second.all; });
  if (most == lengths.end()) return std::nullopt;
  return TypicalIteration{most->first, one_iteration(most->second.segment->profile, most->second.last)};
}

}  // namespace swapmm::opencl::layer
