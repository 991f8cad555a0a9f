// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/plan/packing.hpp>

// Buffers with lifetimes as MiniMalloc's files have them (https://github.com/google/minimalloc): CSV whose first line
// names the columns id, lower, upper and size. A buffer needs `size` bytes from time `lower` up to, not including,
// `upper`.

namespace swapmm::cli {

struct Buffer {
  std::string id;
  std::uint64_t lower = 0;
  std::uint64_t upper = 0;  ///< above lower
  Bytes size;
};

/// Columns may stand in any order; others are skipped. A Problem names line, column and what stands there.
[[nodiscard]] Result<std::vector<Buffer>> read_buffers(std::string_view text);

/// The same as a packing problem: times at which something begins or ends become slots.
[[nodiscard]] Result<PackingProblem> packing_problem_of(const std::vector<Buffer>& buffers, Bytes alignment);

/// With a column more, the offset of each.
[[nodiscard]] std::string buffers_with_offsets(const std::vector<Buffer>& buffers, const std::vector<Bytes>& offsets);

}  // namespace swapmm::cli
