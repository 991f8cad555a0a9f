// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "../queue.hpp"
#include "checks.hpp"
#include "install.hpp"

namespace swapmm::opencl::layer::api {
namespace {

// The program is about to ask for the command: it must not be held back any more.
void submit(Event& event) {
  if (event.settled()) return;
  const Lock lock = event.context().lock();
  submit_held_back(event.context());
}

cl_int CL_API_CALL wait_for_events(cl_uint count, const cl_event* events) {
  if (count == 0 || events == nullptr) return CL_INVALID_VALUE;
  std::vector<Ref<Event>> ours;
  for (cl_uint i = 0; i < count; ++i) {
    Event* const event = Event::from(events[i]);
    if (event == nullptr) return i == 0 ? down.clWaitForEvents(count, events) : CL_INVALID_EVENT;
    if (&event->context() != &Event::from(events[0])->context()) return CL_INVALID_CONTEXT;
    ours.emplace_back(*event);
  }
  Context& context = ours.front()->context();
  return wait_for(context, ours);
}

cl_int CL_API_CALL retain_event(cl_event handle) {
  Event* const event = Event::from(handle);
  if (event == nullptr) return down.clRetainEvent(handle);
  return event->retain() ? CL_SUCCESS : CL_INVALID_EVENT;
}

cl_int CL_API_CALL release_event(cl_event handle) {
  Event* const event = Event::from(handle);
  if (event == nullptr) return down.clReleaseEvent(handle);
  return event->release() ? CL_SUCCESS : CL_INVALID_EVENT;
}

cl_int CL_API_CALL event_info(cl_event handle, cl_event_info what, size_t size, void* into, size_t* needed) {
  Event* const event = Event::from(handle);
  if (event == nullptr) return down.clGetEventInfo(handle, what, size, into, needed);
  if (what == CL_EVENT_COMMAND_EXECUTION_STATUS) submit(*event);
  switch (what) {
    case CL_EVENT_COMMAND_QUEUE:
      return answer(event->queue() == nullptr ? nullptr : event->queue()->handle(), size, into, needed);
    case CL_EVENT_CONTEXT: return answer(event->context().handle(), size, into, needed);
    case CL_EVENT_COMMAND_TYPE: return answer(event->type(), size, into, needed);
    case CL_EVENT_COMMAND_EXECUTION_STATUS: return answer(event->status(), size, into, needed);
    case CL_EVENT_REFERENCE_COUNT: return answer(event->references(), size, into, needed);
    default: return CL_INVALID_VALUE;
  }
}

cl_int CL_API_CALL profiling_info(cl_event handle, cl_profiling_info what, size_t size, void* into, size_t* needed) {
  Event* const event = Event::from(handle);
  if (event == nullptr) return down.clGetEventProfilingInfo(handle, what, size, into, needed);
  submit(*event);
  if (event->queue() == nullptr || !event->queue()->profiles() || event->native() == nullptr) {
    return CL_PROFILING_INFO_NOT_AVAILABLE;
  }
  return down.clGetEventProfilingInfo(event->native(), what, size, into, needed);
}

cl_int CL_API_CALL set_event_callback(cl_event handle, cl_int type,
                                      void(CL_CALLBACK* callback)(cl_event, cl_int, void*), void* data) {
  Event* const event = Event::from(handle);
  if (event == nullptr) return down.clSetEventCallback(handle, type, callback, data);
  if (callback == nullptr || (type != CL_SUBMITTED && type != CL_RUNNING && type != CL_COMPLETE)) {
    return CL_INVALID_VALUE;
  }
  const Lock lock = event->context().lock();
  submit_held_back(event->context());
  return event->set_callback(type, callback, data);
}

cl_event CL_API_CALL create_user_event(cl_context handle, cl_int* status) {
  Context* const context = Context::of(handle);
  if (context == nullptr || !context->managed()) return down.clCreateUserEvent(handle, status);
  return result((new Event(*context, nullptr, CL_COMMAND_USER))->handle(), CL_SUCCESS, status);
}

cl_int CL_API_CALL set_user_event_status(cl_event handle, cl_int status) {
  Event* const event = Event::from(handle);
  if (event == nullptr) return down.clSetUserEventStatus(handle, status);
  if (event->type() != CL_COMMAND_USER) return CL_INVALID_EVENT;
  if (status > CL_COMPLETE) return CL_INVALID_VALUE;
  const Ref<Event> kept(*event);
  const Lock lock = event->context().lock();
  submit_held_back(event->context());
  if (event->settled()) return CL_INVALID_OPERATION;
  event->set_status(status);
  release_held(event->context());
  return CL_SUCCESS;
}

// ---- markers and barriers

cl_int CL_API_CALL marker_with_list(cl_command_queue handle, cl_uint count, const cl_event* waits, cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) return down.clEnqueueMarkerWithWaitList(handle, count, waits, event);
  return enqueue(*queue, {CL_COMMAND_MARKER, count, waits, event, false, true}, mark, no_buffers);
}

cl_int CL_API_CALL barrier_with_list(cl_command_queue handle, cl_uint count, const cl_event* waits, cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) return down.clEnqueueBarrierWithWaitList(handle, count, waits, event);
  return enqueue(*queue, {CL_COMMAND_BARRIER, count, waits, event, false, true, true}, mark, no_buffers);
}

cl_int CL_API_CALL marker(cl_command_queue handle, cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) return down.clEnqueueMarker(handle, event);
  if (event == nullptr) return CL_INVALID_VALUE;
  return enqueue(*queue, {CL_COMMAND_MARKER, 0, nullptr, event, false, true}, mark, no_buffers);
}

cl_int CL_API_CALL wait_on_queue(cl_command_queue handle, cl_uint count, const cl_event* waits) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) return down.clEnqueueWaitForEvents(handle, count, waits);
  if (count == 0 || waits == nullptr) return CL_INVALID_VALUE;
  const cl_int status =
      enqueue(*queue, {CL_COMMAND_BARRIER, count, waits, nullptr, false, true, true}, mark, no_buffers);
  return status == CL_INVALID_EVENT_WAIT_LIST ? CL_INVALID_EVENT : status;
}

cl_int CL_API_CALL barrier(cl_command_queue handle) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) return down.clEnqueueBarrier(handle);
  return enqueue(*queue, {CL_COMMAND_BARRIER, 0, nullptr, nullptr, false, true, true}, mark, no_buffers);
}

}  // namespace

void install_events(cl_icd_dispatch& table) {
  table.clWaitForEvents = wait_for_events;
  table.clRetainEvent = retain_event;
  table.clReleaseEvent = release_event;
  table.clGetEventInfo = event_info;
  table.clGetEventProfilingInfo = profiling_info;
  table.clSetEventCallback = set_event_callback;
  table.clCreateUserEvent = create_user_event;
  table.clSetUserEventStatus = set_user_event_status;
  table.clEnqueueMarkerWithWaitList = marker_with_list;
  table.clEnqueueBarrierWithWaitList = barrier_with_list;
  table.clEnqueueMarker = marker;
  table.clEnqueueWaitForEvents = wait_on_queue;
  table.clEnqueueBarrier = barrier;
}

}  // namespace swapmm::opencl::layer::api
