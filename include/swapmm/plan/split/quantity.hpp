// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include <swapmm/base/bytes.hpp>
#include <swapmm/plan/split/split.hpp>

namespace swapmm::planning {

/// The largest batch: products stay far within 128 bits.
inline constexpr std::uint64_t most_samples = std::uint64_t{1} << 40U;

/// A size in a piece of so many samples: exact on the line through both observations, rounded up beside it. A size that
/// falls with the number of samples counts as the larger one for all; one that would be below 0 counts as 0. A size
/// beyond what a trace may have is limits::magnitude.
[[nodiscard]] Bytes bytes_at(const SplitStep& step, const SplitQuantity& bytes, std::uint64_t samples);

/// A duration in a piece of so many samples. Measured times scatter: one that falls with the number of samples counts
/// as their mean for all, and one that would be below 0 for no sample counts as proportional.
[[nodiscard]] std::chrono::nanoseconds duration_at(const SplitStep& step, const SplitQuantity& duration,
                                                   std::uint64_t samples);

}  // namespace swapmm::planning
