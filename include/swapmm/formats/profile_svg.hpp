// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>

#include <swapmm/base/export.hpp>
#include <swapmm/ir/profile.hpp>

namespace swapmm {

/// Options for write_svg().
struct SvgOptions {
  int width = 1200;   ///< width of the picture in pixels, clamped to 900 to 20,000
  std::string title;  ///< replaces the profile's title if not empty
};

/// Draws a profile as one self-contained SVG document (UTF-8). The upper part shows the bytes on the device over time,
/// with the budget. The lower part shows the three lanes on the same time axis. Time in which no operation ran has a
/// colour of its own. A browser shows name, start, duration and bytes of the span under the pointer. Spans narrower
/// than half a pixel share a rectangle with their neighbours, so at the default width the document has about 1 MB at
/// most, whatever the size of the profile. The same profile always gives the same bytes.
SWAPMM_EXPORT void write_svg(std::ostream& out, const Profile& profile, const SvgOptions& options = {});

}  // namespace swapmm
