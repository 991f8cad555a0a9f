// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/runtime/blocks/home.hpp>

namespace swapmm::runtime {

/// The one of two links that carries more.
[[nodiscard]] inline const Link& faster(const Link& a, const Link& b) {
  return a.bytes_per_second > b.bytes_per_second ? a : b;
}

/// A memory behind a device other than the host's.
struct AwayMemory {
  Bytes bytes;      ///< for values of the program
  Bytes alignment;  ///< sizes in it are multiples of this
  Link in;          ///< from it to the device
  Link out;         ///< from the device to it
};

/// What several links carry together, in bytes per second; 0: as much as each of them alone.
struct SharedRates {
  std::uint64_t in = 0;   ///< to the device
  std::uint64_t out = 0;  ///< from the device

  [[nodiscard]] bool empty() const { return in == 0 && out == 0; }
};

/// The memories behind a device. Each value that is not on the device is in one of them.
struct Tiers {
  Bytes host;            ///< of the host's memory for values of the program
  Bytes host_alignment;  ///< sizes in it are multiples of this
  /// The neighbours on each path as one, if there are any.
  std::array<std::optional<AwayMemory>, neighbour_path_count> neighbours;
  SharedRates between_neighbours;  ///< the links of all of these
  SharedRates with_host;           ///< these and the host's
  std::optional<AwayMemory> file;  ///< if there is one
};

/// The machine that plans are made for: the device with its links to the host and, if there are other memories
/// than that behind it, all of them.
struct KnownMachine : Machine {
  KnownMachine() = default;
  /// One with the host's memory alone.
  KnownMachine(Machine machine) : Machine(std::move(machine)) {}  // NOLINT(google-explicit-constructor)
  /// The device and its links to the host alone.
  [[nodiscard]] const Machine& alone() const { return *this; }

  std::optional<Tiers> tiers;
  /// To the device and back while no other device copies; none: as `h2d` and `d2h`, which are what copies seemed to
  /// have.
  std::optional<std::pair<Link, Link>> links_alone;
};

}  // namespace swapmm::runtime
