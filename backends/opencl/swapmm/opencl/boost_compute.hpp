// SPDX-License-Identifier: Apache-2.0
#pragma once

// For programs that use Boost.Compute. Its headers take seconds to compile, so only its core is included here.

#include <cstddef>

#include <boost/compute/buffer.hpp>
#include <boost/compute/command_queue.hpp>
#include <boost/compute/context.hpp>
#include <boost/compute/device.hpp>
#include <boost/compute/iterator/buffer_iterator.hpp>

#include <swapmm/opencl/backend.hpp>

namespace swapmm::opencl {

/// A backend on the program's own context, device, and queue if it gives one: see Backend's constructor.
[[nodiscard]] inline Backend make_backend(const boost::compute::context& context,
                                          const boost::compute::device& device) {
  return {context.get(), device.get()};
}
[[nodiscard]] inline Backend make_backend(const boost::compute::command_queue& queue) {
  return {queue.get_context().get(), queue.get_device().get(), queue.get()};
}

/// `op[tensor]` as Boost.Compute's algorithms take it: a reference of its own, and iterators over the tensor's
/// elements.
template <class T>
[[nodiscard]] boost::compute::buffer as_compute_buffer(const View<T>& view) {
  return boost::compute::buffer(view.buffer(), true);
}
template <class T>
[[nodiscard]] boost::compute::buffer_iterator<T> compute_begin(const View<T>& view) {
  return {as_compute_buffer(view), 0};
}
template <class T>
[[nodiscard]] boost::compute::buffer_iterator<T> compute_end(const View<T>& view) {
  return {as_compute_buffer(view), view.size()};
}
/// `op.queue()`, wrapped: a reference of its own.
[[nodiscard]] inline boost::compute::command_queue as_compute_queue(cl_command_queue queue) {
  return boost::compute::command_queue(queue, true);
}

}  // namespace swapmm::opencl
