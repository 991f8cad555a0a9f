// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <vector>

#include "context.hpp"
#include "object.hpp"

namespace swapmm::opencl::layer {

class Queue;

/// A cl_event of the program: the driver's event of a command, once the command was given to the driver; or a user
/// event.
class Event : public Object {
 public:
  /// Of a command that was not given to the driver yet. `queue`: null for user events and events of other APIs.
  Event(Context& context, Queue* queue, cl_command_type type);
  ~Event();

  [[nodiscard]] static Event* from(cl_event handle) {
    return is(handle, Kind::event) ? reinterpret_cast<Event*>(handle) : nullptr;
  }
  [[nodiscard]] cl_event handle() { return reinterpret_cast<cl_event>(this); }

  [[nodiscard]] Context& context() const { return *context_; }
  [[nodiscard]] Queue* queue() const { return queue_.get(); }
  [[nodiscard]] cl_command_type type() const { return type_; }
  /// The driver's event; null while the command is on hold, and for user events.
  [[nodiscard]] cl_event native() const { return native_.load(std::memory_order_acquire); }
  /// The status: the driver's, if it has the command.
  [[nodiscard]] cl_int status() const;
  /// True if commands behind this event may go to the driver: it has the command, or the event has its last status.
  [[nodiscard]] bool settled() const {
    return native() != nullptr || status_.load(std::memory_order_acquire) <= CL_COMPLETE;
  }
  /// True if the command never reached the driver, or the user event says that something failed.
  [[nodiscard]] bool failed() const { return native() == nullptr && status_.load(std::memory_order_acquire) < 0; }

  // ---- with the lock. Then settle what waits: release_held().

  bool held_back = false;  ///< of a command that was held back

  /// The driver has the command. Takes over the reference.
  void submitted(cl_event event);
  /// The last status of a user event, or of a command that never reaches the driver.
  void set_status(cl_int status);
  [[nodiscard]] cl_int set_callback(cl_int type, void(CL_CALLBACK* callback)(cl_event, cl_int, void*), void* data);

 private:
  struct Callback {
    cl_int type;
    void(CL_CALLBACK* callback)(cl_event, cl_int, void*);
    void* data;
  };
  cl_int register_native(const Callback& callback);
  void call(const Callback& callback, cl_int status);

  ContextRef context_;
  Ref<Queue> queue_;
  cl_command_type type_;
  std::atomic<cl_event> native_{nullptr};
  std::atomic<cl_int> status_;
  std::vector<Callback> callbacks_;  // until there is a native event, or a status
};

/// Waits until each event has its command or its status, then for the commands. Returns what clWaitForEvents() does.
[[nodiscard]] cl_int wait_for(Context& context, const std::vector<Ref<Event>>& events);

}  // namespace swapmm::opencl::layer
