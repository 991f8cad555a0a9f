// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "../context.hpp"
#include "../facts/programs.hpp"
#include "install.hpp"
#include "program_options.hpp"

namespace swapmm::opencl::layer::api {
namespace {

constexpr std::string_view argument_option = "-cl-kernel-arg-info";

/// The options that the program built with; those of the driver have argument_option in addition.
struct Programs {
  std::mutex mutex;
  std::unordered_map<cl_program, std::string> options;
};

Programs& programs() {
  static Programs& all = *new Programs;
  return all;
}

bool is_managed(cl_program program) {
  cl_context handle = nullptr;
  if (down.clGetProgramInfo(program, CL_PROGRAM_CONTEXT, sizeof handle, &handle, nullptr) != CL_SUCCESS) return false;
  const Context* const context = Context::of(handle);
  return context != nullptr && context->managed();
}

bool asks(std::string_view options) { return options.find(argument_option) != std::string_view::npos; }

bool is_refusal(cl_int status) {
  return status == CL_BUILD_PROGRAM_FAILURE || status == CL_COMPILE_PROGRAM_FAILURE ||
         status == CL_INVALID_BUILD_OPTIONS || status == CL_INVALID_COMPILER_OPTIONS;
}

// Calls build(options) with the program's options, which it remembers, and the one for what arguments are. If that is
// refused it builds with the program's own alone, as NVIDIA's driver (580.159) refuses sources with the option that it
// takes without. Nor is it there where the build goes on behind the call (`in_background`): it could not be repeated.
template <class Build>
cl_int build_with_argument_info(cl_program program, const char* options, bool in_background, Build&& build) {
  const std::string own = options == nullptr ? "" : options;
  {
    const std::lock_guard lock(programs().mutex);
    programs().options[program] = own;
  }
  if (asks(own) || in_background) return build(options);
  const std::string ours = own.empty() ? std::string(argument_option) : own + " " + std::string(argument_option);
  const cl_int status = build(ours.c_str());
  return is_refusal(status) ? build(options) : status;
}

// ---- programs are made

// A program whose address another one may have had before.
cl_program made(cl_program program) {
  if (program != nullptr) facts::program_made(program);
  return program;
}

cl_program CL_API_CALL create_with_source(cl_context context, cl_uint count, const char** strings,
                                          const size_t* lengths, cl_int* status) {
  return made(down.clCreateProgramWithSource(context, count, strings, lengths, status));
}

cl_program CL_API_CALL create_with_il(cl_context context, const void* text, size_t size, cl_int* status) {
  return made(down.clCreateProgramWithIL(context, text, size, status));
}

cl_program CL_API_CALL create_with_kernels(cl_context context, cl_uint count, const cl_device_id* devices,
                                           const char* names, cl_int* status) {
  return made(down.clCreateProgramWithBuiltInKernels(context, count, devices, names, status));
}

cl_program CL_API_CALL create_with_binary(cl_context context, cl_uint count, const cl_device_id* devices,
                                          const size_t* sizes, const unsigned char** binaries, cl_int* each,
                                          cl_int* status) {
  const cl_program program =
      made(down.clCreateProgramWithBinary(context, count, devices, sizes, binaries, each, status));
  if (program != nullptr && count == 1) facts::program_made_from(program, {binaries[0], sizes[0]});
  return program;
}

cl_program CL_API_CALL link(cl_context context, cl_uint count, const cl_device_id* devices, const char* options,
                            cl_uint parts, const cl_program* list, void(CL_CALLBACK* notify)(cl_program, void*),
                            void* data, cl_int* status) {
  const cl_program program =
      made(down.clLinkProgram(context, count, devices, options, parts, list, notify, data, status));
  if (program != nullptr && is_managed(program)) facts::program_linked(program, {list, parts});
  return program;
}

cl_int CL_API_CALL program_info(cl_program program, cl_program_info what, size_t size, void* into, size_t* needed) {
  const cl_int status = down.clGetProgramInfo(program, what, size, into, needed);
  if (status == CL_SUCCESS && what == CL_PROGRAM_BINARIES && into != nullptr) {
    facts::binaries_told(program, {static_cast<unsigned char**>(into), size / sizeof(unsigned char*)});
  }
  return status;
}

// ---- programs are built

cl_int CL_API_CALL build(cl_program program, cl_uint count, const cl_device_id* devices, const char* options,
                         void(CL_CALLBACK* notify)(cl_program, void*), void* data) {
  if (!is_managed(program)) return down.clBuildProgram(program, count, devices, options, notify, data);
  facts::program_built(program, options == nullptr ? "" : options);
  return build_with_argument_info(program, options, notify != nullptr, [&](const char* with) {
    return down.clBuildProgram(program, count, devices, with, notify, data);
  });
}

cl_int CL_API_CALL compile(cl_program program, cl_uint count, const cl_device_id* devices, const char* options,
                           cl_uint headers, const cl_program* list, const char** names,
                           void(CL_CALLBACK* notify)(cl_program, void*), void* data) {
  if (!is_managed(program)) {
    return down.clCompileProgram(program, count, devices, options, headers, list, names, notify, data);
  }
  if ((headers == 0) == (list == nullptr || names == nullptr)) {
    facts::program_compiled(program, options == nullptr ? "" : options, {list, headers}, names);
  }
  return build_with_argument_info(program, options, notify != nullptr, [&](const char* with) {
    return down.clCompileProgram(program, count, devices, with, headers, list, names, notify, data);
  });
}

cl_int CL_API_CALL release(cl_program program) {
  cl_uint references = 0;
  (void)down.clGetProgramInfo(program, CL_PROGRAM_REFERENCE_COUNT, sizeof references, &references, nullptr);
  const cl_int status = down.clReleaseProgram(program);
  if (status == CL_SUCCESS && references == 1) {
    facts::program_gone(program);
    const std::lock_guard lock(programs().mutex);
    programs().options.erase(program);
  }
  return status;
}

cl_int CL_API_CALL build_info(cl_program program, cl_device_id device, cl_program_build_info what, size_t size,
                              void* into, size_t* needed) {
  if (what == CL_PROGRAM_BUILD_OPTIONS) {
    const std::lock_guard lock(programs().mutex);
    const auto own = programs().options.find(program);
    if (own != programs().options.end()) {
      return answer(own->second.c_str(), own->second.size() + 1, size, into, needed);
    }
  }
  return down.clGetProgramBuildInfo(program, device, what, size, into, needed);
}

}  // namespace

bool tells_argument_info(cl_program program) {
  const std::lock_guard lock(programs().mutex);
  const auto own = programs().options.find(program);
  return own == programs().options.end() || asks(own->second);
}

void install_programs(cl_icd_dispatch& table) {
  table.clCreateProgramWithSource = create_with_source;
  table.clCreateProgramWithIL = create_with_il;
  table.clCreateProgramWithBuiltInKernels = create_with_kernels;
  table.clCreateProgramWithBinary = create_with_binary;
  table.clLinkProgram = link;
  table.clGetProgramInfo = program_info;
  table.clBuildProgram = build;
  table.clCompileProgram = compile;
  table.clReleaseProgram = release;
  table.clGetProgramBuildInfo = build_info;
}

}  // namespace swapmm::opencl::layer::api
