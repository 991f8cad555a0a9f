// SPDX-License-Identifier: Apache-2.0
// Compiled, not run: the header for Boost.Compute and that for CL/opencl.hpp in one file, their functions side by side.
#include <swapmm/opencl/clhpp.hpp>

#include <swapmm/opencl/boost_compute.hpp>
#include <swapmm/swapmm.hpp>

namespace {

using namespace swapmm;

[[maybe_unused]] opencl::Backend backend_of(const boost::compute::command_queue& queue) {
  return opencl::make_backend(queue);
}
[[maybe_unused]] opencl::Backend backend_of(const boost::compute::context& context,
                                            const boost::compute::device& device) {
  return opencl::make_backend(context, device);
}
[[maybe_unused]] opencl::Backend backend_of(const cl::Context& context, const cl::Device& device) {
  return opencl::make_backend(context, device);
}
[[maybe_unused]] opencl::Backend backend_of(const cl::Context& context, const cl::Device& device,
                                            const cl::CommandQueue& queue) {
  return opencl::make_backend(context, device, queue);
}

[[maybe_unused]] void copy_and_run(MemoryManager<opencl::Backend>& manager, Tensor<float, opencl::Backend>& tensor,
                                   cl::Kernel& kernel) {
  manager.run("both", updates(tensor), [&](auto& op) {
    auto compute_queue = opencl::as_compute_queue(op.queue());
    compute_queue.enqueue_copy_buffer(opencl::as_compute_buffer(op[tensor]), opencl::as_compute_buffer(op[tensor]), 0,
                                      4, 4);
    kernel.setArg(0, opencl::as_cl_buffer(op[tensor]));
    opencl::as_cl_queue(op.queue()).enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(tensor.size()));
  });
  manager.run("events", updates(tensor), [&](auto&, const opencl::WaitList& waits) {
    boost::compute::event compute_event;
    if (opencl::as_compute_waits(waits).empty()) return opencl::native_event(compute_event);
    return opencl::native_event(opencl::as_cl_events(waits).front());
  });
}

}  // namespace
