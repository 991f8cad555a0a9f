// SPDX-License-Identifier: Apache-2.0
#pragma once

// swapmm on OpenCL 1.2 and later. docs/decisions/0002-backend-seam.md tells how the seam maps to the API, README.md
// beside this folder what is particular to it. For Boost.Compute and CL/opencl.hpp there are headers beside this one.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/opencl/handle.hpp>

/// The OpenCL backend, component `opencl` of the package.
namespace swapmm::opencl {

namespace detail {
class Session;  // context, device and queues behind all handles of one backend
}

/// A buffer on the device; opaque.
class DeviceMemory {
 private:
  friend class Backend;
  DeviceMemory(Handle<cl_mem> buffer, Bytes size) : buffer_(std::move(buffer)), size_(size) {}
  Handle<cl_mem> buffer_;
  Bytes size_;
};

/// Pinned: a buffer that the driver made in host memory (CL_MEM_ALLOC_HOST_PTR), mapped as long as it lives. The
/// destructor waits for copies that still use the bytes.
class SWAPMM_EXPORT HostMemory {
 public:
  /// The other one is empty then.
  HostMemory(HostMemory&&) noexcept = default;
  /// Ends what it had, as destruction does.
  HostMemory& operator=(HostMemory&& other) noexcept;
  ~HostMemory();

  /// @{
  /// The first byte; the same for as long as the memory exists.
  [[nodiscard]] std::byte* data() { return data_; }
  [[nodiscard]] const std::byte* data() const { return data_; }
  /// @}

 private:
  friend class Backend;
  HostMemory(std::shared_ptr<detail::Session> session, Handle<cl_mem> pinned, std::byte* data);
  void end() noexcept;

  std::shared_ptr<detail::Session> session_;  // none: moved from
  Handle<cl_mem> pinned_;                     // none: pageable
  std::byte* data_;
  mutable std::array<Handle<cl_event>, queue_count> last_use_;
};

/// A sub-buffer, or the whole buffer where the place is all of it. Keeps the memory alive.
class Address {
 public:
  [[nodiscard]] cl_mem buffer() const { return buffer_.get(); }  ///< no reference of the caller's own
  [[nodiscard]] Bytes size() const { return size_; }             ///< of the place
  /// buffer(), for Operation::argument(). Refers to this object.
  [[nodiscard]] Argument argument() const { return Argument(buffer_.object()); }

 private:
  friend class Backend;
  Address(Handle<cl_mem> buffer, Bytes size) : buffer_(std::move(buffer)), size_(size) {}
  Handle<cl_mem> buffer_;
  Bytes size_;
};

/// What op[tensor] gives: a cl_mem whose first byte is the tensor's, as a kernel argument or for a library (with offset
/// 0). It may be another one in the next iteration; keep it no longer than the operation.
template <class T>
class View {
 public:
  using value_type = T;  ///< of an element
  /// The first `count` elements at that address.
  View(const Address& address, std::size_t count) : buffer_(address.buffer()), count_(count) {}
  /// Empty: no elements, buffer() is null.
  View() = default;

  [[nodiscard]] cl_mem buffer() const { return buffer_; }                 ///< no reference of the caller's own
  [[nodiscard]] std::size_t size() const { return count_; }               ///< elements
  [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(T); }  ///< of the elements

 private:
  cl_mem buffer_ = nullptr;
  std::size_t count_ = 0;
};

/// A slot for a cl_event.
class Event {
 private:
  friend class Backend;
  Event() = default;
  Handle<cl_event> event_;  // none: never recorded
  bool timed_ = false;
  std::optional<std::chrono::steady_clock::time_point> host_time_;  // see Session::host_timed
};

/// The events an operation of the second form waits for, as the API's calls take them. Valid while the operation runs.
class WaitList {
 public:
  [[nodiscard]] cl_uint size() const { return count_; }  ///< events; may be 0
  /// The events; null where there are none, as the API wants it.
  [[nodiscard]] const cl_event* data() const {
    if (count_ == 0) return nullptr;
    return count_ <= few ? first_.data() : all_.data();
  }

 private:
  friend class Backend;
  static constexpr cl_uint few = 8;  // up to here without an allocation

  void add(cl_event event) {
    if (count_ < few) {
      first_[count_] = event;
    } else {
      if (count_ == few) all_.assign(first_.begin(), first_.end());
      all_.push_back(event);
    }
    ++count_;
  }

  cl_uint count_ = 0;
  std::array<cl_event, few> first_{};
  std::vector<cl_event> all_;
};

/// What an operation of the second form returns: the event behind its work, whose reference it takes over. Without an
/// event (nullptr) the queue itself waits for the list behind the work, and a marker is put there where the plan needs
/// a point: two commands that an event saves.
class NativeEvent {
 public:
  /// Takes the reference over.
  NativeEvent(cl_event event = nullptr) : event_(event) {}  // NOLINT(*-explicit-*)
  /// There is an event.
  explicit operator bool() const { return static_cast<bool>(event_); }

 private:
  friend class Backend;
  Handle<cl_event> event_;
};

/// The backend. Works with any device of OpenCL 1.2 and later that can hold a buffer. Its objects keep context and
/// queues alive; the last of them waits for what is queued.
class SWAPMM_EXPORT Backend {
 public:
  /// @{
  /// As swapmm::Backend names it.
  using DeviceMemory = opencl::DeviceMemory;
  using HostMemory = opencl::HostMemory;
  using Address = opencl::Address;
  using Event = opencl::Event;
  using Queue = cl_command_queue;
  using WaitList = opencl::WaitList;
  using NativeEvent = opencl::NativeEvent;
  template <class T>
  using View = opencl::View<T>;
  /// @}

  /// On the program's own context, of which it takes a reference. With a queue of that context and device, operations
  /// run there, in order with what the program queues itself; without one, on a queue of swapmm's. While the library
  /// observes, a queue without CL_QUEUE_PROFILING_ENABLE makes it wait for each operation to time it.
  /// Throws UsageError where the device is not the context's, or the queue not of both, or out of order.
  Backend(cl_context context, cl_device_id device, cl_command_queue queue = nullptr);

  /// On the device that the environment variable SWAPMM_DEVICE names by its index or a part of its name, else on the
  /// best one: see choose(). Says which on std::clog, or on `say`. Throws UsageError with a list of all devices.
  [[nodiscard]] static Backend pick();
  /// The same, saying it on `say`.
  [[nodiscard]] static Backend pick(std::ostream& say);
  /// On the device that `wanted` names, as the environment variable would; empty: the best one.
  [[nodiscard]] static Backend pick(std::string_view wanted, std::ostream& say);

  [[nodiscard]] cl_context context() const;   ///< no reference of the caller's own
  [[nodiscard]] cl_device_id device() const;  ///< what queues and memory are on

  /// @{
  /// As swapmm::Backend says.
  [[nodiscard]] const Capabilities& capabilities() const;

  [[nodiscard]] DeviceMemory allocate(Bytes size);
  [[nodiscard]] HostMemory allocate_host(Bytes size, HostKind kind);
  [[nodiscard]] Address address(DeviceMemory& memory, Bytes offset, Bytes size);
  [[nodiscard]] Event make_event();

  void copy_to_device(const Address& to, const HostMemory& from, Bytes from_offset, Bytes size,
                      std::span<const Event* const> waits, Event& event);
  void copy_to_host(HostMemory& to, Bytes to_offset, const Address& from, Bytes size,
                    std::span<const Event* const> waits, Event& event);

  void wait(QueueKind queue, std::span<const Event* const> waits);
  void record(QueueKind queue, Event& event);
  void flush(QueueKind queue);

  [[nodiscard]] Queue& queue();
  [[nodiscard]] WaitList wait_list(std::span<const Event* const> waits);
  void adopt(Event& event, NativeEvent native);

  [[nodiscard]] EventStatus status(const Event& event);
  void wait(const Event& event);
  void finish();

  void set_timing(bool on);
  [[nodiscard]] std::optional<std::chrono::nanoseconds> elapsed(const Event& from, const Event& to);
  /// @}

 private:
  void recorded(Event& event, cl_event native);

  std::shared_ptr<detail::Session> session_;
};

static_assert(swapmm::Backend<Backend>);

}  // namespace swapmm::opencl
