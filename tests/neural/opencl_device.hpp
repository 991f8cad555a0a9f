// SPDX-License-Identifier: Apache-2.0
#pragma once

// The device of the tests: OpenCL's. See device.hpp.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include <swapmm/opencl/backend.hpp>
#include <swapmm/opencl/status.hpp>

#include "neural/opencl_math.hpp"
#include "opencl/api_calls.hpp"
#include "opencl/device.hpp"

namespace swapmm::test {

using Math = neural::OpenclMath;

/// One for all tests of a program, so that the kernels are compiled once. It stays for good, for the driver may be gone
/// before the program's last objects.
inline Math& math() {
  static auto& made = *new Math([] {
    static auto& backend = *new opencl::Backend(test::backend());
    return backend;
  }());
  return made;
}
/// math(), and others that compute the same in another way.
inline std::vector<Math*> maths() { return {&math()}; }
inline opencl::Backend& shared_backend() { return math().backend(); }
inline cl_command_queue queue() { return shared_backend().queue(); }

/// Of which products want work areas, and more than one chunk.
inline constexpr neural::Convolution large_convolution{.images = 2, .side = 28, .in = 64, .out = 1664, .size = 3};

/// Requires that products want work areas of these sizes, in bytes. On a GPU with memory of its own CLBlast's
/// parameters may be such that they want none: then it says so, and the test goes on without.
inline void require_work_areas(std::initializer_list<std::size_t> sizes) {
  const bool are_wanted = std::find(sizes.begin(), sizes.end(), std::size_t{0}) == sizes.end();
  if (!are_wanted && !shared_backend().capabilities().host_shares_memory) {
    MESSAGE("skipped: work areas: products of this size want none on this device");
    return;
  }
  REQUIRE(are_wanted);
}

/// A memory of the device.
class DeviceBytes {
 public:
  explicit DeviceBytes(std::size_t size) {
    cl_int status = CL_SUCCESS;
    buffer_.reset(clCreateBuffer(shared_backend().context(), CL_MEM_READ_WRITE, size, nullptr, &status));
    opencl::check(status, "clCreateBuffer");
  }
  [[nodiscard]] Math::Place place() const { return Math::Place(buffer_.get()); }
  /// @{
  /// From its begin; waits until that is done.
  void write(std::span<const std::byte> bytes) const {
    opencl::check(
        clEnqueueWriteBuffer(queue(), buffer_.get(), CL_TRUE, 0, bytes.size(), bytes.data(), 0, nullptr, nullptr),
        "clEnqueueWriteBuffer");
  }
  void read(std::span<std::byte> bytes) const {
    opencl::check(
        clEnqueueReadBuffer(queue(), buffer_.get(), CL_TRUE, 0, bytes.size(), bytes.data(), 0, nullptr, nullptr),
        "clEnqueueReadBuffer");
  }
  /// @}

 private:
  opencl::Handle<cl_mem> buffer_;
};

/// What was asked of the device since this was made, by whichever library.
class DeviceCalls {
 public:
  /// So many kernels were queued, and no byte of the device was taken.
  void check_no_bytes(std::uint64_t kernels = 1) const {
    CHECK(api_calls().kernels >= before_.kernels + kernels);
    CHECK(api_calls().device_bytes == before_.device_bytes);
  }
  /// And no object was made that stands for bytes.
  void check_no_buffers(std::uint64_t kernels = 1) const {
    CHECK(api_calls().kernels >= before_.kernels + kernels);
    CHECK(api_calls().buffers_made == before_.buffers_made);
    CHECK(api_calls().sub_buffers_made == before_.sub_buffers_made);
  }

 private:
  ApiCalls before_ = api_calls();
};

}  // namespace swapmm::test
