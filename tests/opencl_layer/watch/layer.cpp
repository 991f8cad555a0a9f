// SPDX-License-Identifier: Apache-2.0
// A layer of OpenCL's loader that looks at the device from outside, below the layer under test. Environment:
//
//   WATCH_REPORT=FILE         JSON at exit: bytes, calls (see memory.hpp); %p in the name is the process id
//   WATCH_CAP=BYTES           refuses allocations beyond it, and counts them
//   WATCH_LARGEST=BYTES       what the driver tells as its largest allocation
//   WATCH_NO_ARGUMENT_INFO=1  refuses to build programs with -cl-kernel-arg-info, and knows nothing of arguments
//   WATCH_NVIDIA=1            looks like a GPU of NVIDIA's: see nvidia.hpp
//   WATCH_FAIL=NAME:N[:CODE]  the N-th call of this function fails (*: of any function); CL_OUT_OF_RESOURCES by
//   default;
//                             a line on standard error says which one it was
//
// Of several layers in OPENCL_LAYERS the last is called first, so this one stands first.

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <unistd.h>

#include "faults.hpp"
#include "memory.hpp"
#include "nvidia.hpp"
#include "opencl.hpp"

#include <CL/cl_layer.h>

namespace watch {
namespace {

// The loader may free its table: this one stays.
cl_icd_dispatch driver{}, pretended{}, with_ledger{}, table{};
bool started = false;

void number(std::FILE* file, const char* name, std::uint64_t value) {
  std::fprintf(file, "  \"%s\": %llu,\n", name, static_cast<unsigned long long>(value));
}

std::string report_path() {
  const char* path = secure_getenv("WATCH_REPORT");
  std::string name = path == nullptr ? "" : path;
  if (const auto at = name.find("%p"); at != std::string::npos) name.replace(at, 2, std::to_string(getpid()));
  return name;
}

// After all static objects of the program are gone.
__attribute__((destructor)) void report() {
  std::FILE* file = started ? std::fopen(report_path().c_str(), "w") : nullptr;
  if (file == nullptr) return;
  const Figures figures = ledger().figures();
  std::fprintf(file, "{\n");
  number(file, "cap", figures.cap);
  number(file, "peak", figures.peak);
  number(file, "live", figures.live);
  number(file, "pinned_peak", figures.pinned_peak);
  number(file, "fixed_peak", figures.fixed_peak);
  number(file, "refused", figures.refused);
  number(file, "largest_set", figures.largest_set);
  number(file, "largest_need", figures.largest_need);
  number(file, "largest_object", figures.largest_object);
  number(file, "out_of_order", nvidia::parts_released_out_of_order());
  number(file, "read", figures.read);
  number(file, "written", figures.written);
  const char* failed = failed_function_name();
  std::fprintf(file, "  \"failed_function\": \"%s\",\n  \"calls\": {", failed == nullptr ? "" : failed);
  const char* comma = "";
  for (const auto& [name, count] : calls()) {
    std::fprintf(file, "%s\n    \"%s\": %lu", comma, name.c_str(), count);
    comma = ",";
  }
  std::fprintf(file, "\n  }\n}\n");
  std::fclose(file);
}

cl_int tell(const void* value, std::size_t bytes, std::size_t room, void* to, std::size_t* needed) {
  if (to != nullptr && room < bytes) return CL_INVALID_VALUE;
  if (to != nullptr) std::memcpy(to, value, bytes);
  if (needed != nullptr) *needed = bytes;
  return CL_SUCCESS;
}

std::uint64_t largest = 0;

cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, std::size_t room, void* value,
                               std::size_t* needed) {
  if (what != CL_DEVICE_MAX_MEM_ALLOC_SIZE) return pretended.clGetDeviceInfo(device, what, room, value, needed);
  const cl_ulong told = largest;
  return tell(&told, sizeof told, room, value, needed);
}

bool asks_for_argument_info(const char* options) {
  return options != nullptr && std::strstr(options, "-cl-kernel-arg-info") != nullptr;
}

cl_int CL_API_CALL build(cl_program program, cl_uint count, const cl_device_id* devices, const char* options,
                         void(CL_CALLBACK* notify)(cl_program, void*), void* data) {
  if (asks_for_argument_info(options)) return CL_BUILD_PROGRAM_FAILURE;
  return driver.clBuildProgram(program, count, devices, options, notify, data);
}

cl_int CL_API_CALL compile(cl_program program, cl_uint count, const cl_device_id* devices, const char* options,
                           cl_uint headers, const cl_program* list, const char** names,
                           void(CL_CALLBACK* notify)(cl_program, void*), void* data) {
  if (asks_for_argument_info(options)) return CL_COMPILE_PROGRAM_FAILURE;
  return driver.clCompileProgram(program, count, devices, options, headers, list, names, notify, data);
}

cl_int CL_API_CALL argument_info(cl_kernel, cl_uint, cl_kernel_arg_info, std::size_t, void*, std::size_t*) {
  return CL_KERNEL_ARG_INFO_NOT_AVAILABLE;
}

cl_int start(cl_uint entries, const cl_icd_dispatch* below) {
  if (started) return CL_SUCCESS;
  std::memcpy(&driver, below, std::min(entries * sizeof(void*), sizeof driver));
  if (!read_fault()) {
    std::fprintf(stderr, "watch: WATCH_FAIL cannot be read\n");
    std::exit(2);
  }
  if (const char* cap = secure_getenv("WATCH_CAP")) ledger().set_cap(std::strtoull(cap, nullptr, 10));
  pretended = driver;
  if (secure_getenv("WATCH_NVIDIA") != nullptr) nvidia::pretend(pretended, driver);
  keep_ledger(with_ledger, pretended);
  if (const char* limit = secure_getenv("WATCH_LARGEST")) {
    largest = std::strtoull(limit, nullptr, 10);
    with_ledger.clGetDeviceInfo = device_info;
  }
  if (secure_getenv("WATCH_NO_ARGUMENT_INFO") != nullptr) {
    with_ledger.clBuildProgram = build;
    with_ledger.clCompileProgram = compile;
    with_ledger.clGetKernelArgInfo = argument_info;
  }
  table = with_ledger;
  count_and_fail(table, with_ledger);
  started = true;
  return CL_SUCCESS;
}

}  // namespace
}  // namespace watch

#define WATCH_EXPORT extern "C" __attribute__((visibility("default")))

WATCH_EXPORT cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, std::size_t room, void* value, std::size_t* needed) {
  const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
  if (name == CL_LAYER_API_VERSION) return watch::tell(&version, sizeof version, room, value, needed);
  if (name == CL_LAYER_NAME) return watch::tell("watch", sizeof "watch", room, value, needed);
  return CL_INVALID_VALUE;
}

WATCH_EXPORT cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch* below, cl_uint* entries_made,
                                            const cl_icd_dispatch** made) {
  if (below == nullptr || entries_made == nullptr || made == nullptr) return CL_INVALID_VALUE;
  *made = &watch::table;
  *entries_made = sizeof watch::table / sizeof(void*);
  return watch::start(entries, below);
}

// Khronos' loader asks for these two; Debian 12's header does not declare them.
extern "C" {
__attribute__((visibility("default"))) cl_int CL_API_CALL clInitLayerWithProperties(cl_uint entries,
                                                                                    const cl_icd_dispatch* below,
                                                                                    cl_uint* entries_made,
                                                                                    const cl_icd_dispatch** made,
                                                                                    const void* properties);
__attribute__((visibility("default"))) cl_int CL_API_CALL clDeinitLayer();
}

cl_int CL_API_CALL clInitLayerWithProperties(cl_uint entries, const cl_icd_dispatch* below, cl_uint* entries_made,
                                             const cl_icd_dispatch** made, const void*) {
  return clInitLayer(entries, below, entries_made, made);
}

cl_int CL_API_CALL clDeinitLayer() { return CL_SUCCESS; }
