// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>

namespace swapmm::cuda {

/// A device that CUDA offers.
struct Device {
  int number = 0;              ///< as cudaSetDevice takes it
  std::string name;            ///< as the driver says
  int compute_major = 0;       ///< compute capability 9.0: 9
  int compute_minor = 0;       ///< and 0
  Bytes memory;                ///< in all, free or not
  std::string bus;             ///< "0000:3b:00.0"
  bool shares_memory = false;  ///< with the host
  std::string obstacle;        ///< why swapmm cannot use it; empty: it can
};

/// What there is.
struct DeviceList {
  std::vector<Device> devices;  ///< in the API's order: the position is the number
  std::string why_none;         ///< where there is none: no driver, one that is too old, or no device
};

/// All devices. Without a driver that is an empty list and the reason, not an error. Throws BackendError for what else
/// goes wrong.
[[nodiscard]] SWAPMM_EXPORT DeviceList devices();

/// One line: "[0] NVIDIA H200 (9.0), 143771 MiB".
[[nodiscard]] SWAPMM_EXPORT std::string describe(const Device& device);

/// The position of the device to use. `wanted` is an index, or a part of a device's name in any case; empty: the one
/// with the most memory. Throws UsageError, with a list of what there is, where nothing fits or `wanted` names more
/// than one device.
[[nodiscard]] SWAPMM_EXPORT std::size_t choose(const DeviceList& list, std::string_view wanted);

}  // namespace swapmm::cuda
