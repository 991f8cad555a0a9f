// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/ir/profile.hpp>
#include <swapmm/ir/v2/profile.hpp>

// Internal: what the pictures of profiles show, of one device or of many memories. Refers to the profile.

namespace swapmm::chart {

/// How spans of one kind look.
struct Kind {
  std::string_view legend;                 ///< name in the legend
  std::array<std::string_view, 2> shades;  ///< colours; neighbours in a row alternate
  std::string_view ink;                    ///< colour of names in it
  std::string_view category;               ///< of trace events; may be empty
  bool in_legend = true;
};

struct Row {
  std::string_view name;
  std::string_view plural;   ///< what several of its spans are called
  bool shows_idle = false;   ///< time in which nothing ran has a colour
  bool shows_bytes = false;  ///< its spans have bytes
};

struct Memory {
  std::string_view name;         ///< in its picture; may be empty
  std::string_view limit_label;  ///< what `limit` is called in the picture
  std::string used_counter;      ///< names of trace events
  std::string limit_counter;
  Bytes limit;  ///< 0: none
  std::span<const ProfileLevel> levels;
};

struct Span {
  std::uint32_t row = 0;
  std::uint32_t kind = 0;
  std::string_view name;
  Bytes bytes;
  std::chrono::nanoseconds start{0};
  std::chrono::nanoseconds end{0};
};

/// The content of a picture.
struct Chart {
  std::string_view title;
  std::string_view machine;
  std::string figures;      ///< a line of numbers
  std::vector<Kind> kinds;  ///< the first one is that of operations
  std::vector<Row> rows;
  std::vector<Memory> memories;
  std::vector<Span> spans;  ///< sorted by start
  std::span<const std::chrono::nanoseconds> iteration_ends;
  std::chrono::nanoseconds compute_end{0};  ///< idle time counts up to here
  std::chrono::nanoseconds end{0};          ///< of everything
};

[[nodiscard]] Chart chart_of(const Profile& profile);
[[nodiscard]] Chart chart_of(const v2::Profile& profile);

/// The largest number of bytes that are occupied at one time.
[[nodiscard]] Bytes peak_used(const Memory& memory);

}  // namespace swapmm::chart
