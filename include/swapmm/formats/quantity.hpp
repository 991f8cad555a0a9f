// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/base/text/figures.hpp>

// Quantities as people write them. A Problem names the token, what is wrong with it, and what would be right. Numbers
// have a point, not a comma, and may have an exponent; between number and unit may be a space.

namespace swapmm::quantity {

/// 8GB is 8 * 10^9 bytes, 8GiB 8 * 2^30; 65536 is bytes. Rounded to whole bytes; below 2^62.
[[nodiscard]] Result<Bytes> parse_size(std::string_view text);

/// Bytes, or a share of a whole.
struct Budget {
  Bytes bytes;                  ///< where there is no share
  std::optional<double> share;  ///< above 0

  /// In bytes, for that whole.
  [[nodiscard]] Bytes of(Bytes whole) const;
};

/// A size; or a share: 50% or 0.5 (a number without unit that has a point). `examples` ends the text of a Problem, and
/// says how a budget is written.
[[nodiscard]] Result<Budget> parse_budget(std::string_view text, std::string_view examples);

// ---- for readers of other quantities

__extension__ using Wide = unsigned __int128;

/// A number and what stands behind it.
struct Figure {
  Wide digits = 0;
  int exponent = 0;  ///< the number is digits * 10^exponent
  std::string_view number;
  std::string_view unit;
};

[[nodiscard]] Result<Figure> parse_figure(std::string_view token, std::string_view examples);

/// number * unit, rounded, halves up; nothing from 2^62 on.
[[nodiscard]] std::optional<std::uint64_t> scaled(const Figure& figure, std::uint64_t unit);

[[nodiscard]] double as_double(const Figure& figure);

/// The size of a unit in bytes: as it stands, or all in small letters ("gb"). A small b behind a capital is a bit: no
/// unit of ours.
[[nodiscard]] std::optional<std::uint64_t> size_unit_of(std::string_view name);

[[nodiscard]] Problem problem(std::string_view token, std::string_view why, std::string_view examples);
[[nodiscard]] Problem unknown_unit(std::string_view token, std::string_view unit, std::string_view examples);

[[nodiscard]] std::string_view without_spaces(std::string_view text);

inline constexpr std::array size_units = {
    text::FigureUnit{"B", 1},
    text::FigureUnit{"KB", 1'000},
    text::FigureUnit{"MB", 1'000'000},
    text::FigureUnit{"GB", 1'000'000'000},
    text::FigureUnit{"TB", 1'000'000'000'000},
    text::FigureUnit{"KiB", std::uint64_t{1} << 10U},
    text::FigureUnit{"MiB", std::uint64_t{1} << 20U},
    text::FigureUnit{"GiB", std::uint64_t{1} << 30U},
    text::FigureUnit{"TiB", std::uint64_t{1} << 40U},
};

}  // namespace swapmm::quantity
