// SPDX-License-Identifier: Apache-2.0
#pragma once

// swapmm on CUDA, with the runtime API. docs/decisions/0002-backend-seam.md maps the backend concept to the API.
// backends/cuda/README.md describes the backend. Programs that include this header need not be written in CUDA C++.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/cuda/handle.hpp>
#include <swapmm/cuda/links.hpp>
#include <swapmm/runtime/instances.hpp>

namespace swapmm::detail {
class FileTransfer;
}

/// The CUDA backend, component `cuda` of the package.
namespace swapmm::cuda {

namespace detail {
class Session;  // device and streams behind all handles of one backend
class Capture;  // queued work that became a graph
class EncoderParts;
}  // namespace detail

/// Device memory; opaque. The destructor waits for the device.
class SWAPMM_EXPORT DeviceMemory {
 public:
  /// Takes over the memory. The moved-from object is empty.
  DeviceMemory(DeviceMemory&& other) noexcept
      : session_(std::move(other.session_)), data_(std::exchange(other.data_, nullptr)) {}
  /// Takes over the memory, and releases the memory that this object had.
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory() { end(); }

 private:
  friend class Backend;
  DeviceMemory(std::shared_ptr<detail::Session> session, std::byte* data) : session_(std::move(session)), data_(data) {}
  void end() noexcept;

  std::shared_ptr<detail::Session> session_;
  std::byte* data_;
};

/// Host memory: page-locked memory on the NUMA node of the device, or pageable memory. The destructor waits for the
/// device's copies.
class SWAPMM_EXPORT HostMemory {
 public:
  /// Takes over the memory. The moved-from object is empty.
  HostMemory(HostMemory&& other) noexcept
      : session_(std::move(other.session_)),
        data_(std::exchange(other.data_, nullptr)),
        kind_(other.kind_),
        filled_(std::move(other.filled_)) {}
  /// Takes over the memory, and releases the memory that this object had.
  HostMemory& operator=(HostMemory&& other) noexcept;
  ~HostMemory() { end(); }

  /// @{
  /// The first byte. The address does not change while the memory exists.
  [[nodiscard]] std::byte* data() { return data_; }
  [[nodiscard]] const std::byte* data() const { return data_; }
  /// @}

 private:
  friend class Backend;
  HostMemory(std::shared_ptr<detail::Session> session, std::byte* data, HostKind kind)
      : session_(std::move(session)), data_(data), kind_(kind) {}
  void end() noexcept;
  void fills_from(QueueKind queue);
  void record_filled_by(QueueKind queue);
  void await_contents() const;

  std::shared_ptr<detail::Session> session_;
  std::byte* data_;
  HostKind kind_;
  // Of pageable memory: behind the last work of each queue that writes into it. Made when needed.
  std::array<EventHandle, queue_count> filled_;
};

/// Memory of another device, for Options::neighbours: copies go straight from device to device where the driver can do
/// that, and through the host where it cannot. The link is as fast as the way between the two devices.
class SWAPMM_EXPORT Neighbour final : public swapmm::Neighbour {
 public:
  /// Up to `bytes` on the device with that number. Throws UsageError if there is no such device.
  Neighbour(int device, Bytes bytes);
  ~Neighbour() override;

  [[nodiscard]] int device() const { return device_; }  ///< number of the device in the API's order

  /// @{
  /// See swapmm::Neighbour.
  [[nodiscard]] Bytes capacity() const override { return bytes_; }
  [[nodiscard]] Bytes alignment() const override { return Bytes{256}; }
  [[nodiscard]] std::string name() const override { return name_; }
  /// @}

 private:
  int device_;
  Bytes bytes_;
  std::string name_;
};

/// A neighbour for Options::neighbours: see Neighbour.
[[nodiscard]] SWAPMM_EXPORT std::shared_ptr<Neighbour> neighbour(int device, Bytes bytes);

/// Memory on a neighbour. The destructor waits for the manager's device.
class SWAPMM_EXPORT NeighbourMemory {
 public:
  /// Takes over the memory. The moved-from object is empty.
  NeighbourMemory(NeighbourMemory&& other) noexcept
      : session_(std::move(other.session_)),
        data_(std::exchange(other.data_, nullptr)),
        device_(other.device_),
        path_(other.path_) {}
  /// Takes over the memory, and releases the memory that this object had.
  NeighbourMemory& operator=(NeighbourMemory&& other) noexcept;
  ~NeighbourMemory() { end(); }

  /// As Backend::allocate_at() was told.
  [[nodiscard]] std::size_t path() const { return path_; }

 private:
  friend class Backend;
  NeighbourMemory(std::shared_ptr<detail::Session> session, std::byte* data, int device, std::size_t path)
      : session_(std::move(session)), data_(data), device_(device), path_(path) {}
  void end() noexcept;

  std::shared_ptr<detail::Session> session_;
  std::byte* data_;
  int device_;
  std::size_t path_;
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
  explicit EncodedMemory(HostMemory memory) : memory_(std::move(memory)) {}
  HostMemory memory_;
};

/// A place in a DeviceMemory. Does not keep the memory alive.
class Address {
 public:
  [[nodiscard]] std::byte* data() const { return data_; }  ///< the first byte on the device
  [[nodiscard]] Bytes size() const { return size_; }       ///< size of the place
  /// data() as an argument of a raw kernel launch, for Operation::argument(). Refers to this object.
  [[nodiscard]] Argument argument() const { return Argument(data_); }

 private:
  friend class Backend;
  Address(std::byte* data, Bytes size) : data_(data), size_(size) {}
  std::byte* data_;
  Bytes size_;
};

/// Returned by op[tensor]: a pointer to the tensor's first element on the device, for kernels and libraries. While no
/// plan is followed it may differ in the next iteration; do not keep it after the operation.
template <class T>
class View {
 public:
  using value_type = T;  ///< the type of an element
  /// A view of the first `count` elements at that address.
  View(const Address& address, std::size_t count) : data_(reinterpret_cast<T*>(address.data())), count_(count) {}
  /// Empty: no elements, data() is null.
  View() = default;

  [[nodiscard]] T* data() const { return data_; }                         ///< the first element on the device
  [[nodiscard]] std::size_t size() const { return count_; }               ///< number of elements
  [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(T); }  ///< size of the elements
  [[nodiscard]] std::span<T> span() const { return {data_, count_}; }     ///< for kernels that take spans
  /// Converts to data(), for calls such as cublasSgemm(..., op[x], ...).
  operator T*() const { return data_; }  // NOLINT(*-explicit-*): see above

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

/// A slot for a point in a stream; opaque.
class Event {
 private:
  friend class Backend;
  friend class detail::Session;
  explicit Event(EventHandle plain) : plain_(std::move(plain)) {}

  EventHandle plain_;
  EventHandle timed_;                                       // made when times are first asked for
  cudaEvent_t current_ = nullptr;                           // one of the two; null: never recorded
  std::shared_ptr<detail::Capture> capture_;                // recorded into that graph
  std::shared_ptr<swapmm::detail::FileTransfer> transfer_;  // of a read or a write of a file
};

/// What an operation of the second form waits for. Valid while the callable runs. The events are those that op.stream()
/// does not wait for already. Work on another stream must come after what was queued on op.stream() as well, which
/// queue_on() takes care of.
class SWAPMM_EXPORT WaitList {
 public:
  [[nodiscard]] std::size_t size() const { return count_; }  ///< number of events; may be 0
  /// The events.
  [[nodiscard]] std::span<const cudaEvent_t> events() const {
    return {count_ <= few ? first_.data() : all_.data(), count_};
  }
  /// Replaces `all` by the events and one behind what was queued on op.stream() so far: what work on another stream
  /// waits for. Throws BackendError.
  void events_for_other_streams(std::vector<cudaEvent_t>& all) const;
  /// Makes a stream wait for all events, and another one than op.stream() for what was queued there so far. Throws
  /// BackendError.
  void queue_on(cudaStream_t stream) const;

 private:
  friend class Backend;
  static constexpr std::size_t few = 8;  // up to here without an allocation

  void add(cudaEvent_t event) {
    if (count_ < few) {
      first_[count_] = event;
    } else {
      if (count_ == few) all_.assign(first_.begin(), first_.end());
      all_.push_back(event);
    }
    ++count_;
  }

  detail::Session* session_ = nullptr;
  std::size_t count_ = 0;
  std::array<cudaEvent_t, few> first_{};
  std::vector<cudaEvent_t> all_;
};

/// Return value of an operation of the second form: an event that the callable recorded after its work, on any stream
/// of the device. The caller keeps owning the event. Without an event (nullptr) the work must be on op.stream(), which
/// then waits for the list after it.
class NativeEvent {
 public:
  /// An event, or none.
  NativeEvent(cudaEvent_t event = nullptr) : event_(event) {}  // NOLINT(*-explicit-*): what callables return
  /// True if there is an event.
  explicit operator bool() const { return event_ != nullptr; }

 private:
  friend class Backend;
  cudaEvent_t event_;
};

/// The work that was queued between begin_capture() and end_capture(). It can be launched repeatedly.
class SWAPMM_EXPORT Graph {
 public:
  /// Takes over the graph. The moved-from object is empty.
  Graph(Graph&&) noexcept;
  /// Takes over the graph, and destroys the one that this object had.
  Graph& operator=(Graph&&) noexcept;
  /// Waits for the last launch.
  ~Graph();

 private:
  friend class Backend;
  Graph(std::shared_ptr<detail::Session> session, std::shared_ptr<detail::Capture> capture, cudaGraphExec_t graph);
  void end() noexcept;

  std::shared_ptr<detail::Session> session_;
  std::shared_ptr<detail::Capture> capture_;
  cudaGraphExec_t graph_;
};

/// Settings for a Backend.
struct Settings {
  /// The stream for operations, in order with the program's own work. It must belong to the same device; the backend
  /// never destroys it. If none is given, operations run on a stream of swapmm, which does not wait for the legacy
  /// default stream. The legacy default stream works, but cannot be captured. The per-thread default stream is refused,
  /// because it is a different stream in each thread.
  std::optional<cudaStream_t> stream{};
  /// Marks operations, swaps and waits as NVTX ranges for profilers. A range costs a few hundred nanoseconds while a
  /// profiler runs, and almost nothing otherwise.
  bool nvtx = false;
  /// Measures whether the device has one copy engine or two, by copying 8 MiB in both directions at the same time,
  /// instead of relying on what the device reports. Takes some milliseconds and 40 MiB of memory, and waits for the
  /// stream. If the memory is not available, the reported number is used.
  bool measure = true;
};

/// The CUDA backend. Its objects keep the streams alive. The destructor of the last object waits for all queued work.
class SWAPMM_EXPORT Backend {
 public:
  /// @{
  /// See swapmm::Backend.
  using DeviceMemory = cuda::DeviceMemory;
  using HostMemory = cuda::HostMemory;
  using NeighbourMemory = cuda::NeighbourMemory;
  using Encoder = cuda::Encoder;
  using EncodedMemory = cuda::EncodedMemory;
  using Address = cuda::Address;
  using Event = cuda::Event;
  using Queue = cudaStream_t;
  using WaitList = cuda::WaitList;
  using NativeEvent = cuda::NativeEvent;
  using Graph = cuda::Graph;
  template <class T>
  using View = cuda::View<T>;
  /// @}

  /// A backend on the device with that number, in the API's order. Does not change the caller's current device. Throws
  /// UsageError if there is no such device, if it shares the host's memory (swapping would free nothing), or if the
  /// stream belongs to another device. Throws BackendError if a call of the API fails.
  explicit Backend(int device, const Settings& settings = {});
  /// The same, with operations on the program's own stream.
  Backend(int device, cudaStream_t stream) : Backend(device, Settings{stream}) {}

  /// A backend on the device that the environment variable SWAPMM_DEVICE selects by its index or a part of its name,
  /// else on the one with the most memory: see choose(). Prints the choice on std::clog. Throws UsageError with a list
  /// of all devices if none or more than one matches.
  [[nodiscard]] static Backend pick();
  /// The same, and prints the choice on `say`.
  [[nodiscard]] static Backend pick(std::ostream& say, const Settings& settings = {});
  /// A backend on the device that `wanted` selects, in the same way as the environment variable. Empty: the preferred
  /// one.
  [[nodiscard]] static Backend pick(std::string_view wanted, std::ostream& say, const Settings& settings = {});

  [[nodiscard]] int device() const;  ///< number of the device in the API's order

  /// The budget of a manager if Options::device_budget is 0: the free memory less a reserve for the libraries and the
  /// driver. The reserve is a 64th of the device's memory, but at least 256 MiB. Throws BackendError.
  [[nodiscard]] Bytes default_device_budget() const;
  /// Measures the speed of copies, and how much they slow down a kernel that runs at the same time: see Links. Takes
  /// about a tenth of a second. Meanwhile it uses three times `piece` of device memory and twice `piece` of host
  /// memory. Waits for the device; nothing else should run there.
  [[nodiscard]] Links measure_links(Bytes piece = Bytes{std::uint64_t{64} << 20U});

  /// @{
  /// See swapmm::Backend.
  [[nodiscard]] const Capabilities& capabilities() const;
  [[nodiscard]] bool can_wait_for(const Backend&) const { return true; }  ///< see TurnTakingBackend: of any device

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

  /// @{
  /// See swapmm::CapturingBackend.
  void begin_capture();
  [[nodiscard]] Graph end_capture();
  [[nodiscard]] bool capturing() const;
  void launch(Graph& graph);
  /// @}

  /// Exists around an operation's callable. It makes the backend's device the current one of the thread, finds failed
  /// kernel launches, and marks a range for profilers. A pending error that does not stick is cleared first, because it
  /// would hide the operation's own error.
  class OperationScope {
   public:
    /// Begins the scope. `name` is the name of the operation, and must outlive the scope.
    OperationScope(Backend& backend, std::string_view name);
    OperationScope(const OperationScope&) = delete;
    OperationScope& operator=(const OperationScope&) = delete;
    ~OperationScope();
    /// Throws BackendError if a launch in the callable failed and the callable did not ask the API for the error.
    void check();

   private:
    const detail::Session& session_;
    std::string_view name_;
    int device_before_ = -1;  // the thread's; -1: it was the backend's
    bool checked_ = false;
  };

  /// Exists around the queueing of a copy or a wait, and around a wait of the host. Marks a range for profilers.
  class Annotation {
   public:
    /// Begins the range.
    Annotation(const Backend& backend, AnnotationKind kind, std::string_view name);
    Annotation(const Annotation&) = delete;
    Annotation& operator=(const Annotation&) = delete;
    ~Annotation();

   private:
    bool on_;
  };

 private:
  void copy(QueueKind queue, const Address& to, Bytes to_offset, const HostMemory& from, Bytes from_offset, Bytes size,
            std::span<const Event* const> waits, Event& event);
  void copy(QueueKind queue, HostMemory& to, Bytes to_offset, const Address& from, Bytes from_offset, Bytes size,
            std::span<const Event* const> waits, Event& event);
  void queue_transfer(QueueKind queue, std::shared_ptr<swapmm::detail::FileTransfer> transfer, HostMemory* filled,
                      std::span<const Event* const> waits, Event& event);

  std::shared_ptr<detail::Session> session_;
};

static_assert(swapmm::Backend<Backend>);
static_assert(swapmm::FileBackend<Backend>);
static_assert(swapmm::NeighbourBackend<Backend>);
static_assert(swapmm::CapturingBackend<Backend>);
static_assert(swapmm::DeviceCopyBackend<Backend>);

}  // namespace swapmm::cuda

// Compiled in the library, and not in each file that uses a manager.
namespace swapmm::runtime {
SWAPMM_RUNTIME_INSTANCES(extern template, SWAPMM_TEMPLATE_EXPORT, cuda::Backend);
}  // namespace swapmm::runtime
