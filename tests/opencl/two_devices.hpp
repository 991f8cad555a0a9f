// SPDX-License-Identifier: Apache-2.0
#pragma once

// A device and a second one of the same platform in one context. Where there is no second one, the device is its own
// neighbour: the copies are the same. tests/OpenclTests.cmake has a test with two devices.

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <vector>

#include <swapmm/opencl/backend.hpp>
#include <swapmm/opencl/devices.hpp>
#include <swapmm/opencl/handle.hpp>

#include "opencl/support.hpp"

namespace swapmm::test {

inline cl_platform_id platform_of(cl_device_id device) {
  cl_platform_id platform = nullptr;
  REQUIRE(clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, nullptr) == CL_SUCCESS);
  return platform;
}

/// The neighbour of the device that tests run on.
inline cl_device_id second_device() {
  const cl_device_id first = first_backend().device();
  for (const opencl::Device& other : opencl::devices()) {
    if (other.id != first && platform_of(other.id) == platform_of(first)) return other.id;
  }
  return first;
}

/// A backend on the device that tests run on, in a context that has the second one, too.
inline opencl::Backend backend_with_neighbour() {
  const std::array<cl_device_id, 2> both{first_backend().device(), second_device()};
  cl_int status = CL_SUCCESS;
  const opencl::Handle<cl_context> context(
      clCreateContext(nullptr, both[0] == both[1] ? 1 : 2, both.data(), nullptr, nullptr, &status));
  REQUIRE(status == CL_SUCCESS);
  return {context.get(), both[0]};
}

}  // namespace swapmm::test
