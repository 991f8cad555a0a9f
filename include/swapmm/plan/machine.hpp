// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>

namespace swapmm {

/// One direction between host and device. A copy of b bytes takes latency + b / bytes_per_second, rounded up to
/// whole nanoseconds.
struct Link {
  std::uint64_t bytes_per_second = 0;   ///< above 0
  std::chrono::nanoseconds latency{0};  ///< of each copy; not negative

  friend bool operator==(const Link&, const Link&) = default;
};

/// Whether copies in and out run at the same time.
enum class Duplex : std::uint8_t {
  full,  ///< each direction has a copy engine of its own
  half,  ///< both directions share one engine
};

/// What a plan is made for: format `swapmm-machine` version 1.
struct Machine {
  std::string name;                     ///< for persons
  Bytes device_budget;                  ///< the bytes plans may use, from offset 0
  Bytes alignment{1};                   ///< every offset is a multiple of it; at least 1
  std::optional<Bytes> max_allocation;  ///< no tensor crosses a multiple of it; none: one arena
  Link h2d;                             ///< host to device: swap_in
  Link d2h;                             ///< device to host: swap_out
  Duplex duplex = Duplex::full;         ///< copy engines

  friend bool operator==(const Machine&, const Machine&) = default;
};

/// Budget and bandwidths above 0, alignment from 1 to 2^40 (limits::alignment_bytes), latencies not negative,
/// max_allocation (if any) a multiple of the alignment and above 0, all sizes and bandwidths below 2^62, and a copy
/// of the whole budget takes less than 2^62 ns in each direction.
[[nodiscard]] SWAPMM_EXPORT Check check_machine(const Machine& machine);

}  // namespace swapmm
