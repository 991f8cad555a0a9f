// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>

#include "api/install.hpp"
#include "loader/other_loaders.hpp"
#include "loader/table.hpp"
#include "process/settings.hpp"
#include "profile/pictures.hpp"
#include "record/calls/install.hpp"
#include "report/report.hpp"

// What the loader calls. ocl-icd asks for clInitLayer, Khronos' loader for clInitLayerWithProperties.

namespace swapmm::opencl::layer {

cl_icd_dispatch down{};

namespace {

cl_icd_dispatch table{};

// Entries that the driver's side does not have stay empty, so that the loader fills them as it does without a layer.
template <class Entry>
void keep_if_known(Entry& ours, const Entry& below) {
  if (below == nullptr) ours = nullptr;
}

void tell_started() {
  const std::string& file = settings().started;
  if (file.empty()) return;
  // One write of one line, so that processes that start together do not mix theirs.
  const std::string line = std::to_string(getpid()) + "\n";
  if (std::FILE* const out = std::fopen(file.c_str(), "ae")) {
    (void)std::fwrite(line.data(), 1, line.size(), out);
    (void)std::fclose(out);
  }
}

void start(const cl_icd_dispatch* target, cl_uint entries) {
  std::memcpy(&down, target, std::min<std::size_t>(entries * sizeof(void*), sizeof down));
  table = down;
  api::install_platform(table);
  api::install_contexts(table);
  api::install_memory(table);
  api::install_images(table);
  api::install_sharing(table);
  api::install_programs(table);
  api::install_kernels(table);
  api::install_transfers(table);
  api::install_rectangles(table);
  api::install_maps(table);
  api::install_image_commands(table);
  api::install_events(table);
  api::install_svm(table);
#define SWAPMM_ENTRY(name) keep_if_known(table.name, down.name);
#include "loader/entries.inc"
#undef SWAPMM_ENTRY
  record::install(table);
  watch_for_other_loaders(table);
  tell_started();
  start_report();
  start_pictures();
}

// The loader stays. If the program unloads the library that brought it in, and loads it again, the loader may lie
// elsewhere the second time, but the layer is still there, and so are commands that it sends through the first one's
// functions.
void keep_loaded(const void* inside_loader) {
  Dl_info loader{};
  if (dladdr(inside_loader, &loader) == 0 || loader.dli_fname == nullptr) return;
  (void)dlopen(loader.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);  // null if it is the program itself
}

// The functions of OpenCL 1.2 at least.
constexpr cl_uint least_entries = offsetof(cl_icd_dispatch, clCreateFromGLTexture) / sizeof(void*) + 1;

cl_int init(cl_uint entries, const cl_icd_dispatch* target, cl_uint* count, const cl_icd_dispatch** result,
            const void* loader) {
  if (target == nullptr || count == nullptr || result == nullptr) return CL_INVALID_VALUE;
  if (settings().disabled) return CL_INVALID_OPERATION;
  if (entries < least_entries) {
    say("the OpenCL loader knows " + std::to_string(entries) + " functions; the layer needs " +
        std::to_string(least_entries) + ": it is not used");
    return CL_INVALID_OPERATION;
  }
  keep_loaded(loader);
  loader_found_us(loader);
  static std::once_flag once;
  std::call_once(once, [&] {
    restore_layer_list();
    start(target, entries);
  });
  *count = std::min<cl_uint>(entries, sizeof table / sizeof(void*));
  *result = &table;
  return CL_SUCCESS;
}

}  // namespace

const cl_icd_dispatch& layer_table() { return table; }

}  // namespace swapmm::opencl::layer

// NOLINTBEGIN(readability-identifier-naming, readability-inconsistent-declaration-parameter-name): the loader's names
#define SWAPMM_LAYER_API extern "C" __attribute__((visibility("default")))

SWAPMM_LAYER_API cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t size, void* into, size_t* needed) {
  using swapmm::opencl::layer::api::answer;
  constexpr std::string_view name = "swapmm " SWAPMM_LAYER_VERSION;
  switch (what) {
    case CL_LAYER_API_VERSION: return answer(cl_layer_api_version{CL_LAYER_API_VERSION_100}, size, into, needed);
    case CL_LAYER_NAME: return answer(name.data(), name.size() + 1, size, into, needed);
    default: return CL_INVALID_VALUE;
  }
}

SWAPMM_LAYER_API cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch* target, cl_uint* count,
                                                const cl_icd_dispatch** result) {
  return swapmm::opencl::layer::init(entries, target, count, result, __builtin_return_address(0));
}

// Newer than Debian 12's header.
SWAPMM_LAYER_API cl_int CL_API_CALL clInitLayerWithProperties(cl_uint entries, const cl_icd_dispatch* target,
                                                              cl_uint* count, const cl_icd_dispatch** result,
                                                              const cl_properties* /*properties*/) {
  return swapmm::opencl::layer::init(entries, target, count, result, __builtin_return_address(0));
}

// The program's last use of the loader is over; the driver may be gone. Nothing is released here.
SWAPMM_LAYER_API cl_int CL_API_CALL clDeinitLayer(void) { return CL_SUCCESS; }
// NOLINTEND(readability-identifier-naming, readability-inconsistent-declaration-parameter-name)
