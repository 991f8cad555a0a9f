// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the parts of this benchmark share: buffers, the codec, times.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include <swapmm/opencl/backend.hpp>
#include <swapmm/opencl/codec/zero_codec.hpp>
#include <swapmm/opencl/status.hpp>

namespace bench {

using Buffer = swapmm::opencl::Handle<cl_mem>;
using EventHandle = swapmm::opencl::Handle<cl_event>;
using swapmm::opencl::check;

struct Device {
  swapmm::opencl::Backend backend;
  swapmm::opencl::ZeroCodec codec{backend};
};

[[nodiscard]] inline Buffer make_buffer(Device& device, std::size_t size, cl_mem_flags flags = 0) {
  cl_int status = CL_SUCCESS;
  Buffer buffer(clCreateBuffer(device.backend.context(), CL_MEM_READ_WRITE | flags, size, nullptr, &status));
  check(status, "clCreateBuffer");
  return buffer;
}

inline void write(cl_command_queue queue, cl_mem buffer, const void* bytes, std::size_t size) {
  check(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, size, bytes, 0, nullptr, nullptr), "clEnqueueWriteBuffer");
}
inline void read(cl_command_queue queue, cl_mem buffer, void* bytes, std::size_t size) {
  check(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, size, bytes, 0, nullptr, nullptr), "clEnqueueReadBuffer");
}

[[nodiscard]] inline swapmm::ZeroHeader header_of(cl_command_queue queue, cl_mem encoded) {
  swapmm::ZeroHeader header;
  read(queue, encoded, &header, sizeof header);
  return header;
}

/// Random numbers, of which that part is not zero.
[[nodiscard]] inline std::vector<float> sparse_numbers(std::size_t count, double density, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto limit = static_cast<std::uint64_t>(density * 4294967296.0);
  std::vector<float> numbers(count);
  for (float& number : numbers) {
    const std::uint64_t bits = random();
    if ((bits >> 32U) < limit) number = static_cast<float>(bits & 0xffffU) + 1;
  }
  return numbers;
}

[[nodiscard]] inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The median time of `rounds` calls, in milliseconds, after one that is not counted.
template <class Run>
[[nodiscard]] double milliseconds_of(std::size_t rounds, Run&& run) {
  std::vector<double> times;
  for (std::size_t round = 0; round <= rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    if (round > 0) times.push_back(time.count());
  }
  return median(times);
}

/// Gigabytes per second.
[[nodiscard]] inline double rate(std::size_t bytes, double milliseconds) {
  return static_cast<double>(bytes) / milliseconds / 1e6;
}

/// @{ The parts. Each prints a table.
void measure_speed(Device& device);
void measure_host_ways(Device& device);
void measure_activations(Device& device, std::size_t steps);
/// @}

/// Bytes after byte shuffle and LZ4, and how fast a core does that and undoes it, by the processor's time.
struct Shuffled {
  std::size_t bytes = 0;
  double encode_rate = 0;  ///< GB/s of plain bytes
  double decode_rate = 0;  ///< likewise
};
/// Elements of 4 bytes. Throws std::runtime_error if they do not come back as they were. Without LZ4: no bytes.
[[nodiscard]] Shuffled shuffled_lz4(const std::vector<float>& numbers);

}  // namespace bench
