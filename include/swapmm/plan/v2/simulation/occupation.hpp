// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/plan/v2/machine.hpp>

namespace swapmm::v2::simulation {

/// The bytes that are occupied in each memory, and the most since a moment. Occupation is half-open: it counts after
/// everything at the same time has happened.
class Occupation {
 public:
  explicit Occupation(std::vector<Bytes> occupied) : occupied_(std::move(occupied)), peaks_(occupied_) {}

  /// Bytes are taken. What is given back is 0 minus a size.
  void add(MemoryId memory, Bytes bytes) {
    occupied_[index(memory)] += bytes;
    changed_.push_back(memory);
  }
  /// Everything at one time has happened.
  void settle() {
    for (const MemoryId memory : changed_) {
      peaks_[index(memory)] = std::max(peaks_[index(memory)], occupied_[index(memory)]);
    }
    changed_.clear();
  }
  /// Peaks count from now on.
  void restart() { peaks_ = occupied_; }

  [[nodiscard]] const std::vector<Bytes>& occupied() const { return occupied_; }
  [[nodiscard]] const std::vector<Bytes>& peaks() const { return peaks_; }

 private:
  std::vector<Bytes> occupied_;
  std::vector<Bytes> peaks_;
  std::vector<MemoryId> changed_;
};

}  // namespace swapmm::v2::simulation
