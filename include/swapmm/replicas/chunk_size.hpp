// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include <swapmm/base/export.hpp>

namespace swapmm {

/// Options for the search for a chunk size.
struct ChunkSizeOptions {
  /// Steps of a size before it is timed: the first ones of a new size are observed, and begin the plan.
  std::size_t settle = 5;
  /// Steps of a size that are timed; the median counts. At least 1.
  std::size_t timed = 5;
  /// The search ends after so many sizes in a row that were no faster than the best one before. At least 1; more ride
  /// over noise and steps of the curve.
  std::size_t patience = 2;
};

/// Finds the number of layers per chunk with the shortest step, while the program runs. It begins with one layer and
/// adds one as long as steps get faster. If times fall up to one size and rise after it, this is the best size; times
/// that differ by less than their noise may end the search beside it. A decision depends on the times alone.
class SWAPMM_EXPORT ChunkSizeSearch {
 public:
  /// A size that was timed.
  struct Try {
    std::size_t layers = 0;            ///< layers per chunk
    std::chrono::nanoseconds step{0};  ///< median time of a step
  };

  /// For so many layers. Throws UsageError for no layers, or options that are 0 and may not be.
  explicit ChunkSizeSearch(std::size_t layers, const ChunkSizeOptions& options = {});

  /// The size for the next step; once done(), the best one.
  [[nodiscard]] std::size_t layers_per_chunk() const { return size_; }
  /// True once the size no longer changes.
  [[nodiscard]] bool done() const { return done_; }
  /// Tells how long a step with this size took. Ignored once done().
  void took(std::chrono::nanoseconds step);
  /// What was timed so far, smallest size first.
  [[nodiscard]] std::span<const Try> tries() const { return tries_; }

 private:
  void end_size();

  std::size_t layers_;
  ChunkSizeOptions options_;
  std::size_t size_ = 1;
  std::size_t steps_ = 0;  // of this size
  bool done_ = false;
  std::vector<std::chrono::nanoseconds> times_;  // of this size
  std::vector<Try> tries_;
};

}  // namespace swapmm
