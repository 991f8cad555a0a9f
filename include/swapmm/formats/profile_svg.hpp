// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>

#include <swapmm/base/export.hpp>
#include <swapmm/ir/profile.hpp>

namespace swapmm {

/// How write_svg() draws.
struct SvgOptions {
  int width = 1200;   ///< of the picture in pixels, from 900 to 20,000: what is outside becomes the nearest
  std::string title;  ///< instead of the profile's, where not empty
};

/// Draws a profile as one SVG document (UTF-8) that needs nothing else: above, the bytes on the device over time with
/// the budget; below, on the same axis, the three lanes. The time in which no operation ran has a colour of its own.
/// A browser shows name, start, duration and bytes of what the pointer is on. What is narrower than half a pixel shares
/// a rectangle with its neighbours, so that at the default width the document stays at about 1 MB however much the
/// profile holds. Same profile, same bytes.
SWAPMM_EXPORT void write_svg(std::ostream& out, const Profile& profile, const SvgOptions& options = {});

}  // namespace swapmm
