// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/backend/testing/simulated/shared_clock.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>

namespace swapmm::simulated {

/// Policy that decides which queue runs next if several can. All policies except `virtual_time` draw from the seed, and
/// let steps happen inside calls of the host, too.
enum class Order : std::uint8_t {
  virtual_time,  ///< by virtual start time; deterministic; the device runs only while the host waits
  uniform,       ///< any queue, with equal chances
  pct,           ///< random priorities of queues and host, changed at pct_depth - 1 points (Burckhardt et al., 2010)
  starved,       ///< starved_queue runs only when nothing else can and the host waits
  copies_first,  ///< the compute queue runs only when no copy can
  copies_last,   ///< copies run only when the compute queue cannot
  chosen,        ///< by Options::choices, for exhaustive search
};

/// The choices of one run in a depth-first search over all interleavings. next_path() goes on to the next run.
struct SWAPMM_EXPORT Choices {
  /// One point at which several steps were possible.
  struct Choice {
    std::uint32_t taken = 0;    ///< which of them, from 0
    std::uint32_t options = 1;  ///< how many there were
  };
  std::vector<Choice> path;  ///< choices of the last run; only points with two or more options
  std::size_t position = 0;  ///< position of the next choice in the current run

  /// Returns a number below `options`, which must be at least 1: the one in the path, or 0 after its end.
  [[nodiscard]] std::uint32_t choose(std::uint32_t options);
  /// Goes to the next path. Returns false if all were taken. A run must depend only on the path.
  [[nodiscard]] bool next_path();
};

/// The speed of copies. A copy of b bytes takes latency + b / bytes_per_second of virtual time, rounded up to whole
/// nanoseconds.
struct CopySpeed {
  std::uint64_t bytes_per_second = 1'000'000'000;  ///< above 0
  std::chrono::nanoseconds latency{0};             ///< of each copy; not negative
};

/// Options for one simulated device.
struct Options {
  std::string device_name = "simulated";        ///< Capabilities::device_name
  Bytes device_bytes{std::uint64_t{1} << 20U};  ///< size of the device memory, one flat range
  Bytes alignment{16};                          ///< alignment of memories and of places in them; at least 1
  std::optional<Bytes> max_allocation;          ///< largest single device memory; none: no limit
  std::optional<Bytes> host_bytes;              ///< limit on host memory of both kinds together
  std::optional<Bytes> pinned_bytes;            ///< limit on pinned host memory
  Bytes host_slab{0};                           ///< Capabilities::host_slab
  bool failures_stick = false;                  ///< Capabilities::failures_stick: a command that fails loses the device

  CopySpeed h2d;                                             ///< speed of copies to the device
  CopySpeed d2h;                                             ///< speed of copies to the host
  CopySpeed file_read;                                       ///< speed of reading files
  CopySpeed file_write;                                      ///< speed of writing files
  CopySpeed neighbour_in;                                    ///< speed of copies from neighbours
  CopySpeed neighbour_out;                                   ///< speed of copies to neighbours
  CopySpeed on_device{.bytes_per_second = 100'000'000'000};  ///< speed of copies from place to place on the device
  /// The part of a plain copy's bytes that an encoded copy of a value of so many bytes is timed with: its time is known
  /// when it is queued, and its bytes are not. None: a half.
  std::function<double(Bytes)> encoded_part{};
  bool half_duplex = false;  ///< all copies share one copy engine, in issue order
  bool one_port = false;     ///< copies from all neighbours run one after another, and so do those to all neighbours

  /// With other devices on one clock, and copies that share capacities. Only with Order::virtual_time, and not with
  /// half_duplex. Default: a clock of its own.
  std::shared_ptr<SharedClock> clock{};

  Order order = Order::virtual_time;             ///< decides which queue runs next
  int pct_depth = 2;                             ///< depth for Order::pct
  QueueKind starved_queue = QueueKind::compute;  ///< queue for Order::starved
  std::uint64_t seed = 1;                        ///< the same seed and program give the same order of steps
  Choices* choices = nullptr;                    ///< for Order::chosen; must outlive the device
  int pieces = 1;              ///< 1 to 8: a copy runs in up to this many steps (Order::chosen: exactly this many)
  bool steps_in_calls = true;  ///< false: the device runs only while the host waits, and in step()

  /// Commands start only after their queue was flushed, as OpenCL allows. Ignored in virtual time.
  bool needs_flush = false;
  /// Switches the checker on: poison, bounds, use after release, vector clocks. Off is faster.
  bool check = true;
  /// Keeps a LogEntry per command.
  bool log = false;
  /// Called with the bytes of each device or host memory when it is released. Must not throw.
  std::function<void(std::span<const std::byte>)> at_release{};
};

/// The kinds of commands in a queue.
enum class CommandKind : std::uint8_t {
  kernel,
  copy_to_device,
  copy_to_host,
  wait,
  record,
  read_file,
  write_file,
  copy_from_neighbour,
  copy_to_neighbour,
  encode_to_host,
  decode_to_device
};
inline constexpr std::size_t command_kind_count = 11;  ///< number of kinds

/// One command in the log. It is written when the command is queued; the virtual times are known by then.
struct LogEntry {
  CommandKind kind{};                 ///< kind of the command
  QueueKind queue{};                  ///< queue of the command
  std::uint64_t sequence = 0;         ///< position in its queue, from 0
  std::string name;                   ///< name of a kernel
  Bytes bytes;                        ///< size of a copy
  std::chrono::nanoseconds start{0};  ///< virtual start time
  std::chrono::nanoseconds end{0};    ///< virtual end time
};

/// Counts of what was requested from a simulated device so far.
struct Counters {
  /// Counts for one kind of object.
  struct Objects {
    std::uint64_t live = 0;  ///< objects that exist
    std::uint64_t made = 0;  ///< objects made so far
  };
  Objects device_memories;     ///< counts for DeviceMemory
  Objects host_memories;       ///< counts for HostMemory
  Objects neighbour_memories;  ///< counts for NeighbourMemory
  Objects addresses;           ///< counts for Address
  Objects events;              ///< counts for Event
  Bytes device_bytes;          ///< bytes in live device memories
  Bytes peak_device_bytes;     ///< largest device_bytes so far
  Bytes host_bytes;            ///< bytes in live host memories of both kinds
  Bytes peak_host_bytes;       ///< largest host_bytes so far
  Bytes pinned_bytes;          ///< bytes in live pinned memories

  std::uint64_t queued[command_kind_count] = {};  ///< number of queued commands, indexed by CommandKind
  std::uint64_t waited_events = 0;                ///< number of events in all wait commands
  std::uint64_t host_waits = 0;                   ///< calls of wait(event) and finish()
  std::uint64_t host_waits_blocked = 0;           ///< host waits that had to wait
  std::uint64_t status_queries = 0;               ///< calls of status(event)
  std::uint64_t flushes = 0;                      ///< calls of flush(queue)
  std::uint64_t steps = 0;                        ///< steps that the device ran

  /// Number of queued commands of that kind.
  [[nodiscard]] std::uint64_t count(CommandKind kind) const { return queued[static_cast<std::size_t>(kind)]; }
};

}  // namespace swapmm::simulated
