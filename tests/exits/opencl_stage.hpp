// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the ways to exit need of a device of OpenCL.

#include <cstddef>
#include <sstream>
#include <stdexcept>
#include <string>

#include <swapmm/opencl/backend.hpp>
#include <swapmm/swapmm.hpp>

#include "opencl/api_calls.hpp"
#include "opencl/device.hpp"

namespace swapmm::test::stage {

using Device = opencl::Backend;

inline constexpr std::size_t elements = std::size_t{1} << 18U;  // of a tensor: copies take a while

/// With a context of its own.
inline Device make_device() { return backend(); }

/// Every element becomes `value`. No kernel, which would have to be compiled.
template <class Operation, class Target>
void queue_set(Operation& op, const Target& target, int value) {
  const auto out = op[target];
  const cl_int status =
      clEnqueueFillBuffer(op.queue(), out.buffer(), &value, sizeof value, 0, out.bytes(), 0, nullptr, nullptr);
  if (status != CL_SUCCESS) throw std::runtime_error("clEnqueueFillBuffer: status " + std::to_string(status));
}

/// What is left of objects; empty: nothing.
inline std::string left_over() {
  if (api_objects() == ApiObjects{}) return {};
  std::ostringstream text;
  text << "objects of the API are left: " << api_objects();
  return text.str();
}

/// From now on every call of the API that can fail does.
inline void end_driver() { new LosingDevice(CL_DEVICE_NOT_AVAILABLE, 1); }

/// A driver's threads are not copied by fork().
inline constexpr bool child_has_device = false;

}  // namespace swapmm::test::stage
