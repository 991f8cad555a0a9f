// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include <mutex>
#include <unordered_map>

#include "../process/environment.hpp"

namespace swapmm::opencl::layer::facts {
namespace {

std::string text_of(cl_device_id device, cl_device_info what) {
  std::size_t bytes = 0;
  if (down.clGetDeviceInfo(device, what, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return {};
  std::string text(bytes, '\0');
  if (down.clGetDeviceInfo(device, what, bytes, text.data(), nullptr) != CL_SUCCESS) return {};
  text.resize(bytes - 1);
  return text;
}

template <class Value>
Value value_of(cl_device_id device, cl_device_info what) {
  Value value{};
  (void)down.clGetDeviceInfo(device, what, sizeof value, &value, nullptr);
  return value;
}

// "OpenCL 1.2 ..." as __OPENCL_VERSION__ has it.
std::string version_of(const std::string& text) {
  constexpr std::size_t at = 7;
  if (text.size() < at + 3 || text[at + 1] != '.') return {};
  return std::string{text[at], text[at + 2], '0'};
}

// Options that the driver adds by itself may define anything.
bool driver_has_options() {
  for (const char* const name : {"POCL_EXTRA_BUILD_FLAGS", "AMD_OCL_BUILD_OPTIONS", "AMD_OCL_BUILD_OPTIONS_APPEND",
                                 "IGC_ExtraOCLOptions", "IGC_ExtraOCLInternalOptions"}) {
    if (variable(name) != nullptr) return true;
  }
  return false;
}

DeviceFacts read(cl_device_id device) {
  DeviceFacts facts;
  facts.version = version_of(text_of(device, CL_DEVICE_VERSION));
  const auto bits = value_of<cl_uint>(device, CL_DEVICE_ADDRESS_BITS);
  facts.usable = !facts.version.empty() && value_of<cl_bool>(device, CL_DEVICE_ENDIAN_LITTLE) == CL_TRUE &&
                 (bits == 32 || bits == 64) && !driver_has_options();
  add_field(facts.fields, "address_bits", std::to_string(bits));
  add_field(facts.fields, "version", facts.version);
  add_field(facts.fields, "c_version", facts.version < "120" ? "CL1.1" : "CL1.2");
  add_field(facts.fields, "extensions", text_of(device, CL_DEVICE_EXTENSIONS));
  add_field(facts.fields, "images", value_of<cl_bool>(device, CL_DEVICE_IMAGE_SUPPORT) == CL_TRUE ? "1" : "0");
  for (const auto each : {CL_DEVICE_NAME, CL_DEVICE_VENDOR, CL_DEVICE_VERSION, CL_DRIVER_VERSION}) {
    facts.name += text_of(device, static_cast<cl_device_info>(each)) + "\n";
  }
  return facts;
}

}  // namespace

const DeviceFacts& device_facts(cl_device_id device) {
  struct Known {
    std::mutex mutex;
    std::unordered_map<cl_device_id, DeviceFacts> all;
  };
  static Known& known = *new Known;
  const std::lock_guard lock(known.mutex);
  const auto [found, is_new] = known.all.try_emplace(device);
  if (is_new) found->second = read(device);
  return found->second;
}

void add_field(std::string& request, const std::string& name, const std::string& value) {
  request += name + " " + std::to_string(value.size()) + "\n" + value + "\n";
}

}  // namespace swapmm::opencl::layer::facts
