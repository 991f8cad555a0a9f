// SPDX-License-Identifier: Apache-2.0
#pragma once

// The device of the tests: CUDA's. See device.hpp.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <span>
#include <sstream>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include <swapmm/cuda/backend.hpp>
#include <swapmm/cuda/status.hpp>

#include "neural/cuda_math.hpp"

namespace swapmm::test {

using Math = neural::CudaMath;

/// One for all tests of a program. It stays for good, for the driver may be gone before the program's last objects.
inline cuda::Backend& shared_backend() {
  static auto& backend = *new cuda::Backend([] {
    std::ostringstream silent;
    return cuda::Backend::pick("", silent);
  }());
  return backend;
}
/// Convolutions by matrix products.
inline Math& math() {
  static auto& made = *new Math(shared_backend(), neural::Convolutions::gemm);
  return made;
}
/// math(), and where cuDNN is installed one that takes it.
inline std::vector<Math*> maths() {
  static Math* const by_cudnn = []() -> Math* {
    try {
      return new Math(shared_backend(), neural::Convolutions::cudnn);
    } catch (const std::exception& error) {
      MESSAGE("skipped: convolutions by cuDNN: ", error.what());
      return nullptr;
    }
  }();
  std::vector<Math*> all{&math()};
  if (by_cudnn != nullptr) all.push_back(by_cudnn);
  return all;
}
inline cudaStream_t queue() { return shared_backend().queue(); }

/// With more than one chunk.
inline constexpr neural::Convolution large_convolution{.images = 20, .side = 28, .in = 16, .out = 48, .size = 3};

/// Requires that products want work areas of these sizes, in bytes.
inline void require_work_areas(std::initializer_list<std::size_t> sizes) {
  REQUIRE(std::find(sizes.begin(), sizes.end(), std::size_t{0}) == sizes.end());
}

/// A memory of the device.
class DeviceBytes {
 public:
  explicit DeviceBytes(std::size_t size) {
    cuda::check(cudaSetDevice(shared_backend().device()), "cudaSetDevice");
    cuda::check(cudaMalloc(&data_, size), "cudaMalloc");
  }
  DeviceBytes(DeviceBytes&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  DeviceBytes& operator=(DeviceBytes&&) = delete;
  ~DeviceBytes() { (void)cudaFree(data_); }  // waits for the device

  [[nodiscard]] Math::Place place() const { return Math::Place(data_); }
  /// @{
  /// From its begin; waits until that is done.
  void write(std::span<const std::byte> bytes) const {
    copy(data_, bytes.data(), bytes.size(), cudaMemcpyHostToDevice);
  }
  void read(std::span<std::byte> bytes) const { copy(bytes.data(), data_, bytes.size(), cudaMemcpyDeviceToHost); }
  /// @}

 private:
  static void copy(void* to, const void* from, std::size_t size, cudaMemcpyKind kind) {
    cuda::check(cudaMemcpyAsync(to, from, size, kind, queue()), "cudaMemcpyAsync");
    cuda::check(cudaStreamSynchronize(queue()), "cudaStreamSynchronize");
  }

  void* data_ = nullptr;
};

/// What OpenCL's test program counts. Here nobody counts: cuBLAS and cuDNN keep bytes of their own, for modules that
/// they load when they first need them.
class DeviceCalls {
 public:
  void check_no_bytes(std::uint64_t = 1) const {}
  void check_no_buffers(std::uint64_t = 1) const {}
};

}  // namespace swapmm::test
