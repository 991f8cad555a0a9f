// SPDX-License-Identifier: Apache-2.0
#pragma once

// Queries of devices, platforms and events, as values.

#include <cstddef>
#include <string>

#include <swapmm/opencl/handle.hpp>
#include <swapmm/opencl/status.hpp>

namespace swapmm::opencl::detail {

template <class T>
[[nodiscard]] T device_value(cl_device_id device, cl_device_info what) {
  T value{};
  check(clGetDeviceInfo(device, what, sizeof value, &value, nullptr), "clGetDeviceInfo");
  return value;
}

/// Returns the text that `get(size, into, size_of_it)` writes, without spaces around it.
template <class Get>
[[nodiscard]] std::string text_of(Get&& get, const char* call) {
  std::size_t size = 0;
  check(get(0, nullptr, &size), call);
  std::string text(size, '\0');
  check(get(size, text.data(), nullptr), call);
  const std::size_t first = text.find_first_not_of(' ');
  const std::size_t last = text.find_last_not_of(std::string(" \n\0", 3));
  return last == std::string::npos ? std::string() : text.substr(first, last - first + 1);
}

[[nodiscard]] inline std::string device_text(cl_device_id device, cl_device_info what) {
  return text_of([&](std::size_t size, void* into,
                     std::size_t* needed) { return clGetDeviceInfo(device, what, size, into, needed); },
                 "clGetDeviceInfo");
}

[[nodiscard]] inline std::string platform_text(cl_platform_id platform, cl_platform_info what) {
  return text_of([&](std::size_t size, void* into,
                     std::size_t* needed) { return clGetPlatformInfo(platform, what, size, into, needed); },
                 "clGetPlatformInfo");
}

/// The status of an event: CL_COMPLETE; above it while the command is queued or runs; below it if the command failed.
[[nodiscard]] inline cl_int execution_status(cl_event event) {
  cl_int status = CL_COMPLETE;
  check(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr), "clGetEventInfo");
  return status;
}

/// Returns whether the device shares the host's memory (CPUs and integrated GPUs), so that swapping frees nothing.
[[nodiscard]] inline bool shares_memory(cl_device_id device) {
  return device_value<cl_bool>(device, CL_DEVICE_HOST_UNIFIED_MEMORY) != CL_FALSE ||
         (device_value<cl_device_type>(device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
}

}  // namespace swapmm::opencl::detail
