// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/chart/chart.hpp>

#include <algorithm>

namespace swapmm::chart {
namespace {

// Colours of idle time, operations, copies and all others differ clearly for any kind of colour vision (simulated as by
// Machado and others, 2009: at least 30 apart in CIELAB).
constexpr Kind operations{"operations", {"#1a3a5c", "#2f5f91"}, "#fff", ""};
constexpr Kind copies_in{"copies to the device", {"#56b4e9", "#86caef"}, "#000", ""};
constexpr Kind copies_out{"copies to the host", {"#e69f00", "#f2bc45"}, "#000", ""};
constexpr Kind again{"run again", {"#9900ff", "#b040ff"}, "#fff", "run again"};
constexpr Kind coding{"encode, decode", {"#000000", "#330000"}, "#fff", "coding"};

/// A copy over a link into a memory that computes, and over another link.
constexpr Kind copies_near{"copies in", copies_in.shades, copies_in.ink, "copy"};
constexpr Kind copies_far{"other copies", copies_out.shades, copies_out.ink, "copy"};
enum : std::uint32_t { near_kind = 3, far_kind = 4 };

}  // namespace

Chart chart_of(const Profile& profile) {
  Chart chart;
  chart.title = profile.title;
  chart.machine = profile.device;
  chart.figures = describe(profile);
  chart.kinds = {operations, copies_in, copies_out};
  chart.rows = {{"compute", "operations", true, false}, {"H2D", "copies", false, true}, {"D2H", "copies", false, true}};
  chart.memories.push_back({"", "budget", "bytes taken", "budget", profile.device_budget, profile.levels});
  chart.spans.reserve(profile.spans.size());
  for (const ProfileSpan& span : profile.spans) {
    const auto lane = static_cast<std::uint32_t>(span.lane);
    chart.spans.push_back({lane, lane, span.name, span.bytes, span.start, span.end});
  }
  chart.iteration_ends = profile.iteration_ends;
  chart.compute_end = compute_end(profile);
  chart.end = profile_end(profile);
  return chart;
}

Chart chart_of(const v2::Profile& profile) {
  using RowKind = v2::ProfileRow::Kind;
  Chart chart;
  chart.title = profile.title;
  chart.machine = profile.machine;
  chart.figures = v2::describe(profile);
  chart.kinds = {operations, again, coding, copies_near, copies_far};
  for (Kind& kind : chart.kinds) kind.in_legend = false;
  for (const v2::ProfileRow& row : profile.rows) {
    const bool engine = row.kind == RowKind::engine;
    chart.rows.push_back({row.name, engine ? "elements" : "copies", engine, !engine});
  }
  for (const v2::ProfileMemory& memory : profile.memories) {
    chart.memories.push_back(
        {memory.name, "size", memory.name + ": bytes taken", memory.name + ": size", memory.bytes, memory.levels});
  }
  chart.spans.reserve(profile.spans.size());
  for (const v2::ProfileSpan& span : profile.spans) {
    auto kind = static_cast<std::uint32_t>(span.kind);
    if (span.kind == v2::SpanKind::copy) {
      kind = profile.rows[span.row].kind == RowKind::link_in ? near_kind : far_kind;
    }
    chart.kinds[kind].in_legend = true;
    chart.spans.push_back({span.row, kind, span.name, span.bytes, span.start, span.end});
  }
  chart.iteration_ends = profile.iteration_ends;
  chart.compute_end = v2::iterations_end(profile);
  chart.end = v2::profile_end(profile);
  return chart;
}

Bytes peak_used(const Memory& memory) {
  Bytes peak;
  for (const ProfileLevel& level : memory.levels) peak = std::max(peak, level.used);
  return peak;
}

}  // namespace swapmm::chart
