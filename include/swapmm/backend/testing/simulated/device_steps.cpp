// SPDX-License-Identifier: Apache-2.0
// Runs the commands of a simulated device, and lets the host wait.

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include <swapmm/backend/testing/simulated/device.hpp>
#include <swapmm/backend/testing/simulated/random.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/codec/zero_code.hpp>

namespace swapmm::simulated::detail {

namespace {

constexpr auto all_queues = first_queues<queue_count>();

bool is_copy(CommandKind kind) {
  switch (kind) {
    case CommandKind::copy_to_device:
    case CommandKind::copy_to_host:
    case CommandKind::copy_from_neighbour:
    case CommandKind::copy_to_neighbour: return true;
    default: return false;
  }
}

/// The queues of files: their commands run on the host and need no flush, and their failures are theirs alone.
bool is_of_files(QueueKind queue) { return index(queue) >= device_queue_count; }

bool any(const Ready& ready) { return std::find(ready.begin(), ready.end(), true) != ready.end(); }

[[noreturn]] void throw_failure(const std::exception_ptr& cause) {
  try {
    std::rethrow_exception(cause);
  } catch (const BackendError&) {
    throw;
  } catch (const std::exception& error) {
    throw BackendError(BackendError::Kind::failed, -14, std::string("simulated device: work failed: ") + error.what());
  } catch (...) {
    throw BackendError(BackendError::Kind::failed, -14, "simulated device: work failed");
  }
}

[[noreturn]] void throw_loss(const std::exception_ptr& cause) {
  std::string why = "work failed";
  try {
    std::rethrow_exception(cause);
  } catch (const std::exception& error) {
    why = error.what();
  } catch (...) {  // NOLINT(bugprone-empty-catch): the exception has no text
  }
  throw BackendError(BackendError::Kind::device_lost, -15, "simulated device: lost: " + why);
}

}  // namespace

std::string_view name_of(QueueKind queue) {
  switch (queue) {
    case QueueKind::compute: return "compute";
    case QueueKind::h2d: return "h2d";
    case QueueKind::d2h: return "d2h";
    case QueueKind::staged_h2d: return "staged_h2d";
    case QueueKind::staged_d2h: return "staged_d2h";
    case QueueKind::neighbour_in: return "neighbour_in";
    case QueueKind::neighbour_out: return "neighbour_out";
    case QueueKind::neighbour_2_in: return "neighbour_2_in";
    case QueueKind::neighbour_2_out: return "neighbour_2_out";
    case QueueKind::neighbour_3_in: return "neighbour_3_in";
    case QueueKind::neighbour_3_out: return "neighbour_3_out";
    case QueueKind::file_read: return "file_read";
    case QueueKind::file_write: return "file_write";
  }
  return "unknown";
}

Progress Device::done() const {
  Progress progress{};
  for (std::size_t i = 0; i < queue_count; ++i) progress[i] = queues_[i].commands.head();
  return progress;
}

/// Called at the beginning of every function of the host: the device may run steps now. If the host is about to wait,
/// an enumeration leaves the steps to the wait, because otherwise the same runs would be counted twice.
void Device::host_calls(bool will_wait) {
  if (in_step_) {
    throw BackendError(BackendError::Kind::failed, -30, "simulated device: called by a kernel that runs on it");
  }
  check_alive();
  ++calls_;
  if (in_virtual_time() || !options_.steps_in_calls) return;
  if (will_wait && options_.order == Order::chosen) return;
  order_.begin_call();
  for (Ready ready = ready_queues(false); any(ready); ready = ready_queues(false)) {
    const std::optional<QueueKind> next = order_.next(ready, false);
    if (!next) return;
    step_queue(*next);
    check_alive();
  }
}

void Device::check_alive() const {
  if (dead_) throw_loss(dead_);
}

/// Loses the device: queued work no longer runs, and every later call of the host reports it.
void Device::die(std::exception_ptr cause) noexcept {
  dead_ = std::move(cause);
  for (Queue& queue : queues_) {
    queue.failing = nullptr;
    queue.flight.is_on = false;
    for (; !queue.commands.empty(); queue.commands.pop()) queue.commands.front().body.reset();
    queue.waits.truncate(queue.waits.head());
  }
  free_unused();
}

/// Returns whether the next command of a queue can run: it was flushed, and everything that it waits for has ended.
bool Device::ready(Queue& queue) {
  if (queue.commands.empty()) return false;
  Command& command = queue.commands.front();
  const bool on_device = command.file == nullptr;
  if (on_device && options_.needs_flush && !in_virtual_time() && queue.commands.head() >= queue.flushed) return false;
  while (command.waits > 0) {
    const WaitPoint point = queue.waits.front();
    if (!waited_for(point)) return false;
    const bool passes_on = !is_of_files(point.queue) && command.kind != CommandKind::read_file;
    if (!queue.failing && passes_on && point.device == nullptr) {
      queue.failing = failure_of(point.queue, point.sequence);
    } else if (!queue.failing && passes_on && is_there(point)) {
      queue.failing = point.device->failure_of(point.queue, point.sequence);
    }
    queue.waits.pop();
    --command.waits;
  }
  return true;
}

Ready Device::ready_queues(bool host_blocked) {
  if (options_.order == Order::chosen) settle();
  Ready now{};
  Ready delayed{};
  for (std::size_t i = 0; i < queue_count; ++i) {
    if (!ready(queues_[i])) continue;
    (queues_[i].commands.front().delayed ? delayed : now)[i] = true;
  }
  return host_blocked && !any(now) ? delayed : now;
}

/// Runs all waits and records that are ready. They move no bytes, so an enumeration of interleavings does not treat
/// them as choices.
void Device::settle() {
  for (bool moved = true; std::exchange(moved, false);) {
    for (const QueueKind kind : all_queues) {
      Queue& queue = queue_of(kind);
      while (ready(queue) && !queue.commands.front().delayed &&
             (queue.commands.front().kind == CommandKind::wait || queue.commands.front().kind == CommandKind::record)) {
        step_queue(kind);
        moved = true;
      }
    }
  }
}

void Device::step_queue(QueueKind kind) {
  Queue& queue = queue_of(kind);
  Command& command = queue.commands.front();
  ++counters_.steps;
  const std::uint64_t where = (queue.commands.head() << 6U) | (std::uint64_t{command.piece} << 3U) | index(kind);
  hash_ = scramble(hash_ ^ where ^ (calls_ << 40U));
  if (!queue.failing && command.fails) queue.failing = told_to_fail_;
  if (!queue.failing) {
    in_step_ = true;
    try {
      run_piece(command);
    } catch (...) {
      queue.failing = std::current_exception();
    }
    in_step_ = false;
  }
  if (queue.failing && options_.failures_stick && !is_of_files(kind)) return die(queue.failing);
  if (queue.failing || ++command.piece >= command.pieces) end_command(queue);
}

void Device::run_piece(Command& command) {
  if (command.kind == CommandKind::kernel) {
    command.body(command.piece);
  } else if (is_copy(command.kind)) {
    if (command.neighbour != nullptr && command.neighbour->lost) throw std::runtime_error("the neighbour is lost");
    const std::uint64_t share = command.size / command.pieces;
    const std::uint64_t begin = share * command.piece;
    const std::uint64_t size = command.piece + 1 == command.pieces ? command.size - begin : share;
    std::memcpy(command.to + begin, command.from + begin, size);
  } else if (command.kind == CommandKind::encode_to_host) {
    zero_encode(command.elements, {command.from, command.size},
                {command.to, static_cast<std::size_t>(zero_worst_case(command.elements).value)});
  } else if (command.kind == CommandKind::decode_to_device) {
    const std::span<const std::byte> encoded{command.from,
                                             static_cast<std::size_t>(zero_worst_case(command.elements).value)};
    const ZeroStatus status = zero_decode(command.elements, encoded, Bytes{}, {command.to, command.size});
    if (status != ZeroStatus::good) throw std::runtime_error("there is no encoded value of such elements");
  } else if (command.kind == CommandKind::read_file) {
    command.file->read(command.file_offset, {command.to, command.size});
  } else if (command.kind == CommandKind::write_file) {
    command.file->write(command.file_offset, {command.from, command.size});
  }
}

void Device::end_command(Queue& queue) {
  Command& command = queue.commands.front();
  if (command.is_event && queue.failing) {
    queue.failed.push_back({queue.commands.head(), queue.failing});
    queue.failing = nullptr;
  }
  command.body.reset();
  if (options_.clock != nullptr) {
    const std::int64_t now = options_.clock->now().count();
    queue.ends.push_back(now);
    if (options_.log) {
      log_[command.logged].start = std::chrono::nanoseconds{queue.flight.start};
      log_[command.logged].end = std::chrono::nanoseconds{now};
    }
    queue.flight.is_on = false;
  }
  queue.commands.pop();
  if (!deferred_.empty()) free_unused();
}

std::exception_ptr Device::failure_of(QueueKind queue, std::uint64_t sequence) const {
  for (const Failure& failure : queue_of(queue).failed) {
    if (failure.sequence == sequence) return failure.cause;
  }
  return nullptr;
}

/// Runs one step while the host waits. Returns false if nothing is queued.
bool Device::step_any() {
  if (options_.clock != nullptr) return options_.clock->advance(std::numeric_limits<std::int64_t>::max());
  if (in_virtual_time()) return step_earliest();
  Ready ready = ready_queues(true);
  if (!any(ready)) {
    for (const QueueKind kind : all_queues) {
      Queue& queue = queue_of(kind);
      if (is_of_files(kind) || queue.commands.empty() || queue.flushed == queue.commands.tail()) continue;
      report([&] { return "the host waits for ever: queue " + std::string(name_of(kind)) + " was not flushed"; });
      queue.flushed = queue.commands.tail();
    }
    ready = ready_queues(true);
    if (!any(ready)) return false;
  }
  step_queue(*order_.next(ready, true));
  return true;
}

/// Runs the whole command with the earliest virtual start. It is ready, because everything that it waits for starts no
/// later and was issued before it.
bool Device::step_earliest() {
  const Command* first = nullptr;
  QueueKind chosen{};
  for (const QueueKind kind : all_queues) {
    Queue& queue = queue_of(kind);
    if (queue.commands.empty()) continue;
    const Command& command = queue.commands.front();
    if (first == nullptr || std::pair(command.start, command.issue) < std::pair(first->start, first->issue)) {
      first = &command;
      chosen = kind;
    }
  }
  if (first == nullptr) return false;
  Queue& queue = queue_of(chosen);
  [[maybe_unused]] const bool is_ready = ready(queue);
  assert(is_ready);
  const std::uint64_t before = queue.commands.head();
  while (queue.commands.head() == before) step_queue(chosen);
  return true;
}

/// In virtual time: runs everything that has ended by now.
void Device::run_until_now() {
  if (options_.clock != nullptr) return options_.clock->settle();
  const auto ends_by_now = [this](Queue& queue) {
    return !queue.commands.empty() && queue.commands.front().end <= now_;
  };
  while (std::any_of(queues_.begin(), queues_.end(), ends_by_now)) step_earliest();
}

bool Device::has_ended(const Point& point) {
  if (!point.recorded) return true;
  if (point.device != this) {
    throw BackendError(BackendError::Kind::failed, -34, "simulated device: an event of another device");
  }
  if (in_virtual_time()) {
    if (options_.clock == nullptr && point.end > now_) return false;
    run_until_now();
  }
  return queue_of(point.queue).commands.head() > point.sequence;
}

void Device::run_until_done(const Point& point) {
  Queue& queue = queue_of(point.queue);
  queue.flushed = queue.commands.tail();
  while (queue.commands.head() <= point.sequence) {
    if (step_any() || options_.clock == nullptr) continue;
    throw BackendError(BackendError::Kind::failed, -30, "simulated device: the host waits for what nothing can start");
  }
}

void Device::run_all() {
  for (Queue& queue : queues_) queue.flushed = queue.commands.tail();
  const auto is_done = [this] {
    return options_.clock != nullptr &&
           std::ranges::all_of(queues_, [](Queue& queue) { return queue.commands.empty(); });
  };
  while (!is_done() && step_any()) {
  }
  for (const Queue& queue : queues_) now_ = std::max(now_, queue.end);
}

// ---- with a clock that is shared with other devices

bool Device::waited_for(const WaitPoint& point) const {
  if (point.device != nullptr && !is_there(point)) return true;  // it is gone
  const Device& other = point.device != nullptr ? *point.device : *this;
  return other.queue_of(point.queue).commands.head() > point.sequence;
}

std::int64_t Device::end_of(const Point& point) const {
  return options_.clock != nullptr ? queue_of(point.queue).ends[point.sequence] : point.end;
}

bool Device::start_or_end_now() {
  const std::int64_t now = options_.clock->now().count();
  bool any_moved = false;
  for (const QueueKind kind : all_queues) {
    Queue& queue = queue_of(kind);
    Flight& flight = queue.flight;
    if (!flight.is_on) {
      if (!ready(queue)) continue;
      const Command& command = queue.commands.front();
      const std::int64_t alone = command.end - command.start;
      const bool flows = command.flowing != 0;
      flight = {true, now, now + (flows ? speed_of(command.kind).latency.count() : alone),
                static_cast<double>(command.flowing)};
      any_moved = true;
    }
    if (flight.until > now || flight.left > 0) continue;
    const std::uint64_t before = queue.commands.head();
    while (queue.commands.head() == before) step_queue(kind);
    any_moved = true;
  }
  return any_moved;
}

std::int64_t Device::next_end(std::vector<SharedClock::Flow>& flows) {
  const std::int64_t now = options_.clock->now().count();
  std::int64_t next = std::numeric_limits<std::int64_t>::max();
  for (const QueueKind kind : all_queues) {
    Queue& queue = queue_of(kind);
    if (!queue.flight.is_on) continue;
    if (queue.flight.until > now) {
      next = std::min(next, queue.flight.until);
    } else {
      const Command& command = queue.commands.front();
      const bool to_device =
          command.kind == CommandKind::copy_to_device || command.kind == CommandKind::decode_to_device;
      flows.push_back({this, index(kind), to_device ? SharedClock::Way::to_device : SharedClock::Way::from_device,
                       static_cast<double>(speed_of(command.kind).bytes_per_second) * 1e-9, 0});
    }
  }
  return next;
}

void Device::pass_bytes(std::size_t queue, double bytes) {
  constexpr double next_to_none = 1e-3;
  double& left = queues_[queue].flight.left;
  left = left - bytes < next_to_none ? 0 : left - bytes;
}

void Device::pass_time(std::chrono::nanoseconds until) {
  if (!in_virtual_time()) return;
  if (options_.clock != nullptr) {
    while (options_.clock->now() < until) options_.clock->advance(until.count());
    return;
  }
  now_ = std::max(now_, static_cast<std::int64_t>(until.count()));
  run_until_now();
}

void Device::flush(QueueKind queue) {
  host_calls();
  ++counters_.flushes;
  queue_of(queue).flushed = queue_of(queue).commands.tail();
}

void Device::access_neighbour(BlockId memory, Bytes offset, const HostBytes& bytes) {
  host_calls();
  HostBlock& block = host_heap_.block(memory.number);
  if (block.neighbour->lost) {
    throw BackendError(BackendError::Kind::failed, -14, "simulated device: the neighbour is lost");
  }
  if (offset.value > block.size || bytes.size > block.size - offset.value) {
    throw BackendError(BackendError::Kind::failed, -30, "simulated device: bytes beyond a memory of a neighbour");
  }
  note_host_access(memory, offset, Bytes{bytes.size}, bytes.write);
  std::byte* const there = block.storage.get() + offset.value;
  std::memcpy(bytes.write ? there : bytes.data, bytes.write ? bytes.data : there, bytes.size);
}

EventStatus Device::status(const Point& point) {
  host_calls();
  ++counters_.status_queries;
  const bool ended = has_ended(point);
  check_alive();
  if (!ended) return EventStatus::running;
  if (!point.recorded) return EventStatus::complete;
  host_clock_.join(point.clock);
  return failure_of(point.queue, point.sequence) ? EventStatus::failed : EventStatus::complete;
}

void Device::wait(const Point& point) {
  host_calls(true);
  ++counters_.host_waits;
  if (!point.recorded) return;
  if (!has_ended(point)) {
    ++counters_.host_waits_blocked;
    run_until_done(point);
  }
  check_alive();
  now_ = std::max(now_, point.end);
  host_clock_.join(point.clock);
  if (const std::exception_ptr cause = failure_of(point.queue, point.sequence)) throw_failure(cause);
}

void Device::finish() {
  host_calls(true);
  ++counters_.host_waits;
  if (in_virtual_time()) run_until_now();
  const auto idle = [](const Queue& queue) { return queue.commands.empty(); };
  if (!std::all_of(queues_.begin(), queues_.end(), idle)) ++counters_.host_waits_blocked;
  run_all();
  check_alive();
  for (const Queue& queue : queues_) host_clock_.join(queue.clock);
}

void Device::set_timing(bool on) {
  host_calls();
  timing_ = on;
}

std::optional<std::chrono::nanoseconds> Device::elapsed(const Point& from, const Point& to) {
  host_calls();
  for (const Point* point : {&from, &to}) {
    if (!point->recorded || !point->timed || !has_ended(*point)) return std::nullopt;
    if (failure_of(point->queue, point->sequence)) return std::nullopt;
  }
  return std::chrono::nanoseconds{end_of(to) - end_of(from)};
}

std::uint64_t Device::step(std::uint64_t count) {
  std::uint64_t steps = 0;
  for (; steps < count; ++steps) {
    std::int64_t before[queue_count];
    for (std::size_t i = 0; i < queue_count; ++i) {
      before[i] = queues_[i].commands.empty() ? 0 : queues_[i].commands.front().end;
    }
    const Progress progress = done();
    if (!step_any()) break;
    for (std::size_t i = 0; in_virtual_time() && i < queue_count; ++i) {
      if (queues_[i].commands.head() > progress[i]) now_ = std::max(now_, before[i]);
    }
  }
  return steps;
}

}  // namespace swapmm::simulated::detail
