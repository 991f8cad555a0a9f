// SPDX-License-Identifier: Apache-2.0
#pragma once

// A backend on plain memory that can capture. Work is done as late as can be, when the host waits for it, in the order
// in which it was queued: a host that reads too early reads old bytes. Whether queues wait for each other is not seen
// here; the simulated backend sees that.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/error.hpp>

namespace swapmm::test {

class ReplayingBackend {
  using Command = std::function<void()>;
  using Bytes_ = std::unique_ptr<std::byte[]>;

  /// What became of a capture; as in cuda::Capture.
  struct Capture {
    std::vector<Command> commands;
    bool open = true;
    bool runs = false;
    std::uint64_t end = 0;  ///< number of the command behind the latest run
  };
  struct Device {
    Capabilities capabilities;
    std::deque<Command> queue;
    std::uint64_t queued = 0;
    std::uint64_t ended = 0;
    std::shared_ptr<Capture> capture;
    bool captures_fail = false;
    bool launches_fail = false;
    std::chrono::nanoseconds time{1000};  ///< between any two events

    std::uint64_t add(Command command) {
      if (capture != nullptr) {
        capture->commands.push_back(std::move(command));
        return 0;
      }
      queue.push_back(std::move(command));
      return ++queued;
    }
    void run_until(std::uint64_t number) {
      for (; ended < number; ++ended) {
        queue.front()();
        queue.pop_front();
      }
    }
  };

 public:
  struct DeviceMemory {
    Bytes_ bytes;
  };
  struct HostMemory {
    Bytes_ bytes;
    [[nodiscard]] std::byte* data() { return bytes.get(); }
    [[nodiscard]] const std::byte* data() const { return bytes.get(); }
  };
  struct Address {
    std::byte* place;
  };
  struct Event {
    std::uint64_t at = 0;  ///< number of the command before it
    std::shared_ptr<Capture> capture;
  };
  /// Takes work for the compute queue.
  class Queue {
   public:
    explicit Queue(Device* device) : device_(device) {}
    void launch(Command command) { device_->add(std::move(command)); }

   private:
    Device* device_;
  };
  struct NativeEvent {};
  struct WaitList {};
  struct Graph {
    std::shared_ptr<Capture> capture;
  };
  template <class T>
  class View {
   public:
    View() = default;
    View(const Address& address, std::size_t count) : data_(reinterpret_cast<T*>(address.place)), count_(count) {}
    [[nodiscard]] std::span<T> span() const { return {data_, count_}; }

   private:
    T* data_ = nullptr;
    std::size_t count_ = 0;
  };

  /// With `failures_stick` the runtime looks at the last of several events alone, as on CUDA.
  explicit ReplayingBackend(bool failures_stick = true) {
    device_->capabilities.device_name = "replaying";
    device_->capabilities.alignment = Bytes{16};
    device_->capabilities.graph_capture = true;
    device_->capabilities.failures_stick = failures_stick;
  }
  /// From now on end_capture() fails, as it does where a callable did what cannot be captured.
  void let_captures_fail(bool fail) { device_->captures_fail = fail; }
  /// From now on launch() does its work, and then throws.
  void let_launches_fail(bool fail) { device_->launches_fail = fail; }
  /// From now on that lies between any two events.
  void let_everything_take(std::chrono::nanoseconds time) { device_->time = time; }
  [[nodiscard]] std::uint64_t queued() const { return device_->queued; }

  [[nodiscard]] const Capabilities& capabilities() const { return device_->capabilities; }
  [[nodiscard]] DeviceMemory allocate(Bytes size) { return {memory(size)}; }
  [[nodiscard]] HostMemory allocate_host(Bytes size, HostKind) { return {memory(size)}; }
  [[nodiscard]] Address address(DeviceMemory& in, Bytes offset, Bytes) { return {in.bytes.get() + offset.value}; }
  [[nodiscard]] Event make_event() { return {}; }

  void copy_to_device(const Address& to, const HostMemory& from, Bytes from_offset, Bytes size,
                      std::span<const Event* const>, Event& event) {
    copy(to.place, from.data() + from_offset.value, size, event);
  }
  void copy_to_host(HostMemory& to, Bytes to_offset, const Address& from, Bytes size, std::span<const Event* const>,
                    Event& event) {
    copy(to.data() + to_offset.value, from.place, size, event);
  }
  void wait(QueueKind, std::span<const Event* const>) {}
  void record(QueueKind, Event& event) { event = {device_->queued, device_->capture}; }
  void flush(QueueKind) {}
  [[nodiscard]] Queue& queue() { return *queue_; }
  [[nodiscard]] WaitList wait_list(std::span<const Event* const>) { return {}; }
  void adopt(Event& event, NativeEvent) { record(QueueKind::compute, event); }

  [[nodiscard]] EventStatus status(const Event& event) {
    if (event.capture != nullptr && !event.capture->runs) {
      return event.capture->open ? EventStatus::running : EventStatus::failed;
    }
    return end_of(event) <= device_->ended ? EventStatus::complete : EventStatus::running;
  }
  void wait(const Event& event) {
    const EventStatus now = status(event);
    if (now == EventStatus::failed) throw BackendError(BackendError::Kind::failed, 1, "captured, and never run");
    if (event.capture != nullptr && event.capture->open) throw UsageError("the host waits inside a capture");
    device_->run_until(end_of(event));
  }
  void finish() {
    if (device_->capture == nullptr) device_->run_until(device_->queued);
  }
  void set_timing(bool) {}
  [[nodiscard]] std::optional<std::chrono::nanoseconds> elapsed(const Event&, const Event&) { return device_->time; }

  void begin_capture() {
    if (device_->ended != device_->queued) throw UsageError("a capture begins while something is queued");
    device_->capture = std::make_shared<Capture>();
  }
  [[nodiscard]] Graph end_capture() {
    const std::shared_ptr<Capture> capture = std::move(device_->capture);
    device_->capture = nullptr;
    capture->open = false;
    if (device_->captures_fail) throw BackendError(BackendError::Kind::failed, 901, "the capture is invalid");
    return {capture};
  }
  [[nodiscard]] bool capturing() const { return device_->capture != nullptr; }
  void launch(Graph& graph) {
    for (const Command& command : graph.capture->commands) device_->add(command);
    if (device_->launches_fail)
      throw BackendError(BackendError::Kind::failed, 902, "launched, and a call behind it failed");
    graph.capture->runs = true;
    graph.capture->end = device_->queued;
  }

 private:
  static Bytes_ memory(Bytes size) { return std::make_unique<std::byte[]>(static_cast<std::size_t>(size.value)); }
  void copy(std::byte* to, const std::byte* from, Bytes size, Event& event) {
    device_->add([=] { std::memcpy(to, from, static_cast<std::size_t>(size.value)); });
    record(QueueKind::compute, event);
  }
  static std::uint64_t end_of(const Event& event) { return event.capture != nullptr ? event.capture->end : event.at; }

  std::shared_ptr<Device> device_ = std::make_shared<Device>();
  std::shared_ptr<Queue> queue_ = std::make_shared<Queue>(device_.get());
};

static_assert(CapturingBackend<ReplayingBackend>);

}  // namespace swapmm::test
