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

/// A link: one direction between host and device. A copy of b bytes takes latency + b / bytes_per_second, rounded up to
/// whole nanoseconds.
struct Link {
  std::uint64_t bytes_per_second = 0;   ///< above 0
  std::chrono::nanoseconds latency{0};  ///< latency of each copy; not negative

  friend bool operator==(const Link&, const Link&) = default;
};

/// Whether copies in both directions can run at the same time.
enum class Duplex : std::uint8_t {
  full,  ///< each direction has a copy engine of its own
  half,  ///< both directions share one engine
};

/// The machine that a plan is made for. Its file format is `swapmm-machine` version 1.
struct Machine {
  std::string name;                     ///< for people
  Bytes device_budget;                  ///< device memory that plans may use, from offset 0
  Bytes alignment{1};                   ///< every offset is a multiple of this; at least 1
  std::optional<Bytes> max_allocation;  ///< no tensor crosses a multiple of this; none: one arena
  Link h2d;                             ///< host to device: swap_in
  Link d2h;                             ///< device to host: swap_out
  Duplex duplex = Duplex::full;         ///< whether both links share one engine

  friend bool operator==(const Machine&, const Machine&) = default;
};

/// What the copies of several devices to and from the host share, in bytes per second; each below 2^62. 0: nothing.
struct LinkCapacities {
  std::uint64_t to_devices = 0;    ///< of all copies from the host to devices together
  std::uint64_t from_devices = 0;  ///< of all copies from devices to the host together
  std::uint64_t both_ways = 0;     ///< of all of these together

  /// True if copies share nothing.
  [[nodiscard]] bool empty() const { return to_devices == 0 && from_devices == 0 && both_ways == 0; }
  friend bool operator==(const LinkCapacities&, const LinkCapacities&) = default;
};

/// Checks a machine. Budget and bandwidths are above 0; the alignment is from 1 to 2^40 (limits::alignment_bytes);
/// latencies are not negative; max_allocation, if any, is above 0 and a multiple of the alignment; all sizes and
/// bandwidths are below 2^62; a copy of the whole budget takes less than 2^62 ns in each direction.
[[nodiscard]] SWAPMM_EXPORT Check check_machine(const Machine& machine);

}  // namespace swapmm
