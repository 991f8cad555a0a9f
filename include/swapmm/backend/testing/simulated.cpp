// SPDX-License-Identifier: Apache-2.0
#include <swapmm/backend/testing/simulated.hpp>

#include <algorithm>
#include <limits>

#include <swapmm/base/error.hpp>
#include <swapmm/codec/zero_code.hpp>

namespace swapmm::simulated {

using detail::BlockId;
using detail::Body;
using detail::Device;
using detail::Point;

struct Backend::Shared {
  explicit Shared(const Options& options) : device(options), queue(Queue(&device)) {}

  Device device;
  Queue queue;
};

namespace {

void wait_for_all(Device::Issue& issue, std::span<const Event* const> waits, const auto& point_of) {
  for (const Event* event : waits) issue.wait_for(point_of(*event));
}

/// Throws if the object was moved from, or belongs to another device.
template <class Object>
void check_owner(const Object& claim, const Device& device) {
  if (claim.device() != &device) {
    throw BackendError(BackendError::Kind::failed, -34, "simulated device: an object that is not of this device");
  }
}

/// The rest of a place, from an offset on. An offset beyond its end leaves nothing, which copies refuse.
Place part_of(Place place, Bytes offset) {
  const std::uint64_t skipped = std::min<std::uint64_t>(offset.value, place.size);
  place.data += skipped;
  place.size -= skipped;
  return place;
}

}  // namespace

NativeEvent Queue::queue(std::string_view name, std::chrono::nanoseconds duration, const Touches& touches,
                         const WaitList* waits, int phases, Body body) {
  Device::Issue issue(*device_, QueueKind::compute);
  if (waits != nullptr) {
    waits->for_each([&](const Point& point) { issue.wait_for(point); });
  }
  return NativeEvent(device_->kernel(issue, name, duration, touches.all(), phases, waits != nullptr, std::move(body)));
}

Backend::Backend(const Options& options) : shared_(std::make_shared<Shared>(options)) {}

const Capabilities& Backend::capabilities() const { return shared_->device.capabilities(); }

bool Backend::can_wait_for(const Backend& other) const {
  const auto& clock = shared_->device.options().clock;
  return clock != nullptr && clock == other.shared_->device.options().clock;
}

DeviceMemory Backend::allocate(Bytes size) {
  const BlockId id = shared_->device.allocate(size);
  return DeviceMemory({std::shared_ptr<Device>(shared_, &shared_->device), id});
}

HostMemory Backend::allocate_host(Bytes size, HostKind kind) {
  const BlockId id = shared_->device.allocate_host(size, kind);
  return {{std::shared_ptr<Device>(shared_, &shared_->device), id}, shared_->device.host_data(id)};
}

Address Backend::address(DeviceMemory& memory, Bytes offset, Bytes size) {
  check_owner(memory.claim_, shared_->device);
  const Place place = shared_->device.make_address(memory.claim_.id(), offset, size);
  return {{std::shared_ptr<Device>(shared_, &shared_->device), {}}, place};
}

Event Backend::make_event() {
  const BlockId id = shared_->device.make_event();
  return Event({std::shared_ptr<Device>(shared_, &shared_->device), id});
}

struct Backend::Copy {
  QueueKind queue;
  CommandKind kind;
  Place place;
  const detail::Claim<&Device::release_host>& other;  // the memory at the other end
  Bytes offset;                                       // there
  Bytes size;
};

void Backend::queue(const Copy& copy, std::span<const Event* const> waits, Event& event) {
  check_owner(copy.other, shared_->device);
  Device::Issue issue(shared_->device, copy.queue);
  wait_for_all(issue, waits, [](const Event& waited) -> const Point& { return waited.point_; });
  event.point_ = shared_->device.copy(issue, copy.kind, copy.place, copy.other.id(), copy.offset, copy.size);
}

void Backend::copy_to_device(const Address& to, const HostMemory& from, Bytes from_offset, Bytes size,
                             std::span<const Event* const> waits, Event& event) {
  queue({QueueKind::h2d, CommandKind::copy_to_device, to.place(), from.claim_, from_offset, size}, waits, event);
}

void Backend::copy_to_host(HostMemory& to, Bytes to_offset, const Address& from, Bytes size,
                           std::span<const Event* const> waits, Event& event) {
  queue({QueueKind::d2h, CommandKind::copy_to_host, from.place(), to.claim_, to_offset, size}, waits, event);
}

void Backend::copy_part_to_device(const Address& to, Bytes to_offset, const HostMemory& from, Bytes from_offset,
                                  Bytes size, std::span<const Event* const> waits, Event& event) {
  queue({QueueKind::staged_h2d, CommandKind::copy_to_device, part_of(to.place(), to_offset), from.claim_, from_offset,
         size},
        waits, event);
}

void Backend::copy_part_to_host(HostMemory& to, Bytes to_offset, const Address& from, Bytes from_offset, Bytes size,
                                std::span<const Event* const> waits, Event& event) {
  queue({QueueKind::staged_d2h, CommandKind::copy_to_host, part_of(from.place(), from_offset), to.claim_, to_offset,
         size},
        waits, event);
}

void Backend::copy_on_device(const Address& to, Bytes to_offset, const Address& from, Bytes from_offset, Bytes size) {
  Device::Issue issue(shared_->device, QueueKind::compute);
  shared_->device.copy_on_device(issue, part_of(to.place(), to_offset), part_of(from.place(), from_offset), size);
}

NeighbourMemory Backend::allocate_at(const swapmm::Neighbour& neighbour, Bytes size, std::size_t path) {
  const auto* const known = dynamic_cast<const Neighbour*>(&neighbour);
  if (known == nullptr) {
    throw BackendError(BackendError::Kind::failed, -30, "simulated device: " + neighbour.name() + " is not simulated");
  }
  const BlockId id = shared_->device.allocate_at(known->state_, size);
  return {{std::shared_ptr<Device>(shared_, &shared_->device), id}, path};
}

void Backend::copy_from_neighbour(const Address& to, const NeighbourMemory& from, Bytes from_offset, Bytes size,
                                  std::span<const Event* const> waits, Event& event) {
  queue({neighbour_in_queue(from.path()), CommandKind::copy_from_neighbour, to.place(), from.claim_, from_offset, size},
        waits, event);
}

void Backend::copy_to_neighbour(NeighbourMemory& to, Bytes to_offset, const Address& from, Bytes size,
                                std::span<const Event* const> waits, Event& event) {
  queue({neighbour_out_queue(to.path()), CommandKind::copy_to_neighbour, from.place(), to.claim_, to_offset, size},
        waits, event);
}

void Backend::read_neighbour(const NeighbourMemory& from, Bytes offset, std::span<std::byte> to) {
  check_owner(from.claim_, shared_->device);
  shared_->device.access_neighbour(from.claim_.id(), offset, {to.data(), to.size(), false});
}

void Backend::write_neighbour(NeighbourMemory& to, Bytes offset, std::span<const std::byte> from) {
  check_owner(to.claim_, shared_->device);
  shared_->device.access_neighbour(to.claim_.id(), offset, {const_cast<std::byte*>(from.data()), from.size(), true});
}

Encoder Backend::make_encoder(Bytes largest) {
  const Bytes one = encoder_bytes(largest);
  DeviceMemory out = allocate(one);
  return {std::move(out), allocate(one)};
}

EncodedMemory Backend::allocate_encoded(const ZeroElements& elements) {
  return EncodedMemory(allocate_host(zero_worst_case(elements), HostKind::pinned));
}

void Backend::copy_encoded_to_host(Encoder& encoder, EncodedMemory& to, const Address& from,
                                   const ZeroElements& elements, std::span<const Event* const> waits, Event& event) {
  check_owner(encoder.out_.claim_, shared_->device);
  check_owner(to.memory_.claim_, shared_->device);
  Device::Issue issue(shared_->device, QueueKind::d2h);
  wait_for_all(issue, waits, [](const Event& waited) -> const Point& { return waited.point_; });
  event.point_ =
      shared_->device.copy_encoded(issue, CommandKind::encode_to_host, from.place(), to.memory_.claim_.id(), elements);
}

void Backend::copy_encoded_to_device(Encoder& encoder, const Address& to, const EncodedMemory& from,
                                     const ZeroElements& elements, std::span<const Event* const> waits, Event& event) {
  check_owner(encoder.in_.claim_, shared_->device);
  check_owner(from.memory_.claim_, shared_->device);
  Device::Issue issue(shared_->device, QueueKind::h2d);
  wait_for_all(issue, waits, [](const Event& waited) -> const Point& { return waited.point_; });
  event.point_ = shared_->device.copy_encoded(issue, CommandKind::decode_to_device, to.place(),
                                              from.memory_.claim_.id(), elements);
}

void Backend::read_encoded(const EncodedMemory& from, const ZeroElements& elements, Bytes offset,
                           std::span<std::byte> to) {
  note_host_access(from.memory_, Bytes{}, zero_worst_case(elements), false);
  const std::span<const std::byte> encoded{from.memory_.data(),
                                           static_cast<std::size_t>(zero_worst_case(elements).value)};
  swapmm::detail::require_good(zero_decode(elements, encoded, offset, to));
}

void Backend::write_encoded(EncodedMemory& to, const ZeroElements& elements, Bytes offset,
                            std::span<const std::byte> from) {
  note_host_access(to.memory_, Bytes{}, zero_worst_case(elements), true);
  swapmm::detail::require_good(zero_rewrite(
      elements, {to.memory_.data(), static_cast<std::size_t>(zero_worst_case(elements).value)}, offset, from));
}

void Backend::read_file(FileMemory& file, Bytes file_offset, HostMemory& to, Bytes to_offset, Bytes size,
                        std::span<const Event* const> waits, Event& event) {
  check_owner(to.claim_, shared_->device);
  Device::Issue issue(shared_->device, QueueKind::file_read);
  wait_for_all(issue, waits, [](const Event& waited) -> const Point& { return waited.point_; });
  event.point_ =
      shared_->device.use_file(issue, CommandKind::read_file, file, file_offset, to.claim_.id(), to_offset, size);
}

void Backend::write_file(FileMemory& file, Bytes file_offset, const HostMemory& from, Bytes from_offset, Bytes size,
                         std::span<const Event* const> waits, Event& event) {
  check_owner(from.claim_, shared_->device);
  Device::Issue issue(shared_->device, QueueKind::file_write);
  wait_for_all(issue, waits, [](const Event& waited) -> const Point& { return waited.point_; });
  event.point_ =
      shared_->device.use_file(issue, CommandKind::write_file, file, file_offset, from.claim_.id(), from_offset, size);
}

void Backend::wait(QueueKind queue, std::span<const Event* const> waits) {
  Device::Issue issue(shared_->device, queue);
  wait_for_all(issue, waits, [](const Event& waited) -> const Point& { return waited.point_; });
  shared_->device.barrier(issue, waits.size());
}

void Backend::record(QueueKind queue, Event& event) {
  Device::Issue issue(shared_->device, queue);
  event.point_ = shared_->device.record(issue);
}

void Backend::flush(QueueKind queue) { shared_->device.flush(queue); }

Queue& Backend::queue() { return shared_->queue; }

WaitList Backend::wait_list(std::span<const Event* const> waits) {
  WaitList list;
  for (const Event* event : waits) {
    if (event->point_.recorded) list.add(event->point_);
  }
  return list;
}

void Backend::adopt(Event& event, NativeEvent native) { event.point_ = native.point_; }

EventStatus Backend::status(const Event& event) { return shared_->device.status(event.point_); }

void Backend::wait(const Event& event) { shared_->device.wait(event.point_); }

void Backend::finish() { shared_->device.finish(); }

void Backend::set_timing(bool on) { shared_->device.set_timing(on); }

std::optional<std::chrono::nanoseconds> Backend::elapsed(const Event& from, const Event& to) {
  return shared_->device.elapsed(from.point_, to.point_);
}

void Backend::note_host_access(const HostMemory& memory, Bytes offset, Bytes size, bool write) {
  shared_->device.note_host_access(memory.claim_.id(), offset, size, write);
}

void Backend::delay(QueueKind queue) { shared_->device.delay_next(queue); }

void Backend::fail(QueueKind queue) { shared_->device.fail_next(queue); }

std::uint64_t Backend::step(std::uint64_t count) { return shared_->device.step(count); }

void Backend::drain() {
  for (const QueueKind queue : {QueueKind::compute, QueueKind::h2d, QueueKind::d2h}) shared_->device.flush(queue);
  step(std::numeric_limits<std::uint64_t>::max());
}

std::chrono::nanoseconds Backend::now() const { return shared_->device.now(); }
void Backend::pass_time(std::chrono::nanoseconds until) { shared_->device.pass_time(until); }
const Counters& Backend::counters() const { return shared_->device.counters(); }
std::uint64_t Backend::trace_hash() const { return shared_->device.trace_hash(); }
const std::vector<std::string>& Backend::violations() const { return shared_->device.violations(); }
std::uint64_t Backend::violation_count() const { return shared_->device.violation_count(); }
void Backend::clear_violations() { shared_->device.clear_violations(); }
const std::vector<LogEntry>& Backend::log() const { return shared_->device.log(); }

}  // namespace swapmm::simulated
