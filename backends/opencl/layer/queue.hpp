// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "context.hpp"
#include "event.hpp"
#include "memory.hpp"
#include "object.hpp"
#include "process/settings.hpp"

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

  /// Waits for all commands of this queue; with SWAPMM_WAIT=values, for those whose end the host can see.
  [[nodiscard]] cl_int finish();
  /// The same for a blocking command that is held back.
  [[nodiscard]] cl_int wait_for_held_back(Lock lock);

  // With the lock.
  Handle<cl_event> last;          ///< of the last command that the driver got
  std::vector<Ref<Event>> after;  ///< events of commands on hold that every new command comes after

 private:
  // Waits for what the driver has. Returns what clWaitForEvents() does.
  [[nodiscard]] cl_int wait_for_last(Lock lock);

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

/// What a command copies to the program's memory.
struct HostRead {
  Command command;
  Use memory;
  std::size_t offset = 0;  ///< in the memory object
  std::size_t size = 0;
  std::byte* to = nullptr;
};

/// What a command will do, told before it is given to the driver. Commands without buffers have an empty bundle.
struct Intent {
  Command command;  ///< its name may be gone when the call has returned
  Bundle bundle;
  bool at_once = false;  ///< it must not be held back
  // For SWAPMM_WAIT=values:
  bool hidden = false;  ///< it neither reads nor writes what the host can see without a command or a map
  std::optional<HostRead> read = std::nullopt;  ///< all that it does is this
};

/// While a plan is followed, commands are held back until everything that the plan drops is known to be dead, because
/// the commands that overwrite it have come, or the program has released it. They are given to the driver in order:
/// when that is known, when they are many or old, and before anything that the program could learn from them.
struct HeldBackCommand {
  std::unique_ptr<Task> task;
  Intent intent;
  std::vector<Ref<Event>> after;  ///< of its wait list: those of commands that are held back, too
  Ref<Event> event;               ///< none if the program wants none
  Ref<Queue> queue;
  std::chrono::steady_clock::time_point since;
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
/// Whether a command may be held back: it is the one that is expected, and need not wait on the host.
[[nodiscard]] bool may_hold_back(const Queue& queue, const Place& place, const Intent& intent);
/// Tells the runtime if the program has paused for so long that commands would not have been held back. To be called
/// before each command while no plan is followed.
void watch_pause(Context& context);
/// Watches a command that is called while no plan is followed. Returns whether it might be held back otherwise.
[[nodiscard]] bool watch(const Queue& queue, const Place& place, const Intent& intent);
/// Tells the runtime what a call that was watched has let go.
void note_watched(Context& context, const Place& place, bool might_be_held_back);
void hold_back(Queue& queue, const Place& place, std::unique_ptr<Task> task, Intent intent);
}  // namespace detail

/// Whether a command would be on hold now. With the lock.
[[nodiscard]] bool would_wait(Queue& queue, const Place& place);

/// Gives commands on hold to the driver that need not wait any more. With the lock.
void release_held(Context& context);

/// For commands that are never held back.
struct NoIntent {};

/// Queues a command: submit(context, native) is called at once, with the lock, or later if the command must wait on the
/// host or is held back. For the latter, make_held(held_back) returns a submit that refers to nothing of the caller's.
/// make_intent() tells what the command will do; NoIntent: it is never held back.
template <class Submit, class MakeHeld, class MakeIntent = NoIntent>
[[nodiscard]] cl_int enqueue_call(Queue& queue, const Place& place, Submit&& submit, MakeHeld&& make_held,
                                  [[maybe_unused]] MakeIntent&& make_intent = {}) {
  Context& context = queue.context();
  if (const cl_int status = check_wait_list(context, place.wait_count, place.wait_list); status != CL_SUCCESS) {
    return status;
  }
  Lock lock = context.lock();
  if constexpr (!std::is_same_v<std::remove_cvref_t<MakeIntent>, NoIntent>) {
    if (context.holds_back() && (!place.blocking || settings().waits_for_values)) {
      Intent intent = make_intent();
      if (detail::may_hold_back(queue, place, intent)) {
        auto task = make_held(true);
        detail::hold_back(queue, place, std::make_unique<SimpleTask<decltype(task)>>(std::move(task)),
                          std::move(intent));
        // What came before in the queue has ended, too, when a blocking command returns.
        return place.blocking ? queue.wait_for_held_back(std::move(lock)) : CL_SUCCESS;
      }
    }
  }
  bool might_be_held_back = false;
  if (context.watches_waits()) detail::watch_pause(context);
  if constexpr (!std::is_same_v<std::remove_cvref_t<MakeIntent>, NoIntent>) {
    if (context.watches_waits() && (!place.blocking || settings().waits_for_values)) {
      might_be_held_back = detail::watch(queue, place, make_intent());
    }
  }
  if (might_be_held_back) {
    submit_before_next(context);
  } else {
    submit_held_back(context);
  }
  if (context.untold != CL_SUCCESS) return std::exchange(context.untold, CL_SUCCESS);
  if (detail::may_wait(queue, place)) {
    bool failed = false;
    std::vector<Before> after = detail::unsettled(queue, place, failed);
    if (failed && place.blocking) return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    if (failed || !after.empty()) {
      auto held = make_held(false);
      return detail::hold(queue, place, std::move(lock), std::make_unique<SimpleTask<decltype(held)>>(std::move(held)),
                          std::move(after));
    }
  }
  cl_event native = nullptr;
  const cl_int status = submit(context, &native);
  if (context.watches_waits()) detail::note_watched(context, place, might_be_held_back);
  if (status != CL_SUCCESS) return status;
  return detail::submitted(queue, place, std::move(lock), native);
}

/// The same for a submit that refers to nothing of the caller's.
template <class Submit, class MakeIntent = NoIntent>
[[nodiscard]] cl_int enqueue(Queue& queue, const Place& place, Submit submit, MakeIntent&& make_intent = {}) {
  return enqueue_call(
      queue, place, [&](Context& context, cl_event* native) { return submit(context, native); },
      [&](bool) { return std::move(submit); }, std::forward<MakeIntent>(make_intent));
}

}  // namespace swapmm::opencl::layer
