// SPDX-License-Identifier: Apache-2.0
#pragma once

// Conversions for programs that use the C++ bindings CL/opencl.hpp. Define that header's settings before including
// this.

// Defaults for what the program leaves open: the bindings' version is that of the API's own header, which may have been
// included before; if neither is set it is 1.2, which is enough for swapmm.
#if !defined(CL_HPP_TARGET_OPENCL_VERSION)
#if !defined(CL_TARGET_OPENCL_VERSION)
#define CL_TARGET_OPENCL_VERSION 120
#endif
#define CL_HPP_TARGET_OPENCL_VERSION CL_TARGET_OPENCL_VERSION
#elif defined(CL_TARGET_OPENCL_VERSION) && CL_TARGET_OPENCL_VERSION < CL_HPP_TARGET_OPENCL_VERSION
#error "CL_HPP_TARGET_OPENCL_VERSION is above CL_TARGET_OPENCL_VERSION: define both alike, before the first include"
#endif
#if !defined(CL_HPP_MINIMUM_OPENCL_VERSION) && CL_HPP_TARGET_OPENCL_VERSION < 200  // the bindings' own default
#define CL_HPP_MINIMUM_OPENCL_VERSION CL_HPP_TARGET_OPENCL_VERSION
#endif
#include <CL/opencl.hpp>

#include <utility>
#include <vector>

#include <swapmm/opencl/backend.hpp>

namespace swapmm::opencl {

/// A backend on the program's own context and device. See Backend's constructor.
[[nodiscard]] inline Backend make_backend(const cl::Context& context, const cl::Device& device) {
  return {context(), device()};
}
/// The same, on a queue of the program.
[[nodiscard]] inline Backend make_backend(const cl::Context& context, const cl::Device& device,
                                          const cl::CommandQueue& queue) {
  return {context(), device(), queue()};
}

/// `op[tensor]` as an argument of a cl::Kernel. Holds a reference.
template <class T>
[[nodiscard]] cl::Buffer as_cl_buffer(const View<T>& view) {
  return cl::Buffer(view.buffer(), true);
}
/// `op.queue()` as an object of the bindings. Holds a reference.
[[nodiscard]] inline cl::CommandQueue as_cl_queue(cl_command_queue queue) { return cl::CommandQueue(queue, true); }

/// The wait list of an operation of the second form, as enqueue calls take it. Allocates if it is not empty.
[[nodiscard]] inline std::vector<cl::Event> as_cl_events(const WaitList& waits) {
  std::vector<cl::Event> events;
  events.reserve(waits.size());
  for (cl_uint i = 0; i < waits.size(); ++i) events.emplace_back(waits.data()[i], true);
  return events;
}
/// The return value of an operation of the second form, made from the event that the enqueue call returned.
[[nodiscard]] inline NativeEvent native_event(cl::Event event) { return std::exchange(event(), nullptr); }

}  // namespace swapmm::opencl
