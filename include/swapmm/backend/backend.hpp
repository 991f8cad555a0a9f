// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface between swapmm and an API such as OpenCL or CUDA. docs/decisions/0002-backend-seam.md maps each
// function to both. A backend is a cheap handle: copies refer to the same device and queues. The device and queues
// exist until the last copy, and the last object made from one, is destroyed.

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include <swapmm/backend/file_memory.hpp>
#include <swapmm/backend/neighbour.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/codec/zero_format.hpp>

namespace swapmm {

/// The queues of a backend. Each runs its commands in order. Only events order commands in different queues. The first
/// three exist on every backend. Values of a file pass through memory of the host: they are copied between that memory
/// and the device in the staged queues, and the host reads and writes the file in the last two; these four exist with
/// FileBackend. Copies from neighbours' memory and to it are in queues of their own, which exist with NeighbourBackend:
/// a pair for each of the paths that neighbours are on.
enum class QueueKind : std::uint8_t {
  compute,
  h2d,
  d2h,
  staged_h2d,
  staged_d2h,
  neighbour_in,  ///< of path 0; see neighbour_in_queue()
  neighbour_out,
  neighbour_2_in,
  neighbour_2_out,
  neighbour_3_in,
  neighbour_3_out,
  file_read,
  file_write
};
inline constexpr std::size_t queue_count = 13;         ///< number of queues
inline constexpr std::size_t base_queue_count = 3;     ///< number of queues of every backend: the first ones
inline constexpr std::size_t device_queue_count = 11;  ///< number of queues of the device: the first ones
/// The position of a queue in arrays: 0 to 12.
[[nodiscard]] constexpr std::size_t index(QueueKind queue) { return static_cast<std::size_t>(queue); }

/// The first so many queues, in the order of QueueKind.
template <std::size_t Count>
[[nodiscard]] constexpr std::array<QueueKind, Count> first_queues() {
  std::array<QueueKind, Count> queues{};
  for (std::size_t i = 0; i < Count; ++i) queues[i] = static_cast<QueueKind>(i);
  return queues;
}

/// How many neighbours have copies beside each other's. Further ones share the last path.
inline constexpr std::size_t neighbour_path_count = 3;
/// The queue of copies from neighbours on that path: 0 to 2.
[[nodiscard]] constexpr QueueKind neighbour_in_queue(std::size_t path) {
  return static_cast<QueueKind>(index(QueueKind::neighbour_in) + 2 * path);
}
/// The queue of copies to neighbours on that path.
[[nodiscard]] constexpr QueueKind neighbour_out_queue(std::size_t path) {
  return static_cast<QueueKind>(index(QueueKind::neighbour_out) + 2 * path);
}
/// Whether the queue is one of those, in either direction.
[[nodiscard]] constexpr bool is_of_neighbours(QueueKind queue) {
  return queue >= QueueKind::neighbour_in && queue <= QueueKind::neighbour_3_out;
}
/// The path of such a queue.
[[nodiscard]] constexpr std::size_t neighbour_path(QueueKind queue) {
  return (index(queue) - index(QueueKind::neighbour_in)) / 2;
}

/// A kernel argument in the form that raw launches of an API take: the address and the size of a value, such as a
/// buffer object or a device pointer. Refers to the value, which must exist as long as the argument is used. The value
/// of an argument from Operation::argument() exists while the operation runs.
class Argument {
 public:
  /// Refers to `value`.
  template <class T>
    requires(!std::same_as<T, Argument>)
  explicit Argument(const T& value) : data_(&value), size_(sizeof(T)) {}
  template <class T>
    requires(!std::same_as<T, Argument>)
  explicit Argument(const T&&) = delete;

  /// The address of the value. Not const because arrays of arguments are not const in every API; APIs only read there.
  [[nodiscard]] void* data() const { return const_cast<void*>(data_); }
  /// The size of the value in bytes.
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  const void* data_;
  std::size_t size_;
};

/// The kinds of host memory.
enum class HostKind : std::uint8_t {
  pinned,    ///< page-locked: copies are asynchronous and fast
  pageable,  ///< always available; a copy may block the host
};

/// Status of the work up to an event: still running, completed, or failed.
enum class EventStatus : std::uint8_t { running, complete, failed };

/// What the library is doing, for profilers that show ranges. See `Annotation` in docs/backends.md.
enum class AnnotationKind : std::uint8_t {
  swap_in,      ///< queues a copy of a tensor to the device
  swap_out,     ///< queues a copy of a tensor to the host
  device_wait,  ///< makes the compute queue wait for copies before an operation
  host_wait,    ///< the host waits for the device
};

/// What a backend can do. These values say nothing about speed.
struct Capabilities {
  std::string device_name;              ///< for people
  Bytes alignment{1};                   ///< every address in a device memory is a multiple of this
  Bytes view_alignment{1};              ///< a view used in an operation begins at a multiple of this
  std::optional<Bytes> max_allocation;  ///< largest single allocation on the device; none: no known limit
  Bytes host_slab{0};                   ///< best size for allocations of host memory; 0: allocate each block separately
  int copy_engines = 2;                 ///< 1: both directions share one engine
  bool host_shares_memory = false;      ///< true: swapping works, but saves no memory
  bool failures_stick = false;          ///< true: after a failed event every later call fails too (CUDA)
  bool peer_access = false;             ///< not used; see NeighbourBackend
  bool virtual_memory = false;          ///< device addresses are independent of device memory; not used yet
  bool graph_capture = false;           ///< queued work can be recorded and replayed: CapturingBackend
  std::optional<Bytes> device_memory;   ///< all that the device has: no budget may be larger; none: not known
};

// clang-format off

/// Requirements on a backend B. Every function throws BackendError when its API reports a failure. After a call has
/// thrown, either nothing was queued, or what was queued has ended once finish() returns. No two threads call functions
/// at the same time. "Queues" means that the call returns at once and the work happens later, in the queue's order.
///
/// Types. All are nothrow-movable, are released by their destructors, and may be released while queued work uses them:
/// - DeviceMemory  bytes on the device; opaque
/// - HostMemory    bytes on the host; data() is their address, which a move does not change
/// - Address       a place in a DeviceMemory as the API needs it (a pointer, a sub-buffer); made once and reused
/// - Event         a slot for a point in a queue; can be recorded many times. A queued wait refers to the recording at
///                 the time of the call. A slot that was never recorded counts as complete.
/// - Queue         the API's own queue, returned by op.queue()
/// - WaitList, NativeEvent   argument and return value of the second form of an operation: types of the API. If a
///                 NativeEvent can be empty, it converts explicitly to bool, and adopt() of an empty one records a
///                 point after all earlier work
/// - View<T>       returned by op[tensor]; made from (const Address&, std::size_t count of T)
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

      // Create objects. Slow, because they call the API; never called in the steady state.
      { b.allocate(bytes) } -> std::same_as<typename B::DeviceMemory>;
      { b.allocate_host(bytes, HostKind::pinned) } -> std::same_as<typename B::HostMemory>;
      { b.address(memory, bytes, bytes) } -> std::same_as<typename B::Address>;       // memory, offset, size
      { b.make_event() } -> std::same_as<typename B::Event>;
      { host.data() } -> std::same_as<std::byte*>;
      { source.data() } -> std::convertible_to<const std::byte*>;

      // Queue a copy on h2d / d2h after `waits`, then record the event.
      { b.copy_to_device(place, source, bytes, bytes, waits, event) };                // to, from, from_offset, size
      { b.copy_to_host(host, bytes, place, bytes, waits, event) };                    // to, to_offset, from, size

      // Make later work on the queue wait for the events; record the point after all earlier work on the queue.
      { b.wait(queue, waits) };
      { b.record(queue, event) };
      // Make sure that everything queued so far starts without a further call. Called when another queue or the host
      // waits.
      { b.flush(queue) };

      // The compute queue for user code; wait list and event of the second form of an operation.
      { b.queue() } -> std::same_as<typename B::Queue&>;
      { b.wait_list(waits) } -> std::same_as<typename B::WaitList>;
      { b.adopt(event, std::move(native)) };                                          // event = that point

      // status() does not wait. wait() waits for a point and throws BackendError if the work failed. finish() returns
      // when nothing runs any more, also after failures, and throws only if the device is lost.
      { b.status(past) } -> std::same_as<EventStatus>;
      { b.wait(past) };
      { b.finish() };

      // With timing on, events recorded from then on have a time. elapsed() returns nothing if either event has none.
      { b.set_timing(true) };
      { b.elapsed(past, past) } -> std::same_as<std::optional<std::chrono::nanoseconds>>;
    };

/// A backend that can capture queued work as a graph and replay it. begin_capture() requires idle queues. From then on,
/// work queued on any of the first three queues does not run, and the host cannot wait for it. end_capture() makes a Graph of
/// this work. launch() runs the graph once, after everything queued before and before everything queued later; it may
/// be called repeatedly. An event recorded in a capture means the end of the latest launch of its graph; it counts as
/// failed if there will be no launch. A Graph is nothrow-movable, and may be destroyed while it runs.
template <class B>
concept CapturingBackend =
    Backend<B> &&
    std::is_nothrow_move_constructible_v<typename B::Graph> &&
    requires(B b, const B& c, typename B::Graph& graph) {
      { b.begin_capture() };
      { b.end_capture() } -> std::same_as<typename B::Graph>;  // if it throws BackendError, none of the work ever runs
      { b.launch(graph) };
      { c.capturing() } -> std::same_as<bool>;
    };

/// A backend that can also copy between host memory and a file, in the order of the device's work. A command is queued
/// on file_read or file_write, runs on a thread of the backend, and starts after `waits`. A read does not ask whether
/// the work that it waits for failed. A write does: if any of it failed, the write fails, and writes nothing. A command
/// that fails, for example because the disk has an error, fails alone: its event has the status "failed", and wait()
/// throws what FileMemory threw; but work that waits for the event runs nevertheless. Offsets and sizes are multiples of
/// the file's alignment, and so is the address. status(), wait() and finish() know these queues as well; record(),
/// wait(queue, events) and flush() do not, but know the staged queues. The file must exist until the work has ended.
template <class B>
concept FileBackend =
    Backend<B> &&
    requires(B b, FileMemory& file, typename B::HostMemory& host, const typename B::HostMemory& source,
             const typename B::Address& place, typename B::Event& event,
             std::span<const typename B::Event* const> waits, Bytes bytes) {
      // file, its offset, host memory, its offset, size
      { b.read_file(file, bytes, host, bytes, bytes, waits, event) };
      { b.write_file(file, bytes, source, bytes, bytes, waits, event) };
      // Queue a copy of a part of a place on staged_h2d / staged_d2h after `waits`, then record the event.
      { b.copy_part_to_device(place, bytes, source, bytes, bytes, waits, event) };    // to, to_offset, from, from_offset
      { b.copy_part_to_host(host, bytes, place, bytes, bytes, waits, event) };        // to, to_offset, from, from_offset
    };

/// A backend that can also copy bytes from one place on the device to another one. The copy is queued on the compute
/// queue, as an operation's own work is. The bytes do not overlap.
template <class B>
concept DeviceCopyBackend =
    Backend<B> &&
    requires(B b, const typename B::Address& to, const typename B::Address& from, Bytes bytes) {
      { b.copy_on_device(to, bytes, from, bytes, bytes) };                            // to, its offset, from, its offset, size
    };

/// A backend that can also keep values in the memory of other devices: of those that its Neighbour objects stand for.
/// A copy is queued on the queue of the memory's path in its direction, starts after `waits`, and records the event. It may pass through
/// the host where a device cannot reach the other one's memory. record(), wait(queue, events), flush(), status(),
/// wait() and finish() know these queues as those of the device. NeighbourMemory is nothrow-movable, may be released
/// while queued work uses it, and keeps what it needs of the other device alive. Functions throw BackendError of the kind
/// failed for a Neighbour that is not one of this backend's.
template <class B>
concept NeighbourBackend =
    Backend<B> &&
    std::is_nothrow_move_constructible_v<typename B::NeighbourMemory> &&
    requires(B b, const Neighbour& neighbour, std::size_t path, typename B::NeighbourMemory& memory,
             const typename B::NeighbourMemory& source, const typename B::Address& place, typename B::Event& event,
             std::span<const typename B::Event* const> waits, Bytes bytes, std::span<std::byte> to,
             std::span<const std::byte> from) {
      // Bytes on a neighbour, at most its largest_allocation(). All memory of a neighbour is on one path.
      { b.allocate_at(neighbour, bytes, path) } -> std::same_as<typename B::NeighbourMemory>;
      { source.path() } -> std::same_as<std::size_t>;
      // Queue a copy between the device and a neighbour.
      { b.copy_from_neighbour(place, source, bytes, bytes, waits, event) };   // to, from, from_offset, size
      { b.copy_to_neighbour(memory, bytes, place, bytes, waits, event) };     // to, to_offset, from, size
      // The host reads or writes bytes there. Return when that is done. Queued work that uses the bytes has ended.
      { b.read_neighbour(source, bytes, to) };
      { b.write_neighbour(memory, bytes, from) };
    };

/// A backend that can encode values with many zeros on their way to the host, and decode them on their way back, by the
/// zero codec. An Encoder is the device memory that values pass through, and the kernels; EncodedMemory is host memory
/// that holds one encoded value, whatever its size turns out to be. Both are nothrow-movable, and may be released while
/// queued work uses them. A copy is queued on d2h or h2d, starts after `waits`, and records the event. The elements of a value
/// are the same on its way out and back. All other functions of the backend know these copies as they know plain ones.
template <class B>
concept EncodingBackend =
    Backend<B> &&
    std::is_nothrow_move_constructible_v<typename B::Encoder> &&
    std::is_nothrow_move_constructible_v<typename B::EncodedMemory> &&
    requires(B b, typename B::Encoder& encoder, typename B::EncodedMemory& memory,
             const typename B::EncodedMemory& source, const typename B::Address& place, typename B::Event& event,
             std::span<const typename B::Event* const> waits, const ZeroElements& elements, Bytes bytes,
             std::span<std::byte> to, std::span<const std::byte> from) {
      // For values of up to so many bytes. Takes encoder_bytes() of them twice, once for each direction. Slow.
      { b.make_encoder(bytes) } -> std::same_as<typename B::Encoder>;
      // Page-locked, zero_worst_case() of the elements.
      { b.allocate_encoded(elements) } -> std::same_as<typename B::EncodedMemory>;
      // Queue a copy.
      { b.copy_encoded_to_host(encoder, memory, place, elements, waits, event) };
      { b.copy_encoded_to_device(encoder, place, source, elements, waits, event) };
      // The host reads a part of the plain value, or changes it. Return when that is done. Queued work that uses the
      // memory has ended.
      { b.read_encoded(source, elements, bytes, to) };      // offset in the plain value
      { b.write_encoded(memory, elements, bytes, from) };
    };

// clang-format on

/// The device memory that values of up to so many bytes take on their way in one direction: an encoded value, and
/// scratch memory, both aligned to 256 bytes.
[[nodiscard]] inline Bytes encoder_bytes(Bytes value) {
  const ZeroElements bytes{value.value, 1};  // elements of one byte need the most scratch memory
  return round_up(zero_worst_case(bytes), Bytes{256}) + round_up(zero_scratch(bytes), Bytes{256});
}
/// The largest value for which that is not more than so many bytes; 0 if there is none.
[[nodiscard]] inline Bytes largest_encodable(Bytes memory) {
  Bytes least;
  Bytes most = memory;
  while (least < most) {
    const Bytes middle = most - Bytes{(most - least).value / 2};
    if (encoder_bytes(middle) <= memory) {
      least = middle;
    } else {
      most = middle - Bytes{1};
    }
  }
  return least;
}

/// A backend whose queues may wait for events of another one of its kind, if `can_wait_for` says so: wait(queue, waits)
/// takes them. It may be called by the other one's thread; what it tells does not change.
template <class B>
concept TurnTakingBackend = Backend<B> && requires(const B& b, const B& other) {
  { b.can_wait_for(other) } -> std::same_as<bool>;
};

/// A backend that is told, right before copy_to_device() and copy_to_host(), whose value the copy moves: by the number
/// that the manager has given the tensor. Copies without it move no value. A value that moves in parts is named once,
/// before its first part.
template <class B>
concept NamedCopyBackend = Backend<B> && requires(B b, std::uint64_t serial) {
  {b.next_copy_of(serial)};
};

}  // namespace swapmm
