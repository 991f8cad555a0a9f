// SPDX-License-Identifier: Apache-2.0
#include <swapmm/ir/v2/profile.hpp>

#include <algorithm>
#include <cstddef>

#include <swapmm/base/text/figures.hpp>

namespace swapmm::v2 {

using std::chrono::nanoseconds;

nanoseconds iterations_end(const Profile& profile) {
  return profile.iteration_ends.empty() ? nanoseconds{0} : profile.iteration_ends.back();
}

nanoseconds profile_end(const Profile& profile) {
  nanoseconds end = iterations_end(profile);
  for (const ProfileSpan& span : profile.spans) end = std::max(end, span.end);
  for (const ProfileMemory& memory : profile.memories) {
    if (!memory.levels.empty()) end = std::max(end, memory.levels.back().time);
  }
  return end;
}

std::vector<nanoseconds> busy_times(const Profile& profile, std::optional<SpanKind> kind) {
  std::vector<nanoseconds> busy(profile.rows.size(), nanoseconds{0});
  for (const ProfileSpan& span : profile.spans) {
    if (!kind || span.kind == *kind) busy[span.row] += span.end - span.start;
  }
  return busy;
}

std::string describe(const Profile& profile) {
  if (profile.spans.empty()) return "nothing ran";
  const nanoseconds end = iterations_end(profile);
  const auto iterations = static_cast<nanoseconds::rep>(profile.iteration_ends.size());
  const std::string separator = " \xC2\xB7 ";  // a middle dot
  std::string text;
  if (iterations <= 1) {
    text = "iteration " + text::time_text(end);
  } else {
    text = std::to_string(iterations) + " iterations of " + text::time_text(end / iterations) + " on average";
  }
  const text::FigureUnit unit = text::time_unit(iterations > 1 ? end / iterations : end);
  const std::vector<nanoseconds> busy = busy_times(profile);
  for (std::size_t r = 0; r < profile.rows.size(); ++r) {
    if (profile.rows[r].kind != ProfileRow::Kind::engine) continue;
    const nanoseconds idle = std::max(nanoseconds{0}, end - busy[r]);
    text += separator + profile.rows[r].name + " idle " + text::time_text(idle, unit) + " (" +
            text::percent_text(idle, end) + ')';
  }
  Bytes copied;
  for (const ProfileSpan& span : profile.spans) {
    if (profile.rows[span.row].kind != ProfileRow::Kind::engine) copied += span.bytes;
  }
  return text + separator + text::size_text(copied) + " copied";
}

}  // namespace swapmm::v2
