// SPDX-License-Identifier: Apache-2.0
#include "event.hpp"

#include <utility>

#include "process/callbacks.hpp"
#include "queue.hpp"

namespace swapmm::opencl::layer {

Event::Event(Context& context, Queue* queue, cl_command_type type)
    : Object(Kind::event), context_(context), type_(type), status_(type == CL_COMMAND_USER ? CL_SUBMITTED : CL_QUEUED) {
  if (queue != nullptr) queue_ = Ref<Queue>(*queue);
}

Event::~Event() {
  if (const cl_event event = native(); event != nullptr) down.clReleaseEvent(event);
}

cl_int Event::status() const {
  const cl_event event = native();
  if (event == nullptr) return status_.load(std::memory_order_acquire);
  cl_int status = CL_COMPLETE;
  const cl_int asked = down.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  return asked == CL_SUCCESS ? status : CL_QUEUED;
}

void Event::submitted(cl_event event) {
  native_.store(event, std::memory_order_release);
  for (const Callback& callback : std::exchange(callbacks_, {})) (void)register_native(callback);
  context_->changed.notify_all();
}

void Event::set_status(cl_int status) {
  status_.store(status, std::memory_order_release);
  for (const Callback& callback : std::exchange(callbacks_, {})) call(callback, status);
  context_->changed.notify_all();
}

cl_int Event::set_callback(cl_int type, void(CL_CALLBACK* callback)(cl_event, cl_int, void*), void* data) {
  const Callback added{type, callback, data};
  if (native() != nullptr) return register_native(added);
  if (const cl_int status = status_.load(std::memory_order_relaxed); status <= type) {
    call(added, status < 0 ? status : type);
    return CL_SUCCESS;
  }
  callbacks_.push_back(added);
  return CL_SUCCESS;
}

void Event::call(const Callback& callback, cl_int status) {
  run_later([callback, status, self = Ref<Event>(*this)] { callback.callback(self->handle(), status, callback.data); });
}

cl_int Event::register_native(const Callback& callback) {
  struct Registered {
    Callback callback;
    Ref<Event> event;
  };
  auto* const registered = new Registered{callback, Ref<Event>(*this)};
  const auto told = [](cl_event, cl_int status, void* data) {
    auto* const done = static_cast<Registered*>(data);
    run_later([done, status] {
      done->callback.callback(done->event->handle(), status, done->callback.data);
      delete done;
    });
  };
  const cl_int status = down.clSetEventCallback(native(), callback.type, told, registered);
  if (status != CL_SUCCESS) delete registered;
  return status;
}

cl_int wait_for(Context& context, const std::vector<Ref<Event>>& events) {
  std::vector<cl_event> natives;
  natives.reserve(events.size());
  bool failed = false;
  {
    Lock lock = context.lock();
    submit_for(context, events);
    context.flush();
    for (const Ref<Event>& event : events) {
      context.changed.wait(lock, [&] { return event->settled(); });
      if (event->native() != nullptr) natives.push_back(event->native());
      failed = failed || event->failed();
    }
    context.flush();
  }
  if (!natives.empty()) {
    const cl_int status = down.clWaitForEvents(static_cast<cl_uint>(natives.size()), natives.data());
    if (status != CL_SUCCESS) return status;
  }
  return failed ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_SUCCESS;
}

}  // namespace swapmm::opencl::layer
