// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>

#include <swapmm/base/bytes.hpp>
#include <swapmm/plan/machine.hpp>

namespace swapmm::runtime {

/// The memories behind a device, if there is a file. Each value that is not on the device is in one of them.
struct Tiers {
  Bytes host;            ///< of memory for values of the program
  Bytes host_alignment;  ///< sizes in it are multiples of this
  Bytes file;            ///< of the file
  Bytes file_alignment;  ///< the same for the file
  Link file_in;          ///< from the file to the device
  Link file_out;         ///< from the device to the file
};

/// The machine that plans are made for: the device with its links to the host, and with a file, the memories behind it.
struct KnownMachine : Machine {
  KnownMachine() = default;
  /// One without a file.
  KnownMachine(Machine machine) : Machine(std::move(machine)) {}  // NOLINT(google-explicit-constructor)
  /// The device and its links to the host alone.
  [[nodiscard]] const Machine& alone() const { return *this; }

  std::optional<Tiers> tiers;
};

}  // namespace swapmm::runtime
