// SPDX-License-Identifier: Apache-2.0
// Objects, and queueing of commands. device_steps.cpp runs the commands; checker.cpp checks them.

#include <swapmm/backend/testing/simulated/device.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include <swapmm/base/error.hpp>

namespace swapmm::simulated::detail {

namespace {

__extension__ typedef unsigned __int128 WideNumber;  // NOLINT(modernize-use-using): __extension__ takes no alias

BackendError refused(const std::string& why) { return {BackendError::Kind::failed, -30, "simulated device: " + why}; }

std::int64_t copy_duration(const CopySpeed& speed, std::uint64_t bytes) {
  const WideNumber nanoseconds = WideNumber{bytes} * 1'000'000'000U;
  const WideNumber rounded_up = (nanoseconds + speed.bytes_per_second - 1) / speed.bytes_per_second;
  return speed.latency.count() + static_cast<std::int64_t>(rounded_up);
}

std::string_view copy_name(CommandKind kind) {
  switch (kind) {
    case CommandKind::copy_from_neighbour: return "copy from a neighbour";
    case CommandKind::copy_to_neighbour: return "copy to a neighbour";
    case CommandKind::copy_to_host: return "copy to host";
    case CommandKind::encode_to_host: return "encoded copy to host";
    case CommandKind::decode_to_device: return "encoded copy to device";
    default: return "copy to device";
  }
}

bool is_to_device(CommandKind kind) {
  return kind == CommandKind::copy_to_device || kind == CommandKind::copy_from_neighbour ||
         kind == CommandKind::decode_to_device;
}

}  // namespace

Device::Device(const Options& options)
    : options_(options),
      heap_(options.device_bytes, options.alignment, options.check),
      host_heap_(options.check),
      order_(options) {
  capabilities_.device_name = options.device_name;
  capabilities_.alignment = options.alignment;
  capabilities_.view_alignment = options.alignment;
  capabilities_.max_allocation = options.max_allocation;
  capabilities_.host_slab = options.host_slab;
  capabilities_.failures_stick = options.failures_stick;
  capabilities_.copy_engines = options.half_duplex ? 1 : 2;
  conflicts_.reserve(agent_count);
  if (options_.clock != nullptr) {
    if (!in_virtual_time()) throw refused("a shared clock needs Order::virtual_time");
    if (options_.half_duplex) throw refused("half duplex with a shared clock: share the capacity of both ways instead");
    number_ = options_.clock->add(*this);
  }
  // Tests that let memory run out test the library, so the device allocates its own memory in advance.
  constexpr std::size_t usual_failures = 64;
  for (Queue& queue : queues_) queue.failed.reserve(usual_failures);
}

Device::~Device() {
  if (options_.clock != nullptr) options_.clock->remove(*this);
}

/// Makes room, so that releasing one more memory does not allocate.
void Device::reserve_release() {
  deferred_.reserve(counters_.device_memories.live + counters_.host_memories.live + counters_.neighbour_memories.live +
                    deferred_.size() + 1);
}

BlockId Device::allocate(Bytes size) {
  host_calls();
  if (size.value == 0) throw refused("a device memory of 0 bytes");
  if (options_.max_allocation && size > *options_.max_allocation) {
    throw BackendError(BackendError::Kind::out_of_device_memory, -61,
                       "simulated device: " + std::to_string(size.value) + " bytes in one memory, at most " +
                           std::to_string(options_.max_allocation->value),
                       size);
  }
  reserve_release();
  auto number = heap_.allocate(size.value);
  // Bytes of memory that was released while work used it become free when that work ends.
  if (!number && !deferred_.empty()) {
    for (Queue& queue : queues_) queue.flushed = queue.commands.tail();
    while (!deferred_.empty() && step(1) == 1) {
    }
    number = heap_.allocate(size.value);
  }
  if (!number) {
    throw BackendError(BackendError::Kind::out_of_device_memory, -4,
                       "simulated device: no " + std::to_string(size.value) + " bytes in one piece, " +
                           std::to_string(counters_.device_bytes.value) + " of " + std::to_string(heap_.size()) +
                           " in use",
                       size);
  }
  const DeviceBlock& block = heap_.block(*number);
  if (options_.check) {
    try {
      device_shadow_.reset(block.offset, block.offset + block.capacity);
    } catch (...) {
      heap_.free(*number);
      throw;
    }
  }
  ++counters_.device_memories.live;
  ++counters_.device_memories.made;
  counters_.device_bytes += size;
  counters_.peak_device_bytes = std::max(counters_.peak_device_bytes, counters_.device_bytes);
  return {*number, block.generation};
}

void Device::release(BlockId id) noexcept {
  DeviceBlock& block = heap_.block(id.number);
  --counters_.device_memories.live;
  finish_release(block, false, id.number);
}

BlockId Device::allocate_host(Bytes size, HostKind kind) {
  host_calls();
  if (size.value == 0) throw refused("a host memory of 0 bytes");
  const auto over = [&](const std::optional<Bytes>& limit, Bytes used) {
    return limit && (size > *limit || used > *limit - size);
  };
  if (over(options_.host_bytes, counters_.host_bytes) ||
      (kind == HostKind::pinned && over(options_.pinned_bytes, counters_.pinned_bytes))) {
    throw BackendError(BackendError::Kind::out_of_host_memory, -6,
                       "simulated device: no " + std::to_string(size.value) + " bytes of host memory, " +
                           std::to_string(counters_.pinned_bytes.value) + " pinned of " +
                           std::to_string(counters_.host_bytes.value) + " in use",
                       size);
  }
  reserve_release();
  const std::uint32_t number = host_heap_.allocate(size.value, kind);
  ++counters_.host_memories.live;
  ++counters_.host_memories.made;
  counters_.host_bytes += size;
  counters_.peak_host_bytes = std::max(counters_.peak_host_bytes, counters_.host_bytes);
  if (kind == HostKind::pinned) counters_.pinned_bytes += size;
  return {number, host_heap_.block(number).generation};
}

BlockId Device::allocate_at(const std::shared_ptr<NeighbourState>& neighbour, Bytes size) {
  host_calls();
  if (size.value == 0) throw refused("a memory of 0 bytes on a neighbour");
  if (neighbour->lost || size > neighbour->capacity - neighbour->in_use) {
    throw BackendError(BackendError::Kind::out_of_device_memory, -4,
                       "simulated device: no " + std::to_string(size.value) + " bytes on the neighbour, " +
                           std::to_string(neighbour->in_use.value) + " of " +
                           std::to_string(neighbour->capacity.value) + " in use",
                       size);
  }
  reserve_release();
  const std::uint32_t number = host_heap_.allocate(size.value, HostKind::pinned);
  HostBlock& block = host_heap_.block(number);
  block.neighbour = neighbour;
  neighbour->in_use += size;
  neighbour->peak = std::max(neighbour->peak, neighbour->in_use);
  ++counters_.neighbour_memories.live;
  ++counters_.neighbour_memories.made;
  return {number, block.generation};
}

void Device::release_host(BlockId id) noexcept {
  HostBlock& block = host_heap_.block(id.number);
  --(block.neighbour != nullptr ? counters_.neighbour_memories : counters_.host_memories).live;
  finish_release(block, true, id.number);
}

void Device::finish_release(Block& block, bool on_host, std::uint32_t number) noexcept {
  block.state = BlockState::released;
  deferred_.push_back({on_host, number});  // room was made when the block was allocated
  free_unused();
}

void Device::free_unused() noexcept {
  const Progress progress = done();
  std::erase_if(deferred_, [&](const Deferred& deferred) {
    if (deferred.on_host) {
      HostBlock& block = host_heap_.block(deferred.number);
      if (!block.unused(progress)) return false;
      if (block.neighbour != nullptr) {
        block.neighbour->in_use -= Bytes{block.size};
      } else {
        counters_.host_bytes -= Bytes{block.size};
        if (block.kind == HostKind::pinned) counters_.pinned_bytes -= Bytes{block.size};
      }
      if (options_.at_release) options_.at_release({block.storage.get(), block.size});
      host_heap_.free(deferred.number);
    } else {
      DeviceBlock& block = heap_.block(deferred.number);
      if (!block.unused(progress)) return false;
      counters_.device_bytes -= Bytes{block.size};
      if (options_.at_release) options_.at_release({heap_.data(block.offset), block.size});
      heap_.free(deferred.number);
    }
    return true;
  });
}

Place Device::make_address(BlockId memory, Bytes offset, Bytes size) {
  host_calls();
  const DeviceBlock& block = heap_.block(memory.number);
  if (size.value == 0) throw refused("an address of 0 bytes");
  if (offset.value % options_.alignment.value != 0) {
    throw refused("the offset " + std::to_string(offset.value) + " is no multiple of the alignment " +
                  std::to_string(options_.alignment.value));
  }
  if (offset.value > block.size || size.value > block.size - offset.value) {
    throw refused("a place at " + std::to_string(offset.value) + " of " + std::to_string(size.value) +
                  " bytes in a memory of " + std::to_string(block.size));
  }
  ++counters_.addresses.live;
  ++counters_.addresses.made;
  return {this, memory, heap_.data(block.offset + offset.value), size.value};
}

void Device::release_address(BlockId) noexcept { --counters_.addresses.live; }

BlockId Device::make_event() {
  host_calls();
  ++counters_.events.live;
  ++counters_.events.made;
  return {};
}

void Device::release_event(BlockId) noexcept { --counters_.events.live; }

Device::Issue::Issue(Device& device, QueueKind queue) : device_(device), queue_(queue) {
  device.host_calls();
  Queue& target = device.queue_of(queue);
  target.commands.reserve_one();
  waits_before_ = target.waits.tail();
  start_ = std::max(target.end, device.now_);
  clock_ = target.clock;
  clock_.join(device.host_clock_);
}

Device::Issue::~Issue() {
  if (!queued_) device_.queue_of(queue_).waits.truncate(waits_before_);
}

void Device::Issue::wait_for(const Point& point) {
  if (!point.recorded) return;
  const bool is_own = point.device == &device_;
  if (!is_own && !device_.is_beside(point.device)) throw refused("a wait for an event of another device");
  start_ = std::max(start_, point.end);
  if (is_own) clock_.join(point.clock);  // what another device does is not seen by the checker
  const Queue& other = point.device->queue_of(point.queue);
  if (point.sequence < other.commands.head() && other.failed.empty()) return;
  Queue& target = device_.queue_of(queue_);
  target.waits.reserve_one();
  target.waits.push_slot() = {point.queue, point.sequence, is_own ? nullptr : point.device,
                              is_own ? 0 : point.device->number_};
  ++waits_;
}

/// Queues the command. Nothing here can fail: everything that can fail was done before.
Device::Command& Device::push(Issue& issue, CommandKind kind, std::int64_t start, std::int64_t duration) noexcept {
  Queue& queue = queue_of(issue.queue_);
  Command& command = queue.commands.push_slot();
  command.kind = kind;
  command.is_event = kind != CommandKind::kernel && kind != CommandKind::wait;
  command.delayed = std::exchange(queue.delay_next, false);
  command.fails = std::exchange(queue.fail_next, false);
  command.pieces = 1;
  command.piece = 0;
  command.flowing = 0;
  command.logged = log_.size() - 1;  // if there is a log
  command.file = nullptr;
  command.neighbour = nullptr;
  command.waits = issue.waits_;
  command.issue = issued_++;
  command.start = start;
  command.end = start + duration;
  queue.end = command.end;
  queue.clock = issue.clock_;
  issue.queued_ = true;
  ++counters_.queued[static_cast<std::size_t>(kind)];
  return command;
}

/// Returns the point of the command that was queued last on the issue's queue.
Point Device::point_of(const Issue& issue) const {
  const Queue& queue = queue_of(issue.queue_);
  return {true, timing_, issue.queue_, this, queue.commands.tail() - 1, queue.end, queue.clock};
}

void Device::add_log(const Issue& issue, CommandKind kind, std::string_view name, std::uint64_t bytes,
                     std::int64_t start, std::int64_t duration) {
  if (!options_.log) return;
  log_.push_back({kind, issue.queue_, queue_of(issue.queue_).commands.tail(), std::string(name), Bytes{bytes},
                  std::chrono::nanoseconds{start}, std::chrono::nanoseconds{start + duration}});
}

Point Device::kernel(Issue& issue, std::string_view name, std::chrono::nanoseconds duration,
                     std::span<const Touch> touches, int phases, bool is_event, Body&& body) {
  for (const Touch& touch : touches) {
    if (touch.place.device != this) throw refused("kernel '" + std::string(name) + "' touches another device");
  }
  if (options_.check) {
    for (const Touch& touch : touches) prepare_device_access(touch.place, touch.bytes);
  }
  add_log(issue, CommandKind::kernel, name, 0, issue.start_, duration.count());

  Queue& queue = queue_of(issue.queue_);
  const std::uint64_t count = queue.commands.tail() + 1;
  issue.clock_.of[index(issue.queue_)] = count;
  for (const Touch& touch : touches) {
    if (!check_place(touch.place, touch.bytes, name)) continue;
    heap_.block(touch.place.block.number).last_use[index(issue.queue_)] = count;
    if (options_.check) {
      note_device_access(touch.place, touch.bytes, touch.is_write, index(issue.queue_), issue.clock_, name);
    }
  }
  Command& command = push(issue, CommandKind::kernel, issue.start_, duration.count());
  command.is_event = is_event;
  command.pieces = static_cast<std::uint8_t>(phases);
  command.body = std::move(body);
  return point_of(issue);
}

void Device::copy_on_device(Issue& issue, const Place& to, const Place& from, Bytes size) {
  constexpr std::string_view name = "copy on the device";
  if (size.value == 0) throw refused("a copy of 0 bytes");
  if (size.value > to.size || size.value > from.size) {
    const std::string why = std::string(name) + " of " + std::to_string(size.value) + " bytes, between places of " +
                            std::to_string(from.size) + " and " + std::to_string(to.size);
    if (options_.check) report([&] { return "out of bounds: " + why; });
    throw refused(why);
  }
  const std::array touches{Touch{from, size.value, false}, Touch{to, size.value, true}};
  const std::chrono::nanoseconds duration{copy_duration(options_.on_device, size.value)};
  const auto length = static_cast<std::size_t>(size.value);
  kernel(issue, name, duration, touches, 1, false,
         Body([target = to.data, source = from.data, length](int) { std::memcpy(target, source, length); }));
}

std::int64_t Device::copy_start(const Issue& issue) const {
  if (options_.half_duplex) return std::max(issue.start_, copy_engine_end_);
  if (!options_.one_port || !is_of_neighbours(issue.queue_)) return issue.start_;
  return std::max(issue.start_, port_end_[port_of(issue.queue_)]);
}
std::size_t Device::port_of(QueueKind queue) { return queue == neighbour_in_queue(neighbour_path(queue)) ? 0 : 1; }

CopySpeed Device::speed_of(CommandKind kind, const NeighbourState* neighbour) const {
  switch (kind) {
    case CommandKind::copy_from_neighbour: return neighbour->in.value_or(options_.neighbour_in);
    case CommandKind::copy_to_neighbour: return neighbour->out.value_or(options_.neighbour_out);
    case CommandKind::encode_to_host:
    case CommandKind::copy_to_host: return options_.d2h;
    default: return options_.h2d;
  }
}

Device::Command& Device::queue_copy(Issue& issue, CommandKind kind, const CopyEnds& ends, std::int64_t duration) {
  const bool to_device = is_to_device(kind);
  const std::string_view name = copy_name(kind);
  const auto& [place, size, block, host_offset, host_bytes] = ends;
  if (place.device != this) throw refused("a copy with an address of another device");
  if (size == 0) throw refused("a copy of 0 bytes");
  if (size > place.size || host_offset > block.size || host_bytes > block.size - host_offset) {
    const std::string why = std::string(name) + " of " + std::to_string(size) + " bytes, at " +
                            std::to_string(host_offset) + " of a memory of " + std::to_string(block.size) +
                            " and in a place of " + std::to_string(place.size);
    if (options_.check) report([&] { return "out of bounds: " + why; });
    throw refused(why);
  }
  if (options_.check) {
    prepare_device_access(place, size);
    block.shadow.prepare(host_offset, host_offset + host_bytes);
  }
  const std::int64_t start = copy_start(issue);
  add_log(issue, kind, {}, size, start, duration);

  const std::size_t agent = index(issue.queue_);
  const std::uint64_t count = queue_of(issue.queue_).commands.tail() + 1;
  issue.clock_.of[agent] = count;
  if (check_place(place, size, name)) {
    heap_.block(place.block.number).last_use[agent] = count;
    if (options_.check) note_device_access(place, size, to_device, agent, issue.clock_, name);
  }
  block.last_use[agent] = count;
  if (options_.check) {
    note_host_memory_access(block, host_offset, host_offset + host_bytes, !to_device, agent, issue.clock_, name);
  }
  Command& command = push(issue, kind, start, duration);
  copy_engine_end_ = command.end;
  if (is_of_neighbours(issue.queue_)) port_end_[port_of(issue.queue_)] = command.end;
  command.neighbour = block.neighbour.get();
  command.size = size;
  std::byte* const host = block.storage.get() + host_offset;
  command.to = to_device ? place.data : host;
  command.from = to_device ? host : place.data;
  return command;
}

Point Device::copy(Issue& issue, CommandKind kind, const Place& place, BlockId host, Bytes host_offset, Bytes size) {
  HostBlock& block = host_heap_.block(host.number);
  const std::int64_t duration = copy_duration(speed_of(kind, block.neighbour.get()), size.value);
  Command& command = queue_copy(issue, kind, {place, size.value, block, host_offset.value, size.value}, duration);
  command.pieces = order_.pieces(size.value);
  if (command.neighbour == nullptr) command.flowing = size.value;
  const Point point = point_of(issue);
  // A copy of pageable memory may or may not block the host. Callers must not rely on either.
  const bool may_block = options_.order != Order::virtual_time && options_.order != Order::chosen;
  if (may_block && block.kind == HostKind::pageable && order_.coin()) run_until_done(point);
  return point;
}

Point Device::copy_encoded(Issue& issue, CommandKind kind, const Place& place, BlockId host,
                           const ZeroElements& elements) {
  const Bytes size{elements.count * elements.element_bytes};
  const double part = options_.encoded_part ? options_.encoded_part(size) : 0.5;
  const auto timed = static_cast<std::uint64_t>(static_cast<double>(size.value) * part);
  const std::int64_t duration = copy_duration(speed_of(kind), timed);
  const CopyEnds ends{place, size.value, host_heap_.block(host.number), 0, zero_worst_case(elements).value};
  Command& command = queue_copy(issue, kind, ends, duration);
  command.elements = elements;
  command.flowing = timed;
  return point_of(issue);
}

Point Device::use_file(Issue& issue, CommandKind kind, FileMemory& file, Bytes file_offset, BlockId host,
                       Bytes host_offset, Bytes size) {
  const bool reads = kind == CommandKind::read_file;
  const std::string_view name = reads ? "read of a file" : "write of a file";
  HostBlock& block = host_heap_.block(host.number);
  if (size.value == 0) throw refused("a " + std::string(name) + " of 0 bytes");
  if (host_offset.value > block.size || size.value > block.size - host_offset.value) {
    const std::string why = std::string(name) + ": " + std::to_string(size.value) + " bytes, at " +
                            std::to_string(host_offset.value) + " of a host memory of " + std::to_string(block.size);
    if (options_.check) report([&] { return "out of bounds: " + why; });
    throw refused(why);
  }
  std::byte* const bytes = block.storage.get() + host_offset.value;
  const std::uint64_t alignment = file.alignment().value;
  const std::uint64_t unaligned =
      (file_offset.value | size.value | static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(bytes))) &
      (alignment - 1);
  if (unaligned != 0) throw refused("a " + std::string(name) + " that is not aligned to " + std::to_string(alignment));
  if (options_.check) block.shadow.prepare(host_offset.value, host_offset.value + size.value);
  const std::int64_t duration = copy_duration(reads ? options_.file_read : options_.file_write, size.value);
  add_log(issue, kind, {}, size.value, issue.start_, duration);

  const std::size_t agent = index(issue.queue_);
  const std::uint64_t count = queue_of(issue.queue_).commands.tail() + 1;
  issue.clock_.of[agent] = count;
  block.last_use[agent] = count;
  if (options_.check) {
    note_host_memory_access(block, host_offset.value, host_offset.value + size.value, reads, agent, issue.clock_, name);
  }
  Command& command = push(issue, kind, issue.start_, duration);
  command.size = size.value;
  command.to = reads ? bytes : nullptr;
  command.from = reads ? nullptr : bytes;
  command.file = &file;
  command.file_offset = file_offset;
  return point_of(issue);
}

void Device::barrier(Issue& issue, std::size_t events) {
  add_log(issue, CommandKind::wait, {}, 0, issue.start_, 0);
  push(issue, CommandKind::wait, issue.start_, 0);
  counters_.waited_events += events;
}

Point Device::record(Issue& issue) {
  add_log(issue, CommandKind::record, {}, 0, issue.start_, 0);
  push(issue, CommandKind::record, issue.start_, 0);
  return point_of(issue);
}

}  // namespace swapmm::simulated::detail
