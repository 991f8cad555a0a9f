// SPDX-License-Identifier: Apache-2.0
#include <swapmm/ir/profile.hpp>

#include <algorithm>

#include <swapmm/base/text/figures.hpp>

namespace swapmm {

using std::chrono::nanoseconds;

namespace {

/// The bytes that a copy at constant speed has moved at that time.
Bytes moved_until(const ProfileSpan& span, nanoseconds time) {
  if (time <= span.start) return Bytes{0};
  if (time >= span.end) return span.bytes;
  __extension__ using Wide = unsigned __int128;
  const auto passed = static_cast<Wide>((time - span.start).count());
  const auto all = static_cast<Wide>((span.end - span.start).count());
  return Bytes{static_cast<std::uint64_t>(span.bytes.value * passed / all)};
}

}  // namespace

ProfileSpan part_of(const ProfileSpan& span, nanoseconds from, nanoseconds to) {
  ProfileSpan part = span;
  part.start = std::max(span.start, from);
  part.end = std::min(span.end, to);
  part.bytes = moved_until(span, to) - moved_until(span, from);
  return part;
}

Profile one_iteration(const Profile& profile, std::size_t iteration) {
  Profile part;
  part.title = profile.title;
  part.device = profile.device;
  part.device_budget = profile.device_budget;
  if (iteration >= profile.iteration_ends.size()) return part;
  const nanoseconds begin = iteration == 0 ? nanoseconds{0} : profile.iteration_ends[iteration - 1];
  const nanoseconds end = profile.iteration_ends[iteration];
  for (const ProfileSpan& span : profile.spans) {
    if (span.end <= begin || span.start >= end) continue;
    part.spans.push_back(part_of(span, begin, end));
    part.spans.back().start -= begin;
    part.spans.back().end -= begin;
  }
  for (const ProfileLevel& level : profile.levels) {
    if (level.time >= end) break;
    // The last level before the beginning is the level at the beginning.
    if (level.time <= begin) part.levels.clear();
    part.levels.push_back({std::max(level.time, begin) - begin, level.used});
  }
  part.iteration_ends.push_back(end - begin);
  return part;
}

nanoseconds compute_end(const Profile& profile) {
  if (!profile.iteration_ends.empty()) return profile.iteration_ends.back();
  nanoseconds end{0};
  for (const ProfileSpan& span : profile.spans) {
    if (span.lane == Lane::compute) end = std::max(end, span.end);
  }
  return end;
}

nanoseconds profile_end(const Profile& profile) {
  nanoseconds end = compute_end(profile);
  for (const ProfileSpan& span : profile.spans) end = std::max(end, span.end);
  if (!profile.levels.empty()) end = std::max(end, profile.levels.back().time);
  return end;
}

nanoseconds idle_time(const Profile& profile) {
  const nanoseconds end = compute_end(profile);
  nanoseconds idle{0};
  nanoseconds busy_until{0};
  for (const ProfileSpan& span : profile.spans) {
    if (span.lane != Lane::compute || span.start >= end) continue;
    idle += std::max(span.start - busy_until, nanoseconds{0});
    busy_until = std::max(busy_until, span.end);
  }
  return idle + std::max(end - busy_until, nanoseconds{0});
}

Bytes bytes_copied(const Profile& profile, Lane lane) {
  Bytes sum;
  for (const ProfileSpan& span : profile.spans) {
    if (span.lane == lane) sum += span.bytes;
  }
  return sum;
}

Bytes peak_used(const Profile& profile) {
  Bytes peak;
  for (const ProfileLevel& level : profile.levels) peak = std::max(peak, level.used);
  return peak;
}

std::string describe(const Profile& profile) {
  const nanoseconds end = compute_end(profile);
  const nanoseconds idle = idle_time(profile);
  const Bytes in = bytes_copied(profile, Lane::h2d);
  const Bytes out = bytes_copied(profile, Lane::d2h);
  const Bytes peak = peak_used(profile);
  const auto iterations = static_cast<nanoseconds::rep>(profile.iteration_ends.size());
  // Times that are compared have the same unit.
  const text::FigureUnit time = text::time_unit(iterations > 1 ? end / iterations : end);
  const text::FigureUnit copied = text::size_unit(std::max(in, out));
  const text::FigureUnit used = text::size_unit(std::max(peak, profile.device_budget));
  const std::string separator = " \xC2\xB7 ";  // a middle dot
  std::string text;
  if (profile.spans.empty()) {
    text = "nothing ran";
  } else if (iterations == 0) {
    text = text::time_text(end, time) + " without a whole iteration";
  } else if (iterations == 1) {
    text = "iteration " + text::time_text(end, time);
  } else {
    text = std::to_string(iterations) + " iterations of " + text::time_text(end / iterations, time) + " on average";
  }
  text += separator + "idle " + text::time_text(idle, time) + " (" + text::percent_text(idle, end) + ')';
  text += separator + text::size_text(in, copied) + " in, " + text::size_text(out, copied) + " out";
  if (iterations > 1) text += ", in all";
  text += separator + "peak " + text::size_text(peak, used);
  if (profile.device_budget.value != 0) text += " of a budget of " + text::size_text(profile.device_budget, used);
  return text;
}

}  // namespace swapmm
