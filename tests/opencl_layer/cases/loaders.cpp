// SPDX-License-Identifier: Apache-2.0
// A second OpenCL loader in the process, as a wheel brings it: objects of the one are used through the other.

#include "harness.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

using namespace cases;

namespace {

/// Another loader: the same file under another name, so that it is another library. It stays.
class SecondLoader {
 public:
  SecondLoader() {
    Dl_info first{};
    if (dladdr(reinterpret_cast<const void*>(&clGetPlatformIDs), &first) == 0) std::abort();
    char folder[] = "/tmp/swapmm-loader-XXXXXX";
    if (mkdtemp(folder) == nullptr) std::abort();
    const std::string file = std::string(folder) + "/libOpenCL-second.so.1";
    std::filesystem::copy_file(first.dli_fname, file);
    library_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    std::filesystem::remove_all(folder);
    if (library_ == nullptr) std::abort();
  }

  /// Its function of that name, which has the type of the first loader's.
  template <class Function>
  Function* function(const char* name, Function*) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }

 private:
  void* library_ = nullptr;
};
#define BY(loader, name) loader.function(#name, &name)

/// Triples the buffer with kernel, program and launch by the second loader.
void triple(const SecondLoader& loader, cl_command_queue queue, cl_mem buffer) {
  cl_context context = nullptr;
  OK(BY(loader, clGetCommandQueueInfo)(queue, CL_QUEUE_CONTEXT, sizeof context, &context, nullptr));
  const char* source =
      "kernel void triple(global uint* data) { const uint at = get_global_id(0); data[at] = 3u * data[at]; }";
  cl_int error = CL_SUCCESS;
  const cl_program program = BY(loader, clCreateProgramWithSource)(context, 1, &source, nullptr, &error);
  OK(error);
  OK(BY(loader, clBuildProgram)(program, 0, nullptr, "", nullptr, nullptr));
  const cl_kernel kernel = BY(loader, clCreateKernel)(program, "triple", &error);
  OK(error);
  OK(BY(loader, clSetKernelArg)(kernel, 0, sizeof buffer, &buffer));
  OK(BY(loader, clEnqueueNDRangeKernel)(queue, kernel, 1, nullptr, &word_count, nullptr, 0, nullptr, nullptr));
  OK(BY(loader, clReleaseKernel)(kernel));
  OK(BY(loader, clReleaseProgram)(program));
}

void use_beside_others(const Setup& setup, const SecondLoader& loader) {
  const Kernels kernels(setup);
  const cl_mem a = setup.buffer_of(numbers(1)), b = setup.buffer_of(numbers(2)), c = setup.buffer_of(numbers(3));
  for (int round = 0; round < 3; ++round) {
    triple(loader, setup.queue, a);
    kernels.blend(setup.queue, c, a, b);
    triple(loader, setup.queue, b);
    kernels.blend(setup.queue, a, b, c);
  }
  for (cl_mem one : {a, b, c}) say_words("one", setup.read(one));
  release_buffers({a, b, c});
}

}  // namespace

CASE(loaders, loaded_before_the_context) {
  const SecondLoader loader;
  const Setup setup;
  use_beside_others(setup, loader);
}

CASE(loaders, loaded_behind_all_objects) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem a = setup.buffer_of(numbers(1)), b = setup.buffer_of(numbers(2)), c = setup.buffer_of(numbers(3));
  kernels.blend(setup.queue, c, a, b);
  const SecondLoader loader;
  triple(loader, setup.queue, c);  // its first call has an object of the layer
  kernels.grow(setup.queue, a, 3);
  triple(loader, setup.queue, b);
  for (cl_mem one : {a, b, c}) say_words("one", setup.read(one));
  release_buffers({a, b, c});
}

CASE(loaders, started_by_the_program) {
  const Setup setup;
  const SecondLoader loader;
  cl_uint count = 0;
  cl_platform_id platform = nullptr;
  OK(BY(loader, clGetPlatformIDs)(1, &platform, &count));
  expect(platform == setup.platform, "both have the same platform");
  use_beside_others(setup, loader);
  cl_int error = CL_SUCCESS;
  const cl_mem theirs = BY(loader, clCreateBuffer)(setup.context, CL_MEM_READ_WRITE, buffer_bytes, nullptr, &error);
  OK(error);
  const Words words = numbers(7);
  OK(clEnqueueWriteBuffer(setup.queue, theirs, CL_TRUE, 0, buffer_bytes, words.data(), 0, nullptr, nullptr));
  triple(loader, setup.queue, theirs);
  say_words("theirs", setup.read(theirs));
  OK(BY(loader, clReleaseMemObject)(theirs));
}

CASE(loaders, its_maps_and_events) {
  const SecondLoader loader;
  const Setup setup;
  const Kernels kernels(setup);
  cl_int error = CL_SUCCESS;
  const cl_mem a = setup.buffer();
  const cl_event gate = BY(loader, clCreateUserEvent)(setup.context, &error);
  OK(error);
  const Words words = numbers(9);
  cl_event written = nullptr;
  OK(BY(loader, clEnqueueWriteBuffer)(setup.queue, a, CL_FALSE, 0, buffer_bytes, words.data(), 1, &gate, &written));
  OK(clSetUserEventStatus(gate, CL_COMPLETE));
  OK(BY(loader, clWaitForEvents)(1, &written));
  kernels.grow(setup.queue, a, 5);
  void* const mapped = BY(loader, clEnqueueMapBuffer)(setup.queue, a, CL_TRUE, CL_MAP_READ, 0, buffer_bytes, 0, nullptr,
                                                      nullptr, &error);
  OK(error);
  say("mapped: %016llx", static_cast<unsigned long long>(hash(mapped, buffer_bytes)));
  OK(BY(loader, clEnqueueUnmapMemObject)(setup.queue, a, mapped, 0, nullptr, nullptr));
  OK(BY(loader, clFinish)(setup.queue));
  release_events({gate, written});
  release_buffers({a});
}
