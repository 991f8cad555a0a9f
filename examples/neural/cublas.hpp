// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <cublas_v2.h>

#include "neural/shapes.hpp"
#include "neural/shared_library.hpp"

namespace neural {

/// cuBLAS, loaded while the program runs, and one handle of it. For one thread at a time, which has the handle's device
/// as its current one in every call.
class Cublas {
 public:
  /// On the current device. Throws std::runtime_error where cuBLAS is not installed, or refuses to work.
  Cublas();
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  /// What NVIDIA recommends as a work area on the device that the handle is for: 32 MiB from compute capability 9.0 on,
  /// 4 MiB before.
  [[nodiscard]] std::size_t recommended_work() const { return recommended_work_; }

  /// c = a * b + beta * c, row by row; with beta 0, c is not read. `area`: so many bytes, beginning at a multiple of
  /// 256; nothing else is allocated. Products of the same shape, with areas of the same size, give the same bits.
  void gemm(cudaStream_t stream, const Gemm& g, const float* a, const float* b, float beta, float* c, void* area,
            std::size_t area_bytes);

  /// The handle, with its next work on that stream, and that work area: for what is not here. cuBLAS forgets the area
  /// whenever it is given a stream, hence both together.
  [[nodiscard]] cublasHandle_t handle_for(cudaStream_t stream, void* area, std::size_t area_bytes);
  /// Its other functions.
  [[nodiscard]] const SharedLibrary& library() const { return library_; }
  /// Throws std::runtime_error that names the call, unless the status is success.
  void check(cublasStatus_t status, std::string_view call) const;

 private:
  SharedLibrary library_;
  decltype(&cublasCreate) create_ = library_.function<decltype(cublasCreate)>("cublasCreate_v2");
  decltype(&cublasDestroy) destroy_ = library_.function<decltype(cublasDestroy)>("cublasDestroy_v2");
  decltype(&cublasSetStream) set_stream_ = library_.function<decltype(cublasSetStream)>("cublasSetStream_v2");
  decltype(&cublasSetWorkspace) set_work_ = library_.function<decltype(cublasSetWorkspace)>("cublasSetWorkspace_v2");
  decltype(&cublasSgemm) sgemm_ = library_.function<decltype(cublasSgemm)>("cublasSgemm_v2");
  cublasHandle_t handle_ = nullptr;
  std::size_t recommended_work_ = 0;
};

}  // namespace neural
