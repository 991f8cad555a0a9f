// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/profile_events.hpp>

#include <vector>

#include <swapmm/formats/chart/chart.hpp>
#include <swapmm/formats/chart/event_writer.hpp>

namespace swapmm {

void write_trace_events(std::ostream& out, std::span<const Profile> profiles) {
  std::vector<chart::Chart> charts;
  for (const Profile& profile : profiles) charts.push_back(chart::chart_of(profile));
  chart::write_events(out, charts);
}

}  // namespace swapmm
