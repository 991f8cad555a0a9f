// SPDX-License-Identifier: Apache-2.0
// What calls of OpenCL cost the host, and how long a loop of launches takes, for layer_cost.py, which runs this program
// natively and below the layer. Prints a line for each: name, mean, 99th percentile, in nanoseconds; and the median of
// the loop's steps, in milliseconds. usage: calls [STEPS]
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

void require(cl_int status, const char* call) {
  if (status == CL_SUCCESS) return;
  std::fprintf(stderr, "%s: %d\n", call, status);
  std::exit(1);
}

/// The durations of one kind of call.
class Calls {
 public:
  explicit Calls(const char* name) : name_(name) {}
  template <class Call>
  void time(Call&& call) {
    const auto begin = Clock::now();
    const cl_int status = call();
    nanoseconds_.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begin).count());
    require(status, name_);
  }
  /// Behind the first half: that is warm-up.
  void print() {
    const auto middle = nanoseconds_.begin() + static_cast<std::ptrdiff_t>(nanoseconds_.size() / 2);
    std::vector<double> late(middle, nanoseconds_.end());
    std::sort(late.begin(), late.end());
    // The mean of all but the slowest hundredth: a time slice of another thread is no cost of a call.
    const auto most = static_cast<std::ptrdiff_t>(late.size() * 99 / 100);
    const double mean = std::accumulate(late.begin(), late.begin() + most, 0.0) / static_cast<double>(most);
    std::printf("call %s %.1f %.1f\n", name_, mean, late[static_cast<std::size_t>(most)]);
  }

 private:
  const char* name_;
  std::vector<double> nanoseconds_;
};

struct Device {
  Device() {
    cl_platform_id platform = nullptr;
    require(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
    require(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), "clGetDeviceIDs");
    cl_int status = CL_SUCCESS;
    context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status);
    require(status, "clCreateContext");
    queue = clCreateCommandQueueWithProperties(context, device, nullptr, &status);
    require(status, "clCreateCommandQueueWithProperties");
    const char* source =
        "kernel void blend(global float* to, global const float* from, float part, int rounds) {\n"
        "  size_t i = get_global_id(0);\n"
        "  float x = from[i];\n"
        "  for (int k = 0; k < rounds; ++k) x = x * part + 0.5f;\n"
        "  to[i] = x;\n"
        "}\n";
    program = clCreateProgramWithSource(context, 1, &source, nullptr, &status);
    require(status, "clCreateProgramWithSource");
    require(clBuildProgram(program, 1, &device, "", nullptr, nullptr), "clBuildProgram");
    kernel = clCreateKernel(program, "blend", &status);
    require(status, "clCreateKernel");
  }
  [[nodiscard]] cl_mem buffer(std::size_t bytes) const {
    cl_int status = CL_SUCCESS;
    cl_mem made = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, nullptr, &status);
    require(status, "clCreateBuffer");
    return made;
  }

  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  cl_program program = nullptr;
  cl_kernel kernel = nullptr;
};

void set_arguments(const Device& device, cl_mem to, cl_mem from, cl_int rounds) {
  const cl_float part = 0.75F;
  require(clSetKernelArg(device.kernel, 0, sizeof(cl_mem), &to), "clSetKernelArg");
  require(clSetKernelArg(device.kernel, 1, sizeof(cl_mem), &from), "clSetKernelArg");
  require(clSetKernelArg(device.kernel, 2, sizeof part, &part), "clSetKernelArg");
  require(clSetKernelArg(device.kernel, 3, sizeof rounds, &rounds), "clSetKernelArg");
}

/// Calls that do next to nothing on the device.
void time_calls(const Device& device) {
  constexpr std::size_t bytes = 256;
  std::vector<cl_mem> buffers;
  for (int i = 0; i < 16; ++i) buffers.push_back(device.buffer(bytes));
  const std::vector<char> zeros(bytes);
  for (cl_mem each : buffers)
    require(clEnqueueWriteBuffer(device.queue, each, CL_TRUE, 0, bytes, zeros.data(), 0, nullptr, nullptr), "write");
  Calls argument("clSetKernelArg"), launch("clEnqueueNDRangeKernel"), copy("clEnqueueCopyBuffer"),
      write("clEnqueueWriteBuffer"), fill("clEnqueueFillBuffer"), make("clCreateBuffer"), release("clReleaseMemObject");
  const std::size_t one = 1;
  const cl_int zero = 0;
  std::vector<char> host(bytes);
  for (std::size_t round = 0; round < 400; ++round) {
    for (std::size_t i = 0; i < 20; ++i) {
      cl_mem to = buffers[i % 16], from = buffers[(i + 1) % 16];
      set_arguments(device, to, from, 0);
      argument.time([&] { return clSetKernelArg(device.kernel, 0, sizeof(cl_mem), &to); });
      launch.time([&] {
        return clEnqueueNDRangeKernel(device.queue, device.kernel, 1, nullptr, &one, nullptr, 0, nullptr, nullptr);
      });
      copy.time([&] { return clEnqueueCopyBuffer(device.queue, from, to, 0, 0, bytes, 0, nullptr, nullptr); });
      write.time(
          [&] { return clEnqueueWriteBuffer(device.queue, to, CL_FALSE, 0, bytes, host.data(), 0, nullptr, nullptr); });
      fill.time(
          [&] { return clEnqueueFillBuffer(device.queue, to, &zero, sizeof zero, 0, bytes, 0, nullptr, nullptr); });
      cl_mem made = nullptr;
      make.time([&] {
        cl_int status = CL_SUCCESS;
        made = clCreateBuffer(device.context, CL_MEM_READ_WRITE, bytes, nullptr, &status);
        return status;
      });
      release.time([&] { return clReleaseMemObject(made); });
    }
    require(clFinish(device.queue), "clFinish");
  }
  for (Calls* each : {&argument, &launch, &copy, &write, &fill, &make, &release}) each->print();
  for (cl_mem each : buffers) clReleaseMemObject(each);
}

/// A loop like those that train: launches over buffers of 1 MiB, of about a millisecond each, and a read at the end.
void time_loop(const Device& device, std::size_t steps) {
  constexpr std::size_t count = 1U << 18U;
  std::vector<cl_mem> buffers;
  for (int i = 0; i < 32; ++i) buffers.push_back(device.buffer(count * sizeof(cl_float)));
  const cl_float begin = 1;
  for (cl_mem each : buffers) {
    require(clEnqueueFillBuffer(device.queue, each, &begin, sizeof begin, 0, count * sizeof begin, 0, nullptr, nullptr),
            "clEnqueueFillBuffer");
  }
  std::vector<double> milliseconds;
  for (std::size_t step = 0; step < steps; ++step) {
    const auto start = Clock::now();
    for (std::size_t i = 0; i < 64; ++i) {
      set_arguments(device, buffers[(i + 1) % 32], buffers[i % 32], 16);
      require(clEnqueueNDRangeKernel(device.queue, device.kernel, 1, nullptr, &count, nullptr, 0, nullptr, nullptr),
              "clEnqueueNDRangeKernel");
    }
    cl_float last = 0;
    require(clEnqueueReadBuffer(device.queue, buffers[0], CL_TRUE, 0, sizeof last, &last, 0, nullptr, nullptr),
            "clEnqueueReadBuffer");
    milliseconds.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  std::vector<double> late(milliseconds.begin() + static_cast<std::ptrdiff_t>(steps / 2), milliseconds.end());
  std::sort(late.begin(), late.end());
  std::printf("loop %.4f\n", late[late.size() / 2]);
  for (cl_mem each : buffers) clReleaseMemObject(each);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t steps = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 20;
  const Device device;
  time_calls(device);
  time_loop(device, std::max<std::size_t>(steps, 4));
  return 0;
}
