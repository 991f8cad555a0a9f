// SPDX-License-Identifier: Apache-2.0
#pragma once

// The CUDA runtime as a program without swapmm uses it.

#include <cstddef>

#include <cuda_runtime_api.h>

#include <swapmm/cuda/handle.hpp>
#include <swapmm/cuda/status.hpp>

namespace swapmm::bench {

/// Device memory of its own.
class RawMemory {
 public:
  explicit RawMemory(std::size_t bytes) { cuda::check(cudaMalloc(&data_, bytes), "cudaMalloc"); }
  RawMemory(const RawMemory&) = delete;
  RawMemory& operator=(const RawMemory&) = delete;
  ~RawMemory() { (void)cudaFree(data_); }
  template <class T = std::byte>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

/// Page-locked host memory.
class RawPinned {
 public:
  explicit RawPinned(std::size_t bytes) {
    cuda::check(cudaHostAlloc(&data_, bytes, cudaHostAllocDefault), "cudaHostAlloc");
  }
  RawPinned(const RawPinned&) = delete;
  RawPinned& operator=(const RawPinned&) = delete;
  ~RawPinned() { (void)cudaFreeHost(data_); }
  [[nodiscard]] void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

[[nodiscard]] inline cuda::StreamHandle raw_stream() {
  cudaStream_t stream = nullptr;
  cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return cuda::StreamHandle(stream);
}
[[nodiscard]] inline cuda::EventHandle raw_event(unsigned flags = cudaEventDefault) {
  cudaEvent_t event = nullptr;
  cuda::check(cudaEventCreateWithFlags(&event, flags), "cudaEventCreateWithFlags");
  return cuda::EventHandle(event);
}

/// Milliseconds on the device from before what `queue(stream)` queues to behind it.
template <class Queue>
[[nodiscard]] double device_ms(cudaStream_t stream, Queue&& queue) {
  const cuda::EventHandle begin = raw_event();
  const cuda::EventHandle end = raw_event();
  cuda::check(cudaEventRecord(begin.get(), stream), "cudaEventRecord");
  queue(stream);
  cuda::check(cudaEventRecord(end.get(), stream), "cudaEventRecord");
  cuda::check(cudaEventSynchronize(end.get()), "cudaEventSynchronize");
  float ms = 0;
  cuda::check(cudaEventElapsedTime(&ms, begin.get(), end.get()), "cudaEventElapsedTime");
  return static_cast<double>(ms);
}

}  // namespace swapmm::bench
