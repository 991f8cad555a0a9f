// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>

#include <swapmm/base/bytes.hpp>
#include <swapmm/plan/machine.hpp>

namespace swapmm::runtime {

/// Learns latency and bandwidth of one direction from observed copies, by least squares over (bytes, time).
class LinkEstimate {
 public:
  void add(Bytes bytes, std::chrono::nanoseconds time);
  /// Nothing before the first copy. With copies of one size only, all of their time counts as bandwidth.
  [[nodiscard]] std::optional<Link> link() const;

 private:
  double count_ = 0;
  double bytes_ = 0;
  double time_ = 0;
  double bytes_squared_ = 0;
  double bytes_time_ = 0;
};

}  // namespace swapmm::runtime
