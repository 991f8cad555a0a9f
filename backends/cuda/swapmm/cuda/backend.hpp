// SPDX-License-Identifier: Apache-2.0
#pragma once

// swapmm on CUDA, by the runtime API. docs/decisions/0002-backend-seam.md tells how the seam maps to the API, README.md
// beside this folder what is particular to it. Needs no CUDA language in the program that includes it.

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

/// The CUDA backend, component `cuda` of the package.
namespace swapmm::cuda {

namespace detail {
class Session;  // device and streams behind all handles of one backend
class Capture;  // queued work that became a graph
}  // namespace detail

/// Bytes on the device; opaque. The destructor waits for the device.
class SWAPMM_EXPORT DeviceMemory {
 public:
  /// The other one is empty then.
  DeviceMemory(DeviceMemory&& other) noexcept
      : session_(std::move(other.session_)), data_(std::exchange(other.data_, nullptr)) {}
  /// Ends what it had, as destruction does.
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory() { end(); }

 private:
  friend class Backend;
  DeviceMemory(std::shared_ptr<detail::Session> session, std::byte* data) : session_(std::move(session)), data_(data) {}
  void end() noexcept;

  std::shared_ptr<detail::Session> session_;
  std::byte* data_;
};

/// Page-locked memory on the NUMA node of the device, or pageable memory. The destructor waits for the device's copies.
class SWAPMM_EXPORT HostMemory {
 public:
  /// The other one is empty then.
  HostMemory(HostMemory&& other) noexcept
      : session_(std::move(other.session_)), data_(std::exchange(other.data_, nullptr)), kind_(other.kind_) {}
  /// Ends what it had, as destruction does.
  HostMemory& operator=(HostMemory&& other) noexcept;
  ~HostMemory() { end(); }

  /// @{
  /// The first byte; the same for as long as the memory exists.
  [[nodiscard]] std::byte* data() { return data_; }
  [[nodiscard]] const std::byte* data() const { return data_; }
  /// @}

 private:
  friend class Backend;
  HostMemory(std::shared_ptr<detail::Session> session, std::byte* data, HostKind kind)
      : session_(std::move(session)), data_(data), kind_(kind) {}
  void end() noexcept;

  std::shared_ptr<detail::Session> session_;
  std::byte* data_;
  HostKind kind_;
};

/// A place in a DeviceMemory, which it does not keep alive.
class Address {
 public:
  [[nodiscard]] std::byte* data() const { return data_; }  ///< on the device
  [[nodiscard]] Bytes size() const { return size_; }       ///< of the place
  /// data(), for Operation::argument(). Refers to this object.
  [[nodiscard]] Argument argument() const { return Argument(data_); }

 private:
  friend class Backend;
  Address(std::byte* data, Bytes size) : data_(data), size_(size) {}
  std::byte* data_;
  Bytes size_;
};

/// What op[tensor] gives: a pointer to the tensor's first element on the device, for kernels and libraries. It may be
/// another one in the next iteration while no plan is followed; keep it no longer than the operation.
template <class T>
class View {
 public:
  using value_type = T;  ///< of an element
  /// The first `count` elements at that address.
  View(const Address& address, std::size_t count) : data_(reinterpret_cast<T*>(address.data())), count_(count) {}
  /// Empty: no elements, data() is null.
  View() = default;

  [[nodiscard]] T* data() const { return data_; }                         ///< on the device
  [[nodiscard]] std::size_t size() const { return count_; }               ///< elements
  [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(T); }  ///< of the elements
  [[nodiscard]] std::span<T> span() const { return {data_, count_}; }     ///< for kernels that take spans
  /// data(), where a pointer is asked for: cublasSgemm(..., op[x], ...).
  operator T*() const { return data_; }  // NOLINT(*-explicit-*): see above

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

/// A slot for a point in a stream: an event without times, and one with times where those were asked for.
class Event {
 private:
  friend class Backend;
  friend class detail::Session;
  explicit Event(EventHandle plain) : plain_(std::move(plain)) {}

  EventHandle plain_;
  EventHandle timed_;                         // made when times are first asked for
  cudaEvent_t current_ = nullptr;             // one of the two; null: never recorded
  std::shared_ptr<detail::Capture> capture_;  // recorded into that graph
};

/// The events an operation of the second form waits for. Valid while the operation runs.
class SWAPMM_EXPORT WaitList {
 public:
  [[nodiscard]] std::size_t size() const { return count_; }  ///< events; may be 0
  /// The events.
  [[nodiscard]] std::span<const cudaEvent_t> events() const {
    return {count_ <= few ? first_.data() : all_.data(), count_};
  }
  /// Has a stream of the caller's wait for all of them. Throws BackendError.
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

  std::size_t count_ = 0;
  std::array<cudaEvent_t, few> first_{};
  std::vector<cudaEvent_t> all_;
};

/// What an operation of the second form returns: an event that it recorded behind its work, on whatever stream of the
/// device; it stays the caller's. Without an event (nullptr) the work is on op.stream(), which then waits for the list
/// behind it.
class NativeEvent {
 public:
  /// An event, or none.
  NativeEvent(cudaEvent_t event = nullptr) : event_(event) {}  // NOLINT(*-explicit-*): what callables return
  /// There is an event.
  explicit operator bool() const { return event_ != nullptr; }

 private:
  friend class Backend;
  cudaEvent_t event_;
};

/// What was queued between begin_capture() and end_capture(), to be run again and again.
class SWAPMM_EXPORT Graph {
 public:
  /// The other one is empty then.
  Graph(Graph&&) noexcept;
  /// Ends what it had, as destruction does.
  Graph& operator=(Graph&&) noexcept;
  /// Waits for its last run.
  ~Graph();

 private:
  friend class Backend;
  Graph(std::shared_ptr<detail::Session> session, std::shared_ptr<detail::Capture> capture, cudaGraphExec_t graph);
  void end() noexcept;

  std::shared_ptr<detail::Session> session_;
  std::shared_ptr<detail::Capture> capture_;
  cudaGraphExec_t graph_;
};

/// How a Backend is made.
struct Settings {
  /// Operations run there, in order with what the program queues itself; none: on a stream of swapmm's, which does not
  /// wait for the legacy default stream. The backend never destroys it. It is of the same device. The legacy default
  /// stream works, and cannot be captured; the per-thread one is another in each thread, and is refused.
  std::optional<cudaStream_t> stream{};
  /// NVTX ranges around operations, swaps and waits, for profilers. A few hundred nanoseconds each while one listens,
  /// nearly nothing otherwise.
  bool nvtx = false;
  /// Copies 8 MiB both ways at once to see whether the device has one copy engine or two, instead of believing what it
  /// says. Some milliseconds, and 40 MiB for as long; waits for the stream. Where that much cannot be had, it is
  /// believed.
  bool measure = true;
};

/// The backend. Its objects keep the streams alive; the last of them waits for what is queued.
class SWAPMM_EXPORT Backend {
 public:
  /// @{
  /// As swapmm::Backend names it.
  using DeviceMemory = cuda::DeviceMemory;
  using HostMemory = cuda::HostMemory;
  using Address = cuda::Address;
  using Event = cuda::Event;
  using Queue = cudaStream_t;
  using WaitList = cuda::WaitList;
  using NativeEvent = cuda::NativeEvent;
  using Graph = cuda::Graph;
  template <class T>
  using View = cuda::View<T>;
  /// @}

  /// On the device with that number, in the API's order. The caller's current device stays as it is. Throws UsageError
  /// where there is no such device, where it shares the host's memory (swapping would free nothing), or where the
  /// stream is another device's; BackendError.
  explicit Backend(int device, const Settings& settings = {});
  /// With operations on the program's own stream.
  Backend(int device, cudaStream_t stream) : Backend(device, Settings{stream}) {}

  /// On the device that the environment variable SWAPMM_DEVICE names by its index or a part of its name, else on the
  /// one with the most memory: see choose(). Says which on std::clog, or on `say`. Throws UsageError with a list of all
  /// devices.
  [[nodiscard]] static Backend pick();
  /// The same, saying it on `say`.
  [[nodiscard]] static Backend pick(std::ostream& say, const Settings& settings = {});
  /// On the device that `wanted` names, as the environment variable would; empty: the best one.
  [[nodiscard]] static Backend pick(std::string_view wanted, std::ostream& say, const Settings& settings = {});

  [[nodiscard]] int device() const;  ///< its number in the API's order

  /// What a manager may use where Options::device_budget is not given: what is free now, less a reserve for the
  /// libraries and the driver of a 64th of the memory, 256 MiB at least. Throws BackendError.
  [[nodiscard]] Bytes default_device_budget() const;
  /// Measures what copies take, and what they cost a kernel beside them: see Links. About a tenth of a second, and
  /// three times `piece` on the device and twice on the host for as long. Waits for the device; nothing else should run
  /// there.
  [[nodiscard]] Links measure_links(Bytes piece = Bytes{std::uint64_t{64} << 20U});

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

  /// @{
  /// As swapmm::CapturingBackend says.
  void begin_capture();
  [[nodiscard]] Graph end_capture();
  [[nodiscard]] bool capturing() const;
  void launch(Graph& graph);
  /// @}

  /// Around an operation's callable: the backend's device is the current one of the thread, kernel launches that failed
  /// are found, and profilers see a range. An error that was there before and does not stick is forgotten, or it would
  /// hide the operation's own.
  class OperationScope {
   public:
    /// Begins; `name` is the operation's and outlives the scope.
    OperationScope(Backend& backend, std::string_view name);
    OperationScope(const OperationScope&) = delete;
    OperationScope& operator=(const OperationScope&) = delete;
    ~OperationScope();
    /// Throws BackendError where a launch in the callable failed and nobody asked the API for it.
    void check();

   private:
    const detail::Session& session_;
    std::string_view name_;
    int device_before_ = -1;  // the thread's; -1: it was the backend's
    bool checked_ = false;
  };

  /// Around the queueing of a copy or a wait, and around a wait of the host: profilers see a range.
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
  std::shared_ptr<detail::Session> session_;
};

static_assert(swapmm::Backend<Backend>);
static_assert(swapmm::CapturingBackend<Backend>);

}  // namespace swapmm::cuda
