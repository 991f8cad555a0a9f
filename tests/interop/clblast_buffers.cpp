// SPDX-License-Identifier: Apache-2.0
// The table of docs/interop.md. Skipped by itself, for CLBlast compiles a minute long: run it with
//   swapmm_interop_clblast --no-skip --test-case="*each routine*"
#include "opencl/api_calls.hpp"

#include <clblast.h>
#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include <swapmm/opencl/backend.hpp>

#include "opencl/device.hpp"

namespace {

using namespace swapmm;
using clblast::Layout;
using clblast::StatusCode;
using clblast::Transpose;

struct Bench {
  static constexpr std::size_t n = 1024;  // all matrices are n x n

  opencl::Backend backend = test::backend();
  cl_command_queue queue = backend.queue();
  opencl::Handle<cl_mem> a = matrix();
  opencl::Handle<cl_mem> b = matrix();
  opencl::Handle<cl_mem> c = matrix();

  [[nodiscard]] opencl::Handle<cl_mem> matrix() const {
    std::vector<float> values(n * n, 0.001F);
    cl_int status = CL_SUCCESS;
    opencl::Handle<cl_mem> made(clCreateBuffer(backend.context(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                               values.size() * sizeof(float), values.data(), &status));
    REQUIRE(status == CL_SUCCESS);
    return made;
  }

  // The second run counts: the first one compiles.
  template <class Routine>
  void show(const std::string& name, Routine&& routine) const {
    test::ApiCalls before{};
    for (int run = 0; run < 2; ++run) {
      before = test::api_calls();
      CHECK(routine() == StatusCode::kSuccess);
    }
    const test::ApiCalls& after = test::api_calls();
    MESSAGE(name << ": " << after.buffers_made - before.buffers_made << " buffers of "
                 << after.device_bytes - before.device_bytes << " bytes, the host waits "
                 << after.finishes + after.host_waits - before.finishes - before.host_waits << " times");
    clFinish(queue);
  }
};

}  // namespace

TEST_CASE("what each routine of CLBlast makes beside its arguments" * doctest::skip()) {
  Bench on;
  constexpr std::size_t n = Bench::n;
  constexpr Layout rows = Layout::kRowMajor;
  constexpr Transpose plain = Transpose::kNo;
  cl_command_queue* const queue = &on.queue;
  const cl_mem a = on.a.get();
  const cl_mem b = on.b.get();
  const cl_mem c = on.c.get();
  for (const std::size_t size : {std::size_t{256}, std::size_t{1000}, n}) {
    on.show("gemm of " + std::to_string(size) + " x " + std::to_string(size), [&] {
      return clblast::Gemm<float>(rows, plain, plain, size, size, size, 1, a, 0, size, b, 0, size, 0, c, 0, size,
                                  queue);
    });
  }
  on.show("gemv", [&] { return clblast::Gemv<float>(rows, plain, n, n, 1, a, 0, n, b, 0, 1, 0, c, 0, 1, queue); });
  on.show("axpy", [&] { return clblast::Axpy<float>(n * n, 1, a, 0, 1, b, 0, 1, queue); });
  on.show("omatcopy",
          [&] { return clblast::Omatcopy<float>(rows, Transpose::kYes, n, n, 1, a, 0, n, c, 0, n, queue); });
  on.show("im2col", [&] {
    return clblast::Im2col<float>(clblast::KernelMode::kCrossCorrelation, 4, 64, 64, 3, 3, 1, 1, 1, 1, 1, 1, a, 0, c, 0,
                                  queue);
  });
  on.show("convgemm", [&] {
    return clblast::Convgemm<float>(clblast::KernelMode::kCrossCorrelation, 4, 64, 64, 3, 3, 1, 1, 1, 1, 1, 1, 8, 2, a,
                                    0, b, 0, c, 0, queue);
  });
  on.show("gemmStridedBatched", [&] {
    return clblast::GemmStridedBatched<float>(rows, plain, plain, 256, 256, 256, 1, a, 0, 256, 65536, b, 0, 256, 65536,
                                              0, c, 0, 256, 65536, 4, queue);
  });
  on.show("gemmBatched", [&] {
    const std::vector<std::size_t> offsets{0, 65536, 131072, 196608};
    const std::vector<float> one(4, 1.0F);
    const std::vector<float> zero(4, 0.0F);
    return clblast::GemmBatched<float>(rows, plain, plain, 256, 256, 256, one.data(), a, offsets.data(), 256, b,
                                       offsets.data(), 256, zero.data(), c, offsets.data(), 256, 4, queue);
  });
  on.show("dot", [&] { return clblast::Dot<float>(n * n, c, 0, a, 0, 1, b, 0, 1, queue); });
  on.show("nrm2", [&] { return clblast::Nrm2<float>(n * n, c, 0, a, 0, 1, queue); });
  on.show("amax", [&] { return clblast::Amax<float>(n * n, c, 0, a, 0, 1, queue); });
  on.show("syrk", [&] {
    return clblast::Syrk<float>(rows, clblast::Triangle::kUpper, plain, n, n, 1, a, 0, n, 0, c, 0, n, queue);
  });
  on.show("trsm", [&] {
    return clblast::Trsm<float>(rows, clblast::Side::kLeft, clblast::Triangle::kUpper, plain, clblast::Diagonal::kUnit,
                                n, n, 1, a, 0, n, c, 0, n, queue);
  });
}
