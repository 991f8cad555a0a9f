// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/opencl/backend.hpp>
#include <swapmm/scheduler.hpp>

#include "device.hpp"
#include "iterations/command.hpp"
#include "iterations/iterations.hpp"
#include "iterations/wait_watch.hpp"
#include "object.hpp"

namespace swapmm::opencl::layer {

using Core = runtime::Core<Backend>;
using Running = runtime::RunningOperation<Backend>;
using Item = runtime::BundleItem<Backend>;
using Tensor = runtime::TensorKey<Backend>;
using Lock = std::unique_lock<std::mutex>;

/// The host memory of all contexts of the process: one budget.
[[nodiscard]] const std::shared_ptr<runtime::HostLedger>& host_memory();

/// A number that grows: what the driver made earlier has a smaller one.
[[nodiscard]] std::uint64_t next_moment();

class Bundle;
class Event;
class Memory;
class Recording;
/// A command that waits on the host for events that nobody has set yet.
struct HeldCommand;
/// A command that may go to the driver, and is held back to see what comes after it.
struct HeldBackCommand;

/// What a context of the program has in the layer. If the context has one device, its buffers are tensors of a runtime,
/// and the commands of all its queues go to the runtime's compute queue. Contexts with several devices are not managed:
/// their objects are the driver's own, and their buffers count against the budgets of all of their devices.
class Context {
 public:
  /// The context of that handle; made at the first call, so contexts need not be made through the layer. Null if the
  /// driver does not know it.
  [[nodiscard]] static Context* of(cl_context handle);

  void hold() { holds_.fetch_add(1, std::memory_order_relaxed); }
  void drop();
  /// The program's references.
  [[nodiscard]] cl_uint references() const { return references_.load(std::memory_order_relaxed); }
  void retain_for_program() { references_.fetch_add(1, std::memory_order_relaxed); }
  /// False if the program has no reference.
  [[nodiscard]] bool release_for_program();

  [[nodiscard]] cl_context handle() const { return handle_; }
  [[nodiscard]] bool managed() const { return devices_.size() == 1; }
  /// The device whose memory is managed.
  [[nodiscard]] DeviceBudget& device() const { return *devices_.front(); }
  [[nodiscard]] std::span<DeviceBudget* const> devices() const { return devices_; }
  /// The one device of a managed context; it may be a part of device().device().
  [[nodiscard]] cl_device_id device_id() const { return device_id_; }
  [[nodiscard]] Bytes alignment() const { return alignment_; }
  /// The largest buffer that the program can make.
  [[nodiscard]] Bytes largest_buffer() const { return largest_buffer_; }
  [[nodiscard]] Lock lock() const { return Lock(device().mutex); }

  // ---- for managed contexts, with the lock

  /// The runtime, made at the first call. Null if it cannot be made.
  [[nodiscard]] Core* core();
  [[nodiscard]] bool has_core() const { return core_ != nullptr; }
  /// With has_core(). Changes nothing.
  [[nodiscard]] Core& core_in_use() const { return *core_; }
  /// What ran on the device; null if nobody wants to know.
  [[nodiscard]] Recording* recording() const { return recording_.get(); }
  /// Bytes of the device that the runtime has.
  [[nodiscard]] Bytes part() const { return part_; }
  /// When the runtime took them; see next_moment().
  [[nodiscard]] std::uint64_t part_made() const { return part_made_; }
  /// The largest need of a command so far.
  [[nodiscard]] Bytes largest() const { return largest_; }
  /// Bytes of part() that neither its buffers nor its largest command need.
  [[nodiscard]] Bytes idle() const {
    const Bytes needed = std::max(Bytes{live.load(std::memory_order_relaxed)}, largest_);
    return part_ > needed ? round_down(part_ - needed, alignment_) : Bytes{};
  }
  /// What DeviceBudget::grow() has looked for.
  struct Grown {
    Bytes live;
    std::uint64_t idlings = 0;
  };
  Grown grown{};
  /// Changes part(). False if the device or the host refuses.
  [[nodiscard]] bool set_part(Bytes bytes);

  /// Runs a command on buffers: brings them to the device, then calls run(operation, waits, event), which queues the
  /// command on queue() behind `waits`, sets the event, and returns the API's status. Returns this status, or the one
  /// for what went wrong before. The event is the caller's.
  /// A command that the driver refuses in each step of the program is part of its iterations: an operation that may
  /// change its buffers, and does not.
  template <class Run>
  [[nodiscard]] cl_int operate(const Command& command, const Bundle& bundle, cl_event* event, Run&& run);
  /// Runs a command that uses no tensor: run(event).
  template <class Run>
  [[nodiscard]] cl_int direct(cl_event* event, Run&& run);
  /// The queue for all commands.
  [[nodiscard]] cl_command_queue queue();
  /// Makes the driver begin with everything that was queued.
  void flush();
  /// From now on, commands have times.
  void time_commands();

  /// Makes other contexts give up host memory that they can do without. False if there is no other.
  [[nodiscard]] bool take_host_from_others(Bytes need);
  /// The same, and gives up what this context can do without. False if there is nothing.
  [[nodiscard]] bool take_host_memory(Bytes need);

  /// Ends the current iteration, for something that is not part of one. With a runtime.
  void leave_iteration() { iterations_.leave(*core_); }

  [[nodiscard]] bool make_tensor(const Memory& owner, Tensor& tensor);
  /// Needs no lock: the next command destroys it.
  void destroy_tensor(const Tensor& tensor);
  /// Live bytes of tensors.
  std::atomic<std::uint64_t> live{0};

  /// Commands on hold; see HeldCommand.
  std::list<HeldCommand> held;
  /// Commands that are held back, in order. Everything else that goes to the driver comes after them: see
  /// submit_held_back().
  std::list<HeldBackCommand> held_back;
  std::size_t held_back_on_buffers = 0;  ///< how many of them use buffers
  /// How long they may be held back.
  [[nodiscard]] const Patience& patience() const { return iterations_.patience(); }
  bool submitting = false;  ///< a command that was held back is being given to the driver
  bool alarm_set = false;   ///< the alarm of held_back.cpp will go off
  /// The failure of a command that was held back, until a call tells the program: what enqueues a command or waits for
  /// a queue fails with it. Else a program that does not look at that command's event would go on with wrong values.
  cl_int untold = CL_SUCCESS;
  /// True if commands may be held back at all now: a plan is followed.
  [[nodiscard]] bool holds_back() const { return follows_plan_ && held.empty(); }
  /// The token of the command to come, if iterations go on as they did; see CycleFinder.
  [[nodiscard]] std::optional<std::uint64_t> expected(std::size_t ahead) const { return iterations_.expected(ahead); }
  /// True if no plan is followed, but one may be made of what the program does now. Then note_wait() is to be told of
  /// its waits, and `watched` has the commands that would be held back.
  [[nodiscard]] bool watches_waits() const { return swaps_ && !follows_plan_ && learns_waits_; }
  /// Everything that was called must go to the driver now, except the last `open` operations.
  void note_wait(std::size_t open);
  WaitWatch watched;
  std::chrono::steady_clock::time_point
      watched_at;  ///< when the last call of a command ended; max(): the program has waited since
  /// True if such a command failed before, so the program must learn at once whether it does.
  [[nodiscard]] bool may_fail(std::uint64_t token) const { return failing_.contains(token); }
  /// True if the last one failed.
  [[nodiscard]] bool failed_last(std::uint64_t token) const {
    const auto known = failing_.find(token);
    return known != failing_.end() && known->second;
  }
  /// Notified when an event gets its command or its status.
  std::condition_variable changed;

  /// Keeps `thing` until everything queued so far has ended.
  void keep_until_done(std::shared_ptr<void> thing);
  /// A reference to the event of a queued command. If the driver refuses, waits until the command has ended; none then.
  [[nodiscard]] Handle<cl_event> keep(cl_event event);
  /// The last command that was queued; null if there is none. The caller gets a reference.
  [[nodiscard]] cl_event last_command();

 private:
  explicit Context(cl_context handle);
  ~Context();

  // Called for an exception of the runtime, in a catch block. Returns true if the command may be tried again; else
  // `status` is the API's status for it.
  [[nodiscard]] bool try_again(std::string_view name, int attempt, cl_int& status);
  [[nodiscard]] bool may_try_again(std::string_view name, int attempt, cl_int& status);
  // The event of a command that does nothing, in place of one that the driver refused; null if it refuses this, too.
  [[nodiscard]] static cl_event nothing_instead(const Running& operation, const WaitList& waits);
  void queued(cl_event event);
  void destroy_released();
  [[nodiscard]] bool change_part(Bytes bytes);
  // Waits for the commands that things are kept for, and lets go of these.
  void wait_for_kept();
  void give_back_host(Bytes wanted);
  // Gives buffers of the bundle the bytes that they begin with.
  [[nodiscard]] cl_int write_initial(const Bundle& bundle);
  // The bundle as the runtime wants it. `may_change_nothing`: what a command is to write may stay as it is.
  [[nodiscard]] bool resolve(const Bundle& bundle, bool may_change_nothing, std::vector<Item>& items);
  std::uint64_t begin_command(Core& runtime, const Command& command, const Bundle& bundle);
  void end_command(Core& runtime, std::uint64_t token, bool failed);
  void note_outcome(std::uint64_t token, bool failed);
  void iteration_command_ended(Core& runtime, std::uint64_t token, bool failed);
  [[nodiscard]] bool is_dead(const Memory& root) const;

  cl_context handle_;
  std::vector<DeviceBudget*> devices_;
  cl_device_id device_id_ = nullptr;
  Bytes alignment_{1};
  Bytes largest_buffer_;
  std::atomic<std::uint32_t> holds_{1};
  std::atomic<cl_uint> references_{1};

  std::mutex released_mutex_;
  std::vector<Tensor> released_;
  std::atomic<bool> any_released_{false};

  std::shared_ptr<Core> core_;
  Scheduler scheduler_;
  Iterations iterations_;
  std::unique_ptr<Recording> recording_;
  std::unordered_map<std::uint64_t, bool> failing_;  // tokens of commands that failed: whether the last one did
  bool swaps_ = false;                               // something has left the device, so iterations matter
  bool follows_plan_ = false;                        // since the last command
  bool learns_waits_ = false;                        // plans must know what is proven dead in time
  Bytes part_;
  std::uint64_t part_made_ = 0;
  Bytes largest_;
  bool timed_ = false;
  bool refused_ = false;  // making the runtime failed, which was said
  Handle<cl_event> last_;
  struct Kept {
    Handle<cl_event> until;
    std::shared_ptr<void> thing;
  };
  std::deque<Kept> kept_;
};

/// A reference of the layer to a context.
using ContextRef = Ref<Context>;

/// Gives all commands that are held back to the driver. With the lock.
void submit_held_back(Context& context);
/// The same for a command that comes after them: nothing waits for them.
void submit_before_next(Context& context);
/// The same before the program waits for a queue. With SWAPMM_WAIT=values, only for those commands whose end the host
/// can see, and those that they need.
void submit_for_host(Context& context);
/// The same before the program waits for events.
void submit_for(Context& context, std::span<const Ref<Event>> events);

template <class Run>
cl_int Context::operate(const Command& command, const Bundle& bundle, cl_event* event, Run&& run) {
  submit_before_next(*this);
  if (const cl_int status = write_initial(bundle); status != CL_SUCCESS) return status;
  std::vector<Item> items;
  std::uint64_t token = 0;
  for (int attempt = 0;; ++attempt) {
    cl_int status = CL_SUCCESS;
    bool is_queued = false;  // the command, or what takes its place
    cl_int told = CL_SUCCESS;
    try {
      Core* const runtime = core();
      if (runtime == nullptr) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
      if (attempt == 0) {
        device().grow(*this);
        token = begin_command(*runtime, command, bundle);
      }
      const bool expects_refusal = failed_last(token);
      if (!resolve(bundle, expects_refusal, items)) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
      const runtime::Request<Backend> request{command.name, items, Bytes{}, false};
      {
        Running operation(*runtime, request, true);
        const WaitList waits = operation.wait_list();
        cl_event native = nullptr;
        operation.call([&] {
          if (timed_) operation.backend().set_timing(true);  // iterations that are not measured turned it off
          status = run(operation, waits, &native);
          told = status;
          if (status != CL_SUCCESS) native = expects_refusal ? nothing_instead(operation, waits) : nullptr;
        });
        if (native == nullptr) {
          operation.cancel();
        } else {
          is_queued = true;
          NativeEvent done(native);
          if (status == CL_SUCCESS) {
            *event = keep(native).release();
            if (*event == nullptr) told = CL_OUT_OF_RESOURCES;
          }
          queued(native);
          operation.complete(std::move(done), true);
        }
      }
      end_command(*runtime, token, status != CL_SUCCESS);
      return told;
    } catch (...) {
      if (is_queued) return told;  // the next command meets the failure
      if (try_again(command.name, attempt, status)) continue;
      if (has_core()) end_command(*core_, token, true);
      return status;
    }
  }
}

/// Lets the host use a tensor's value in its own memory, outside iterations: run(core). With the lock.
template <class Run>
[[nodiscard]] cl_int on_host(Context& context, Run&& run) {
  for (int attempt = 0; attempt < 12; ++attempt) {
    try {
      Core* const core = context.core();
      if (core == nullptr) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
      context.leave_iteration();
      run(*core);
      return CL_SUCCESS;
    } catch (const OutOfMemory& error) {
      if (attempt == 0 && context.take_host_from_others(error.sizes.need)) continue;
      return CL_OUT_OF_HOST_MEMORY;
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): of an earlier command
    }
  }
  return CL_OUT_OF_RESOURCES;
}

template <class Run>
cl_int Context::direct(cl_event* event, Run&& run) {
  try {
    submit_before_next(*this);
    const cl_int status = run(event);
    if (status == CL_SUCCESS) queued(*event);
    return status;
  } catch (...) {
    cl_int status = CL_SUCCESS;
    (void)try_again("a command", 1 << 20, status);
    return status;
  }
}

}  // namespace swapmm::opencl::layer
