// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>

#include "bench/gpu/raw.hpp"
#include "bench/gpu/swapped_copies.hpp"

namespace swapmm::bench {

/// Bytes to and from the device by cudaMemcpyAsync, on a stream each way, from and to page-locked memory.
class RawCopies {
 public:
  RawCopies(std::size_t bytes, std::size_t count)
      : bytes_(bytes), count_(count), device_in_(bytes), device_out_(bytes), host_in_(bytes), host_out_(bytes) {}

  /// Bytes per second each way, of `count` copies each way.
  [[nodiscard]] double run(Direction direction) {
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < count_; ++i) {
      if (direction != Direction::d2h) {
        cuda::check(cudaMemcpyAsync(device_in_.as(), host_in_.data(), bytes_, cudaMemcpyHostToDevice, stream_in_.get()),
                    "cudaMemcpyAsync");
      }
      if (direction != Direction::h2d) {
        cuda::check(
            cudaMemcpyAsync(host_out_.data(), device_out_.as(), bytes_, cudaMemcpyDeviceToHost, stream_out_.get()),
            "cudaMemcpyAsync");
      }
    }
    cuda::check(cudaStreamSynchronize(stream_in_.get()), "cudaStreamSynchronize");
    cuda::check(cudaStreamSynchronize(stream_out_.get()), "cudaStreamSynchronize");
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    return static_cast<double>(bytes_ * count_) / time.count();
  }

 private:
  std::size_t bytes_;
  std::size_t count_;
  RawMemory device_in_;
  RawMemory device_out_;
  RawPinned host_in_;
  RawPinned host_out_;
  cuda::StreamHandle stream_in_ = raw_stream();
  cuda::StreamHandle stream_out_ = raw_stream();
};

}  // namespace swapmm::bench
