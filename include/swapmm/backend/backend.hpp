// SPDX-License-Identifier: Apache-2.0
#pragma once

// The seam between swapmm and an API such as OpenCL or CUDA. docs/decisions/0002-backend-seam.md maps each
// function to both. A backend is a cheap handle: copies refer to the same device and queues, and the last copy
// or the last object made from it keeps what it needs alive.

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include <swapmm/base/bytes.hpp>

namespace swapmm {

/// Each backend has three in-order queues. Order between queues comes from events alone.
enum class QueueKind : std::uint8_t { compute, h2d, d2h };
inline constexpr std::size_t queue_count = 3;  ///< of QueueKind
/// 0 to 2.
[[nodiscard]] constexpr std::size_t index(QueueKind queue) { return static_cast<std::size_t>(queue); }

/// One kernel argument as raw launches of an API take it: the address and the size of a value, such as a cl_mem or a
/// device pointer. Refers to the value, which must exist: one from Operation::argument() does while the operation runs.
class Argument {
 public:
  /// Of that value.
  template <class T>
    requires(!std::same_as<T, Argument>)
  explicit Argument(const T& value) : data_(&value), size_(sizeof(T)) {}
  template <class T>
    requires(!std::same_as<T, Argument>)
  explicit Argument(const T&&) = delete;

  /// Where the value is. Not const because the array of cudaLaunchKernel() is not; APIs only read there.
  [[nodiscard]] void* data() const { return const_cast<void*>(data_); }
  /// In bytes.
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  const void* data_;
  std::size_t size_;
};

/// Of host memory.
enum class HostKind : std::uint8_t {
  pinned,    ///< page-locked: copies are asynchronous and fast
  pageable,  ///< always there; a copy may block the host
};

/// Of the work up to an event: not ended, ended well, ended badly.
enum class EventStatus : std::uint8_t { running, complete, failed };

/// What the library is about to do, for profilers that show ranges. See `Annotation` in docs/backends.md.
enum class AnnotationKind : std::uint8_t {
  swap_in,      ///< queueing a copy of that tensor
  swap_out,     ///< likewise
  device_wait,  ///< the compute queue waits for copies, before that operation
  host_wait,    ///< the host waits for the device
};

/// What a backend can do: values, not promises about speed.
struct Capabilities {
  std::string device_name;              ///< for persons
  Bytes alignment{1};                   ///< of each place inside a device memory
  Bytes view_alignment{1};              ///< of the part of a tensor that an operation addresses by a view
  std::optional<Bytes> max_allocation;  ///< largest single device memory; none: no limit known
  Bytes host_slab{0};                   ///< largest piece in which host memory is best taken; 0: each block by itself
  int copy_engines = 2;                 ///< 1: both directions share one
  bool host_shares_memory = false;      ///< swapping works and saves nothing
  bool failures_stick = false;          ///< a failed event makes every later call fail too (CUDA)
  bool peer_access = false;             ///< copies to and from other devices; not used yet
  bool virtual_memory = false;          ///< device addresses apart from device bytes; not used yet
  bool graph_capture = false;           ///< queued work can be recorded and run again: CapturingBackend
};

// clang-format off

/// Requirements on a backend B. Every function throws BackendError when its API reports a failure; a call that
/// throws has queued nothing, or what it queued has ended once finish() returns. No function may be called from
/// two threads at once. "Queues" means: returns at once, work happens later, in the queue's order.
///
/// Types, all nothrow-movable, released by their destructors, and safe to release while queued work uses them:
/// - DeviceMemory  bytes on the device; opaque
/// - HostMemory    bytes on the host; data() is their address, stable under moves
/// - Address       a place in a DeviceMemory as the API wants it (a pointer, a sub-buffer), made once and reused
/// - Event         a slot for a point in a queue; recorded again and again. A wait that was queued refers to the
///                 recording at that time. A slot never recorded counts as complete.
/// - Queue         what user code gets from op.queue(): the API's own
/// - WaitList, NativeEvent   what the second form of an operation takes and returns: the API's own. A NativeEvent that
///                 can be empty converts to bool, explicitly, and adopt() then records a point behind all earlier work
/// - View<T>       what user code gets from op[tensor]; made from (const Address&, std::size_t count of T), and from
///                 nothing: an empty one, of size() 0
template <class B>
concept Backend =
    std::copyable<B> &&
    std::is_nothrow_move_constructible_v<typename B::DeviceMemory> &&
    std::is_nothrow_move_constructible_v<typename B::HostMemory> &&
    std::is_nothrow_move_constructible_v<typename B::Address> &&
    std::is_nothrow_move_constructible_v<typename B::Event> &&
    std::constructible_from<typename B::template View<float>, const typename B::Address&, std::size_t> &&
    std::default_initializable<typename B::template View<float>> &&
    requires(B b, typename B::DeviceMemory& memory, typename B::HostMemory& host, const typename B::HostMemory& source,
             const typename B::Address& place, typename B::Event& event, const typename B::Event& past,
             std::span<const typename B::Event* const> waits, typename B::NativeEvent native, Bytes bytes,
             QueueKind queue) {
      { b.capabilities() } -> std::convertible_to<const Capabilities&>;

      // Objects. Slow (the API is called): never in the steady state.
      { b.allocate(bytes) } -> std::same_as<typename B::DeviceMemory>;
      { b.allocate_host(bytes, HostKind::pinned) } -> std::same_as<typename B::HostMemory>;
      { b.address(memory, bytes, bytes) } -> std::same_as<typename B::Address>;       // memory, offset, size
      { b.make_event() } -> std::same_as<typename B::Event>;
      { host.data() } -> std::same_as<std::byte*>;
      { source.data() } -> std::convertible_to<const std::byte*>;

      // Queues a copy on h2d / d2h behind `waits`, then records the event.
      { b.copy_to_device(place, source, bytes, bytes, waits, event) };                // to, from, from_offset, size
      { b.copy_to_host(host, bytes, place, bytes, waits, event) };                    // to, to_offset, from, size

      // Queues that later work on the queue waits / records the point after all earlier work on the queue.
      { b.wait(queue, waits) };
      { b.record(queue, event) };
      // All queued on it so far will start without any further call, now that another queue or the host waits for it.
      { b.flush(queue) };

      // The compute queue as user code sees it; the second form of an operation.
      { b.queue() } -> std::same_as<typename B::Queue&>;
      { b.wait_list(waits) } -> std::same_as<typename B::WaitList>;
      { b.adopt(event, std::move(native)) };                                          // event := that point

      // The host looks (no wait), waits for a point (throws BackendError if that work failed), for everything
      // (returns when nothing runs any more, also after failures; throws only when the device is lost).
      { b.status(past) } -> std::same_as<EventStatus>;
      { b.wait(past) };
      { b.finish() };

      // With timing on, events recorded from then on know their time; elapsed() is nothing where either does not.
      { b.set_timing(true) };
      { b.elapsed(past, past) } -> std::same_as<std::optional<std::chrono::nanoseconds>>;
    };

/// A backend that can record what is queued and run it again as one piece. begin_capture() asks for idle queues; from
/// then on what is queued on any of the three does not run, and the host can wait for none of it. end_capture() makes a
/// Graph of it; launch() runs it once, behind everything queued before and before everything queued later, and may be
/// called again. An event recorded in a capture stands for the end of its graph's latest launch; it has failed where
/// there will be none. A Graph is nothrow-movable; it may go while it runs.
template <class B>
concept CapturingBackend =
    Backend<B> &&
    std::is_nothrow_move_constructible_v<typename B::Graph> &&
    requires(B b, const B& c, typename B::Graph& graph) {
      { b.begin_capture() };
      { b.end_capture() } -> std::same_as<typename B::Graph>;  // throws BackendError: then nothing of it ever runs
      { b.launch(graph) };
      { c.capturing() } -> std::same_as<bool>;
    };

// clang-format on

}  // namespace swapmm
