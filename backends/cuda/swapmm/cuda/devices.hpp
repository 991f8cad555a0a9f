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

/// A CUDA device.
struct Device {
  int number = 0;              ///< number for cudaSetDevice
  std::string name;            ///< name from the driver
  int compute_major = 0;       ///< major compute capability
  int compute_minor = 0;       ///< minor compute capability
  Bytes memory;                ///< total memory
  std::string bus;             ///< "0000:3b:00.0"
  bool shares_memory = false;  ///< true if shared with the host
  std::string obstacle;        ///< why swapmm cannot use it; empty if it can
};

/// The list of devices.
struct DeviceList {
  std::vector<Device> devices;  ///< in the API's order: the position is the number
  std::string why_none;         ///< why the list is empty: no driver, one that is too old, or no device
};

/// All devices. Without a driver the list is empty and has the reason; this is not an error. Throws BackendError if
/// something else fails.
[[nodiscard]] SWAPMM_EXPORT DeviceList devices();

/// Describes a device in one line: "[0] NVIDIA H200 (9.0), 143771 MiB".
[[nodiscard]] SWAPMM_EXPORT std::string describe(const Device& device);

/// The position of the device to use. `wanted` is an index, or a part of a device's name in upper or lower case. If it
/// is empty, the device with the most memory is chosen. Throws UsageError with a list of all devices if none or more
/// than one matches.
[[nodiscard]] SWAPMM_EXPORT std::size_t choose(const DeviceList& list, std::string_view wanted);

}  // namespace swapmm::cuda
