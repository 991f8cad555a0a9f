// SPDX-License-Identifier: Apache-2.0
#include "kernels.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "memory.hpp"

namespace watch {
namespace {

const cl_icd_dispatch* down_kernels = nullptr;

struct Kernels {
  std::mutex mutex;
  std::unordered_map<cl_kernel, std::map<cl_uint, cl_mem>> arguments;
};
Kernels& kernels() {
  static auto& kept = *new Kernels;
  return kept;
}

void made_kernel(cl_kernel kernel) {
  const std::lock_guard lock(kernels().mutex);
  kernels().arguments[kernel].clear();
}

cl_kernel CL_API_CALL create_kernel(cl_program program, const char* name, cl_int* error) {
  const cl_kernel made = down_kernels->clCreateKernel(program, name, error);
  if (made != nullptr) made_kernel(made);
  return made;
}

cl_int CL_API_CALL create_kernels(cl_program program, cl_uint count, cl_kernel* made, cl_uint* made_count) {
  cl_uint got = 0;
  const cl_int status = down_kernels->clCreateKernelsInProgram(program, count, made, &got);
  if (made_count != nullptr) *made_count = got;
  if (status == CL_SUCCESS && made != nullptr) std::for_each(made, made + std::min(count, got), made_kernel);
  return status;
}

cl_kernel CL_API_CALL clone_kernel(cl_kernel kernel, cl_int* error) {
  const cl_kernel made = down_kernels->clCloneKernel(kernel, error);
  const std::lock_guard lock(kernels().mutex);
  if (made != nullptr) {
    auto copied = kernels().arguments[kernel];
    kernels().arguments[made] = std::move(copied);
  }
  return made;
}

// A scalar that equals a live object's address is taken for the object: the figures may then be too large.
cl_int CL_API_CALL set_argument(cl_kernel kernel, cl_uint index, std::size_t bytes, const void* value) {
  const cl_int status = down_kernels->clSetKernelArg(kernel, index, bytes, value);
  if (status != CL_SUCCESS) return status;
  cl_mem object = nullptr;
  if (value != nullptr && bytes == sizeof object) std::memcpy(&object, value, bytes);
  const bool is_object = object != nullptr && ledger().is_live(object);
  const std::lock_guard lock(kernels().mutex);
  if (is_object)
    kernels().arguments[kernel][index] = object;
  else
    kernels().arguments[kernel].erase(index);
  return status;
}

bool launched(cl_kernel kernel) {
  std::vector<cl_mem> objects;
  {
    const std::lock_guard lock(kernels().mutex);
    for (const auto& [index, object] : kernels().arguments[kernel]) objects.push_back(object);
  }
  return ledger().used(objects, true);
}

cl_int CL_API_CALL launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const std::size_t* offset,
                          const std::size_t* global, const std::size_t* local, cl_uint wait_count,
                          const cl_event* waits, cl_event* event) {
  if (!launched(kernel)) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
  return down_kernels->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, wait_count, waits,
                                              event);
}

cl_int CL_API_CALL task(cl_command_queue queue, cl_kernel kernel, cl_uint wait_count, const cl_event* waits,
                        cl_event* event) {
  if (!launched(kernel)) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
  return down_kernels->clEnqueueTask(queue, kernel, wait_count, waits, event);
}

cl_int CL_API_CALL native_kernel(cl_command_queue queue, void(CL_CALLBACK* function)(void*), void* arguments,
                                 std::size_t bytes, cl_uint object_count, const cl_mem* objects, const void** places,
                                 cl_uint wait_count, const cl_event* waits, cl_event* event) {
  const std::vector<cl_mem> used(objects, objects + (objects == nullptr ? 0 : object_count));
  if (!ledger().used(used, true)) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
  return down_kernels->clEnqueueNativeKernel(queue, function, arguments, bytes, object_count, objects, places,
                                             wait_count, waits, event);
}

}  // namespace

void watch_kernels(cl_icd_dispatch& table, const cl_icd_dispatch& below) {
  down_kernels = &below;
  table.clCreateKernel = create_kernel;
  table.clCreateKernelsInProgram = create_kernels;
  table.clCloneKernel = clone_kernel;
  table.clSetKernelArg = set_argument;
  table.clEnqueueNDRangeKernel = launch;
  table.clEnqueueTask = task;
  table.clEnqueueNativeKernel = native_kernel;
}

}  // namespace watch
