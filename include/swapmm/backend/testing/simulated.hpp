// SPDX-License-Identifier: Apache-2.0
#pragma once

// A full backend on plain memory, for tests and for planning: real bytes, three queues, a virtual clock, an order of
// steps drawn from a seed, and a checker. A program that waits for too little shows wrong bytes under some seed, and
// is reported by the checker under every seed.

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/backend/testing/simulated/device.hpp>
#include <swapmm/backend/testing/simulated/options.hpp>
#include <swapmm/backend/testing/simulated/touch.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>

/// A device that is simulated on plain memory.
namespace swapmm::simulated {

namespace detail {

/// Ownership of one object of a device, that ends with the given function.
template <void (Device::*end)(BlockId) noexcept>
class Claim {
 public:
  Claim(std::shared_ptr<Device> device, BlockId id) : device_(std::move(device)), id_(id) {}
  Claim(Claim&& other) noexcept : device_(std::move(other.device_)), id_(other.id_) {}
  Claim& operator=(Claim&& other) noexcept {
    Claim taken(std::move(other));
    std::swap(device_, taken.device_);
    std::swap(id_, taken.id_);
    return *this;
  }
  ~Claim() {
    if (device_) (device_.get()->*end)(id_);
  }

  [[nodiscard]] const Device* device() const { return device_.get(); }
  [[nodiscard]] BlockId id() const { return id_; }

 private:
  std::shared_ptr<Device> device_;
  BlockId id_;
};

}  // namespace detail

/// Bytes of the device; opaque.
class DeviceMemory {
 private:
  friend class Backend;
  explicit DeviceMemory(detail::Claim<&detail::Device::release> claim) : claim_(std::move(claim)) {}
  detail::Claim<&detail::Device::release> claim_;
};

/// Bytes of the host.
class HostMemory {
 public:
  /// @{
  /// The first byte; the same for as long as the memory exists.
  [[nodiscard]] std::byte* data() { return data_; }
  [[nodiscard]] const std::byte* data() const { return data_; }
  /// @}

 private:
  friend class Backend;
  HostMemory(detail::Claim<&detail::Device::release_host> claim, std::byte* data)
      : claim_(std::move(claim)), data_(data) {}
  detail::Claim<&detail::Device::release_host> claim_;
  std::byte* data_;
};

/// A place in a DeviceMemory. Does not keep its memory alive: using one after the memory's release is an error that the
/// checker reports.
class Address {
 public:
  /// The bytes. For kernels, while they run.
  [[nodiscard]] std::byte* data() const { return place_.data; }
  /// @{
  /// How many bytes.
  [[nodiscard]] std::size_t size() const { return place_.size; }
  [[nodiscard]] std::uint64_t bytes() const { return place_.size; }
  /// @}
  /// data(), for Operation::argument(). Refers to this object.
  [[nodiscard]] Argument argument() const { return Argument(place_.data); }
  /// For Touch.
  [[nodiscard]] const Place& place() const { return place_; }

 private:
  friend class Backend;
  Address(detail::Claim<&detail::Device::release_address> claim, const Place& place)
      : claim_(std::move(claim)), place_(place) {}
  detail::Claim<&detail::Device::release_address> claim_;
  Place place_;
};

/// What a kernel sees of a tensor: `size()` elements of T. Copyable; refers to the place, not to the Address.
template <class T>
class View {
 public:
  /// The first `count` elements at that address.
  View(const Address& address, std::size_t count) : place_(address.place()), count_(count) {}
  /// Empty: no elements, data() is null.
  View() = default;

  /// The number of elements.
  [[nodiscard]] std::size_t size() const { return count_; }
  /// Their size.
  [[nodiscard]] std::uint64_t bytes() const { return count_ * sizeof(T); }
  /// @{
  /// The elements. For kernels, while they run; not checked.
  [[nodiscard]] T* data() const { return reinterpret_cast<T*>(place_.data); }
  [[nodiscard]] T& operator[](std::size_t i) const { return data()[i]; }
  [[nodiscard]] T* begin() const { return data(); }
  [[nodiscard]] T* end() const { return data() + count_; }
  /// @}
  /// For Touch.
  [[nodiscard]] const Place& place() const { return place_; }

 private:
  Place place_;
  std::size_t count_ = 0;
};

/// A slot for a point in a queue.
class Event {
 private:
  friend class Backend;
  explicit Event(detail::Claim<&detail::Device::release_event> claim) : claim_(std::move(claim)) {}
  detail::Claim<&detail::Device::release_event> claim_;
  detail::Point point_;
};

/// The point that a launch with a wait list returns.
class NativeEvent {
 public:
  NativeEvent() = default;

 private:
  friend class Backend;
  friend class Queue;
  explicit NativeEvent(const detail::Point& point) : point_(point) {}
  detail::Point point_;
};

/// Points that a launch waits for. Allocates only for more than `in_place` of them.
class WaitList {
 public:
  /// The number of points.
  [[nodiscard]] std::size_t size() const { return count_; }

 private:
  friend class Backend;
  friend class Queue;
  static constexpr std::size_t in_place = 8;

  void add(const detail::Point& point) {
    if (count_ < in_place) {
      first_[count_] = point;
    } else {
      rest_.push_back(point);
    }
    ++count_;
  }
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t i = 0; i < count_ && i < in_place; ++i) visit(first_[i]);
    for (const detail::Point& point : rest_) visit(point);
  }

  std::size_t count_ = 0;
  std::array<detail::Point, in_place> first_;
  std::vector<detail::Point> rest_;
};

/// The touches of one launch: a braced list, or anything that is a span of them.
class Touches {
 public:
  /// @{
  /// Refers to what it is given, for the call that it is an argument of.
  Touches(std::initializer_list<Touch> list) : all_(list.begin(), list.size()) {}  // NOLINT(*-explicit-*)
  template <std::convertible_to<std::span<const Touch>> R>
  Touches(const R& range) : all_(range) {}  // NOLINT(*-explicit-*)
  /// @}

  /// All of them.
  [[nodiscard]] std::span<const Touch> all() const { return all_; }

 private:
  std::span<const Touch> all_;
};

/// The compute queue. A launch queues a kernel that takes `duration` of virtual time, touches the bytes it names, and
/// runs `body()` at one step; or `read()` and `write()` at two, between which other queues may move. What a body
/// throws makes the kernel fail: the work up to the next event of the queue is not done, and that event reports it.
/// Bodies up to Body::in_place_bytes allocate nothing.
class SWAPMM_EXPORT Queue {
 public:
  /// @{
  /// The first form: queues the kernel.
  template <std::invocable F>
  void launch(std::string_view name, std::chrono::nanoseconds duration, Touches touches, F body) {
    queue(name, duration, touches, nullptr, 1, one_phase(std::move(body)));
  }
  template <std::invocable Read, std::invocable Write>
  void launch(std::string_view name, std::chrono::nanoseconds duration, Touches touches, Read read, Write write) {
    queue(name, duration, touches, nullptr, 2, two_phases(std::move(read), std::move(write)));
  }

  /// @}

  /// @{
  /// The second form: behind the wait list, and with an event of its own.
  template <std::invocable F>
  NativeEvent launch(std::string_view name, std::chrono::nanoseconds duration, Touches touches, const WaitList& waits,
                     F body) {
    return queue(name, duration, touches, &waits, 1, one_phase(std::move(body)));
  }
  template <std::invocable Read, std::invocable Write>
  NativeEvent launch(std::string_view name, std::chrono::nanoseconds duration, Touches touches, const WaitList& waits,
                     Read read, Write write) {
    return queue(name, duration, touches, &waits, 2, two_phases(std::move(read), std::move(write)));
  }
  /// @}

 private:
  friend class Backend;
  explicit Queue(detail::Device* device) : device_(device) {}

  template <class F>
  static detail::Body one_phase(F body) {
    return detail::Body([body = std::move(body)](int) mutable { body(); });
  }
  template <class Read, class Write>
  static detail::Body two_phases(Read read, Write write) {
    return detail::Body([read = std::move(read), write = std::move(write)](int phase) mutable {
      if (phase == 0) {
        read();
      } else {
        write();
      }
    });
  }
  NativeEvent queue(std::string_view name, std::chrono::nanoseconds duration, const Touches& touches,
                    const WaitList* waits, int phases, detail::Body body);

  detail::Device* device_;
};

/// The backend. Its objects keep the device alive; what is still queued when the last of them goes is discarded.
class SWAPMM_EXPORT Backend {
 public:
  /// @{
  /// As swapmm::Backend names it.
  using DeviceMemory = simulated::DeviceMemory;
  using HostMemory = simulated::HostMemory;
  using Address = simulated::Address;
  using Event = simulated::Event;
  using Queue = simulated::Queue;
  using WaitList = simulated::WaitList;
  using NativeEvent = simulated::NativeEvent;
  template <class T>
  using View = simulated::View<T>;
  /// @}

  /// A device of its own, whose device memory is taken at once.
  explicit Backend(const Options& options = {});

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

  // Beyond the concept: what a backend may offer. Users look for it with `if constexpr (requires ...)`.

  /// The host reads or writes these bytes now, not through a copy. For the checker.
  void note_host_access(const HostMemory& memory, Bytes offset, Bytes size, bool write);
  /// The next command on the queue runs only when nothing else can. Not in virtual time.
  void delay(QueueKind queue);
  /// The next command on the queue does nothing but fail when it is its turn.
  void fail(QueueKind queue);

  // For tests.

  /// Lets the device move by up to `count` steps (in virtual time: commands); returns how many there were.
  std::uint64_t step(std::uint64_t count = 1);
  void drain();                                        ///< step() until nothing is queued
  [[nodiscard]] std::chrono::nanoseconds now() const;  ///< the host's virtual time
  /// What was asked for so far.
  [[nodiscard]] const Counters& counters() const;
  /// Of all steps so far, and of where between the calls of the host they came.
  [[nodiscard]] std::uint64_t trace_hash() const;
  [[nodiscard]] const std::vector<std::string>& violations() const;  ///< what the checker found: the first 100 texts
  [[nodiscard]] std::uint64_t violation_count() const;               ///< all of them
  void clear_violations();                                           ///< none again
  [[nodiscard]] const std::vector<LogEntry>& log() const;            ///< with Options::log: all commands so far

 private:
  struct Shared;  // the device, and the queue that user code sees
  std::shared_ptr<Shared> shared_;
};

static_assert(swapmm::Backend<Backend>);

}  // namespace swapmm::simulated
