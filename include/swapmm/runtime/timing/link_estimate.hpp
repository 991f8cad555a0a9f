// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/plan/machine.hpp>

namespace swapmm::runtime {

/// Learns latency and bandwidth of one direction from observed copies, by least squares over (bytes, time).
class LinkEstimate {
 public:
  SWAPMM_TEMPLATE_EXPORT void add(Bytes bytes, std::chrono::nanoseconds time);
  /// Returns nothing before the first copy. With copies of one size only, all of their time counts as bandwidth.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::optional<Link> link() const;
  [[nodiscard]] bool empty() const { return count_ == 0; }
  /// The mean size of the copies.
  [[nodiscard]] double mean_bytes() const { return count_ == 0 ? 0 : bytes_ / count_; }

 private:
  double count_ = 0;
  double bytes_ = 0;
  double time_ = 0;
  double bytes_squared_ = 0;
  double bytes_time_ = 0;
};

/// A link by which this share of the bytes goes as by the second one, and the rest as by the first one.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT Link mixed(const Link& first, const Link& second, double share_of_second);

/// Estimates of one direction over time, one for each of the last few samples. A sample is the copies of one iteration.
class LinkHistory {
 public:
  void add(Bytes bytes, std::chrono::nanoseconds time) { current_.add(bytes, time); }
  /// Ends a sample of the copies added since the last call. Without copies there is no sample.
  SWAPMM_TEMPLATE_EXPORT void end_sample();
  /// Returns the fastest of the last samples. One sample in which something else used the link does no harm, and a
  /// lasting change is seen after as many samples as are kept. Copies of a sample that has not ended count only if
  /// there is no other sample.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::optional<Link> link() const;

 private:
  LinkEstimate current_;
  std::array<LinkEstimate, 3> last_;
  std::size_t next_ = 0;
};

}  // namespace swapmm::runtime
