// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "parameters.hpp"

namespace trees {

/// The network in ordinary memory, without a limit: what the other one must equal bit for bit.
class NetworkByLoops {
 public:
  explicit NetworkByLoops(std::uint64_t seed);
  /// One step of training.
  void train(const Tree& tree);
  [[nodiscard]] const std::vector<std::vector<float>>& weights() const { return weights_; }
  /// See add_up().
  [[nodiscard]] const std::vector<float>& totals() const { return totals_; }

 private:
  std::vector<std::vector<float>> weights_;
  std::vector<std::vector<float>> velocities_;
  std::vector<float> totals_ = std::vector<float>(2, 0.0F);
};

}  // namespace trees
