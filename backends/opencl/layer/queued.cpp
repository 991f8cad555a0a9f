// SPDX-License-Identifier: Apache-2.0
// What a context has queued, and what stays until it has ended.
#include <memory>
#include <utility>

#include <swapmm/opencl/info.hpp>
#include <swapmm/opencl/session.hpp>

#include "context.hpp"

namespace swapmm::opencl::layer {

cl_event Context::nothing_instead(const Running& operation, const WaitList& waits) {
  cl_event native = nullptr;
  const cl_int status =
      down.clEnqueueMarkerWithWaitList(operation.backend().queue(), waits.size(), waits.data(), &native);
  return status == CL_SUCCESS ? native : nullptr;
}

void Context::queued(cl_event event) {
  last_ = keep(event);
  while (!kept_.empty() && opencl::detail::execution_status(kept_.front().until.get()) <= CL_COMPLETE)
    kept_.pop_front();
}

void Context::wait_for_kept() {
  if (kept_.empty()) return;
  flush();
  std::erase_if(kept_, [](const Kept& each) {
    const cl_event until = each.until.get();
    (void)down.clWaitForEvents(1, &until);  // fails for a command that failed, which has ended, too
    cl_int status = CL_QUEUED;              // if the driver does not answer: its things are kept
    (void)down.clGetEventInfo(until, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
    return status <= CL_COMPLETE;
  });
}

void Context::keep_until_done(std::shared_ptr<void> thing) {
  if (!last_) return;
  if (Handle<cl_event> until = keep(last_.get())) kept_.push_back({std::move(until), std::move(thing)});
}

cl_event Context::last_command() {
  submit_held_back(*this);
  return last_ ? keep(last_.get()).release() : nullptr;
}

Handle<cl_event> Context::keep(cl_event event) {
  return opencl::detail::keep_event(event, [this] { flush(); });
}

}  // namespace swapmm::opencl::layer
