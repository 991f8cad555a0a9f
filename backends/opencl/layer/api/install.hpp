// SPDX-License-Identifier: Apache-2.0
#pragma once

// The functions that the layer puts into the loader's table, by theme. Each file of this folder defines the ones of
// its theme as the API describes them. A handle that is no object of the layer goes to the functions below.

#include <cstddef>
#include <cstring>

#include "../loader/table.hpp"

namespace swapmm::opencl::layer::api {

void install_platform(cl_icd_dispatch& table);
void install_contexts(cl_icd_dispatch& table);
void install_memory(cl_icd_dispatch& table);
void install_images(cl_icd_dispatch& table);
void install_sharing(cl_icd_dispatch& table);
void install_programs(cl_icd_dispatch& table);
void install_kernels(cl_icd_dispatch& table);
void install_transfers(cl_icd_dispatch& table);
void install_rectangles(cl_icd_dispatch& table);
void install_maps(cl_icd_dispatch& table);
void install_image_commands(cl_icd_dispatch& table);
void install_events(cl_icd_dispatch& table);
void install_svm(cl_icd_dispatch& table);

/// Sets the status of a call that returns a handle.
template <class T>
T result(T handle, cl_int status, cl_int* told) {
  if (told != nullptr) *told = status;
  return status == CL_SUCCESS ? handle : nullptr;
}

/// Answers a query with a value, as clGet...Info() do.
[[nodiscard]] inline cl_int answer(const void* value, std::size_t bytes, std::size_t size, void* into,
                                   std::size_t* needed) {
  if (into != nullptr && size < bytes) return CL_INVALID_VALUE;
  if (into != nullptr && bytes != 0) std::memcpy(into, value, bytes);
  if (needed != nullptr) *needed = bytes;
  return CL_SUCCESS;
}
template <class T>
[[nodiscard]] cl_int answer(const T& value, std::size_t size, void* into, std::size_t* needed) {
  return answer(&value, sizeof value, size, into, needed);
}

}  // namespace swapmm::opencl::layer::api
