// SPDX-License-Identifier: Apache-2.0
// Programs from source, binary, and linked parts; what kernels tell of themselves.

#include "harness.hpp"

#include <algorithm>
#include <cstring>

using namespace cases;

namespace {

const char* const tripled_source =
    "kernel void tripled(global uint* to, global const uint* from)"
    "{ to[get_global_id(0)] = 3u * from[get_global_id(0)]; }";

std::string text_info(cl_program program, cl_program_info name) {
  std::size_t bytes = 0;
  OK(clGetProgramInfo(program, name, 0, nullptr, &bytes));
  std::string text(bytes, '\0');
  OK(clGetProgramInfo(program, name, bytes, text.data(), nullptr));
  return text.c_str();
}

void use_tripled(const Setup& setup, cl_program program) {
  const Kernels kernels(setup);
  cl_int error = CL_SUCCESS;
  const cl_kernel tripled = clCreateKernel(program, "tripled", &error);
  OK(error);
  const cl_mem a = setup.buffer_of(numbers(1)), b = setup.buffer_of(numbers(2)), c = setup.buffer_of(numbers(3));
  for (int i = 0; i < 2; ++i) {
    set_argument(tripled, 0, i == 0 ? a : c);
    set_argument(tripled, 1, b);
    launch(setup.queue, tripled, word_count);
    kernels.blend(setup.queue, b, a, c);
  }
  for (cl_mem one : {a, b, c}) say_words("one", setup.read(one));
  OK(clReleaseKernel(tripled));
  release_buffers({a, b, c});
}

// Builds a program whose kernels were released. A driver may keep a kernel for a moment after its last command has
// ended.
cl_int build_without_kernels(cl_program program, const char* options) {
  cl_int result = CL_INVALID_OPERATION;
  comes_true([&] {
    if (result == CL_INVALID_OPERATION) result = clBuildProgram(program, 0, nullptr, options, nullptr, nullptr);
    return result != CL_INVALID_OPERATION;
  });
  return result;
}

}  // namespace

CASE(programs, from_source) {
  const Setup setup;
  const char* parts[] = {"kernel void tripled(global uint* to, global const uint* from)",
                         "{ to[get_global_id(0)] = FACTOR * from[get_global_id(0)]; } garbage"};
  const std::size_t lengths[] = {0, std::strlen(parts[1]) - 7};
  cl_int error = CL_SUCCESS;
  const cl_program program = clCreateProgramWithSource(setup.context, 2, parts, lengths, &error);
  OK(error);
  OK(clBuildProgram(program, 1, &setup.device, "-DFACTOR=3u", nullptr, nullptr));
  expect(text_info(program, CL_PROGRAM_SOURCE) == std::string(parts[0]) + std::string(parts[1], lengths[1]),
         "the source is told");
  char options[200] = "";
  OK(clGetProgramBuildInfo(program, setup.device, CL_PROGRAM_BUILD_OPTIONS, sizeof options, options, nullptr));
  say("options: %s", options);
  say("status: %d", [&] {
    cl_build_status status = 0;
    OK(clGetProgramBuildInfo(program, setup.device, CL_PROGRAM_BUILD_STATUS, sizeof status, &status, nullptr));
    return status;
  }());
  use_tripled(setup, program);
  OK(clReleaseProgram(program));
}

CASE(programs, from_binary) {
  const Setup setup;
  const cl_program first = setup.build(tripled_source);
  std::size_t bytes = 0;
  OK(clGetProgramInfo(first, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr));
  std::vector<unsigned char> binary(bytes);
  unsigned char* to = binary.data();
  OK(clGetProgramInfo(first, CL_PROGRAM_BINARIES, sizeof to, &to, nullptr));
  OK(clReleaseProgram(first));
  const unsigned char* from = binary.data();
  cl_int status = -1, error = CL_SUCCESS;
  const cl_program program = clCreateProgramWithBinary(setup.context, 1, &setup.device, &bytes, &from, &status, &error);
  OK(error);
  OK(status);
  OK(clBuildProgram(program, 1, &setup.device, nullptr, nullptr, nullptr));
  use_tripled(setup, program);
  OK(clReleaseProgram(program));
}

CASE(programs, compiled_and_linked) {
  const Setup setup;
  const char* library = "uint triple(uint x) { return 3u * x; }";
  const char* user =
      "#include <triple.h>\nkernel void tripled(global uint* to, global const uint* from)"
      "{ to[get_global_id(0)] = triple(from[get_global_id(0)]); }";
  const char* header = "uint triple(uint x);\n";
  cl_int error = CL_SUCCESS;
  const cl_program a = clCreateProgramWithSource(setup.context, 1, &library, nullptr, &error);
  const cl_program b = clCreateProgramWithSource(setup.context, 1, &user, nullptr, &error);
  const cl_program h = clCreateProgramWithSource(setup.context, 1, &header, nullptr, &error);
  const char* header_name = "triple.h";
  OK(clCompileProgram(a, 1, &setup.device, "", 0, nullptr, nullptr, nullptr, nullptr));
  OK(clCompileProgram(b, 1, &setup.device, "", 1, &h, &header_name, nullptr, nullptr));
  const cl_program parts[] = {a, b};
  const cl_program linked = clLinkProgram(setup.context, 1, &setup.device, "", 2, parts, nullptr, nullptr, &error);
  OK(error);
  use_tripled(setup, linked);
  for (cl_program one : {a, b, h, linked}) OK(clReleaseProgram(one));
}

CASE(programs, all_kernels) {
  const Setup setup;
  const cl_program program =
      setup.build("kernel void b(global uint* x) { x[0] = 2u; } kernel void a(global uint* x) { x[1] = 1u; }");
  cl_uint count = 0;
  OK(clCreateKernelsInProgram(program, 0, nullptr, &count));
  say("%u kernels", count);
  std::vector<cl_kernel> kernels(count);
  OK(clCreateKernelsInProgram(program, count, kernels.data(), nullptr));
  const cl_mem to = setup.buffer_of(numbers(1));
  std::vector<std::string> names;
  for (cl_kernel one : kernels) {
    char name[16] = "";
    OK(clGetKernelInfo(one, CL_KERNEL_FUNCTION_NAME, sizeof name, name, nullptr));
    names.emplace_back(name);
    set_argument(one, 0, to);
    launch(setup.queue, one, 1);
  }
  std::sort(names.begin(), names.end());
  for (const auto& name : names) say("%s", name.c_str());
  say_words("to", setup.read(to));
  if (count > 1) say_status("too few places", clCreateKernelsInProgram(program, 1, kernels.data(), nullptr));
  for (cl_kernel one : kernels) OK(clReleaseKernel(one));
  OK(clReleaseProgram(program));
  OK(clReleaseMemObject(to));
}

CASE(programs, kernel_information) {
  const Setup setup;
  const cl_kernel kernel = setup.kernel("affine");
  char name[64] = "";
  std::size_t bytes = 0;
  OK(clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, &bytes));
  say("%s, %zu bytes, %u arguments", name, bytes, info<cl_uint>(clGetKernelInfo, kernel, CL_KERNEL_NUM_ARGS));
  expect(info<cl_context>(clGetKernelInfo, kernel, CL_KERNEL_CONTEXT) == setup.context, "the context is told");
  expect(info<cl_program>(clGetKernelInfo, kernel, CL_KERNEL_PROGRAM) == setup.program, "the program is told");
  say_status("too small", clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, 2, name, nullptr));
  say_status("unknown", clGetKernelInfo(kernel, 1, sizeof name, name, nullptr));
  OK(clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, 0, nullptr, nullptr));
  std::size_t group = 0;
  OK(clGetKernelWorkGroupInfo(kernel, setup.device, CL_KERNEL_WORK_GROUP_SIZE, sizeof group, &group, nullptr));
  expect(group > 0, "the size of groups");
  expect(info<cl_uint>(clGetProgramInfo, setup.program, CL_PROGRAM_NUM_DEVICES) == 1, "the program is of one device");
  expect(info<cl_context>(clGetProgramInfo, setup.program, CL_PROGRAM_CONTEXT) == setup.context, "its context is told");
  OK(clReleaseKernel(kernel));
}

CASE(programs, argument_information) {
  const Setup setup;
  const cl_program program = setup.build(
      "kernel void every(global const uint* from, constant float* table, local uint* scratch, uint scalar, global "
      "uint* to)"
      "{ scratch[0] = scalar; to[0] = from[0] + (uint)table[0] + scratch[0]; }",
      "-cl-kernel-arg-info");
  cl_int error = CL_SUCCESS;
  const cl_kernel kernel = clCreateKernel(program, "every", &error);
  OK(error);
  for (cl_uint i = 0; i < 5; ++i) {
    cl_kernel_arg_address_qualifier address = 0;
    char name[64] = "", type[64] = "";
    OK(clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof address, &address, nullptr));
    OK(clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_NAME, sizeof name, name, nullptr));
    OK(clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_TYPE_NAME, sizeof type, type, nullptr));
    say("%u: %x %s %s", i, address, type, name);
  }
  char name[64] = "";
  say_status("beyond", clGetKernelArgInfo(kernel, 5, CL_KERNEL_ARG_NAME, sizeof name, name, nullptr));
  OK(clReleaseKernel(kernel));
  OK(clReleaseProgram(program));
}

CASE(programs, errors) {
  const Setup setup;
  cl_int error = CL_SUCCESS;
  const char* broken = "kernel void broken( { }";
  const cl_program program = clCreateProgramWithSource(setup.context, 1, &broken, nullptr, &error);
  OK(error);
  say_status("kernel before the build", (clCreateKernel(program, "broken", &error), error));
  say_status("broken", clBuildProgram(program, 1, &setup.device, "", nullptr, nullptr));
  cl_build_status status = 0;
  OK(clGetProgramBuildInfo(program, setup.device, CL_PROGRAM_BUILD_STATUS, sizeof status, &status, nullptr));
  say("status %d", status);
  clCreateKernel(setup.program, "absent", &error);
  say_status("absent kernel", error);
  clCreateKernel(setup.program, nullptr, &error);
  say_status("NULL kernel", error);
  clCreateProgramWithSource(setup.context, 0, nullptr, nullptr, &error);
  say_status("no source", error);
  say_status("build while kernels exist", [&] {
    const cl_kernel held = setup.kernel("grow");
    const cl_int result = clBuildProgram(setup.program, 1, &setup.device, "", nullptr, nullptr);
    OK(clReleaseKernel(held));
    return result;
  }());
  OK(clReleaseProgram(program));
}

// Built a second time with other options, once no kernel is left.
CASE(programs, built_twice) {
  const Setup setup;
  const char* source =
      "kernel void tripled(global uint* to, global const uint* from) { to[get_global_id(0)] = FACTOR * "
      "from[get_global_id(0)]; }";
  cl_int error = CL_SUCCESS;
  const cl_program program = clCreateProgramWithSource(setup.context, 1, &source, nullptr, &error);
  OK(error);
  for (const char* options : {"-DFACTOR=3u", "-DFACTOR=5u"}) {
    OK(build_without_kernels(program, options));
    use_tripled(setup, program);
  }
  OK(clReleaseProgram(program));
}
