// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <swapmm/formats/chart/chart.hpp>

// Internal: draws the pictures of profiles.

namespace swapmm::svg {

/// The whole document. `width` in pixels is clamped to 900 to 20,000; a title that is not empty replaces the chart's.
[[nodiscard]] std::string draw(const chart::Chart& chart, int width, std::string_view title);

}  // namespace swapmm::svg
