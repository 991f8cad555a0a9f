// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <swapmm/base/bytes.hpp>

#include "loader/table.hpp"
#include "report/numbers.hpp"

namespace swapmm::opencl::layer {

class Context;
struct Progress;
struct Tally;

/// A device's memory: its budget, and who has which part of it. All contexts on the device share it, and one lock.
/// Never destroyed.
class DeviceBudget {
 public:
  /// The budget of a device or of the device that it is a part of. Null if the driver does not know the device.
  [[nodiscard]] static DeviceBudget* of(cl_device_id device);

  /// Held while the runtime of any context on the device is used. Never taken in a callback of the driver, and not held
  /// while a callback of the program runs.
  std::mutex mutex;

  [[nodiscard]] cl_device_id device() const { return device_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] Bytes budget() const { return budget_; }
  /// Memory of the device itself.
  [[nodiscard]] Bytes whole() const { return whole_; }
  /// What the program is told of a device whose own values these are: what it can have, which is memory of the host,
  /// too, unless SWAPMM_REPORTED_MEMORY says otherwise. A buffer may be as large as the device's largest one, even if
  /// that is above the budget: programs refuse to run where the largest buffer is small beside the memory, and OpenCL
  /// forbids it. Where all lies in the budget's memory, no buffer is larger.
  struct Reported {
    Bytes memory;
    Bytes largest;
  };
  [[nodiscard]] Reported reported(const Reported& own) const;
  /// Why nothing may be allocated; empty: all is well.
  [[nodiscard]] const std::string& problem() const { return problem_; }

  // ---- with the lock

  /// Gives a context at least `need` bytes, and takes them from others if nobody else has no use for them. False if the
  /// budget is too small, or if the device or the host refuses.
  [[nodiscard]] bool give(Context& asking, Bytes need);
  /// Gives a context more if there is much that nobody has.
  void offer(Context& asking);
  /// The same for a context whose buffers have more bytes than its part, of what others have no use for, too. To be
  /// called with each command: it looks once for as many bytes, and again when others have let go of theirs.
  void grow(Context& asking);
  /// A context has no buffer any more. Without the lock.
  void note_idle() { idlings_.fetch_add(1, std::memory_order_relaxed); }
  /// True if the last give() failed because the host has no room for what must leave.
  [[nodiscard]] bool host_short() const { return host_short_; }
  void note_host_short() { host_short_ = true; }
  /// What the last give() failed for, in the words of the device; empty: it did not ask the device, or was given all.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }
  void note_refusal(const char* text) { refusal_ = text; }
  /// Waits for all work of all contexts.
  void finish_all();
  /// Takes `size` bytes away from all contexts, for memory that is not managed. False if the budget is too small.
  [[nodiscard]] bool reserve(Bytes size);
  void add(Context& context) { contexts_.push_back(&context); }
  void remove(Context& context);

  // ---- without the lock, also in callbacks of the driver

  /// Ends reserve(), in whole or in part.
  void give_back(Bytes size) { pinned_.fetch_sub(size.value, std::memory_order_release); }
  /// To be called before the driver's own object is released. Its bytes come back when the driver has destroyed it.
  void note_release() { releases_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] Bytes pinned() const { return Bytes{pinned_.load(std::memory_order_acquire)}; }
  /// What the budget has beside that: no larger buffer is ever on the device.
  [[nodiscard]] Bytes swappable() const { return budget_ - std::min(budget_, pinned()); }

  // ---- for the report

  /// All devices that contexts have used.
  [[nodiscard]] static std::vector<DeviceBudget*> all();
  [[nodiscard]] const std::vector<Context*>& contexts() const { return contexts_; }
  /// The most that the program has had at a time: what is managed, wherever it was, and what is not.
  [[nodiscard]] Bytes wanted_peak() const { return wanted_peak_; }
  [[nodiscard]] Bytes pinned_peak() const { return pinned_peak_; }
  [[nodiscard]] Bytes largest_command() const { return largest_command_; }
  Tally* tally = nullptr;              ///< what report.cpp knows of the device. With the lock
  Progress* progress = nullptr;        ///< the same for progress.cpp
  std::uint64_t refused_commands = 0;  ///< with the lock
  std::atomic<std::uint64_t> refused_objects{0};
  std::array<std::atomic<std::uint64_t>, passed_through_kinds> passed_objects{};
  std::array<std::atomic<std::uint64_t>, passed_through_kinds> passed_bytes{};
  void count_passed(PassedThrough kind, Bytes size);
  /// The same, without the lock.
  void note_passed(PassedThrough kind, Bytes size);
  /// With the lock.
  void note_peak();
  void note_command(Bytes need) {
    if (need > largest_command_) largest_command_ = need;
  }

 private:
  explicit DeviceBudget(cl_device_id device);

  [[nodiscard]] Bytes managed() const;
  [[nodiscard]] Bytes unused() const;
  bool take_from_others(const Context* asking, Bytes need);
  // Up to so many bytes in all that are unused then, of what other contexts have no use for.
  void take_idle(const Context* asking, Bytes wanted);
  // What the others have no use for.
  [[nodiscard]] Bytes idle(const Context* asking) const;
  [[nodiscard]] bool make_room(Bytes size);
  // Whether so many bytes are there if all leaves that can leave; waits for objects that were released.
  [[nodiscard]] bool may_have(Bytes size);

  cl_device_id device_;
  std::string name_;
  Bytes whole_;
  std::string problem_;  // before budget_, which sets it
  Bytes budget_;
  std::vector<Context*> contexts_;
  bool host_short_ = false;
  std::string refusal_;
  std::atomic<std::uint64_t> pinned_{0};
  std::atomic<std::uint64_t> idlings_{1};
  std::atomic<std::uint64_t> releases_{0};  // of the driver's own objects
  std::uint64_t releases_waited_for_ = 0;   // so many of them
  Bytes wanted_peak_;
  Bytes pinned_peak_;
  Bytes largest_command_;
};

/// Bytes of a device's budget that are not managed. They are given back when this is destroyed, unless release() was
/// called.
class Reservation {
 public:
  Reservation() = default;
  /// Takes the lock. Empty if the budget is too small.
  Reservation(DeviceBudget& device, Bytes size);
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&&) = delete;
  ~Reservation();

  explicit operator bool() const { return device_ != nullptr; }
  [[nodiscard]] Bytes size() const { return size_; }
  /// The caller gives the bytes back.
  void release() { device_ = nullptr; }

 private:
  DeviceBudget* device_ = nullptr;
  Bytes size_;
};

}  // namespace swapmm::opencl::layer
