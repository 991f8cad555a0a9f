// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "context.hpp"
#include "event.hpp"
#include "object.hpp"

namespace swapmm::opencl::layer {

/// A cl_command_queue of the program. Its commands go to the queue of its context.
class Queue : public Object {
 public:
  /// Takes over the driver's queue, which answers queries and runs nothing.
  Queue(Context& context, cl_command_queue native, cl_command_queue_properties properties);
  ~Queue();

  [[nodiscard]] static Queue* from(cl_command_queue handle) {
    return is(handle, Kind::queue) ? reinterpret_cast<Queue*>(handle) : nullptr;
  }
  [[nodiscard]] cl_command_queue handle() { return reinterpret_cast<cl_command_queue>(this); }

  [[nodiscard]] Context& context() const { return *context_; }
  [[nodiscard]] cl_command_queue native() const { return native_; }
  [[nodiscard]] bool in_order() const { return (properties_ & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0; }
  [[nodiscard]] bool profiles() const { return (properties_ & CL_QUEUE_PROFILING_ENABLE) != 0; }

  /// Waits for all commands of this queue.
  [[nodiscard]] cl_int finish();

  // With the lock.
  Handle<cl_event> last;          ///< of the last command that the driver got
  std::vector<Ref<Event>> after;  ///< events of commands on hold that every new command comes after

 private:
  ContextRef context_;
  cl_command_queue native_;
  cl_command_queue_properties properties_;
};

/// What a command does once it may go to the driver.
class Task {
 public:
  Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  virtual ~Task() = default;
  /// Gives the command to the driver. With the lock. The event is the caller's.
  virtual cl_int submit(Context& context, cl_event* native) = 0;
};

/// A task from a callable: submit(context, native).
template <class Submit>
class SimpleTask : public Task {
 public:
  explicit SimpleTask(Submit made) : submit_(std::move(made)) {}
  cl_int submit(Context& context, cl_event* native) override { return submit_(context, native); }

 private:
  Submit submit_;
};

/// An event that a command on hold comes after.
struct Before {
  Ref<Event> event;
  bool waited_for;  ///< it is in the wait list, so the command fails if it has failed
};

struct HeldCommand {
  std::unique_ptr<Task> task;
  std::vector<Before> after;
  Ref<Event> event;
  Ref<Queue> queue;
  bool finished = false;
};

/// A command's place in its queue.
struct Place {
  cl_command_type type = 0;
  cl_uint wait_count = 0;
  const cl_event* wait_list = nullptr;
  cl_event* event = nullptr;   ///< that the program wants, or null
  bool blocking = false;       ///< return when the command has ended
  bool waits_for_all = false;  ///< without a wait list it comes after all commands of the queue (markers, barriers)
  bool holds_others = false;   ///< all later commands of the queue come after it (barriers)
};

/// The events of a wait list, or the API's error for it.
[[nodiscard]] cl_int check_wait_list(const Context& context, cl_uint count, const cl_event* events);

namespace detail {
/// What a new command comes after: events that are not settled yet, and those of the wait list that have failed
/// (`failed`).
[[nodiscard]] std::vector<Before> unsettled(Queue& queue, const Place& place, bool& failed);
[[nodiscard]] cl_int submitted(Queue& queue, const Place& place, Lock lock, cl_event native);
[[nodiscard]] cl_int hold(Queue& queue, const Place& place, Lock lock, std::unique_ptr<Task> task,
                          std::vector<Before> after);
[[nodiscard]] bool may_wait(const Queue& queue, const Place& place);
}  // namespace detail

/// Whether a command would be on hold now. With the lock.
[[nodiscard]] bool would_wait(Queue& queue, const Place& place);

/// Gives commands on hold to the driver that need not wait any more. With the lock.
void release_held(Context& context);

/// Queues a command: submit(context, native) is called at once, with the lock, or later if the command must wait on the
/// host. For the latter, make_held() returns a submit that refers to nothing of the caller's.
template <class Submit, class MakeHeld>
[[nodiscard]] cl_int enqueue(Queue& queue, const Place& place, Submit&& submit, MakeHeld&& make_held) {
  Context& context = queue.context();
  if (const cl_int status = check_wait_list(context, place.wait_count, place.wait_list); status != CL_SUCCESS) {
    return status;
  }
  Lock lock = context.lock();
  if (detail::may_wait(queue, place)) {
    bool failed = false;
    std::vector<Before> after = detail::unsettled(queue, place, failed);
    if (failed && place.blocking) return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    if (failed || !after.empty()) {
      auto held = make_held();
      return detail::hold(queue, place, std::move(lock), std::make_unique<SimpleTask<decltype(held)>>(std::move(held)),
                          std::move(after));
    }
  }
  cl_event native = nullptr;
  const cl_int status = submit(context, &native);
  if (status != CL_SUCCESS) return status;
  return detail::submitted(queue, place, std::move(lock), native);
}

/// The same for a submit that refers to nothing of the caller's.
template <class Submit>
[[nodiscard]] cl_int enqueue(Queue& queue, const Place& place, Submit submit) {
  return enqueue(
      queue, place, [&](Context& context, cl_event* native) { return submit(context, native); },
      [&] { return std::move(submit); });
}

}  // namespace swapmm::opencl::layer
