// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>

namespace swapmm::simulated {

/// Which queue moves next when several could. All but `virtual_time` draw from the seed, and let steps happen
/// inside calls of the host too.
enum class Order : std::uint8_t {
  virtual_time,  ///< by virtual start time: deterministic, and the device moves only while the host waits
  uniform,       ///< any queue, with equal chances
  pct,           ///< random priorities of queues and host, changed at pct_depth - 1 points (Burckhardt et al., 2010)
  starved,       ///< starved_queue moves only when nothing else can and the host waits
  copies_first,  ///< the compute queue moves only when no copy can
  copies_last,   ///< copies move only when the compute queue cannot
  chosen,        ///< by Options::choices: for exhaustive search
};

/// The choices of one run, and by next_path() the next run of a depth-first search over all of them.
struct SWAPMM_EXPORT Choices {
  /// One point at which several steps were possible.
  struct Choice {
    std::uint32_t taken = 0;    ///< which of them, from 0
    std::uint32_t options = 1;  ///< how many there were
  };
  std::vector<Choice> path;  ///< of the last run; only points with two options or more
  std::size_t position = 0;  ///< of the next choice in the run under way

  /// Below `options`, which is at least 1: what the path says, 0 behind its end.
  [[nodiscard]] std::uint32_t choose(std::uint32_t options);
  /// Turns to the next path; false when all were taken. A run must depend on the path alone.
  [[nodiscard]] bool next_path();
};

/// A copy of b bytes takes latency + b / bytes_per_second of virtual time, rounded up to whole nanoseconds.
struct CopySpeed {
  std::uint64_t bytes_per_second = 1'000'000'000;  ///< above 0
  std::chrono::nanoseconds latency{0};             ///< of each copy; not negative
};

/// Of one simulated device.
struct Options {
  std::string device_name = "simulated";        ///< Capabilities::device_name
  Bytes device_bytes{std::uint64_t{1} << 20U};  ///< one flat range that all device memories lie in
  Bytes alignment{16};                          ///< of memories and of places in them; at least 1
  std::optional<Bytes> max_allocation;          ///< largest single device memory; none: no limit
  std::optional<Bytes> host_bytes;              ///< limit on host memory of both kinds together
  std::optional<Bytes> pinned_bytes;            ///< limit on pinned host memory
  Bytes host_slab{0};                           ///< Capabilities::host_slab
  bool failures_stick = false;                  ///< Capabilities::failures_stick: with a command that fails it is lost

  CopySpeed h2d;             ///< of copies to the device
  CopySpeed d2h;             ///< of copies to the host
  bool half_duplex = false;  ///< both directions share one copy engine, in the order of issue

  Order order = Order::virtual_time;             ///< which queue moves next
  int pct_depth = 2;                             ///< of Order::pct
  QueueKind starved_queue = QueueKind::compute;  ///< of Order::starved
  std::uint64_t seed = 1;                        ///< same seed and same program: same order of steps
  Choices* choices = nullptr;                    ///< for Order::chosen; outlives the device
  int pieces = 1;              ///< 1 to 8: a copy runs in up to so many steps (Order::chosen: exactly so many)
  bool steps_in_calls = true;  ///< false: the device moves only while the host waits, and by step()

  /// Commands start only once their queue was flushed, as OpenCL allows. Off in virtual time.
  bool needs_flush = false;
  /// Poison, bounds, use after release, vector clocks. Off: none of it, and faster.
  bool check = true;
  /// Keep a LogEntry per command.
  bool log = false;
  /// Is shown the bytes of each memory, of the device or of the host, as they go back. Throws nothing.
  std::function<void(std::span<const std::byte>)> at_release{};
};

/// What may stand in a queue.
enum class CommandKind : std::uint8_t { kernel, copy_to_device, copy_to_host, wait, record };
inline constexpr std::size_t command_kind_count = 5;  ///< of CommandKind

/// One command, written when it is queued: its virtual times are known from then on.
struct LogEntry {
  CommandKind kind{};                 ///< what it is
  QueueKind queue{};                  ///< where it stands
  std::uint64_t sequence = 0;         ///< position in its queue, from 0
  std::string name;                   ///< of kernels
  Bytes bytes;                        ///< of copies
  std::chrono::nanoseconds start{0};  ///< virtual
  std::chrono::nanoseconds end{0};    ///< virtual
};

/// What a simulated device was asked for so far.
struct Counters {
  /// Of one kind.
  struct Objects {
    std::uint64_t live = 0;  ///< that exist
    std::uint64_t made = 0;  ///< ever
  };
  Objects device_memories;  ///< of DeviceMemory
  Objects host_memories;    ///< of HostMemory
  Objects addresses;        ///< of Address
  Objects events;           ///< of Event
  Bytes device_bytes;       ///< in live device memories
  Bytes peak_device_bytes;  ///< most of it at one time
  Bytes host_bytes;         ///< in live host memories of both kinds
  Bytes peak_host_bytes;    ///< most of it at one time
  Bytes pinned_bytes;       ///< in live pinned memories

  std::uint64_t queued[command_kind_count] = {};  ///< by CommandKind
  std::uint64_t waited_events = 0;                ///< in all wait commands together
  std::uint64_t host_waits = 0;                   ///< wait(event) and finish()
  std::uint64_t host_waits_blocked = 0;           ///< those that had to wait
  std::uint64_t status_queries = 0;               ///< status(event)
  std::uint64_t flushes = 0;                      ///< flush(queue)
  std::uint64_t steps = 0;                        ///< that the device moved by

  /// Commands of that kind that were queued.
  [[nodiscard]] std::uint64_t count(CommandKind kind) const { return queued[static_cast<std::size_t>(kind)]; }
};

}  // namespace swapmm::simulated
