// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/plan/machine.hpp>

namespace swapmm::planning {

/// A memory that keeps what leaves the device. It has a link of its own in each direction.
struct LinkedStore {
  Link in;                        ///< to the device
  Link out;                       ///< from the device
  std::optional<Bytes> capacity;  ///< none: without limit
};

/// Memories among which the values that leave the device are spread. A planning case for them has a machine whose host
/// stands for all of them together.
struct LinkedStores {
  std::vector<LinkedStore> list;
  /// Of each tensor: the store that it must use, because the host gives or reads it; none: any.
  std::vector<std::optional<std::uint8_t>> fixed;
  /// Of each absence of the ledger, then store: how much of the tensor should be there, 0 to 1. Empty: not known.
  std::vector<std::vector<double>> wished;
  /// Decisions to begin with. Of each absence: the store where it is away; none: it stays.
  std::vector<std::vector<std::optional<std::uint8_t>>> rounded;
};

}  // namespace swapmm::planning
