// SPDX-License-Identifier: Apache-2.0
#include <swapmm/cuda/devices.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <cuda_runtime_api.h>

#include <swapmm/backend/device_choice.hpp>
#include <swapmm/cuda/status.hpp>

namespace swapmm::cuda {

namespace {

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// The runtime also reports "insufficient driver" if no driver is installed.
std::string driver_text() {
  int driver = 0;
  int runtime = 0;
  (void)cudaDriverGetVersion(&driver);
  (void)cudaRuntimeGetVersion(&runtime);
  if (driver == 0) return "There is no CUDA device: no NVIDIA driver is installed.";
  return "There is no CUDA device: the driver is for CUDA " + version_text(driver) + ", and this program needs " +
         version_text(runtime) + ".";
}

Device look_at(int number) {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, number), "cudaGetDeviceProperties");
  Device device;
  device.number = number;
  device.name = properties.name;
  device.compute_major = properties.major;
  device.compute_minor = properties.minor;
  device.memory = Bytes{properties.totalGlobalMem};
  std::array<char, 32> bus{};
  check(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), number), "cudaDeviceGetPCIBusId");
  device.bus = bus.data();
  for (char& c : device.bus) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  device.shares_memory = properties.integrated != 0;
  if (device.shares_memory) {
    device.obstacle = "it shares the host's memory, so that swapping would free nothing";
  }
  return device;
}

}  // namespace

DeviceList devices() {
  DeviceList list;
  int count = 0;  // unchanged if the call fails
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver || status == cudaErrorNoDevice) {
    forget(status);
    list.why_none = status == cudaErrorNoDevice
                        ? "There is no CUDA device: the driver finds none (or CUDA_VISIBLE_DEVICES hides all)."
                        : driver_text();
    return list;
  }
  check(status, "cudaGetDeviceCount");
  for (int number = 0; number < count; ++number) list.devices.push_back(look_at(number));
  if (count == 0) list.why_none = "There is no CUDA device.";
  return list;
}

std::string describe(const Device& device) {
  return "[" + std::to_string(device.number) + "] " + device.name + " (" + std::to_string(device.compute_major) + "." +
         std::to_string(device.compute_minor) + "), " + std::to_string(device.memory.value >> 20U) + " MiB" +
         (device.obstacle.empty() ? "" : " (cannot be used: " + device.obstacle + ")");
}

std::size_t choose(const DeviceList& list, std::string_view wanted) {
  std::vector<DeviceChoice> choices;
  for (const Device& device : list.devices) {
    // Devices with more memory are preferred.
    const auto smaller = [&](const Device& other) { return other.memory < device.memory; };
    const auto rank = std::count_if(list.devices.begin(), list.devices.end(), smaller);
    choices.push_back({describe(device), {device.name}, static_cast<int>(rank), device.obstacle});
  }
  return choose_device(choices, wanted, "CUDA", list.why_none);
}

}  // namespace swapmm::cuda
