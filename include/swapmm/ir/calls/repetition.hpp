// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

// Internal: repeated sequences.

namespace swapmm::calls {

/// token[i] == token[i + period] for i from `begin` to `begin + period * (count - 1)`.
struct Repetition {
  std::size_t begin = 0;
  std::size_t period = 0;
  std::size_t count = 0;    ///< whole repetitions from `begin` on, at least 2
  std::size_t covered = 0;  ///< tokens of the whole run in repetitions of this period

  friend bool operator==(const Repetition&, const Repetition&) = default;
};

/// The repeated sequence that covers the most of the run and has a marked token in it, if any token is marked at all.
/// Of sequences that cover nearly the same (within 0.5 %), the shortest one: two iterations are no longer one. None if
/// nothing repeats. Begins behind a marked token, if it can.
///
/// Candidates are the distances between equal neighbourhoods of 1, 8 and 64 tokens, the 64 most frequent of each; so
/// an inner loop does not hide the outer one. Takes O(n) memory and O(200 n) time.
[[nodiscard]] std::optional<Repetition> find_repetition(std::span<const std::uint64_t> tokens,
                                                        const std::vector<bool>& marked);

}  // namespace swapmm::calls
