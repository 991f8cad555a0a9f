// SPDX-License-Identifier: Apache-2.0
#include "transformer/cuda_math.hpp"

#include <stdexcept>
#include <string>

#include <cublas_v2.h>

#include <swapmm/cuda/status.hpp>

#include "neural/cublas.hpp"
#include "transformer/cuda_kernels.hpp"
#include "transformer/cuda_products.hpp"

namespace transformer {
namespace {

void check_launch(cudaError_t status, const char* kernel) {
  if (status != cudaSuccess) throw swapmm::cuda::error_of(status, "a launch", std::string(" of ") + kernel);
}

cublasOperation_t transposed(bool yes) { return yes ? CUBLAS_OP_T : CUBLAS_OP_N; }

}  // namespace

// In C++ the header overloads both, so decltype alone does not name them; where one of another type were loaded, the
// static_cast would not compile.
using OneProduct = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                                  const void*, cudaDataType, int, const void*, cudaDataType, int, const void*, void*,
                                  cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t);
using ManyProducts = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                                    const void*, cudaDataType, int, long long, const void*, cudaDataType, int,
                                    long long, const void*, void*, cudaDataType, int, long long, int,
                                    cublasComputeType_t, cublasGemmAlgo_t);
using CheckedOne = decltype(static_cast<OneProduct*>(&cublasGemmEx));
using CheckedMany = decltype(static_cast<ManyProducts*>(&cublasGemmStridedBatchedEx));

struct CudaMath::Library {
  neural::Cublas cublas;
  CheckedOne one = cublas.library().function<OneProduct>("cublasGemmEx");
  CheckedMany many = cublas.library().function<ManyProducts>("cublasGemmStridedBatchedEx");
};

void check_for_cuda(const Settings& settings) {
  check(settings);
  if (settings.width % 8 != 0 || settings.sequence % 8 != 0 || settings.head_width() % 8 != 0) {
    throw std::invalid_argument("width, sequence and a head's width are multiples of 8");
  }
}

CudaMath::CudaMath(const Backend& backend) {
  swapmm::cuda::check(cudaSetDevice(backend.device()), "cudaSetDevice");
  library_ = std::make_unique<Library>();
}

CudaMath::~CudaMath() = default;

std::size_t CudaMath::product_work(const Product&) const { return library_->cublas.recommended_work(); }

void CudaMath::product(Queue queue, const Product& p, const Number* a, const Number* b, Number* c, const Area& area) {
  const neural::ColumnMajorGemm lies = column_major(p);
  neural::Cublas& cublas = library_->cublas;
  const cublasHandle_t handle = cublas.handle_for(queue, area.data, area.bytes);
  if (p.count == 1) {
    cublas.check(library_->one(handle, transposed(lies.transpose_left), transposed(lies.transpose_right), lies.rows,
                               lies.columns, lies.depth, &p.alpha, b + p.b.first, CUDA_R_16BF, lies.left_stride,
                               a + p.a.first, CUDA_R_16BF, lies.right_stride, &p.beta, c + p.c.first, CUDA_R_16BF,
                               lies.result_stride, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                 "cublasGemmEx");
    return;
  }
  cublas.check(library_->many(handle, transposed(lies.transpose_left), transposed(lies.transpose_right), lies.rows,
                              lies.columns, lies.depth, &p.alpha, b + p.b.first, CUDA_R_16BF, lies.left_stride,
                              static_cast<long long>(p.b.stride), a + p.a.first, CUDA_R_16BF, lies.right_stride,
                              static_cast<long long>(p.a.stride), &p.beta, c + p.c.first, CUDA_R_16BF,
                              lies.result_stride, static_cast<long long>(p.c.stride), static_cast<int>(p.count),
                              CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
               "cublasGemmStridedBatchedEx");
}

void CudaMath::random(Queue queue, std::size_t count, std::uint64_t seed, float range, float middle, Number* x) {
  check_launch(kernels::random(queue, count, seed, range, middle, x), "random");
}
void CudaMath::norm_weights(Queue queue, std::size_t width, Number* weights) {
  check_launch(kernels::norm_weights(queue, width, weights), "norm_weights");
}
void CudaMath::copy(Queue queue, std::size_t count, const Number* from, Number* to) {
  swapmm::cuda::check(cudaMemcpyAsync(to, from, count * sizeof(Number), cudaMemcpyDeviceToDevice, queue),
                      "cudaMemcpyAsync");
}

void CudaMath::layer_norm(Queue queue, std::size_t rows, std::size_t width, const Number* x, const Number* weights,
                          Number* out, Sum* statistics) {
  check_launch(kernels::layer_norm(queue, rows, width, x, weights, out, statistics), "layer_norm");
}
std::size_t CudaMath::norm_work(std::size_t rows, std::size_t width) const {
  return kernels::layer_norm_backward_area(rows, width);
}
void CudaMath::layer_norm_backward(Queue queue, std::size_t rows, std::size_t width, const Number* x,
                                   const Sum* statistics, const Number* weights, const Number* out_gradient,
                                   Number* x_gradient, Number* weights_gradient, const Area& area) {
  check_launch(kernels::layer_norm_backward(queue, rows, width, x, statistics, weights, out_gradient, x_gradient,
                                            weights_gradient, area.data),
               "layer_norm_backward");
}

void CudaMath::softmax(Queue queue, std::size_t rows, std::size_t columns, Number* x) {
  check_launch(kernels::softmax(queue, rows, columns, x), "softmax");
}
void CudaMath::softmax_backward(Queue queue, std::size_t rows, std::size_t columns, const Number* probabilities,
                                Number* gradient) {
  check_launch(kernels::softmax_backward(queue, rows, columns, probabilities, gradient), "softmax_backward");
}

void CudaMath::gelu(Queue queue, std::size_t count, const Number* x, Number* y) {
  check_launch(kernels::gelu(queue, count, x, y), "gelu");
}
void CudaMath::gelu_backward(Queue queue, std::size_t count, const Number* x, Number* gradient) {
  check_launch(kernels::gelu_backward(queue, count, x, gradient), "gelu_backward");
}

std::size_t CudaMath::mean_square_work(std::size_t) const { return kernels::mean_square_area(); }
void CudaMath::mean_square(Queue queue, std::size_t count, const Number* x, Number* gradient, double* loss,
                           const Area& area) {
  check_launch(kernels::mean_square(queue, count, x, gradient, loss, area.data), "mean_square");
}

void CudaMath::learn(Queue queue, std::size_t count, float rate, Number* value, const Number* gradient) {
  check_launch(kernels::learn(queue, count, rate, value, gradient), "learn");
}

void CudaMath::digest(Queue queue, std::size_t count, std::uint64_t salt, const Number* x, std::uint64_t* digest) {
  check_launch(kernels::digest(queue, count, salt, x, digest), "digest");
}

}  // namespace transformer
