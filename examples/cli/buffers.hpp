// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/plan/packing.hpp>

// Buffers with lifetimes as MiniMalloc's files have them (https://github.com/google/minimalloc): CSV whose first line
// names the columns id, lower, upper and size. A buffer needs `size` bytes from time `lower` up to, not including,
// `upper`.

namespace swapmm::cli {

struct Buffer {
  std::string_view id;
  std::uint64_t lower = 0;
  std::uint64_t upper = 0;  ///< above lower
  Bytes size;
};

/// The buffers of a file's text, which must outlive them. A buffer is read from its line each time it is asked for,
/// since a line may be far shorter than what stands in it.
class Buffers {
 public:
  /// Where the columns id, lower, upper and size stand in a line.
  using Columns = std::array<std::size_t, 4>;

  /// `lines`: where those with a buffer begin in the text.
  Buffers(std::string_view text, const Columns& columns, std::vector<std::uint32_t> lines)
      : text_(text), columns_(columns), lines_(std::move(lines)) {}

  [[nodiscard]] std::size_t size() const { return lines_.size(); }
  [[nodiscard]] Buffer operator[](std::size_t i) const;

 private:
  std::string_view text_;
  Columns columns_;
  std::vector<std::uint32_t> lines_;
};

/// Of a text of at most limits::file_bytes. Columns may stand in any order; others are skipped. Each buffer has an id
/// of its own. A Problem names line, column and what stands there.
[[nodiscard]] Result<Buffers> read_buffers(std::string_view text);

/// The same as a packing problem: times at which something begins or ends become slots.
[[nodiscard]] Result<PackingProblem> packing_problem_of(const Buffers& buffers, Bytes alignment);

/// With a column more, the offset of each.
[[nodiscard]] std::string buffers_with_offsets(const Buffers& buffers, const std::vector<Bytes>& offsets);

}  // namespace swapmm::cli
