// SPDX-License-Identifier: Apache-2.0
// The functions of cuBLAS and cuDNN that the examples load while they run, in plain loops on the host, as the
// libraries' manuals say what they do. What the examples are not to ask for is refused: matrices too narrow, work areas
// that are not aligned, algorithms whose sums have no fixed order, numbers rounded to fewer bits. Work areas are
// overwritten.
#include <cublas_v2.h>
#include <cudnn.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "neural/cuda/host_runtime.hpp"
#include "neural/shared_library.hpp"

namespace {

using swapmm::test::most_channels;

void overwrite(void* area, std::size_t bytes) {
  if (bytes != 0) std::memset(area, 0xff, bytes);  // no numbers
}

// ---- cuBLAS

struct BlasHandle {
  cudaStream_t stream = nullptr;
  void* work = nullptr;  // null: its own
  std::size_t work_bytes = 0;
};
BlasHandle* of(cublasHandle_t handle) { return reinterpret_cast<BlasHandle*>(handle); }

cublasStatus_t create(cublasHandle_t* handle) {
  *handle = reinterpret_cast<cublasHandle_t>(new BlasHandle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t destroy(cublasHandle_t handle) {
  delete of(handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t set_stream(cublasHandle_t handle, cudaStream_t stream) {
  *of(handle) = {stream, nullptr, 0};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t set_workspace(cublasHandle_t handle, void* work, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(work) % 256 != 0) return CUBLAS_STATUS_INVALID_VALUE;
  of(handle)->work = work;
  of(handle)->work_bytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t sgemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                     const float* alpha, const float* a, int lda, const float* b, int ldb, const float* beta, float* c,
                     int ldc) {
  const BlasHandle& h = *of(handle);
  if (h.stream == nullptr || h.work == nullptr || h.work_bytes < std::size_t{16} << 10U) {
    return CUBLAS_STATUS_ALLOC_FAILED;
  }
  const bool plain_a = op_a == CUBLAS_OP_N;
  const bool plain_b = op_b == CUBLAS_OP_N;
  if (lda < (plain_a ? m : k) || ldb < (plain_b ? k : n) || ldc < m) return CUBLAS_STATUS_INVALID_VALUE;
  overwrite(h.work, h.work_bytes);
  const auto at = [](int row, int column, int stride) {
    return static_cast<std::size_t>(column) * static_cast<std::size_t>(stride) + static_cast<std::size_t>(row);
  };
  // Columns of op(a) lie in one piece, so that the inner loop is one over neighbours. Each sum keeps the order of its
  // terms.
  std::vector<float> turned;
  if (!plain_a) {
    for (int i = 0; i < k; ++i) {
      for (int row = 0; row < m; ++row) turned.push_back(a[at(i, row, lda)]);
    }
  }
  std::vector<float> sums(static_cast<std::size_t>(m));
  for (int column = 0; column < n; ++column) {
    std::ranges::fill(sums, 0.0F);
    for (int i = 0; i < k; ++i) {
      const float factor = b[plain_b ? at(i, column, ldb) : at(column, i, ldb)];
      const float* const from = plain_a ? a + at(0, i, lda) : turned.data() + at(0, i, m);
      for (std::size_t row = 0; row < sums.size(); ++row) sums[row] += from[row] * factor;
    }
    for (int row = 0; row < m; ++row) {
      const float sum = sums[static_cast<std::size_t>(row)];
      float& to = c[at(row, column, ldc)];
      to = *beta == 0 ? *alpha * sum : *alpha * sum + *beta * to;
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

// ---- cuDNN

struct DnnHandle {
  cudaStream_t stream = nullptr;
};
struct Extents {  // of a tensor: images, channels, rows, columns; of a filter: out, in, rows, columns
  int n = 0, c = 0, h = 0, w = 0;
};
struct Kind {
  int border = 0;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};
template <class Object, class Handle>
Object* as(Handle handle) {
  return reinterpret_cast<Object*>(handle);
}
template <class Object, class Handle>
cudnnStatus_t make(Handle* handle) {
  *handle = reinterpret_cast<Handle>(new Object);
  return CUDNN_STATUS_SUCCESS;
}
template <class Object, class Handle>
cudnnStatus_t unmake(Handle handle) {
  delete as<Object>(handle);
  return CUDNN_STATUS_SUCCESS;
}

std::size_t version() { return CUDNN_VERSION; }
const char* error_text(cudnnStatus_t) { return "an error"; }
cudnnStatus_t set_dnn_stream(cudnnHandle_t handle, cudaStream_t stream) {
  as<DnnHandle>(handle)->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t set_tensor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format, cudnnDataType_t type, int n, int c,
                         int h, int w) {
  if (format != CUDNN_TENSOR_NHWC || type != CUDNN_DATA_FLOAT) return CUDNN_STATUS_BAD_PARAM;
  *as<Extents>(tensor) = {n, c, h, w};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t set_filter(cudnnFilterDescriptor_t filter, cudnnDataType_t type, cudnnTensorFormat_t format, int out,
                         int in, int h, int w) {
  if (format != CUDNN_TENSOR_NHWC || type != CUDNN_DATA_FLOAT) return CUDNN_STATUS_BAD_PARAM;
  *as<Extents>(filter) = {out, in, h, w};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t set_convolution(cudnnConvolutionDescriptor_t convolution, int pad_h, int pad_w, int step_h, int step_w,
                              int dilation_h, int dilation_w, cudnnConvolutionMode_t mode, cudnnDataType_t type) {
  if (pad_h != pad_w || step_h != 1 || step_w != 1 || dilation_h != 1 || dilation_w != 1 ||
      mode != CUDNN_CROSS_CORRELATION || type != CUDNN_DATA_FLOAT) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  as<Kind>(convolution)->border = pad_h;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t set_math(cudnnConvolutionDescriptor_t convolution, cudnnMathType_t math) {
  as<Kind>(convolution)->math = math;
  return CUDNN_STATUS_SUCCESS;
}

std::size_t work_of(const Extents& x, const Extents& y) {
  return 256 * static_cast<std::size_t>(1 + (x.c + y.c) % 3);  // something
}

// Calls visit(index in x, index in the filter, index in y) for each product; false where shapes do not go together.
template <class Visit>
bool for_each_product(const Extents& x, const Extents& f, const Kind& kind, const Extents& y, Visit visit) {
  if (kind.math != CUDNN_FMA_MATH || x.n != y.n || f.c != x.c || f.n != y.c || y.h != x.h + 2 * kind.border - f.h + 1 ||
      y.w != x.w + 2 * kind.border - f.w + 1 || x.c > most_channels) {
    return false;
  }
  const auto last = [](int a, int b, int c, int d, const Extents& e) {  // channels last
    const auto wide = [](int number) { return static_cast<std::size_t>(number); };
    return ((wide(a) * wide(e.h) + wide(b)) * wide(e.w) + wide(c)) * wide(e.c) + wide(d);
  };
  for (int image = 0; image < y.n; ++image) {
    for (int row = 0; row < y.h; ++row) {
      for (int column = 0; column < y.w; ++column) {
        for (int out = 0; out < y.c; ++out) {
          for (int dy = 0; dy < f.h; ++dy) {
            for (int dx = 0; dx < f.w; ++dx) {
              const int from_row = row + dy - kind.border;
              const int from_column = column + dx - kind.border;
              if (from_row < 0 || from_row >= x.h || from_column < 0 || from_column >= x.w) continue;
              for (int in = 0; in < x.c; ++in) {
                visit(last(image, from_row, from_column, in, x), last(out, dy, dx, in, f),
                      last(image, row, column, out, y));
              }
            }
          }
        }
      }
    }
  }
  return true;
}

std::size_t numbers(const Extents& e) {
  return static_cast<std::size_t>(e.n) * static_cast<std::size_t>(e.c) * static_cast<std::size_t>(e.h) *
         static_cast<std::size_t>(e.w);
}

// All three passes: `to` += product of the two others, where it was.
template <class Visit>
cudnnStatus_t run(cudnnHandle_t handle, const void* alpha, const void* beta, const Extents& x, const Extents& f,
                  const Kind& kind, const Extents& y, void* area, std::size_t area_bytes, float* to,
                  const Extents& of_to, Visit visit) {
  if (as<DnnHandle>(handle)->stream == nullptr || *static_cast<const float*>(alpha) != 1 ||
      *static_cast<const float*>(beta) != 0 || area_bytes < work_of(x, y)) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  overwrite(area, area_bytes);
  std::fill_n(to, numbers(of_to), 0.0F);
  return for_each_product(x, f, kind, y, visit) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t answer(const Extents& x, const Extents& y, std::size_t* bytes) {
  if (x.c > most_channels) return CUDNN_STATUS_NOT_SUPPORTED;
  *bytes = work_of(x, y);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t forward_work(cudnnHandle_t, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t,
                           cudnnConvolutionDescriptor_t, cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t,
                           std::size_t* bytes) {
  return answer(*as<Extents>(x), *as<Extents>(y), bytes);
}
cudnnStatus_t weights_work(cudnnHandle_t, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t y,
                           cudnnConvolutionDescriptor_t, cudnnFilterDescriptor_t, cudnnConvolutionBwdFilterAlgo_t,
                           std::size_t* bytes) {
  return answer(*as<Extents>(x), *as<Extents>(y), bytes);
}
cudnnStatus_t input_work(cudnnHandle_t, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t y,
                         cudnnConvolutionDescriptor_t, cudnnTensorDescriptor_t x, cudnnConvolutionBwdDataAlgo_t,
                         std::size_t* bytes) {
  return answer(*as<Extents>(x), *as<Extents>(y), bytes);
}
cudnnStatus_t forward(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_is, const void* x,
                      cudnnFilterDescriptor_t w_is, const void* w, cudnnConvolutionDescriptor_t kind,
                      cudnnConvolutionFwdAlgo_t, void* area, std::size_t bytes, const void* beta,
                      cudnnTensorDescriptor_t y_is, void* y) {
  const auto* const from = static_cast<const float*>(x);
  const auto* const weights = static_cast<const float*>(w);
  auto* const to = static_cast<float*>(y);
  return run(handle, alpha, beta, *as<Extents>(x_is), *as<Extents>(w_is), *as<Kind>(kind), *as<Extents>(y_is), area,
             bytes, to, *as<Extents>(y_is),
             [=](std::size_t in_x, std::size_t in_w, std::size_t in_y) { to[in_y] += from[in_x] * weights[in_w]; });
}
cudnnStatus_t weights_gradient(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_is, const void* x,
                               cudnnTensorDescriptor_t y_is, const void* y, cudnnConvolutionDescriptor_t kind,
                               cudnnConvolutionBwdFilterAlgo_t algorithm, void* area, std::size_t bytes,
                               const void* beta, cudnnFilterDescriptor_t w_is, void* w) {
  if (algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 || algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  const auto* const from = static_cast<const float*>(x);
  const auto* const gradient = static_cast<const float*>(y);
  auto* const to = static_cast<float*>(w);
  return run(handle, alpha, beta, *as<Extents>(x_is), *as<Extents>(w_is), *as<Kind>(kind), *as<Extents>(y_is), area,
             bytes, to, *as<Extents>(w_is),
             [=](std::size_t in_x, std::size_t in_w, std::size_t in_y) { to[in_w] += from[in_x] * gradient[in_y]; });
}
cudnnStatus_t input_gradient(cudnnHandle_t handle, const void* alpha, cudnnFilterDescriptor_t w_is, const void* w,
                             cudnnTensorDescriptor_t y_is, const void* y, cudnnConvolutionDescriptor_t kind,
                             cudnnConvolutionBwdDataAlgo_t algorithm, void* area, std::size_t bytes, const void* beta,
                             cudnnTensorDescriptor_t x_is, void* x) {
  if (algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_0) return CUDNN_STATUS_BAD_PARAM;
  const auto* const weights = static_cast<const float*>(w);
  const auto* const gradient = static_cast<const float*>(y);
  auto* const to = static_cast<float*>(x);
  return run(handle, alpha, beta, *as<Extents>(x_is), *as<Extents>(w_is), *as<Kind>(kind), *as<Extents>(y_is), area,
             bytes, to, *as<Extents>(x_is),
             [=](std::size_t in_x, std::size_t in_w, std::size_t in_y) { to[in_x] += weights[in_w] * gradient[in_y]; });
}

// The compiler compares each with the library's own declaration.
template <class Function>
void* symbol(Function* declared, Function* ours) {
  (void)declared;
  return reinterpret_cast<void*>(ours);
}
#define SYMBOL(name, ours) \
  { #name, symbol < decltype(::name)>(nullptr, ours) }

const std::map<std::string, void*>& symbols() {
  static const std::map<std::string, void*> all{
      SYMBOL(cublasCreate_v2, create),
      SYMBOL(cublasDestroy_v2, destroy),
      SYMBOL(cublasSetStream_v2, set_stream),
      SYMBOL(cublasSetWorkspace_v2, set_workspace),
      SYMBOL(cublasSgemm_v2, sgemm),
      SYMBOL(cudnnGetVersion, version),
      SYMBOL(cudnnGetErrorString, error_text),
      SYMBOL(cudnnCreate, (make<DnnHandle, cudnnHandle_t>)),
      SYMBOL(cudnnDestroy, (unmake<DnnHandle, cudnnHandle_t>)),
      SYMBOL(cudnnSetStream, set_dnn_stream),
      SYMBOL(cudnnCreateTensorDescriptor, (make<Extents, cudnnTensorDescriptor_t>)),
      SYMBOL(cudnnDestroyTensorDescriptor, (unmake<Extents, cudnnTensorDescriptor_t>)),
      SYMBOL(cudnnSetTensor4dDescriptor, set_tensor),
      SYMBOL(cudnnCreateFilterDescriptor, (make<Extents, cudnnFilterDescriptor_t>)),
      SYMBOL(cudnnDestroyFilterDescriptor, (unmake<Extents, cudnnFilterDescriptor_t>)),
      SYMBOL(cudnnSetFilter4dDescriptor, set_filter),
      SYMBOL(cudnnCreateConvolutionDescriptor, (make<Kind, cudnnConvolutionDescriptor_t>)),
      SYMBOL(cudnnDestroyConvolutionDescriptor, (unmake<Kind, cudnnConvolutionDescriptor_t>)),
      SYMBOL(cudnnSetConvolution2dDescriptor, set_convolution),
      SYMBOL(cudnnSetConvolutionMathType, set_math),
      SYMBOL(cudnnGetConvolutionForwardWorkspaceSize, forward_work),
      SYMBOL(cudnnGetConvolutionBackwardFilterWorkspaceSize, weights_work),
      SYMBOL(cudnnGetConvolutionBackwardDataWorkspaceSize, input_work),
      SYMBOL(cudnnConvolutionForward, forward),
      SYMBOL(cudnnConvolutionBackwardFilter, weights_gradient),
      SYMBOL(cudnnConvolutionBackwardData, input_gradient)};
  return all;
}

}  // namespace

// In place of shared_library.cpp.
namespace neural {

SharedLibrary::SharedLibrary(std::string_view what, std::initializer_list<const char*>)
    : file_(what), handle_(const_cast<std::map<std::string, void*>*>(&symbols())) {}

void* SharedLibrary::address(const char* name) const {
  const auto& all = *static_cast<const std::map<std::string, void*>*>(handle_);
  const auto found = all.find(name);
  if (found == all.end()) throw std::runtime_error(file_ + " on the host has no function " + name);
  return found->second;
}

}  // namespace neural
