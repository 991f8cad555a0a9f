// SPDX-License-Identifier: Apache-2.0
#include <swapmm/runtime/timing/link_estimate.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace swapmm::runtime {

void LinkEstimate::add(Bytes bytes, std::chrono::nanoseconds time) {
  const auto b = static_cast<double>(bytes.value);
  const auto t = static_cast<double>(time.count());
  count_ += 1;
  bytes_ += b;
  time_ += t;
  bytes_squared_ += b * b;
  bytes_time_ += b * t;
}

std::optional<Link> LinkEstimate::link() const {
  if (count_ == 0) return std::nullopt;
  double nanoseconds_per_byte = time_ / std::max(bytes_, 1.0);
  double latency = 0;
  const double spread = count_ * bytes_squared_ - bytes_ * bytes_;
  if (spread > 1e-6 * count_ * bytes_squared_) {
    const double slope = (count_ * bytes_time_ - bytes_ * time_) / spread;
    const double intercept = (time_ - slope * bytes_) / count_;
    if (slope > 0 && intercept >= 0) {
      nanoseconds_per_byte = slope;
      latency = intercept;
    }
  }
  Link link;
  const double per_second = 1e9 / std::max(nanoseconds_per_byte, 1e-6);
  link.bytes_per_second = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(per_second)));
  link.latency = std::chrono::nanoseconds{std::llround(latency)};
  return link;
}

Link mixed(const Link& first, const Link& second, double share_of_second) {
  const double share = 1 - share_of_second;
  const double time = share / static_cast<double>(first.bytes_per_second) +
                      share_of_second / static_cast<double>(second.bytes_per_second);
  const double latency = share * static_cast<double>(first.latency.count()) +
                         share_of_second * static_cast<double>(second.latency.count());
  return {std::max<std::uint64_t>(1, static_cast<std::uint64_t>(1 / time)),
          std::chrono::nanoseconds{static_cast<std::int64_t>(latency)}};
}

void LinkHistory::end_sample() {
  if (current_.empty()) return;
  last_[next_] = current_;
  next_ = (next_ + 1) % last_.size();
  current_ = {};
}

std::optional<Link> LinkHistory::link() const {
  double bytes = 0;  // the copy size at which samples are compared: the mean of their mean sizes
  std::size_t samples = 0;
  for (const LinkEstimate& sample : last_) {
    bytes += sample.mean_bytes();
    samples += sample.empty() ? 0 : 1;
  }
  if (samples == 0) return current_.link();
  bytes /= static_cast<double>(samples);
  std::optional<Link> quickest;
  double least = 0;
  for (const LinkEstimate& sample : last_) {
    const std::optional<Link> link = sample.link();
    if (!link) continue;
    const double time =
        static_cast<double>(link->latency.count()) + bytes * 1e9 / static_cast<double>(link->bytes_per_second);
    if (quickest && time >= least) continue;
    quickest = link;
    least = time;
  }
  return quickest;
}

}  // namespace swapmm::runtime
