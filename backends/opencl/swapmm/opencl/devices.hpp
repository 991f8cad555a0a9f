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
  cl_device_id id = nullptr;   ///< as the API's calls take it
  cl_device_type type = 0;     ///< bits CL_DEVICE_TYPE_GPU and so on
  std::string name;            ///< as the driver says
  std::string platform;        ///< name of the driver's platform
  std::string version;         ///< "OpenCL 1.2 ..."
  Bytes memory;                ///< as the driver says: no promise
  bool shares_memory = false;  ///< with the host: swapping works and saves nothing
  std::string obstacle;        ///< why swapmm cannot use it; empty: it can
};

/// All devices of all platforms, in the drivers' order; the position is the index that SWAPMM_DEVICE takes. Empty where
/// no driver is installed. Asks every driver: milliseconds, and more at the first call of a process.
[[nodiscard]] SWAPMM_EXPORT std::vector<Device> devices();

/// One line: "[1] Radeon RX 7800 (AMD Accelerated Parallel Processing), GPU, 16368 MiB".
[[nodiscard]] SWAPMM_EXPORT std::string describe(const Device& device, std::size_t index);

/// The position of the device to use. `wanted` is an index, or a part of a device's or platform's name in any case;
/// empty: a GPU before an accelerator before a CPU, and simulators for debugging (Oclgrind) last. Throws UsageError,
/// with a list of what there is, where nothing fits or `wanted` names more than one device.
[[nodiscard]] SWAPMM_EXPORT std::size_t choose(std::span<const Device> devices, std::string_view wanted);

}  // namespace swapmm::opencl
