// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace swapmm::planning {

/// A number for each operation of the circle. Adds to ranges and finds their largest number in log(n). A segment tree
/// whose nodes keep what was added to all of their operations.
class RangeLoad {
 public:
  explicit RangeLoad(const std::vector<std::int64_t>& values);

  /// Adds to the operations from `first` to below `end`. Values from n on mean operation - n.
  void add(std::uint32_t first, std::uint32_t end, std::int64_t amount);
  /// The largest number in the range, which must not be empty.
  [[nodiscard]] std::int64_t most(std::uint32_t first, std::uint32_t end) const;
  [[nodiscard]] std::int64_t at(std::uint32_t operation) const;
  /// The first operation of the range whose number is above `most`, counted like `first`; `end` if there is none.
  [[nodiscard]] std::uint32_t until_above(std::uint32_t first, std::uint32_t end, std::int64_t most) const;

 private:
  struct Node {
    std::int64_t most = 0;
    std::int64_t added = 0;  ///< what was added to all operations below it; included in `most`
  };
  void add_to(std::size_t first, std::size_t end, std::int64_t amount);
  [[nodiscard]] std::int64_t most_of(std::size_t first, std::size_t end) const;
  void renew_above(std::size_t node);
  [[nodiscard]] std::size_t find_above(std::size_t node, std::size_t begin, std::size_t count, std::size_t from,
                                       std::int64_t most) const;

  std::uint32_t operations_;
  std::size_t size_;         ///< the power of two at or above operations_
  std::vector<Node> nodes_;  ///< the leaves begin at size_
};

}  // namespace swapmm::planning
