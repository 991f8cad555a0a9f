// SPDX-License-Identifier: Apache-2.0
#pragma once

// A backend on which nothing is done: copies copy nothing, and nothing allocates but the making of objects. What a
// program costs on it is what the library itself costs.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>

namespace swapmm::test {

/// What was asked of a null device.
struct NullCounters {
  std::uint64_t objects_made = 0;
  std::uint64_t objects_live = 0;
  std::uint64_t copies = 0;
  std::uint64_t barriers = 0;
  std::uint64_t records = 0;
  std::uint64_t host_waits = 0;  ///< that had to wait
};

class NullBackend {
  struct Device {
    Capabilities capabilities;
    bool lazy = false;
    NullCounters counters;
    std::uint64_t queued = 0;
    std::uint64_t ended = 0;
    std::uint64_t last_wait = 0;  // an event of whatever device
  };

  /// Counts itself.
  class Object {
   public:
    explicit Object(std::shared_ptr<Device> device) : device_(std::move(device)) {
      ++device_->counters.objects_made;
      ++device_->counters.objects_live;
    }
    Object(Object&&) noexcept = default;
    Object& operator=(Object&& other) noexcept {
      std::swap(device_, other.device_);
      return *this;
    }
    ~Object() {
      if (device_ != nullptr) --device_->counters.objects_live;
    }

   private:
    std::shared_ptr<Device> device_;
  };

 public:
  struct DeviceMemory {
    Object object;
    std::unique_ptr<std::byte[]> bytes;
  };
  struct HostMemory {
    Object object;
    std::unique_ptr<std::byte[]> bytes;
    [[nodiscard]] std::byte* data() { return bytes.get(); }
    [[nodiscard]] const std::byte* data() const { return bytes.get(); }
  };
  struct Address {
    Object object;
    std::byte* place;
  };
  struct Event {
    Object object;
    std::uint64_t at = 0;
  };
  struct Queue {};
  struct NativeEvent {};
  struct WaitList {};
  template <class T>
  class View {
   public:
    View() = default;
    View(const Address& address, std::size_t count) : data_(reinterpret_cast<T*>(address.place)), count_(count) {}
    [[nodiscard]] T* data() const { return data_; }
    [[nodiscard]] std::size_t size() const { return count_; }

   private:
    T* data_ = nullptr;
    std::size_t count_ = 0;
  };

  /// A lazy device ends its work only when the host waits for it; another one at once.
  explicit NullBackend(bool lazy = false, Bytes alignment = Bytes{64}, Bytes host_slab = Bytes{0})
      : device_(std::make_shared<Device>()) {
    device_->capabilities.device_name = "null";
    device_->capabilities.alignment = alignment;
    device_->capabilities.host_slab = host_slab;
    device_->lazy = lazy;
  }

  [[nodiscard]] const NullCounters& counters() const { return device_->counters; }
  [[nodiscard]] const Capabilities& capabilities() const { return device_->capabilities; }

  [[nodiscard]] DeviceMemory allocate(Bytes size) {
    return {Object(device_), std::make_unique<std::byte[]>(static_cast<std::size_t>(size.value))};
  }
  [[nodiscard]] HostMemory allocate_host(Bytes size, HostKind) {
    return {Object(device_), std::make_unique<std::byte[]>(static_cast<std::size_t>(size.value))};
  }
  [[nodiscard]] Address address(DeviceMemory& memory, Bytes offset, Bytes) {
    return {Object(device_), memory.bytes.get() + offset.value};
  }
  [[nodiscard]] Event make_event() { return {Object(device_)}; }

  void copy_to_device(const Address&, const HostMemory&, Bytes, Bytes, std::span<const Event* const>, Event& event) {
    ++device_->counters.copies;
    event.at = ++device_->queued;
  }
  void copy_to_host(HostMemory&, Bytes, const Address&, Bytes, std::span<const Event* const>, Event& event) {
    ++device_->counters.copies;
    event.at = ++device_->queued;
  }
  void wait(QueueKind, std::span<const Event* const> waits) {
    ++device_->counters.barriers;
    for (const Event* const event : waits) device_->last_wait = event->at;
  }
  /// See TurnTakingBackend.
  [[nodiscard]] bool can_wait_for(const NullBackend&) const { return true; }
  void record(QueueKind, Event& event) {
    ++device_->counters.records;
    event.at = ++device_->queued;
  }
  void flush(QueueKind) {}

  [[nodiscard]] Queue& queue() { return queue_; }
  [[nodiscard]] WaitList wait_list(std::span<const Event* const>) { return {}; }
  void adopt(Event& event, NativeEvent) { event.at = ++device_->queued; }

  [[nodiscard]] EventStatus status(const Event& event) {
    return device_->lazy && event.at > device_->ended ? EventStatus::running : EventStatus::complete;
  }
  void wait(const Event& event) {
    if (status(event) == EventStatus::complete) return;
    ++device_->counters.host_waits;
    device_->ended = event.at;
  }
  void finish() { device_->ended = device_->queued; }

  void set_timing(bool) {}
  [[nodiscard]] std::optional<std::chrono::nanoseconds> elapsed(const Event&, const Event&) {
    return std::chrono::nanoseconds{1000};
  }

 private:
  std::shared_ptr<Device> device_;
  Queue queue_;
};

static_assert(Backend<NullBackend>);

}  // namespace swapmm::test
