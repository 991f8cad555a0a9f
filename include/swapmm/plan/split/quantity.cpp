// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/split/quantity.hpp>

#include <algorithm>

#include <swapmm/ir/limits.hpp>

namespace swapmm::planning {
namespace {

__extension__ using WideQuantity = __int128;

std::int64_t within_limits(WideQuantity value) {
  constexpr WideQuantity most = limits::magnitude;
  return static_cast<std::int64_t>(std::clamp<WideQuantity>(value, 0, most));
}

/// Rounded up; `divisor` is above 0.
WideQuantity divided_up(WideQuantity value, WideQuantity divisor) {
  return value / divisor + (value % divisor > 0 ? 1 : 0);
}

/// On the line through both observations, rounded up.
std::int64_t on_line(const SplitStep& step, const SplitQuantity& observed, std::uint64_t samples) {
  const WideQuantity between = WideQuantity{step.large} - WideQuantity{step.small};
  const WideQuantity growth = WideQuantity{observed.at_large} - WideQuantity{observed.at_small};
  const WideQuantity distance = WideQuantity{samples} - WideQuantity{step.small};
  return within_limits(observed.at_small + divided_up(growth * distance, between));
}

}  // namespace

Bytes bytes_at(const SplitStep& step, const SplitQuantity& bytes, std::uint64_t samples) {
  const bool falls = bytes.at_large < bytes.at_small;
  const std::int64_t size = falls ? bytes.at_small : on_line(step, bytes, samples);
  return Bytes{static_cast<std::uint64_t>(size)};
}

std::chrono::nanoseconds duration_at(const SplitStep& step, const SplitQuantity& duration, std::uint64_t samples) {
  const WideQuantity sum = WideQuantity{duration.at_small} + WideQuantity{duration.at_large};
  if (duration.at_large < duration.at_small) return std::chrono::nanoseconds{within_limits(sum / 2)};
  // The line is below 0 for no sample if the time per sample grows.
  const bool grows_faster = WideQuantity{duration.at_large} * step.small > WideQuantity{duration.at_small} * step.large;
  if (!grows_faster) return std::chrono::nanoseconds{on_line(step, duration, samples)};
  return std::chrono::nanoseconds{within_limits(divided_up(sum * samples, WideQuantity{step.small} + step.large))};
}

}  // namespace swapmm::planning
