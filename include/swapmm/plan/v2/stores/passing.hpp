// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <swapmm/base/ids.hpp>
#include <swapmm/plan/packing.hpp>
#include <swapmm/plan/v2/stores/stored_plan.hpp>

namespace swapmm::v2::planning {

/// A copy between the device and a store, at a step of a serial plan.
struct StoreCopy {
  std::uint32_t step = 0;
  TensorId tensor{};
  bool is_in = false;     ///< to the device
  std::size_t store = 0;  ///< of the device's stores
  bool is_given = false;  ///< the host gives the value, so that it must not leave the store earlier
};

/// When a value takes places in the memories that it passes, and where.
struct PassingPlaces {
  std::uint32_t first = 0;     ///< the step at which it comes there: before that of the copy, if it is on its way in
  std::uint32_t last = 0;      ///< the last one: after that of the copy, if it is on its way out
  std::vector<Bytes> offsets;  ///< of each memory that it passes, in the order of the way; 0 if it has no limit
};

/// Places for values of far stores in the memories that they pass, for each copy. A value keeps them for the time of a
/// few more copies, as far as there is room, so that copies on different links run at the same time. In the end they
/// may pass one by one, so there are always places. `copies` ascend by step, and no tensor is larger than
/// largest_to_pass().
[[nodiscard]] std::vector<PassingPlaces> place_passing(const DeviceCase& device, const std::vector<StoreCopy>& copies,
                                                       std::uint32_t steps, const PackingEffort& effort);

}  // namespace swapmm::v2::planning
