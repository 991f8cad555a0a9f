// SPDX-License-Identifier: Apache-2.0
#pragma once

// For programs that use the C++ bindings CL/opencl.hpp. Include that header's settings before this one.

#include <CL/opencl.hpp>

#include <swapmm/opencl/backend.hpp>

namespace swapmm::opencl {

/// A backend on the program's own context, device, and queue if it gives one: see Backend's constructor.
[[nodiscard]] inline Backend make_backend(const cl::Context& context, const cl::Device& device) {
  return {context(), device()};
}
[[nodiscard]] inline Backend make_backend(const cl::Context& context, const cl::Device& device,
                                          const cl::CommandQueue& queue) {
  return {context(), device(), queue()};
}

/// `op[tensor]` as an argument of a cl::Kernel: a reference of its own.
template <class T>
[[nodiscard]] cl::Buffer as_cl_buffer(const View<T>& view) {
  return cl::Buffer(view.buffer(), true);
}
/// `op.queue()`, wrapped: a reference of its own.
[[nodiscard]] inline cl::CommandQueue as_cl_queue(cl_command_queue queue) { return cl::CommandQueue(queue, true); }

}  // namespace swapmm::opencl
