// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "../device.hpp"
#include "../facts/kernel_facts.hpp"
#include "../kernel.hpp"
#include "../process/settings.hpp"
#include "../queue.hpp"
#include "install.hpp"

namespace swapmm::opencl::layer::api {
namespace {

// Extensions whose functions would get objects of the layer, and that the layer does not implement. Programs do not see
// them. `cl_khr_command_buffer` stands for all names that begin with it.
constexpr std::array hidden = {
    std::string_view("cl_khr_command_buffer"),
    std::string_view("cl_khr_semaphore"),
    std::string_view("cl_khr_external_"),
    std::string_view("cl_khr_d3d10_sharing"),
    std::string_view("cl_khr_d3d11_sharing"),
    std::string_view("cl_khr_dx9_media_sharing"),
    std::string_view("cl_khr_suggested_local_work_size"),
    std::string_view("cl_intel_unified_shared_memory"),
    std::string_view("cl_intel_accelerator"),
    std::string_view("cl_intel_motion_estimation"),
    std::string_view("cl_intel_va_api_media_sharing"),
    std::string_view("cl_intel_d3d9_media_sharing"),
    std::string_view("cl_intel_dx9_media_sharing"),
    std::string_view("cl_intel_create_buffer_with_properties"),
    std::string_view("cl_intel_program_scope_host_pipe"),
    std::string_view("cl_intel_mem_"),
    std::string_view("cl_intel_global_variable_access"),
    std::string_view("cl_intel_variable_eu_thread_count"),
    std::string_view("cl_intel_concurrent_dispatch"),
    std::string_view("cl_ext_migrate_memobject"),
    std::string_view("cl_ext_buffer_device_address"),
    std::string_view("cl_amd_bus_addressable_memory"),
    std::string_view("cl_arm_import_memory"),
    std::string_view("cl_arm_shared_virtual_memory"),
    std::string_view("cl_arm_printf"),
    std::string_view("cl_qcom_"),
    std::string_view("cl_img_"),
    std::string_view("cl_nv_create_buffer"),
    std::string_view("cl_nv_d3d"),
    std::string_view("cl_APPLE_"),
    std::string_view("cl_pocl_content_size"),
    std::string_view("cl_pocl_command_buffer"),
    std::string_view("cl_pocl_svm_rect"),
};

bool is_hidden(std::string_view extension) {
  return std::any_of(hidden.begin(), hidden.end(), [&](std::string_view each) { return extension.starts_with(each); });
}

std::string visible(std::string_view extensions) {
  std::string kept;
  while (!extensions.empty()) {
    const std::size_t end = std::min(extensions.find(' '), extensions.size());
    const std::string_view name = extensions.substr(0, end);
    if (!name.empty() && !is_hidden(name)) {
      if (!kept.empty()) kept += ' ';
      kept += name;
    }
    extensions.remove_prefix(std::min(end + 1, extensions.size()));
  }
  return kept;
}

// `ask(size, into, needed)` is a query of the driver's.
template <class Ask>
cl_int text_answer(Ask&& ask, size_t size, void* into, size_t* needed) {
  std::size_t bytes = 0;
  if (const cl_int status = ask(0, nullptr, &bytes); status != CL_SUCCESS) return status;
  std::string text(bytes, '\0');
  if (const cl_int status = ask(bytes, text.data(), nullptr); status != CL_SUCCESS) return status;
  const std::string kept = visible(text.c_str());
  return answer(kept.c_str(), kept.size() + 1, size, into, needed);
}

// Programs keep binaries of their kernels by the driver's version. The layer learns what a kernel does from its source:
// with another version they give it once more, and again when the analysis has another version, for what was learned
// before is not understood then.
template <class Ask>
cl_int version_answer(Ask&& ask, size_t size, void* into, size_t* needed) {
  if (settings().analysis == Analysis::off) return ask(size, into, needed);
  std::size_t bytes = 0;
  if (const cl_int status = ask(0, nullptr, &bytes); status != CL_SUCCESS) return status;
  std::string text(bytes, '\0');
  if (const cl_int status = ask(bytes, text.data(), nullptr); status != CL_SUCCESS) return status;
  const std::string_view analysis = facts::first_line.substr(facts::first_line.rfind(' '));
  const std::string version = text.substr(0, text.find('\0')) + " swapmm" + std::string(analysis);
  return answer(version.c_str(), version.size() + 1, size, into, needed);
}

template <class Ask>
cl_int versions_answer(Ask&& ask, size_t size, void* into, size_t* needed) {
  std::size_t bytes = 0;
  if (const cl_int status = ask(0, nullptr, &bytes); status != CL_SUCCESS) return status;
  std::vector<cl_name_version> all(bytes / sizeof(cl_name_version));
  if (const cl_int status = ask(bytes, all.data(), nullptr); status != CL_SUCCESS) return status;
  std::erase_if(all, [](const cl_name_version& each) { return is_hidden(each.name); });
  return answer(all.data(), all.size() * sizeof(cl_name_version), size, into, needed);
}

cl_int CL_API_CALL platform_info(cl_platform_id platform, cl_platform_info what, size_t size, void* into,
                                 size_t* needed) {
  const auto ask = [&](std::size_t bytes, void* to, std::size_t* need) {
    return down.clGetPlatformInfo(platform, what, bytes, to, need);
  };
  if (what == CL_PLATFORM_EXTENSIONS) return text_answer(ask, size, into, needed);
  if (what == CL_PLATFORM_EXTENSIONS_WITH_VERSION) return versions_answer(ask, size, into, needed);
  return ask(size, into, needed);
}

template <class Value>
cl_int own_value(cl_device_id device, cl_device_info what, Value& value) {
  return down.clGetDeviceInfo(device, what, sizeof value, &value, nullptr);
}

cl_int memory_answer(cl_device_id device, cl_device_info what, size_t size, void* into, size_t* needed) {
  cl_ulong memory = 0;
  cl_ulong largest = 0;
  cl_int status = own_value(device, CL_DEVICE_GLOBAL_MEM_SIZE, memory);
  if (status == CL_SUCCESS) status = own_value(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, largest);
  if (status != CL_SUCCESS) return status;
  DeviceBudget::Reported told{Bytes{memory}, Bytes{largest}};
  if (const DeviceBudget* const budget = DeviceBudget::of(device); budget != nullptr) told = budget->reported(told);
  if (what == CL_DEVICE_GLOBAL_MEM_SIZE) return answer(told.memory.value, size, into, needed);
  if (what == CL_DEVICE_MAX_MEM_ALLOC_SIZE) return answer(told.largest.value, size, into, needed);
  // A pixel has at least one byte.
  size_t pixels = 0;
  if (status = own_value(device, what, pixels); status != CL_SUCCESS) return status;
  return answer(std::min(pixels, static_cast<size_t>(told.largest.value)), size, into, needed);
}

cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t size, void* into, size_t* needed) {
  const auto ask = [&](std::size_t bytes, void* to, std::size_t* need) {
    return down.clGetDeviceInfo(device, what, bytes, to, need);
  };
  switch (what) {
    case CL_DRIVER_VERSION: return version_answer(ask, size, into, needed);
    case CL_DEVICE_EXTENSIONS: return text_answer(ask, size, into, needed);
    case CL_DEVICE_EXTENSIONS_WITH_VERSION: return versions_answer(ask, size, into, needed);
    case CL_DEVICE_GLOBAL_MEM_SIZE:
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
    case CL_DEVICE_IMAGE_MAX_BUFFER_SIZE: return memory_answer(device, what, size, into, needed);
    default: return ask(size, into, needed);
  }
}

// ---- functions of extensions

const cl_icd_dispatch* table_of_layer = nullptr;

// A function of the driver would get objects of the layer. So the layer hands out its own, and those of the driver that
// only get platforms, devices, contexts, programs and samplers.
void* extension_function(std::string_view name, void* (*ask)(void*, const char*), void* asked) {
  const cl_icd_dispatch& table = *table_of_layer;
  struct Known {
    std::string_view name;
    void* function;
  };
  const auto pointer = [](auto function) { return reinterpret_cast<void*>(function); };
  const std::array known = {
      Known{"clCreateCommandQueueWithPropertiesKHR", pointer(table.clCreateCommandQueueWithProperties)},
      Known{"clGetKernelSubGroupInfoKHR", pointer(table.clGetKernelSubGroupInfoKHR)},
      Known{"clCreateFromGLBuffer", pointer(table.clCreateFromGLBuffer)},
      Known{"clCreateFromGLTexture", pointer(table.clCreateFromGLTexture)},
      Known{"clCreateFromGLTexture2D", pointer(table.clCreateFromGLTexture2D)},
      Known{"clCreateFromGLTexture3D", pointer(table.clCreateFromGLTexture3D)},
      Known{"clCreateFromGLRenderbuffer", pointer(table.clCreateFromGLRenderbuffer)},
      Known{"clGetGLObjectInfo", pointer(table.clGetGLObjectInfo)},
      Known{"clGetGLTextureInfo", pointer(table.clGetGLTextureInfo)},
      Known{"clEnqueueAcquireGLObjects", pointer(table.clEnqueueAcquireGLObjects)},
      Known{"clEnqueueReleaseGLObjects", pointer(table.clEnqueueReleaseGLObjects)},
      Known{"clCreateEventFromGLsyncKHR", pointer(table.clCreateEventFromGLsyncKHR)},
      Known{"clCreateFromEGLImageKHR", pointer(table.clCreateFromEGLImageKHR)},
      Known{"clEnqueueAcquireEGLObjectsKHR", pointer(table.clEnqueueAcquireEGLObjectsKHR)},
      Known{"clEnqueueReleaseEGLObjectsKHR", pointer(table.clEnqueueReleaseEGLObjectsKHR)},
      Known{"clCreateEventFromEGLSyncKHR", pointer(table.clCreateEventFromEGLSyncKHR)},
  };
  constexpr std::array harmless = {
      std::string_view("clIcdGetPlatformIDsKHR"),      std::string_view("clCreateProgramWithILKHR"),
      std::string_view("clGetGLContextInfoKHR"),       std::string_view("clTerminateContextKHR"),
      std::string_view("clCreateSubDevicesEXT"),       std::string_view("clRetainDeviceEXT"),
      std::string_view("clReleaseDeviceEXT"),          std::string_view("clGetDeviceIDsFromVA_APIMediaAdapterINTEL"),
      std::string_view("clSetProgramReleaseCallback"), std::string_view("clSetProgramSpecializationConstant"),
  };
  for (const Known& each : known) {
    // Only if the driver has it, too.
    if (each.name == name) return ask(asked, std::string(name).c_str()) == nullptr ? nullptr : each.function;
  }
  if (std::find(harmless.begin(), harmless.end(), name) == harmless.end()) return nullptr;
  return ask(asked, std::string(name).c_str());
}

void* CL_API_CALL function_for_platform(cl_platform_id platform, const char* name) {
  if (name == nullptr) return nullptr;
  return extension_function(
      name,
      [](void* asked, const char* wanted) {
        return down.clGetExtensionFunctionAddressForPlatform(static_cast<cl_platform_id>(asked), wanted);
      },
      platform);
}

void* CL_API_CALL function_by_name(const char* name) {
  if (name == nullptr) return nullptr;
  return extension_function(
      name, [](void*, const char* wanted) { return down.clGetExtensionFunctionAddress(wanted); }, nullptr);
}

}  // namespace

void install_platform(cl_icd_dispatch& table) {
  table_of_layer = &table;
  table.clGetPlatformInfo = platform_info;
  table.clGetDeviceInfo = device_info;
  table.clGetExtensionFunctionAddressForPlatform = function_for_platform;
  table.clGetExtensionFunctionAddress = function_by_name;
}

}  // namespace swapmm::opencl::layer::api
