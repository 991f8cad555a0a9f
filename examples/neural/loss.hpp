// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "neural/shapes.hpp"

namespace neural {

/// The loss of all images so far, added up on the device in units of loss_unit. It is never set back, so that reading
/// it uploads nothing between iterations. The manager outlives it.
template <class Backend>
class LossSum {
 public:
  using Tensor = swapmm::Tensor<std::int64_t, Backend>;

  explicit LossSum(swapmm::MemoryManager<Backend>& manager) : sum_(manager.template tensor<std::int64_t>({1}, "loss")) {
    sum_.upload(std::vector<std::int64_t>{0});
  }

  /// For the operation that adds to it.
  [[nodiscard]] const Tensor& tensor() const { return sum_; }
  /// The losses of so many images were added.
  void added(std::size_t images) { images_ += images; }
  /// The mean loss per image since the last call, 0 where there were none. Waits for the device.
  [[nodiscard]] float take() {
    const std::size_t images = std::exchange(images_, 0);
    if (images == 0) return 0;
    const std::int64_t sum = sum_.download().front();
    const auto difference = static_cast<double>(sum - std::exchange(taken_, sum));
    return static_cast<float>(difference * loss_unit / static_cast<double>(images));
  }
  /// Of all images so far, in units of loss_unit, whatever was taken before. Waits for the device.
  [[nodiscard]] std::int64_t total() const { return sum_.download().front(); }

 private:
  Tensor sum_;
  std::int64_t taken_ = 0;
  std::size_t images_ = 0;
};

}  // namespace neural
