// SPDX-License-Identifier: Apache-2.0
#include "queue.hpp"

#include <algorithm>
#include <utility>

namespace swapmm::opencl::layer {

Queue::Queue(Context& context, cl_command_queue native, cl_command_queue_properties properties)
    : Object(Kind::queue), context_(context), native_(native), properties_(properties) {
  if (!profiles()) return;
  const Lock lock = context.lock();
  context.time_commands();
}

Queue::~Queue() { down.clReleaseCommandQueue(native_); }

cl_int Queue::finish() {
  Lock lock = context_->lock();
  submit_for_host(*context_);
  const cl_int untold = std::exchange(context_->untold, CL_SUCCESS);
  context_->changed.wait(lock, [&] {
    return std::none_of(context_->held.begin(), context_->held.end(),
                        [&](const HeldCommand& command) { return !command.finished && command.queue.get() == this; });
  });
  const cl_int status = wait_for_last(std::move(lock));
  if (untold != CL_SUCCESS) return untold;
  return status == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST ? CL_SUCCESS : status;  // its event tells
}

cl_int Queue::wait_for_held_back(Lock lock) {
  submit_for_host(*context_);
  const cl_int untold = std::exchange(context_->untold, CL_SUCCESS);
  const cl_int status = wait_for_last(std::move(lock));
  return untold != CL_SUCCESS ? untold : status;
}

cl_int Queue::wait_for_last(Lock lock) {
  context_->flush();
  if (!last) return CL_SUCCESS;
  const Handle<cl_event> end = context_->keep(last.get());
  lock.unlock();
  if (!end) return CL_SUCCESS;
  const cl_event event = end.get();
  return down.clWaitForEvents(1, &event);
}

cl_int check_wait_list(const Context& context, cl_uint count, const cl_event* events) {
  if ((count == 0) != (events == nullptr)) return CL_INVALID_EVENT_WAIT_LIST;
  for (cl_uint i = 0; i < count; ++i) {
    const Event* const event = Event::from(events[i]);
    if (event == nullptr) return CL_INVALID_EVENT_WAIT_LIST;
    if (&event->context() != &context) return CL_INVALID_CONTEXT;
  }
  return CL_SUCCESS;
}

namespace detail {

bool may_wait(const Queue& queue, const Place& place) {
  if (!queue.after.empty()) return true;
  for (cl_uint i = 0; i < place.wait_count; ++i) {
    const Event* const event = Event::from(place.wait_list[i]);
    if (event->native() == nullptr) return true;
  }
  return place.waits_for_all && !queue.context().held.empty();
}

std::vector<Before> unsettled(Queue& queue, const Place& place, bool& failed) {
  std::vector<Before> after;
  const auto add = [&](Event& event, bool waited_for) {
    if (event.settled() && !(waited_for && event.failed())) return;
    failed = failed || event.failed();
    for (const Before& each : after) {
      if (each.event.get() == &event) return;
    }
    after.push_back({Ref<Event>(event), waited_for});
  };
  for (cl_uint i = 0; i < place.wait_count; ++i) add(*Event::from(place.wait_list[i]), true);
  std::erase_if(queue.after, [](const Ref<Event>& event) { return event->settled(); });
  for (const Ref<Event>& event : queue.after) add(*event, false);
  if (place.waits_for_all && place.wait_count == 0) {
    for (const HeldCommand& command : queue.context().held) {
      if (command.queue.get() == &queue) add(*command.event, false);
    }
  }
  return after;
}

cl_int submitted(Queue& queue, const Place& place, Lock lock, cl_event native) {
  queue.last = queue.context().keep(native);
  if (place.blocking) queue.context().flush();
  lock.unlock();
  cl_int status = CL_SUCCESS;
  if (place.blocking) status = down.clWaitForEvents(1, &native);
  if (place.event == nullptr) {
    down.clReleaseEvent(native);
    return status;
  }
  auto* const event = new Event(queue.context(), &queue, place.type);
  event->submitted(native);
  *place.event = event->handle();
  return status;
}

cl_int hold(Queue& queue, const Place& place, Lock lock, std::unique_ptr<Task> task, std::vector<Before> after) {
  Context& context = queue.context();
  auto* const made = new Event(context, &queue, place.type);
  const Ref<Event> event(*made);
  if (place.event != nullptr) {
    *place.event = made->handle();
  } else {
    (void)made->release();
  }
  context.held.push_back({std::move(task), std::move(after), event, Ref<Queue>(queue)});
  if (queue.in_order()) {
    queue.after.assign(1, event);
  } else if (place.holds_others) {
    queue.after.push_back(event);
  }
  release_held(context);
  if (!place.blocking) return CL_SUCCESS;
  lock.unlock();
  return wait_for(context, {event});
}

}  // namespace detail

bool would_wait(Queue& queue, const Place& place) {
  bool failed = false;
  return detail::may_wait(queue, place) && !detail::unsettled(queue, place, failed).empty();
}

void release_held(Context& context) {
  std::list<HeldCommand> done;  // what they hold is released behind the loop
  for (bool again = true; again;) {
    again = false;
    for (auto each = context.held.begin(); each != context.held.end();) {
      HeldCommand& command = *each;
      const bool ready = std::all_of(command.after.begin(), command.after.end(),
                                     [](const Before& before) { return before.event->settled(); });
      if (!ready) {
        ++each;
        continue;
      }
      cl_event native = nullptr;
      cl_int status = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
      if (std::none_of(command.after.begin(), command.after.end(),
                       [](const Before& before) { return before.waited_for && before.event->failed(); })) {
        status = command.task->submit(context, &native);
      }
      command.finished = true;
      command.task.reset();  // buffers that only it used end here: the next command needs their bytes
      if (status == CL_SUCCESS) {
        command.queue->last = context.keep(native);
        command.event->submitted(native);
      } else {
        command.event->set_status(status);
      }
      // Each refers to the other: none of them would end.
      std::erase_if(command.queue->after, [](const Ref<Event>& event) { return event->settled(); });
      done.splice(done.end(), context.held, each++);
      again = true;
    }
  }
  if (done.empty()) return;
  context.flush();
  context.changed.notify_all();
}

}  // namespace swapmm::opencl::layer
