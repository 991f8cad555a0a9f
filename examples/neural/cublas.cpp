// SPDX-License-Identifier: Apache-2.0
#include "neural/cublas.hpp"

#include <stdexcept>

#include <swapmm/cuda/status.hpp>

#include "neural/cuda_gemm.hpp"

namespace neural {
namespace {

std::size_t recommended() {
  int device = 0;
  int major = 0;
  swapmm::cuda::check(cudaGetDevice(&device), "cudaGetDevice");
  swapmm::cuda::check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
                      "cudaDeviceGetAttribute");
  return std::size_t{major >= 9 ? 32U : 4U} << 20U;
}

cublasOperation_t transposed(bool yes) { return yes ? CUBLAS_OP_T : CUBLAS_OP_N; }

}  // namespace

Cublas::Cublas()
    : library_("cuBLAS", {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so"}),
      recommended_work_(recommended()) {
  // The handle stays in its default math mode: numbers of 32 bits are multiplied as such (TensorFloat-32 has to be
  // asked for), by whatever kernels are fastest for that. Atomic sums have to be asked for, too.
  check(create_(&handle_), "cublasCreate");
}

Cublas::~Cublas() {
  // Waits for the device. What fails here is the end of the process, or a device that is lost.
  (void)destroy_(handle_);
}

cublasHandle_t Cublas::handle_for(cudaStream_t stream, void* area, std::size_t area_bytes) {
  check(set_stream_(handle_, stream), "cublasSetStream");
  check(set_work_(handle_, area, area_bytes), "cublasSetWorkspace");
  return handle_;
}

void Cublas::gemm(cudaStream_t stream, const Gemm& g, const float* a, const float* b, float beta, float* c, void* area,
                  std::size_t area_bytes) {
  const ColumnMajorGemm p = column_major(g);
  constexpr float alpha = 1;
  const cublasHandle_t handle = handle_for(stream, area, area_bytes);
  check(sgemm_(handle, transposed(p.transpose_left), transposed(p.transpose_right), p.rows, p.columns, p.depth, &alpha,
               b, p.left_stride, a, p.right_stride, &beta, c, p.result_stride),
        "cublasSgemm");
}

void Cublas::check(cublasStatus_t status, std::string_view call) const {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error("cuBLAS (" + library_.file() + "): " + std::string(call) + " gives status " +
                           std::to_string(static_cast<int>(status)));
}

}  // namespace neural
