// SPDX-License-Identifier: Apache-2.0
#pragma once

// Conversions for programs that use Boost.Compute. Its headers take seconds to compile, so only its core is included.

// Must come first: it chooses the version of the API's own header if the program did not.
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

/// A backend on the program's own context and device. See Backend's constructor.
[[nodiscard]] inline Backend make_backend(const boost::compute::context& context,
                                          const boost::compute::device& device) {
  return {context.get(), device.get()};
}
/// The same, on a queue of the program.
[[nodiscard]] inline Backend make_backend(const boost::compute::command_queue& queue) {
  return {queue.get_context().get(), queue.get_device().get(), queue.get()};
}

/// `op[tensor]` as an argument of a kernel. Holds a reference.
template <class T>
[[nodiscard]] boost::compute::buffer as_compute_buffer(const View<T>& view) {
  return boost::compute::buffer(view.buffer(), true);
}
/// Iterator to the first element of `op[tensor]`, for algorithms. Holds no reference: use it only while the callable
/// runs.
template <class T>
[[nodiscard]] boost::compute::buffer_iterator<T> compute_begin(const View<T>& view) {
  return {as_compute_buffer(view), 0};
}
/// Iterator past the last element of `op[tensor]`. See compute_begin().
template <class T>
[[nodiscard]] boost::compute::buffer_iterator<T> compute_end(const View<T>& view) {
  return {as_compute_buffer(view), view.size()};
}
/// `op.queue()` as an object of Boost.Compute. Holds a reference.
[[nodiscard]] inline boost::compute::command_queue as_compute_queue(cl_command_queue queue) {
  return boost::compute::command_queue(queue, true);
}

/// The wait list of an operation of the second form, as enqueue calls take it. Allocates if it is not empty.
[[nodiscard]] inline boost::compute::wait_list as_compute_waits(const WaitList& waits) {
  boost::compute::wait_list list;
  for (cl_uint i = 0; i < waits.size(); ++i) list.insert(boost::compute::event(waits.data()[i], true));
  return list;
}
/// The return value of an operation of the second form, made from the event that the enqueue call returned.
[[nodiscard]] inline NativeEvent native_event(boost::compute::event event) {
  return std::exchange(event.get(), nullptr);
}

}  // namespace swapmm::opencl
