// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/profile_svg.hpp>

#include <ostream>

#include <swapmm/formats/chart/chart.hpp>
#include <swapmm/formats/svg/chart_picture.hpp>

namespace swapmm {

void write_svg(std::ostream& out, const Profile& profile, const SvgOptions& options) {
  out << svg::draw(chart::chart_of(profile), options.width, options.title);
}

}  // namespace swapmm
