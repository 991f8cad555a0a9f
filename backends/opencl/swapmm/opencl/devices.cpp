// SPDX-License-Identifier: Apache-2.0
#include <swapmm/opencl/devices.hpp>

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/backend/device_choice.hpp>
#include <swapmm/opencl/info.hpp>
#include <swapmm/opencl/status.hpp>

namespace swapmm::opencl {

using detail::device_text;
using detail::device_value;
using detail::platform_text;

namespace {

constexpr cl_int no_platform = -1001;  // CL_PLATFORM_NOT_FOUND_KHR: the loader found no driver

std::string obstacle(const Device& device, bool available) {
  int major = 0;
  int minor = 0;
  const bool known = std::sscanf(device.version.c_str(), "OpenCL %d.%d", &major, &minor) == 2;
  if (known && (major < 1 || (major == 1 && minor < 2))) {
    return "its OpenCL is older than 1.2";
  }
  if (!available) return "it is not available";
  if ((device.type & CL_DEVICE_TYPE_CUSTOM) != 0) return "it runs no programs";
  return {};
}

Device look_at(cl_device_id id, const std::string& platform) {
  Device device;
  device.id = id;
  device.platform = platform;
  device.name = device_text(id, CL_DEVICE_NAME);
  device.version = device_text(id, CL_DEVICE_VERSION);
  device.type = device_value<cl_device_type>(id, CL_DEVICE_TYPE);
  device.memory = Bytes{device_value<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_SIZE)};
  device.shares_memory = detail::shares_memory(id);
  device.obstacle = obstacle(device, device_value<cl_bool>(id, CL_DEVICE_AVAILABLE) != CL_FALSE);
  return device;
}

// A higher number is preferred. In ascending order: debugging simulators, software renderers, CPUs, accelerators, GPUs.
int preference(const Device& device) {
  const auto is_called = [&](const char* name) {
    return contains_in_any_case(device.platform, name) || contains_in_any_case(device.name, name);
  };
  if (is_called("oclgrind")) return 1;
  if (is_called("llvmpipe") || is_called("softpipe")) return 2;
  if ((device.type & CL_DEVICE_TYPE_GPU) != 0) return 5;
  if ((device.type & CL_DEVICE_TYPE_ACCELERATOR) != 0) return 4;
  return 3;
}

}  // namespace

std::vector<Device> devices() {
  cl_uint count = 0;
  const cl_int found = clGetPlatformIDs(0, nullptr, &count);
  if (found == no_platform || (found == CL_SUCCESS && count == 0)) return {};
  check(found, "clGetPlatformIDs");
  std::vector<cl_platform_id> platforms(count);
  check(clGetPlatformIDs(count, platforms.data(), nullptr), "clGetPlatformIDs");
  std::vector<Device> result;
  for (const cl_platform_id platform : platforms) {
    cl_uint device_count = 0;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &device_count) != CL_SUCCESS || device_count == 0) {
      continue;  // a driver without devices
    }
    std::vector<cl_device_id> ids(device_count);
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, device_count, ids.data(), nullptr), "clGetDeviceIDs");
    const std::string name = platform_text(platform, CL_PLATFORM_NAME);
    for (const cl_device_id id : ids) result.push_back(look_at(id, name));
  }
  return result;
}

std::string describe(const Device& device, std::size_t index) {
  const char* type = "device";
  if ((device.type & CL_DEVICE_TYPE_GPU) != 0) {
    type = "GPU";
  } else if ((device.type & CL_DEVICE_TYPE_ACCELERATOR) != 0) {
    type = "accelerator";
  } else if ((device.type & CL_DEVICE_TYPE_CPU) != 0) {
    type = "CPU";
  }
  return "[" + std::to_string(index) + "] " + device.name + " (" + device.platform + "), " + type + ", " +
         std::to_string(device.memory.value >> 20U) + " MiB" +
         (device.obstacle.empty() ? "" : " (cannot be used: " + device.obstacle + ")");
}

std::size_t choose(std::span<const Device> devices, std::string_view wanted) {
  std::vector<DeviceChoice> choices;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const Device& device = devices[i];
    choices.push_back({describe(device, i), {device.name, device.platform}, preference(device), device.obstacle});
  }
  return choose_device(choices, wanted, "OpenCL",
                       "There is no OpenCL device: install a driver (on Debian, pocl-opencl-icd runs on any CPU).");
}

}  // namespace swapmm::opencl
