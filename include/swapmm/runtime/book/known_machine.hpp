// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>

#include <swapmm/base/bytes.hpp>
#include <swapmm/plan/machine.hpp>

namespace swapmm::runtime {

/// A memory behind a device other than the host's.
struct AwayMemory {
  Bytes bytes;      ///< for values of the program
  Bytes alignment;  ///< sizes in it are multiples of this
  Link in;          ///< from it to the device
  Link out;         ///< from the device to it
};

/// The memories behind a device. Each value that is not on the device is in one of them.
struct Tiers {
  Bytes host;                           ///< of the host's memory for values of the program
  Bytes host_alignment;                 ///< sizes in it are multiples of this
  std::optional<AwayMemory> neighbour;  ///< all neighbours as one, if there are any
  std::optional<AwayMemory> file;       ///< if there is one
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
