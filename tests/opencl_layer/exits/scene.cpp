// SPDX-License-Identifier: Apache-2.0
#include "scene.hpp"

#include <unistd.h>

#include <algorithm>

namespace exits {
namespace {

constexpr std::size_t count = 6;
constexpr std::size_t words = std::size_t{1} << 16U;  // of a buffer: 256 KiB
constexpr std::size_t bytes = words * sizeof(cl_uint);
const char* const source = "kernel void add(global uint* data, uint by) { data[get_global_id(0)] += by; }";

void require(cl_int status, const char* call) {
  if (status == CL_SUCCESS) return;
  say(std::string(call) + " fails with " + std::to_string(status));
  _exit(99);
}

}  // namespace

void say(const std::string& line) {
  const std::string text = line + '\n';
  if (write(STDOUT_FILENO, text.data(), text.size()) != static_cast<ssize_t>(text.size())) _exit(98);
}

Scene::Scene() {
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  require(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
  require(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), "clGetDeviceIDs");
  cl_int status = CL_SUCCESS;
  context_ = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status);
  require(status, "clCreateContext");
  queue_ = clCreateCommandQueue(context_, device, 0, &status);
  require(status, "clCreateCommandQueue");
  program_ = clCreateProgramWithSource(context_, 1, const_cast<const char**>(&source), nullptr, &status);
  require(status, "clCreateProgramWithSource");
  require(clBuildProgram(program_, 1, &device, "", nullptr, nullptr), "clBuildProgram");
  kernel_ = clCreateKernel(program_, "add", &status);
  require(status, "clCreateKernel");
  for (std::size_t i = 0; i < count; ++i) {
    const std::vector<cl_uint> values(words, static_cast<cl_uint>(i));
    buffers_.push_back(clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes,
                                      const_cast<cl_uint*>(values.data()), &status));
    require(status, "clCreateBuffer");
  }
  work();
}

Scene::~Scene() {
  bool failed = false;
  for (const cl_mem each : buffers_) failed = clReleaseMemObject(each) != CL_SUCCESS || failed;
  failed = clReleaseKernel(kernel_) != CL_SUCCESS || failed;
  failed = clReleaseProgram(program_) != CL_SUCCESS || failed;
  failed = clReleaseCommandQueue(queue_) != CL_SUCCESS || failed;
  failed = clReleaseContext(context_) != CL_SUCCESS || failed;
  say(failed ? "a release fails" : "released");
}

void Scene::work() {
  for (int i = 0; i < 4; ++i) {
    const cl_uint by = ++rounds_;
    for (const cl_mem& each : buffers_) {
      require(clSetKernelArg(kernel_, 0, sizeof each, &each), "clSetKernelArg");
      require(clSetKernelArg(kernel_, 1, sizeof by, &by), "clSetKernelArg");
      require(clEnqueueNDRangeKernel(queue_, kernel_, 1, nullptr, &words, nullptr, 0, nullptr, nullptr),
              "clEnqueueNDRangeKernel");
    }
  }
  require(clFlush(queue_), "clFlush");
}

std::string Scene::result() {
  bool right = true;
  const cl_uint added = rounds_ * (rounds_ + 1) / 2;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<cl_uint> values(words);
    require(clEnqueueReadBuffer(queue_, buffers_[i], CL_TRUE, 0, bytes, values.data(), 0, nullptr, nullptr),
            "clEnqueueReadBuffer");
    right = right && std::all_of(values.begin(), values.end(),
                                 [&](cl_uint value) { return value == static_cast<cl_uint>(i) + added; });
  }
  return right ? "right" : "wrong";
}

}  // namespace exits
