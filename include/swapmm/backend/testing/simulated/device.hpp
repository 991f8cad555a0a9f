// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/backend/testing/simulated/body.hpp>
#include <swapmm/backend/testing/simulated/memory.hpp>
#include <swapmm/backend/testing/simulated/options.hpp>
#include <swapmm/backend/testing/simulated/ring.hpp>
#include <swapmm/backend/testing/simulated/shadow.hpp>
#include <swapmm/backend/testing/simulated/shared_clock.hpp>
#include <swapmm/backend/testing/simulated/step_order.hpp>
#include <swapmm/backend/testing/simulated/touch.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/codec/zero_format.hpp>

namespace swapmm::simulated::detail {

class Device;

/// The name of a queue in messages.
[[nodiscard]] std::string_view name_of(QueueKind queue);

/// A point in a queue: the end of one command. Its virtual time and its predecessors are known when it is queued,
/// whatever the order in which the device then runs.
struct Point {
  bool recorded = false;
  bool timed = false;
  QueueKind queue = QueueKind::compute;
  const Device* device = nullptr;
  std::uint64_t sequence = 0;
  std::int64_t end = 0;
  VectorClock clock;
};

/// The state behind all handles of one simulated device: three queues, a virtual clock, memory and the checker.
class Device {
 public:
  explicit Device(const Options& options);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();  // what is still queued is discarded

  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] const Capabilities& capabilities() const { return capabilities_; }

  // Objects. Releasing memory that queued commands use takes effect when they have ended.
  [[nodiscard]] BlockId allocate(Bytes size);
  SWAPMM_TEMPLATE_EXPORT void release(BlockId id) noexcept;
  [[nodiscard]] BlockId allocate_host(Bytes size, HostKind kind);
  SWAPMM_TEMPLATE_EXPORT void release_host(BlockId id) noexcept;
  [[nodiscard]] std::byte* host_data(BlockId id) { return host_heap_.block(id.number).storage.get(); }
  [[nodiscard]] BlockId allocate_at(const std::shared_ptr<NeighbourState>& neighbour, Bytes size);
  [[nodiscard]] Place make_address(BlockId memory, Bytes offset, Bytes size);
  SWAPMM_TEMPLATE_EXPORT void release_address(BlockId id) noexcept;
  [[nodiscard]] BlockId make_event();
  SWAPMM_TEMPLATE_EXPORT void release_event(BlockId id) noexcept;

  /// A command that is being prepared for a queue. If it is destroyed before it is queued, it leaves nothing behind.
  class Issue {
   public:
    Issue(Device& device, QueueKind queue);
    Issue(const Issue&) = delete;
    Issue& operator=(const Issue&) = delete;
    ~Issue();
    void wait_for(const Point& point);

   private:
    friend class Device;
    Device& device_;
    QueueKind queue_;
    std::uint64_t waits_before_;
    std::uint32_t waits_ = 0;
    std::int64_t start_;
    VectorClock clock_;
    bool queued_ = false;
  };

  Point kernel(Issue& issue, std::string_view name, std::chrono::nanoseconds duration, std::span<const Touch> touches,
               int phases, bool is_event, Body&& body);
  void copy_on_device(Issue& issue, const Place& to, const Place& from, Bytes size);
  Point copy(Issue& issue, CommandKind kind, const Place& place, BlockId host, Bytes host_offset, Bytes size);
  /// A copy of a value that is in its encoded form in the host's memory.
  Point copy_encoded(Issue& issue, CommandKind kind, const Place& place, BlockId host, const ZeroElements& elements);
  Point use_file(Issue& issue, CommandKind kind, FileMemory& file, Bytes file_offset, BlockId host, Bytes host_offset,
                 Bytes size);
  void barrier(Issue& issue, std::size_t events);
  Point record(Issue& issue);
  void flush(QueueKind queue);
  void delay_next(QueueKind queue) { queue_of(queue).delay_next = true; }
  void fail_next(QueueKind queue) { queue_of(queue).fail_next = true; }

  // The host.
  [[nodiscard]] EventStatus status(const Point& point);
  void wait(const Point& point);
  void finish();
  void set_timing(bool on);
  [[nodiscard]] std::optional<std::chrono::nanoseconds> elapsed(const Point& from, const Point& to);
  void note_host_access(BlockId host, Bytes offset, Bytes size, bool write);
  /// Bytes that the host itself reads from a neighbour's memory, or writes there.
  struct HostBytes {
    std::byte* data;
    std::size_t size;
    bool write;
  };
  void access_neighbour(BlockId memory, Bytes offset, const HostBytes& bytes);

  // For tests.
  std::uint64_t step(std::uint64_t count);
  [[nodiscard]] std::chrono::nanoseconds now() const {
    return options_.clock ? options_.clock->now() : std::chrono::nanoseconds{now_};
  }
  void pass_time(std::chrono::nanoseconds until);
  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] std::uint64_t trace_hash() const { return hash_; }
  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }
  [[nodiscard]] std::uint64_t violation_count() const { return violation_count_; }
  void clear_violations() {
    violations_.clear();
    violation_count_ = 0;
  }
  [[nodiscard]] const std::vector<LogEntry>& log() const { return log_; }

  // For the clock that it shares with others, at the clock's time.
  /// Starts each queue's next command if it can start, and ends what has ended. Returns whether it did anything.
  bool start_or_end_now();
  /// When the next of its commands ends whose end is known, or the latest time there is. Adds the copies whose bytes
  /// are on their way.
  [[nodiscard]] std::int64_t next_end(std::vector<SharedClock::Flow>& flows);
  [[nodiscard]] double bytes_left(std::size_t queue) const { return queues_[queue].flight.left; }
  void pass_bytes(std::size_t queue, double bytes);

 private:
  static constexpr std::size_t most_violation_texts = 100;

  struct Command {
    CommandKind kind{};
    bool is_event = false;  // reports failures of everything since the last event on its queue
    bool delayed = false;
    bool fails = false;
    std::uint8_t pieces = 1;
    std::uint8_t piece = 0;
    std::uint32_t waits = 0;  // number of waits not yet seen to have ended
    std::uint64_t issue = 0;  // position in the order of issue over all queues
    std::int64_t start = 0;
    std::int64_t end = 0;
    std::uint64_t flowing = 0;  // with a shared clock: bytes that may share capacities
    std::size_t logged = 0;     // with a shared clock: position in the log
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    FileMemory* file = nullptr;
    Bytes file_offset;
    const NeighbourState* neighbour = nullptr;
    std::uint64_t size = 0;
    ZeroElements elements;
    Body body;
  };
  struct WaitPoint {
    QueueKind queue{};
    std::uint64_t sequence = 0;
    const Device* device = nullptr;  // another one
    std::uint64_t number = 0;        // of that device: another one may be made where it was
  };
  struct Failure {
    std::uint64_t sequence = 0;
    std::exception_ptr cause;
  };
  // The next command of a queue, once it has started, with a shared clock.
  struct Flight {
    bool is_on = false;
    std::int64_t start = 0;
    std::int64_t until = 0;  // the end of its time, or of a copy's latency
    double left = 0;         // bytes of a copy
  };
  struct Queue {
    Ring<Command> commands;
    Ring<WaitPoint> waits;        // of the commands, in their order
    std::int64_t end = 0;         // of the last command queued
    VectorClock clock;            // of the last command queued
    std::exception_ptr failing;   // set if something failed since the last event
    std::vector<Failure> failed;  // failed events
    std::uint64_t flushed = 0;
    Flight flight;
    std::vector<std::int64_t> ends;  // with a shared clock: of all commands so far
    bool delay_next = false;
    bool fail_next = false;
  };
  struct Deferred {
    bool on_host = false;
    std::uint32_t number = 0;
  };

  [[nodiscard]] Queue& queue_of(QueueKind kind) { return queues_[index(kind)]; }
  [[nodiscard]] const Queue& queue_of(QueueKind kind) const { return queues_[index(kind)]; }
  [[nodiscard]] bool in_virtual_time() const { return options_.order == Order::virtual_time; }
  /// Whether the other device has the same clock.
  [[nodiscard]] bool is_beside(const Device* other) const {
    return options_.clock != nullptr && options_.clock->has(other);
  }
  [[nodiscard]] bool is_there(const WaitPoint& point) const {
    return is_beside(point.device) && point.device->number_ == point.number;
  }
  [[nodiscard]] bool waited_for(const WaitPoint& point) const;
  [[nodiscard]] std::int64_t end_of(const Point& point) const;
  [[nodiscard]] Progress done() const;

  // device_steps.cpp: running commands
  void host_calls(bool will_wait = false);
  [[nodiscard]] bool ready(Queue& queue);
  [[nodiscard]] Ready ready_queues(bool host_blocked);
  void settle();
  void step_queue(QueueKind kind);
  void run_piece(Command& command);
  void end_command(Queue& queue);
  void die(std::exception_ptr cause) noexcept;
  void check_alive() const;
  bool step_any();
  bool step_earliest();
  void run_until_now();
  void run_until_done(const Point& point);
  void run_all();
  [[nodiscard]] bool has_ended(const Point& point);
  [[nodiscard]] std::exception_ptr failure_of(QueueKind queue, std::uint64_t sequence) const;
  void free_unused() noexcept;

  Command& push(Issue& issue, CommandKind kind, std::int64_t start, std::int64_t duration) noexcept;
  [[nodiscard]] Point point_of(const Issue& issue) const;
  struct CopyEnds {
    const Place& place;
    std::uint64_t place_bytes;
    HostBlock& block;
    std::uint64_t host_offset;
    std::uint64_t host_bytes;
  };
  Command& queue_copy(Issue& issue, CommandKind kind, const CopyEnds& ends, std::int64_t duration);
  void add_log(const Issue& issue, CommandKind kind, std::string_view name, std::uint64_t bytes, std::int64_t start,
               std::int64_t duration);
  [[nodiscard]] std::int64_t copy_start(const Issue& issue) const;
  [[nodiscard]] static std::size_t port_of(QueueKind queue);
  /// `neighbour`: of copies from there and to it.
  [[nodiscard]] CopySpeed speed_of(CommandKind kind, const NeighbourState* neighbour = nullptr) const;
  void reserve_release();
  void finish_release(Block& block, bool on_host, std::uint32_t number) noexcept;

  // checker.cpp: the checker
  /// Counts a violation and stores its text. Never throws: if memory runs out, the violation is still counted.
  template <class MakeText>
  void report(MakeText&& make_text) noexcept {
    ++violation_count_;
    try {
      if (violations_.size() < most_violation_texts) violations_.push_back(make_text());
    } catch (const std::bad_alloc&) {
      return;
    }
  }
  [[nodiscard]] bool check_place(const Place& place, std::uint64_t bytes, std::string_view who);
  void prepare_device_access(const Place& place, std::uint64_t bytes);
  void note_device_access(const Place& place, std::uint64_t bytes, bool write, std::size_t agent,
                          const VectorClock& known, std::string_view who);
  void note_host_memory_access(HostBlock& block, std::uint64_t begin, std::uint64_t end, bool write, std::size_t agent,
                               const VectorClock& known, std::string_view who);
  void report_conflicts(bool write, std::string_view who, std::string_view where);

  Options options_;
  std::uint64_t number_ = 0;  // on its shared clock
  Capabilities capabilities_;
  DeviceHeap heap_;
  HostHeap host_heap_;
  Shadow device_shadow_;
  std::vector<Conflict> conflicts_;
  std::vector<Deferred> deferred_;
  std::array<Queue, queue_count> queues_;
  StepOrder order_;
  VectorClock host_clock_;
  std::int64_t now_ = 0;
  std::int64_t copy_engine_end_ = 0;            // with half duplex
  std::array<std::int64_t, 2> port_end_{0, 0};  // of neighbours: in and out
  std::uint64_t issued_ = 0;
  std::uint64_t hash_ = 0;
  std::uint64_t calls_ = 0;
  bool timing_ = false;
  bool in_step_ = false;
  std::exception_ptr dead_;  // why the device is lost
  // Made in advance, because memory may be short later.
  std::exception_ptr told_to_fail_ = std::make_exception_ptr(std::runtime_error("a command failed as it was told to"));
  Counters counters_;
  std::vector<std::string> violations_;
  std::uint64_t violation_count_ = 0;
  std::vector<LogEntry> log_;
};

}  // namespace swapmm::simulated::detail
