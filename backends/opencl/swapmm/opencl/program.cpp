// SPDX-License-Identifier: Apache-2.0
#include <swapmm/opencl/program.hpp>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include <swapmm/error.hpp>
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

// Throws with the log of the compiler, or of the linker where only that failed.
void check_build(cl_int status, const char* call, cl_program program, cl_device_id device) {
  if (status == CL_SUCCESS) return;
  std::string log;
  if (program != nullptr) {
    log = text_of(
        [&](std::size_t size, void* into, std::size_t* needed) {
          return clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, into, needed);
        },
        "clGetProgramBuildInfo");
  }
  BackendError error = error_of(status, call);
  throw BackendError(error.kind, error.code, std::string(error.what()) + (log.empty() ? "" : "\n" + log));
}

}  // namespace

Range::Range(std::initializer_list<std::size_t> sizes) : dimensions_(static_cast<cl_uint>(sizes.size())) {
  if (sizes.size() > sizes_.size()) throw UsageError("a kernel has at most 3 dimensions of work items");
  std::copy(sizes.begin(), sizes.end(), sizes_.begin());
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
  const cl_context context = backend.context();
  const cl_device_id device = backend.device();
  const Handle<cl_program> header = program_of(context, kernel_header);
  const Handle<cl_program> text = program_of(context, source);
  const cl_program included = header.get();
  const char* name = "swapmm/kernel.h";
  check_build(clCompileProgram(text.get(), 1, &device, options.c_str(), 1, &included, &name, nullptr, nullptr),
              "clCompileProgram", text.get(), device);
  const cl_program object = text.get();
  cl_int status = CL_SUCCESS;
  program_.reset(clLinkProgram(context, 1, &device, nullptr, 1, &object, nullptr, nullptr, &status));
  check_build(status, "clLinkProgram", program_.get(), device);
}

Kernel Program::kernel(const std::string& name) const {
  cl_int status = CL_SUCCESS;
  Handle<cl_kernel> kernel(clCreateKernel(program_.get(), name.c_str(), &status));
  if (status != CL_SUCCESS) throw error_of(status, "clCreateKernel \"" + name + "\"");
  return {std::move(kernel), name};
}

}  // namespace swapmm::opencl
