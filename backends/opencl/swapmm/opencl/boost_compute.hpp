// SPDX-License-Identifier: Apache-2.0
#pragma once

// For programs that use Boost.Compute. Its headers take seconds to compile, so only its core is included here.

// First, for it chooses the version of the API's own header where the program did not.
#include <swapmm/opencl/handle.hpp>

#include <boost/compute/buffer.hpp>
#include <boost/compute/command_queue.hpp>
#include <boost/compute/context.hpp>
#include <boost/compute/device.hpp>
#include <boost/compute/event.hpp>
#include <boost/compute/iterator/buffer_iterator.hpp>
#include <boost/compute/utility/wait_list.hpp>

#include <utility>

#include <swapmm/opencl/backend.hpp>

namespace swapmm::opencl {

/// A backend on the program's own context, device, and queue if it gives one: see Backend's constructor.
[[nodiscard]] inline Backend make_backend(const boost::compute::context& context,
                                          const boost::compute::device& device) {
  return {context.get(), device.get()};
}
/// The same, on a queue of the program's.
[[nodiscard]] inline Backend make_backend(const boost::compute::command_queue& queue) {
  return {queue.get_context().get(), queue.get_device().get(), queue.get()};
}

/// `op[tensor]` as an argument of a kernel: a reference of its own.
template <class T>
[[nodiscard]] boost::compute::buffer as_compute_buffer(const View<T>& view) {
  return boost::compute::buffer(view.buffer(), true);
}
/// `op[tensor]` as the algorithms take it: from its first element to compute_end(), behind its last. Without a
/// reference of their own, so that they are for use while the operation runs.
template <class T>
[[nodiscard]] boost::compute::buffer_iterator<T> compute_begin(const View<T>& view) {
  return {as_compute_buffer(view), 0};
}
/// See compute_begin().
template <class T>
[[nodiscard]] boost::compute::buffer_iterator<T> compute_end(const View<T>& view) {
  return {as_compute_buffer(view), view.size()};
}
/// `op.queue()`, wrapped: a reference of its own.
[[nodiscard]] inline boost::compute::command_queue as_compute_queue(cl_command_queue queue) {
  return boost::compute::command_queue(queue, true);
}

/// The wait list of an operation of the second form, as the enqueuing calls take it. Allocates where it is not empty.
[[nodiscard]] inline boost::compute::wait_list as_compute_waits(const WaitList& waits) {
  boost::compute::wait_list list;
  for (cl_uint i = 0; i < waits.size(); ++i) list.insert(boost::compute::event(waits.data()[i], true));
  return list;
}
/// What an operation of the second form returns, from the event that the call gave.
[[nodiscard]] inline NativeEvent native_event(boost::compute::event event) {
  return std::exchange(event.get(), nullptr);
}

}  // namespace swapmm::opencl
