// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/options.hpp>
#include <swapmm/runtime/blocks/place_map.hpp>

namespace swapmm::test {

/// Which bundles a manager can hold at all.
struct ProgramLimits {
  Bytes alignment;
  Bytes budget;  ///< as the manager takes it: rounded down
  std::optional<Bytes> max_allocation;

  ProgramLimits(const Capabilities& can, const Options& options)
      : alignment(can.alignment),
        budget(round_down(options.device_budget, can.alignment)),
        max_allocation(can.max_allocation) {}

  [[nodiscard]] Bytes padded(Bytes bytes) const { return round_up(bytes, alignment); }
  /// The bytes of a bundle of these sizes, whatever their places.
  [[nodiscard]] bool fit(const std::vector<Bytes>& sizes) const {
    Bytes need;
    for (const Bytes size : sizes) need += padded(size);
    return need <= budget;
  }
  /// It has places on demand, where the largest gets the first; a plan may have some where there are none so. `sizes`
  /// has another order then.
  [[nodiscard]] bool pack(std::vector<Bytes>& sizes) const {
    if (!max_allocation || *max_allocation >= budget) return true;
    const Bytes arena = round_down(*max_allocation, alignment);
    return runtime::PlaceMap(budget, arena, alignment).would_pack(sizes);
  }
};

}  // namespace swapmm::test
