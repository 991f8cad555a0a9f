// SPDX-License-Identifier: Apache-2.0
#pragma once

// swapmm on OpenCL 1.2 and later. docs/decisions/0002-backend-seam.md maps the backend concept to the API.
// backends/opencl/README.md describes the backend. Boost.Compute and CL/opencl.hpp have headers of their own in this
// folder.

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
#include <swapmm/codec/zero_format.hpp>
#include <swapmm/opencl/handle.hpp>
#include <swapmm/runtime/instances.hpp>

/// The OpenCL backend, component `opencl` of the package.
namespace swapmm::opencl {

namespace detail {
class Session;   // context, device and queues behind all handles of one backend
struct FileJob;  // a read or a write of a file
class NeighbourLink;
class EncoderParts;
}  // namespace detail

/// A buffer on the device; opaque. Some drivers destroy a buffer a moment after its release; allocate() waits for that.
class SWAPMM_EXPORT DeviceMemory {
 public:
  /// Takes over the buffer. The moved-from object is empty.
  DeviceMemory(DeviceMemory&&) noexcept = default;
  /// Takes over the buffer, and releases the one that this object had.
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory();

 private:
  friend class Backend;
  DeviceMemory(Handle<cl_mem> buffer, Bytes size);
  void end() noexcept;
  Handle<cl_mem> buffer_;
  Bytes size_;
  bool followed_;
};

/// Host memory. Pinned memory is a buffer that the driver allocated in host memory (CL_MEM_ALLOC_HOST_PTR), mapped as
/// long as it exists. The destructor waits for copies that still use the bytes.
class SWAPMM_EXPORT HostMemory {
 public:
  /// Takes over the memory. The moved-from object is empty.
  HostMemory(HostMemory&&) noexcept = default;
  /// Takes over the memory, and releases the memory that this object had.
  HostMemory& operator=(HostMemory&& other) noexcept;
  ~HostMemory();

  /// @{
  /// The first byte. The address does not change while the memory exists.
  [[nodiscard]] std::byte* data() { return data_; }
  [[nodiscard]] const std::byte* data() const { return data_; }
  /// @}

 private:
  friend class Backend;
  HostMemory(std::shared_ptr<detail::Session> session, Handle<cl_mem> pinned, std::byte* data);
  void end() noexcept;
  void await_contents() const;

  std::shared_ptr<detail::Session> session_;  // none: moved from
  Handle<cl_mem> pinned_;                     // none: pageable
  std::byte* data_;
  mutable std::array<Handle<cl_event>, queue_count> last_use_;
};

/// A buffer on a neighbour; opaque. The destructor of a neighbour's last one waits for all copies.
class SWAPMM_EXPORT NeighbourMemory {
 public:
  /// As Backend::allocate_at() was told.
  [[nodiscard]] std::size_t path() const;

 private:
  friend class Backend;
  NeighbourMemory(std::shared_ptr<detail::NeighbourLink> link, Handle<cl_mem> buffer);
  std::shared_ptr<detail::NeighbourLink> link_;
  Handle<cl_mem> buffer_;
};

/// The codec, and the device memory that values pass through on their way; opaque.
class SWAPMM_EXPORT Encoder {
 public:
  /// Takes over everything. The moved-from object may only be destroyed.
  Encoder(Encoder&&) noexcept;
  /// Takes over everything, and releases what this object had.
  Encoder& operator=(Encoder&&) noexcept;
  ~Encoder();

 private:
  friend class Backend;
  explicit Encoder(std::unique_ptr<detail::EncoderParts> parts);
  std::unique_ptr<detail::EncoderParts> parts_;
};

/// Host memory for an encoded value; opaque.
class EncodedMemory {
 private:
  friend class Backend;
  explicit EncodedMemory(Handle<cl_mem> buffer) : buffer_(std::move(buffer)) {}
  Handle<cl_mem> buffer_;  // in host memory, and not mapped
};

/// A place in a buffer: a sub-buffer, or the whole buffer if the place covers all of it. Keeps the memory alive.
class Address {
 public:
  [[nodiscard]] cl_mem buffer() const { return buffer_.get(); }  ///< the buffer; the caller gets no reference
  [[nodiscard]] Bytes size() const { return size_; }             ///< size of the place
  /// buffer() as an argument of a raw kernel launch, for Operation::argument(). Refers to this object.
  [[nodiscard]] Argument argument() const { return Argument(buffer_.object()); }

 private:
  friend class Backend;
  Address(Handle<cl_mem> buffer, Bytes size) : buffer_(std::move(buffer)), size_(size) {}
  Handle<cl_mem> buffer_;
  Bytes size_;
};

/// Returned by op[tensor]: a cl_mem whose first byte is the first byte of the tensor. Use it as a kernel argument, or
/// pass it to a library with offset 0. It may differ in the next iteration; do not keep it after the operation.
template <class T>
class View {
 public:
  using value_type = T;  ///< the type of an element
  /// A view of the first `count` elements at that address.
  View(const Address& address, std::size_t count) : buffer_(address.buffer()), count_(count) {}
  /// Empty: no elements, buffer() is null.
  View() = default;

  [[nodiscard]] cl_mem buffer() const { return buffer_; }                 ///< the buffer; the caller gets no reference
  [[nodiscard]] std::size_t size() const { return count_; }               ///< number of elements
  [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(T); }  ///< size of the elements

 private:
  cl_mem buffer_ = nullptr;
  std::size_t count_ = 0;
};

/// A slot for a cl_event; opaque.
class Event {
 private:
  friend class Backend;
  Event() = default;
  Handle<cl_event> event_;                // none: never recorded
  std::shared_ptr<detail::FileJob> job_;  // of a read or a write of a file, whose event_ tells only that it has ended
  bool timed_ = false;
  std::optional<std::chrono::steady_clock::time_point> host_time_;  // see Session::host_timed
};

/// The events that an operation of the second form waits for, as the API's calls take them. Valid while the callable
/// runs.
class WaitList {
 public:
  [[nodiscard]] cl_uint size() const { return count_; }  ///< number of events; may be 0
  /// The events; null if there are none, as the API requires.
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

/// Return value of an operation of the second form: the event for the end of its work. Without an event (nullptr) the
/// queue itself waits for the list after the work, and a marker is queued if the plan needs a point there. An event
/// saves these two commands.
class NativeEvent {
 public:
  /// Takes over the reference to the event.
  NativeEvent(cl_event event = nullptr) : event_(event) {}  // NOLINT(*-explicit-*)
  /// True if there is an event.
  explicit operator bool() const { return static_cast<bool>(event_); }

 private:
  friend class Backend;
  Handle<cl_event> event_;
};

/// The OpenCL backend. Works with any device of OpenCL 1.2 or later that can hold a buffer. Its objects keep the
/// context and the queues alive. The destructor of the last object waits for all queued work.
class SWAPMM_EXPORT Backend {
 public:
  /// @{
  /// See swapmm::Backend.
  using DeviceMemory = opencl::DeviceMemory;
  using HostMemory = opencl::HostMemory;
  using NeighbourMemory = opencl::NeighbourMemory;
  using Encoder = opencl::Encoder;
  using EncodedMemory = opencl::EncodedMemory;
  using Address = opencl::Address;
  using Event = opencl::Event;
  using Queue = cl_command_queue;
  using WaitList = opencl::WaitList;
  using NativeEvent = opencl::NativeEvent;
  template <class T>
  using View = opencl::View<T>;
  /// @}

  /// A backend on the program's own context, to which it takes a reference. With a queue of that context and device,
  /// operations run on this queue, in order with the program's own work; without one, on a queue of swapmm. If the
  /// queue has no CL_QUEUE_PROFILING_ENABLE, the library waits for each operation while it observes, in order to time
  /// it. Throws UsageError if the context does not have the device, if the queue belongs to another context or device,
  /// or if the queue is out of order.
  Backend(cl_context context, cl_device_id device, cl_command_queue queue = nullptr);

  /// A backend on the device that the environment variable SWAPMM_DEVICE selects by its index or a part of its name,
  /// else on the preferred one: see choose(). Prints the choice on std::clog. Throws UsageError with a list of all
  /// devices if none or more than one matches.
  [[nodiscard]] static Backend pick();
  /// The same, and prints the choice on `say`.
  [[nodiscard]] static Backend pick(std::ostream& say);
  /// A backend on the device that `wanted` selects, in the same way as the environment variable. Empty: the preferred
  /// one.
  [[nodiscard]] static Backend pick(std::string_view wanted, std::ostream& say);

  /// Backends on devices by their positions in devices(), in that order; a position may occur again. Those of one
  /// platform have one context, so they can wait for each other (see SharedLinks), and each can be another one's
  /// neighbour. Prints the devices on `say`. Throws UsageError with a list of all devices if there is none at a
  /// position.
  [[nodiscard]] static std::vector<Backend> on_devices(std::span<const std::size_t> positions, std::ostream& say);

  [[nodiscard]] cl_context context() const;   ///< the context; the caller gets no reference
  [[nodiscard]] cl_device_id device() const;  ///< the device of queues and memory

  /// @{
  /// See swapmm::Backend.
  [[nodiscard]] const Capabilities& capabilities() const;
  [[nodiscard]] bool can_wait_for(
      const Backend& other) const;  ///< see TurnTakingBackend: if both have the same context

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
  /// Whether the command that the event stands for is on queue(). A backend has this if what waits on its queues does
  /// not tell that it waited for work that failed.
  [[nodiscard]] bool is_of_queue(const NativeEvent& event);

  [[nodiscard]] EventStatus status(const Event& event);
  void wait(const Event& event);
  void finish();

  void set_timing(bool on);
  [[nodiscard]] std::optional<std::chrono::nanoseconds> elapsed(const Event& from, const Event& to);
  /// @}

 private:
  void recorded(Event& event, cl_event native);
  void copy(QueueKind queue, const Address& to, Bytes to_offset, const HostMemory& from, Bytes from_offset, Bytes size,
            std::span<const Event* const> waits, Event& event);
  void copy(QueueKind queue, HostMemory& to, Bytes to_offset, const Address& from, Bytes from_offset, Bytes size,
            std::span<const Event* const> waits, Event& event);
  void queue_job(QueueKind queue, std::shared_ptr<detail::FileJob> job, const HostMemory& host,
                 std::span<const Event* const> waits, Event& event);

  std::shared_ptr<detail::Session> session_;
};

static_assert(swapmm::FileBackend<Backend> && swapmm::NeighbourBackend<Backend> && swapmm::EncodingBackend<Backend>);
static_assert(swapmm::DeviceCopyBackend<Backend>);

}  // namespace swapmm::opencl

// Compiled in the library, and not in each file that uses a manager.
namespace swapmm::runtime {
SWAPMM_RUNTIME_INSTANCES(extern template, SWAPMM_TEMPLATE_EXPORT, opencl::Backend);
}  // namespace swapmm::runtime
