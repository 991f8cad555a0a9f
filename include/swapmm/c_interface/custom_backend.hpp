// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>

#include <swapmm/swapmm.h>
#include <swapmm/backend/backend.hpp>
#include <swapmm/backend/file_memory.hpp>
#include <swapmm/backend/file_transfer.hpp>
#include <swapmm/base/bytes.hpp>

// The backend of which the program holds the bytes: see swapmm_custom_create() in <swapmm/swapmm.h>.

namespace swapmm::custom {

/// The numbers that the program knows a manager's tensors by. Tensors may be destroyed by any thread.
class TensorNumbers {
 public:
  void set(std::uint64_t serial, swapmm_tensor number) {
    const std::lock_guard lock(mutex_);
    numbers_[serial] = number;
  }
  void forget(std::uint64_t serial) {
    const std::lock_guard lock(mutex_);
    numbers_.erase(serial);
  }
  /// 0 if the tensor is destroyed.
  [[nodiscard]] swapmm_tensor of(std::uint64_t serial) const {
    const std::lock_guard lock(mutex_);
    const auto found = numbers_.find(serial);
    return found == numbers_.end() ? 0 : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, swapmm_tensor> numbers_;
};

/// Places of the device are numbers; no byte of it is here.
struct DeviceMemory {
  std::uint64_t first_place = 0;
};

struct HostMemory {
  std::unique_ptr<std::byte[]> bytes;
  [[nodiscard]] std::byte* data() { return bytes.get(); }
  [[nodiscard]] const std::byte* data() const { return bytes.get(); }
};

struct Address {
  std::uint64_t place = 0;
};

/// All work has ended when it was queued, so an event is a time at most, and how a transfer of a file has ended.
struct Event {
  std::optional<std::chrono::steady_clock::time_point> time;
  std::shared_ptr<const detail::FileTransfer> transfer;
};

struct Queue {};
struct WaitList {};
struct NativeEvent {};

/// Operations have addresses alone.
template <class T>
class View {
 public:
  View() = default;
  View(const Address& address, std::size_t count) : address_(address), count_(count) {}
  [[nodiscard]] std::uint64_t place() const { return address_.place; }
  [[nodiscard]] std::size_t size() const { return count_; }

 private:
  Address address_;
  std::size_t count_ = 0;
};

/// A place as programs in C see it: a number in the form of a pointer.
[[nodiscard]] void* address_of(std::uint64_t place);

class Backend {
 public:
  using DeviceMemory = custom::DeviceMemory;
  using HostMemory = custom::HostMemory;
  using Address = custom::Address;
  using Event = custom::Event;
  using Queue = custom::Queue;
  using WaitList = custom::WaitList;
  using NativeEvent = custom::NativeEvent;
  template <class T>
  using View = custom::View<T>;

  explicit Backend(const swapmm_custom_device& device);

  /// The same device for one manager, whose tensors have these numbers.
  [[nodiscard]] Backend with(std::shared_ptr<const TensorNumbers> numbers) const;

  [[nodiscard]] const Capabilities& capabilities() const { return *capabilities_; }

  [[nodiscard]] DeviceMemory allocate(Bytes bytes);
  [[nodiscard]] HostMemory allocate_host(Bytes bytes, HostKind kind);
  [[nodiscard]] Address address(DeviceMemory& memory, Bytes offset, Bytes bytes);
  [[nodiscard]] Event make_event() { return {}; }

  /// The next copy moves the value of that tensor. Without it, a copy moves free bytes.
  void next_copy_of(std::uint64_t serial) { serial_ = serial; }
  void copy_to_device(const Address& to, const HostMemory& from, Bytes from_offset, Bytes bytes,
                      std::span<const Event* const> waits, Event& event);
  void copy_to_host(HostMemory& to, Bytes to_offset, const Address& from, Bytes bytes,
                    std::span<const Event* const> waits, Event& event);

  /// The parts of a value, the first one with offset 0.
  void copy_part_to_device(const Address& to, Bytes to_offset, const HostMemory& from, Bytes from_offset, Bytes bytes,
                           std::span<const Event* const> waits, Event& event);
  void copy_part_to_host(HostMemory& to, Bytes to_offset, const Address& from, Bytes from_offset, Bytes bytes,
                         std::span<const Event* const> waits, Event& event);
  void read_file(FileMemory& file, Bytes file_offset, HostMemory& to, Bytes to_offset, Bytes bytes,
                 std::span<const Event* const> waits, Event& event);
  void write_file(FileMemory& file, Bytes file_offset, const HostMemory& from, Bytes from_offset, Bytes bytes,
                  std::span<const Event* const> waits, Event& event);
  /// Whether the program has the functions for that.
  [[nodiscard]] bool copies_parts() const {
    return device_.copy_part_to_host != nullptr && device_.copy_part_to_device != nullptr;
  }

  void wait(QueueKind /*queue*/, std::span<const Event* const> /*events*/) {}
  void record(QueueKind /*queue*/, Event& event) { mark(event); }
  void flush(QueueKind /*queue*/) {}
  [[nodiscard]] Queue& queue() { return queue_; }
  [[nodiscard]] WaitList wait_list(std::span<const Event* const> /*events*/) { return {}; }
  void adopt(Event& event, NativeEvent /*native*/) { mark(event); }

  [[nodiscard]] EventStatus status(const Event& event) const {
    return event.transfer && event.transfer->has_failed() ? EventStatus::failed : EventStatus::complete;
  }
  void wait(const Event& event) {
    if (event.transfer) event.transfer->check();
  }
  void finish() {}

  void set_timing(bool on) { timing_ = on; }
  [[nodiscard]] std::optional<std::chrono::nanoseconds> elapsed(const Event& from, const Event& to) const;

 private:
  void mark(Event& event) const;

  std::shared_ptr<const Capabilities> capabilities_;
  swapmm_custom_device device_;
  std::shared_ptr<const TensorNumbers> numbers_;
  std::optional<std::uint64_t> serial_;
  std::optional<std::uint64_t> serial_of_parts_;
  bool timing_ = false;
  Queue queue_;
};

static_assert(swapmm::FileBackend<Backend>);

}  // namespace swapmm::custom
