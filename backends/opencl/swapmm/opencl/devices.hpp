// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/opencl/handle.hpp>

namespace swapmm::opencl {

/// A device that the installed drivers offer.
struct Device {
  cl_device_id id = nullptr;   ///< the API's id
  cl_device_type type = 0;     ///< bits such as CL_DEVICE_TYPE_GPU
  std::string name;            ///< name from the driver
  std::string platform;        ///< name of the platform
  std::string version;         ///< "OpenCL 1.2 ..."
  Bytes memory;                ///< size that the driver reports; not guaranteed
  bool shares_memory = false;  ///< true if shared with the host: swapping saves no memory
  std::string obstacle;        ///< why swapmm cannot use it; empty if it can
};

/// All devices of all platforms, in the drivers' order. The position is the index for SWAPMM_DEVICE. Empty if no driver
/// is installed. Queries every driver: takes milliseconds, and more at the first call in a process.
[[nodiscard]] SWAPMM_EXPORT std::vector<Device> devices();

/// Describes a device in one line: "[1] Radeon RX 7800 (AMD Accelerated Parallel Processing), GPU, 16368 MiB".
[[nodiscard]] SWAPMM_EXPORT std::string describe(const Device& device, std::size_t index);

/// The position of the device to use. `wanted` is an index, or a part of a device's or platform's name in upper or
/// lower case. If it is empty, a GPU is preferred to an accelerator, an accelerator to a CPU, and debugging simulators
/// (Oclgrind) come last. Throws UsageError with a list of all devices if none or more than one matches.
[[nodiscard]] SWAPMM_EXPORT std::size_t choose(std::span<const Device> devices, std::string_view wanted);

}  // namespace swapmm::opencl
