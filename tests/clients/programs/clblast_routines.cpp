// SPDX-License-Identifier: Apache-2.0
// A closed library from the program's point of view: routines of CLBlast on buffers of the program, one after another,
// results as sums of their bits. clblast_routines [n]
#include <clblast.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

cl_context context;
cl_command_queue queue;
std::mt19937 generator{3};

cl_mem filled(std::size_t count) {
  std::uniform_real_distribution<float> draw{-1.0F, 1.0F};
  std::vector<float> values(count);
  for (auto& value : values) value = draw(generator);
  return clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, count * sizeof(float), values.data(),
                        nullptr);
}

void show(const char* name, clblast::StatusCode status, cl_mem buffer, std::size_t count) {
  std::vector<float> values(count);
  const cl_int read =
      clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, count * sizeof(float), values.data(), 0, nullptr, nullptr);
  std::uint64_t hash = 1469598103934665603U;
  for (const float value : values) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    hash = (hash ^ bits) * 1099511628211U;
  }
  std::printf("%s %d %d %016llx\n", name, static_cast<int>(status), read, static_cast<unsigned long long>(hash));
  if (status != clblast::StatusCode::kSuccess || read != CL_SUCCESS) std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t n = argc > 1 ? std::stoul(argv[1]) : 384;
  cl_platform_id platform;
  cl_device_id device;
  if (clGetPlatformIDs(1, &platform, nullptr) != CL_SUCCESS ||
      clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr) != CL_SUCCESS)
    return 2;
  context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
  queue = clCreateCommandQueue(context, device, 0, nullptr);
  using clblast::Layout;
  using clblast::Transpose;
  cl_mem a = filled(n * n), b = filled(n * n), c = filled(n * n), d = filled(n * n), x = filled(n), y = filled(n);
  cl_mem scalar = filled(1), index = filled(1);
  show("axpy", clblast::Axpy<float>(n * n, 0.5F, a, 0, 1, d, 0, 1, &queue), d, n * n);
  show("scal", clblast::Scal<float>(n * n, 1.25F, d, 0, 1, &queue), d, n * n);
  show("copy", clblast::Copy<float>(n, d, n, 1, x, 0, 1, &queue), x, n);
  show("swap", clblast::Swap<float>(n * n, a, 0, 1, b, 0, 1, &queue), a, n * n);
  show("dot", clblast::Dot<float>(n, scalar, 0, x, 0, 1, y, 0, 1, &queue), scalar, 1);
  show("nrm2", clblast::Nrm2<float>(n, scalar, 0, x, 0, 1, &queue), scalar, 1);
  show("asum", clblast::Asum<float>(n * n, scalar, 0, d, 0, 1, &queue), scalar, 1);
  show("amax", clblast::Amax<float>(n * n, index, 0, d, 0, 1, &queue), index, 1);
  show("gemv",
       clblast::Gemv<float>(Layout::kRowMajor, Transpose::kYes, n, n, 0.1F, a, 0, n, x, 0, 1, 0.5F, y, 0, 1, &queue), y,
       n);
  show("ger", clblast::Ger<float>(Layout::kRowMajor, n, n, 0.1F, x, 0, 1, y, 0, 1, d, 0, n, &queue), d, n * n);
  for (int round = 0; round < 3; ++round) {
    show("gemm",
         clblast::Gemm<float>(Layout::kRowMajor, Transpose::kNo, round == 1 ? Transpose::kYes : Transpose::kNo, n, n, n,
                              0.1F, a, 0, n, b, 0, n, 0.5F, c, 0, n, &queue),
         c, n * n);
    std::swap(a, c);
  }
  show("syrk",
       clblast::Syrk<float>(Layout::kRowMajor, clblast::Triangle::kLower, Transpose::kNo, n, n, 0.1F, a, 0, n, 0.5F, d,
                            0, n, &queue),
       d, n * n);
  show("symm",
       clblast::Symm<float>(Layout::kRowMajor, clblast::Side::kLeft, clblast::Triangle::kLower, n, n, 0.1F, a, 0, n, b,
                            0, n, 0.5F, d, 0, n, &queue),
       d, n * n);
  show("omatcopy", clblast::Omatcopy<float>(Layout::kRowMajor, Transpose::kYes, n, n, 2.0F, d, 0, n, c, 0, n, &queue),
       c, n * n);
  for (cl_mem buffer : {a, b, c, d, x, y, scalar, index}) clReleaseMemObject(buffer);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
}
