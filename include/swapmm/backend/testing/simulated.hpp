// SPDX-License-Identifier: Apache-2.0
#pragma once

// A full backend on plain memory, for tests and for planning. It has real bytes, three queues, a virtual clock, an
// order of steps that is drawn from a seed, and a checker. If a program misses a wait, some seeds give wrong bytes, and
// the checker reports it for every seed.

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
#include <swapmm/backend/testing/simulated/neighbour.hpp>
#include <swapmm/backend/testing/simulated/options.hpp>
#include <swapmm/backend/testing/simulated/touch.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/runtime/instances.hpp>

/// The simulated backend: a device that is simulated on plain memory.
namespace swapmm::simulated {

namespace detail {

/// Owns one object of a device, and releases it with the given function.
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

/// Device memory; opaque.
class DeviceMemory {
 private:
  friend class Backend;
  explicit DeviceMemory(detail::Claim<&detail::Device::release> claim) : claim_(std::move(claim)) {}
  detail::Claim<&detail::Device::release> claim_;
};

/// Host memory.
class HostMemory {
 public:
  /// @{
  /// The first byte. The address does not change while the memory exists.
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

/// Memory of a neighbour.
class NeighbourMemory {
 public:
  /// As Backend::allocate_at() was told.
  [[nodiscard]] std::size_t path() const { return path_; }

 private:
  friend class Backend;
  NeighbourMemory(detail::Claim<&detail::Device::release_host> claim, std::size_t path)
      : claim_(std::move(claim)), path_(path) {}
  detail::Claim<&detail::Device::release_host> claim_;
  std::size_t path_;
};

/// Device memory for values on their way; opaque.
class Encoder {
 private:
  friend class Backend;
  Encoder(DeviceMemory out, DeviceMemory in) : out_(std::move(out)), in_(std::move(in)) {}
  DeviceMemory out_;
  DeviceMemory in_;
};

/// Host memory for an encoded value; opaque.
class EncodedMemory {
 private:
  friend class Backend;
  explicit EncodedMemory(HostMemory memory) : memory_(std::move(memory)) {}
  HostMemory memory_;
};

/// A place in a DeviceMemory. Does not keep its memory alive. The checker reports the use of an address after its
/// memory was released.
class Address {
 public:
  /// The bytes. Only for kernels, while they run.
  [[nodiscard]] std::byte* data() const { return place_.data; }
  /// @{
  /// The number of bytes.
  [[nodiscard]] std::size_t size() const { return place_.size; }
  [[nodiscard]] std::uint64_t bytes() const { return place_.size; }
  /// @}
  /// data() as an argument of a raw kernel launch, for Operation::argument(). Refers to this object.
  [[nodiscard]] Argument argument() const { return Argument(place_.data); }
  /// The place, for Touch.
  [[nodiscard]] const Place& place() const { return place_; }

 private:
  friend class Backend;
  Address(detail::Claim<&detail::Device::release_address> claim, const Place& place)
      : claim_(std::move(claim)), place_(place) {}
  detail::Claim<&detail::Device::release_address> claim_;
  Place place_;
};

/// A tensor as a kernel sees it: `size()` elements of T. Copyable. Refers to the place, not to the Address.
template <class T>
class View {
 public:
  /// The first `count` elements at that address.
  View(const Address& address, std::size_t count) : place_(address.place()), count_(count) {}
  /// Empty: no elements, data() is null.
  View() = default;

  /// The number of elements.
  [[nodiscard]] std::size_t size() const { return count_; }
  /// The size of the elements in bytes.
  [[nodiscard]] std::uint64_t bytes() const { return count_ * sizeof(T); }
  /// @{
  /// The elements. Only for kernels, while they run. Indices are not checked.
  [[nodiscard]] T* data() const { return reinterpret_cast<T*>(place_.data); }
  [[nodiscard]] T& operator[](std::size_t i) const { return data()[i]; }
  [[nodiscard]] T* begin() const { return data(); }
  [[nodiscard]] T* end() const { return data() + count_; }
  /// @}
  /// The place, for Touch.
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

/// The points that a launch waits for. Allocates only if there are more than `in_place`.
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

/// The touches of one launch: a braced list, or anything that converts to a span of them.
class Touches {
 public:
  /// @{
  /// Refers to the argument. For use as a function argument only.
  Touches(std::initializer_list<Touch> list) : all_(list.begin(), list.size()) {}  // NOLINT(*-explicit-*)
  template <std::convertible_to<std::span<const Touch>> R>
  Touches(const R& range) : all_(range) {}  // NOLINT(*-explicit-*)
  /// @}

  /// All touches.
  [[nodiscard]] std::span<const Touch> all() const { return all_; }

 private:
  std::span<const Touch> all_;
};

/// The compute queue. A launch queues a kernel that takes `duration` of virtual time and touches the bytes that it
/// names. The kernel runs `body()` in one step, or `read()` and `write()` in two steps, between which other queues may
/// run. If a body throws, the kernel fails: the work up to the next event of the queue is not done, and that event
/// reports the failure. Bodies of up to Body::in_place_bytes allocate nothing.
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
  /// The second form: queues the kernel after the wait list, and returns its event.
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

/// The simulated backend. Its objects keep the device alive. Work that is still queued when the last one is destroyed
/// is discarded.
class SWAPMM_EXPORT Backend {
 public:
  /// @{
  /// See swapmm::Backend.
  using DeviceMemory = simulated::DeviceMemory;
  using HostMemory = simulated::HostMemory;
  using NeighbourMemory = simulated::NeighbourMemory;
  using Encoder = simulated::Encoder;
  using EncodedMemory = simulated::EncodedMemory;
  using Address = simulated::Address;
  using Event = simulated::Event;
  using Queue = simulated::Queue;
  using WaitList = simulated::WaitList;
  using NativeEvent = simulated::NativeEvent;
  template <class T>
  using View = simulated::View<T>;
  /// @}

  /// Makes a new device, and allocates its device memory at once.
  explicit Backend(const Options& options = {});

  /// @{
  /// See swapmm::Backend.
  [[nodiscard]] const Capabilities& capabilities() const;

  [[nodiscard]] DeviceMemory allocate(Bytes size);
  [[nodiscard]] HostMemory allocate_host(Bytes size, HostKind kind);
  [[nodiscard]] Address address(DeviceMemory& memory, Bytes offset, Bytes size);
  [[nodiscard]] Event make_event();

  void copy_to_device(const Address& to, const HostMemory& from, Bytes from_offset, Bytes size,
                      std::span<const Event* const> waits, Event& event);
  void copy_to_host(HostMemory& to, Bytes to_offset, const Address& from, Bytes size,
                    std::span<const Event* const> waits, Event& event);

  void copy_part_to_device(const Address& to, Bytes to_offset, const HostMemory& from, Bytes from_offset, Bytes size,
                           std::span<const Event* const> waits, Event& event);
  void copy_part_to_host(HostMemory& to, Bytes to_offset, const Address& from, Bytes from_offset, Bytes size,
                         std::span<const Event* const> waits, Event& event);
  void read_file(FileMemory& file, Bytes file_offset, HostMemory& to, Bytes to_offset, Bytes size,
                 std::span<const Event* const> waits, Event& event);
  void write_file(FileMemory& file, Bytes file_offset, const HostMemory& from, Bytes from_offset, Bytes size,
                  std::span<const Event* const> waits, Event& event);

  [[nodiscard]] NeighbourMemory allocate_at(const swapmm::Neighbour& neighbour, Bytes size, std::size_t path);
  void copy_from_neighbour(const Address& to, const NeighbourMemory& from, Bytes from_offset, Bytes size,
                           std::span<const Event* const> waits, Event& event);
  void copy_to_neighbour(NeighbourMemory& to, Bytes to_offset, const Address& from, Bytes size,
                         std::span<const Event* const> waits, Event& event);
  void read_neighbour(const NeighbourMemory& from, Bytes offset, std::span<std::byte> to);
  void write_neighbour(NeighbourMemory& to, Bytes offset, std::span<const std::byte> from);

  [[nodiscard]] Encoder make_encoder(Bytes largest);
  [[nodiscard]] EncodedMemory allocate_encoded(const ZeroElements& elements);
  void copy_encoded_to_host(Encoder& encoder, EncodedMemory& to, const Address& from, const ZeroElements& elements,
                            std::span<const Event* const> waits, Event& event);
  void copy_encoded_to_device(Encoder& encoder, const Address& to, const EncodedMemory& from,
                              const ZeroElements& elements, std::span<const Event* const> waits, Event& event);
  void read_encoded(const EncodedMemory& from, const ZeroElements& elements, Bytes offset, std::span<std::byte> to);
  void write_encoded(EncodedMemory& to, const ZeroElements& elements, Bytes offset, std::span<const std::byte> from);

  void copy_on_device(const Address& to, Bytes to_offset, const Address& from, Bytes from_offset, Bytes size);

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

  /// See TurnTakingBackend: true if both have one SharedClock.
  [[nodiscard]] bool can_wait_for(const Backend& other) const;

  // Optional functions beyond the concept. Callers look for them with `if constexpr (requires ...)`.

  /// Tells the checker that the host reads or writes these bytes now, not through a copy.
  void note_host_access(const HostMemory& memory, Bytes offset, Bytes size, bool write);
  /// Delays the next command on the queue until nothing else can run. Not in virtual time.
  void delay(QueueKind queue);
  /// Makes the next command on the queue fail when it is its turn, without doing its work.
  void fail(QueueKind queue);

  // For tests.

  /// Lets the device run up to `count` steps (in virtual time: commands). Returns the number of steps that it ran.
  std::uint64_t step(std::uint64_t count = 1);
  void drain();                                        ///< step() until nothing is queued
  [[nodiscard]] std::chrono::nanoseconds now() const;  ///< the host's virtual time
  /// Lets the host's virtual time pass, to `until` at least, as if the host computed. Only with Order::virtual_time.
  void pass_time(std::chrono::nanoseconds until);
  /// Counts of the calls and objects so far.
  [[nodiscard]] const Counters& counters() const;
  /// A hash of all steps so far, and of their position between the calls of the host.
  [[nodiscard]] std::uint64_t trace_hash() const;
  [[nodiscard]] const std::vector<std::string>& violations()
      const;                                               ///< the first 100 violations that the checker found
  [[nodiscard]] std::uint64_t violation_count() const;     ///< number of all violations
  void clear_violations();                                 ///< forgets all violations
  [[nodiscard]] const std::vector<LogEntry>& log() const;  ///< with Options::log: all commands so far

 private:
  struct Shared;  // the device, and the queue that user code sees
  struct Copy;    // one copy between the device and another memory
  void queue(const Copy& copy, std::span<const Event* const> waits, Event& event);

  std::shared_ptr<Shared> shared_;
};

static_assert(swapmm::FileBackend<Backend> && swapmm::NeighbourBackend<Backend> && swapmm::EncodingBackend<Backend>);
static_assert(swapmm::DeviceCopyBackend<Backend> && swapmm::TurnTakingBackend<Backend>);

}  // namespace swapmm::simulated

// Compiled in the library, and not in each file that uses a manager.
namespace swapmm::runtime {
SWAPMM_RUNTIME_INSTANCES(extern template, SWAPMM_TEMPLATE_EXPORT, simulated::Backend);
}  // namespace swapmm::runtime
