// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>

#include <swapmm/base/export.hpp>
#include <swapmm/formats/profile_svg.hpp>
#include <swapmm/ir/v2/profile.hpp>

namespace swapmm::v2 {

/// Draws a profile as one self-contained SVG document (UTF-8), as swapmm::write_svg() does. The upper part has a curve
/// of the occupied bytes for each memory, with its size. The lower part has a row for each engine and each link.
/// Operations that run again, and encoding and decoding, have colours of their own. Each row makes the document up to
/// about 400 kB larger at the default width.
SWAPMM_EXPORT void write_svg(std::ostream& out, const Profile& profile, const SvgOptions& options = {});

}  // namespace swapmm::v2
