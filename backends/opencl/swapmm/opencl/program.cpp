// SPDX-License-Identifier: Apache-2.0
#include <swapmm/opencl/program.hpp>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include <swapmm/base/error.hpp>
#include <swapmm/opencl/info.hpp>
#include <swapmm/opencl/status.hpp>

namespace swapmm::opencl {

namespace {

Handle<cl_program> program_of(cl_context context, std::string_view source) {
  const char* text = source.data();
  const std::size_t length = source.size();
  cl_int status = CL_SUCCESS;
  Handle<cl_program> program(clCreateProgramWithSource(context, 1, &text, &length, &status));
  check(status, "clCreateProgramWithSource");
  return program;
}

bool includes_kernel_header(std::string_view line) {
  std::string bare;
  for (const char c : line) {
    if (c != ' ' && c != '\t') bare += c;
  }
  return bare.starts_with("#include<swapmm/kernel.h>") || bare.starts_with("#include\"swapmm/kernel.h\"");
}

// Returns the source with each line that includes <swapmm/kernel.h> replaced by that header. Line numbers stay the
// same. Not every driver supports OpenCL's own way (clCompileProgram with headers).
std::string with_kernel_header(std::string_view source) {
  std::string text;
  std::size_t line = 1;
  for (std::size_t begin = 0; begin < source.size(); ++line) {
    const std::size_t end = std::min(source.find('\n', begin), source.size() - 1) + 1;
    const std::string_view whole_line = source.substr(begin, end - begin);
    if (includes_kernel_header(whole_line)) {
      text.append(kernel_header).append("\n#line " + std::to_string(line + 1) + "\n");
    } else {
      text.append(whole_line);
    }
    begin = end;
  }
  return text;
}

// Throws BackendError with the compiler's log.
void check_build(cl_int status, cl_program program, cl_device_id device) {
  if (status == CL_SUCCESS) return;
  const std::string log = detail::text_of(
      [&](std::size_t size, void* into, std::size_t* needed) {
        return clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, into, needed);
      },
      "clGetProgramBuildInfo");
  const BackendError error = error_of(status, "clBuildProgram");
  throw BackendError(error, std::string(error.what()) + (log.empty() ? "" : "\n" + log), {});
}

}  // namespace

Range::Range(std::initializer_list<std::size_t> sizes) : dimensions_(static_cast<cl_uint>(sizes.size())) {
  if (sizes.size() > sizes_.size()) throw UsageError("a kernel has at most 3 dimensions of work items");
  std::copy(sizes.begin(), sizes.end(), sizes_.begin());
}

Range Range::of(const Shape& shape) {
  Range range;
  if (shape.rank() > range.sizes_.size()) {
    throw UsageError("a kernel has at most 3 dimensions of work items, and this shape has " +
                     std::to_string(shape.rank()) + " extents (" + shape.text() + "): reshape the tensor");
  }
  range.dimensions_ = static_cast<cl_uint>(shape.rank());
  for (std::size_t i = 0; i < shape.rank(); ++i) range.sizes_[i] = shape[shape.rank() - 1 - i];
  return range;
}

void Kernel::enqueue(cl_command_queue queue, const Range& global, const Range& local) const {
  const cl_int status = clEnqueueNDRangeKernel(queue, kernel_.get(), global.dimensions(), nullptr, global.data(),
                                               local.data(), 0, nullptr, nullptr);
  if (status != CL_SUCCESS) refuse(status, "clEnqueueNDRangeKernel");
}

NativeEvent Kernel::enqueue(cl_command_queue queue, const Range& global, const Range& local,
                            const WaitList& waits) const {
  cl_event event = nullptr;
  const cl_int status = clEnqueueNDRangeKernel(queue, kernel_.get(), global.dimensions(), nullptr, global.data(),
                                               local.data(), waits.size(), waits.data(), &event);
  if (status != CL_SUCCESS) refuse(status, "clEnqueueNDRangeKernel");
  return event;
}

void Kernel::refuse(cl_int status, const std::string& what) const {
  throw error_of(status, "kernel \"" + name_ + "\": " + what);
}

Program::Program(const Backend& backend, std::string_view source, const std::string& options) {
  program_ = program_of(backend.context(), with_kernel_header(source));
  const cl_device_id device = backend.device();
  check_build(clBuildProgram(program_.get(), 1, &device, options.c_str(), nullptr, nullptr), program_.get(), device);
}

Kernel Program::kernel(const std::string& name) const {
  cl_int status = CL_SUCCESS;
  Handle<cl_kernel> kernel(clCreateKernel(program_.get(), name.c_str(), &status));
  if (status != CL_SUCCESS) throw error_of(status, "clCreateKernel \"" + name + "\"");
  cl_uint arguments = 0;
  check(clGetKernelInfo(kernel.get(), CL_KERNEL_NUM_ARGS, sizeof arguments, &arguments, nullptr), "clGetKernelInfo");
  return {std::move(kernel), name, arguments};
}

}  // namespace swapmm::opencl
