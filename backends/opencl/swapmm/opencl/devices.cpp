// SPDX-License-Identifier: Apache-2.0
#include <swapmm/opencl/devices.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/error.hpp>
#include <swapmm/opencl/info.hpp>
#include <swapmm/opencl/status.hpp>

namespace swapmm::opencl {

namespace {

constexpr cl_int no_platform = -1001;  // CL_PLATFORM_NOT_FOUND_KHR: the loader found no driver

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

bool contains(const std::string& text, std::string_view part) { return lower(text).find(part) != std::string::npos; }

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
  device.shares_memory = shares_memory(id);
  device.obstacle = obstacle(device, device_value<cl_bool>(id, CL_DEVICE_AVAILABLE) != CL_FALSE);
  return device;
}

std::string list(std::span<const Device> devices) {
  std::string text;
  for (std::size_t i = 0; i < devices.size(); ++i) text += "\n  " + describe(devices[i], i);
  return text.empty() ? "\nThere is no OpenCL device: install a driver (on Debian, pocl-opencl-icd runs on any CPU)."
                      : "\nThere is:" + text;
}

// The higher, the rather: simulators for debugging before what cannot be used at all, then software, CPUs, GPUs.
int preference(const Device& device) {
  if (!device.obstacle.empty()) return 0;
  if (contains(device.platform, "oclgrind") || contains(device.name, "oclgrind")) return 1;
  if (contains(device.name, "llvmpipe") || contains(device.name, "softpipe")) return 2;
  if ((device.type & CL_DEVICE_TYPE_GPU) != 0) return 5;
  if ((device.type & CL_DEVICE_TYPE_ACCELERATOR) != 0) return 4;
  return 3;
}

std::size_t usable(std::span<const Device> devices, std::size_t index) {
  if (devices[index].obstacle.empty()) return index;
  throw UsageError("OpenCL device " + describe(devices[index], index) + " was asked for, but " +
                   devices[index].obstacle + "." + list(devices));
}

std::optional<std::size_t> as_index(std::string_view text) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return index;
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
      continue;  // a driver without a device
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
  if (wanted.empty()) {
    const auto best = std::max_element(devices.begin(), devices.end(),
                                       [](const Device& a, const Device& b) { return preference(a) < preference(b); });
    if (best == devices.end() || preference(*best) == 0) {
      throw UsageError("no OpenCL device can be used." + list(devices));
    }
    return static_cast<std::size_t>(best - devices.begin());
  }
  if (const auto index = as_index(wanted)) {
    if (*index < devices.size()) return usable(devices, *index);
    throw UsageError("there is no OpenCL device with index " + std::string(wanted) + "." + list(devices));
  }
  const std::string part = lower(wanted);
  std::optional<std::size_t> match;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!contains(devices[i].name, part) && !contains(devices[i].platform, part)) continue;
    if (match) {
      throw UsageError("more than one OpenCL device is called \"" + std::string(wanted) + "\": give its index." +
                       list(devices));
    }
    match = i;
  }
  if (!match) throw UsageError("no OpenCL device is called \"" + std::string(wanted) + "\"." + list(devices));
  return usable(devices, *match);
}

}  // namespace swapmm::opencl
