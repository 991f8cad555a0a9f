// SPDX-License-Identifier: Apache-2.0
// The device, the kernels and the buffers that most cases use.

#include "harness.hpp"

namespace cases {
namespace {

// One source for all: the driver compiles it once and keeps it.
const char* const common_source = R"(
kernel void blend(global uint* to, global const uint* a, global const uint* b) {
  size_t i = get_global_id(0);
  to[i] = 3u * a[i] + 5u * b[i] + (uint)i;
}
kernel void grow(global uint* data, uint by) {
  size_t i = get_global_id(0);
  data[i] = 7u * data[i] + by;
}
kernel void affine(global uint* to, global const uint* from, uint by) {
  size_t i = get_global_id(0);
  to[i] = 3u * from[i] + by;
}
kernel void stamp(global uint* to, uint value) { to[get_global_id(0)] = value; }
kernel void places(global uint* to) {
  size_t row = get_global_id(1) + get_global_size(1) * get_global_id(2);
  to[get_global_id(0) + get_global_size(0) * row] = (uint)(get_global_id(0) + 1000u * get_global_id(1) + 1000000u * get_global_id(2));
}
kernel void offsets(global uint* to) { to[get_global_id(0)] = (uint)(get_global_id(0) + 100u * get_global_offset(0)); }
kernel void null_or_not(global uint* to, global const uint* from) {
  size_t i = get_global_id(0);
  to[i] = from ? from[i] + 1u : 77u;
}
kernel void reversed(global uint* to, global const uint* from, local uint* scratch) {
  size_t l = get_local_id(0), n = get_local_size(0);
  scratch[l] = from[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  to[get_global_id(0)] = scratch[n - 1 - l];
}
typedef struct { uint factor; uchar kind; ulong added; } Parameters;
kernel void structured(global uint* to, global const uint* from, Parameters p) {
  size_t i = get_global_id(0);
  to[i] = p.factor * from[i] + p.kind + (uint)p.added;
}
kernel void looked_up(global uint* to, constant uint* table, uint entries) {
  size_t i = get_global_id(0);
  to[i] = table[i % entries] + (uint)i;
}
kernel void wide(global uint* to, ulong value) { to[get_global_id(0)] = (uint)(value >> 32) ^ (uint)value; }
kernel void one(global uint* to) { to[0] = to[0] + 1u; }
)";

}  // namespace

cl_device_id first_device(cl_platform_id* platform) {
  cl_platform_id first = nullptr;
  OK(clGetPlatformIDs(1, &first, nullptr));
  cl_device_id device = nullptr;
  OK(clGetDeviceIDs(first, CL_DEVICE_TYPE_ALL, 1, &device, nullptr));
  if (platform != nullptr) *platform = first;
  return device;
}

Setup::Setup(cl_command_queue_properties properties) {
  device = first_device(&platform);
  cl_int error = CL_SUCCESS;
  context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
  OK(error);
  queue = another_queue(properties);
  program = build(common_source);
}

Setup::~Setup() {
  clReleaseProgram(program);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
}

cl_mem Setup::buffer(std::size_t bytes, cl_mem_flags flags, void* host) const {
  cl_int error = CL_SUCCESS;
  const cl_mem made = clCreateBuffer(context, flags, bytes, host, &error);
  OK(error);
  return made;
}

cl_mem Setup::buffer_of(const Words& words, cl_mem_flags flags) const {
  // COPY_HOST_PTR reads only.
  return buffer(words.size() * sizeof(cl_uint), flags | CL_MEM_COPY_HOST_PTR, const_cast<cl_uint*>(words.data()));
}

cl_command_queue Setup::another_queue(cl_command_queue_properties properties) const {
  cl_int error = CL_SUCCESS;
  const cl_command_queue made = clCreateCommandQueue(context, device, properties, &error);
  OK(error);
  return made;
}

cl_kernel Setup::kernel(const char* name) const {
  cl_int error = CL_SUCCESS;
  const cl_kernel made = clCreateKernel(program, name, &error);
  OK(error);
  return made;
}

cl_program Setup::build(const char* source, const char* options) const {
  cl_int error = CL_SUCCESS;
  const cl_program made = clCreateProgramWithSource(context, 1, &source, nullptr, &error);
  OK(error);
  OK(clBuildProgram(made, 1, &device, options, nullptr, nullptr));
  return made;
}

Words Setup::read(cl_mem object, std::size_t count) const {
  Words words(count);
  OK(clEnqueueReadBuffer(queue, object, CL_TRUE, 0, count * sizeof(cl_uint), words.data(), 0, nullptr, nullptr));
  return words;
}

std::vector<cl_mem> buffers_of(const Setup& setup, cl_uint count, cl_uint seed) {
  std::vector<cl_mem> made;
  for (cl_uint i = 0; i < count; ++i) made.push_back(setup.buffer_of(numbers(seed + i)));
  return made;
}

void release_buffers(const std::vector<cl_mem>& buffers) {
  for (cl_mem one : buffers) OK(clReleaseMemObject(one));
}
void release_events(const std::vector<cl_event>& events) {
  for (cl_event one : events) OK(clReleaseEvent(one));
}

void launch(cl_command_queue queue, cl_kernel kernel, std::size_t count, const std::vector<cl_event>& waits,
            cl_event* event) {
  OK(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &count, nullptr, static_cast<cl_uint>(waits.size()),
                            waits.empty() ? nullptr : waits.data(), event));
}

Kernels::Kernels(const Setup& setup)
    : blend_kernel(setup.kernel("blend")), grow_kernel(setup.kernel("grow")), affine_kernel(setup.kernel("affine")) {}

Kernels::~Kernels() {
  clReleaseKernel(blend_kernel);
  clReleaseKernel(grow_kernel);
  clReleaseKernel(affine_kernel);
}

void Kernels::blend(cl_command_queue queue, cl_mem to, cl_mem a, cl_mem b, std::size_t count,
                    const std::vector<cl_event>& waits, cl_event* event) const {
  set_argument(blend_kernel, 0, to);
  set_argument(blend_kernel, 1, a);
  set_argument(blend_kernel, 2, b);
  launch(queue, blend_kernel, count, waits, event);
}

void Kernels::grow(cl_command_queue queue, cl_mem data, cl_uint by, std::size_t count,
                   const std::vector<cl_event>& waits, cl_event* event) const {
  set_argument(grow_kernel, 0, data);
  set_argument(grow_kernel, 1, by);
  launch(queue, grow_kernel, count, waits, event);
}

void Kernels::affine(cl_command_queue queue, cl_mem to, cl_mem from, cl_uint by, std::size_t count,
                     const std::vector<cl_event>& waits, cl_event* event) const {
  set_argument(affine_kernel, 0, to);
  set_argument(affine_kernel, 1, from);
  set_argument(affine_kernel, 2, by);
  launch(queue, affine_kernel, count, waits, event);
}

}  // namespace cases
