// SPDX-License-Identifier: Apache-2.0
#include <swapmm/cuda/backend.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include <swapmm/backend/device_choice.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/cuda/devices.hpp>
#include <swapmm/cuda/measure.hpp>
#include <swapmm/cuda/numa.hpp>
#include <swapmm/cuda/queue_transfer.hpp>
#include <swapmm/cuda/session.hpp>
#include <swapmm/cuda/status.hpp>

namespace swapmm::cuda {

using detail::Capture;
using detail::CurrentDevice;
using detail::host_alignment;
using detail::NearDevice;
using detail::new_event;
using detail::Session;

namespace {

std::string of_bytes(Bytes size) { return " of " + std::to_string(size.value) + " bytes"; }

BackendError refusal_of(cudaError_t status, const char* call, Bytes size) {
  BackendError error = error_of(status, call, of_bytes(size));
  error.need = size;
  return error;
}
std::size_t count(Bytes size) { return static_cast<std::size_t>(size.value); }

}  // namespace

// ---- memory

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  if (this == &other) return *this;
  end();
  session_ = std::move(other.session_);
  data_ = std::exchange(other.data_, nullptr);
  return *this;
}

void DeviceMemory::end() noexcept {
  if (data_ == nullptr) return;
  session_->end_memory({data_, Session::Memory::device});
  data_ = nullptr;
  session_.reset();
}

HostMemory& HostMemory::operator=(HostMemory&& other) noexcept {
  if (this == &other) return *this;
  end();
  session_ = std::move(other.session_);
  data_ = std::exchange(other.data_, nullptr);
  kind_ = other.kind_;
  filled_ = std::move(other.filled_);
  return *this;
}

void HostMemory::end() noexcept {
  if (data_ == nullptr) return;
  session_->end_memory({data_, kind_ == HostKind::pinned ? Session::Memory::pinned : Session::Memory::pageable});
  data_ = nullptr;
  for (EventHandle& filled : filled_) filled.reset();
  session_.reset();
}

// A copy from pageable memory to the device does not keep to the order of its stream: the API may take the bytes at the
// call, while work that writes them, such as the read of a file, is still queued. Therefore the host waits for that
// work before the call. All other accesses are in order without it:
// - A copy to pageable memory writes there after everything that its stream waits for. The call may wait for that.
// - Functions of the host, which read and write files, run in the order of their stream.
// - What is queued later than a copy from pageable memory, and waits for it, finds the bytes taken.
// In a capture there are no copies of pageable memory: see runtime/core/iteration_capture.hpp.
void HostMemory::await_contents() const {
  for (const EventHandle& filled : filled_) {
    if (filled) check(cudaEventSynchronize(filled.get()), "cudaEventSynchronize: work that fills host memory");
  }
}

// Called before work of the queue is queued that writes into the memory: afterwards nothing may fail for want of
// memory.
void HostMemory::fills_from(QueueKind queue) {
  if (kind_ == HostKind::pinned || filled_[index(queue)]) return;
  const CurrentDevice current(session_->device);
  filled_[index(queue)] = new_event(cudaEventDisableTiming);
}

void HostMemory::record_filled_by(QueueKind queue) {
  if (kind_ == HostKind::pinned) return;
  check(cudaEventRecord(filled_[index(queue)].get(), session_->stream(queue)), "cudaEventRecord");
}

// ---- Backend: handles

Backend::Backend(int device, const Settings& settings) : session_(std::make_shared<Session>(device, settings)) {
  if (!settings.measure) return;
  try {
    session_->capabilities.copy_engines = detail::measured_copy_engines(*this, *session_);
  } catch (const BackendError& error) {
    if (error.kind == BackendError::Kind::device_lost) throw;  // otherwise the number that the device reports is kept
  }
}

Backend Backend::pick() { return pick(std::clog); }

Backend Backend::pick(std::ostream& say, const Settings& settings) {
  return pick(device_from_environment(), say, settings);
}

Backend Backend::pick(std::string_view wanted, std::ostream& say, const Settings& settings) {
  const DeviceList list = devices();
  const Device& device = list.devices[choose(list, wanted)];
  Backend backend(device.number, settings);
  say << "swapmm: " << describe(device) << ", " << backend.capabilities().copy_engines
      << (backend.capabilities().copy_engines == 1 ? " copy engine" : " copy engines") << '\n';
  return backend;
}

int Backend::device() const { return session_->device; }
const Capabilities& Backend::capabilities() const { return session_->capabilities; }

Bytes Backend::default_device_budget() const {
  constexpr std::size_t least_reserve = std::size_t{256} << 20U;
  const CurrentDevice current(session_->device);
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  const std::size_t reserve = std::max(least_reserve, total / 64);
  return Bytes{free > reserve ? free - reserve : 0};
}

// ---- objects

DeviceMemory Backend::allocate(Bytes size) {
  const CurrentDevice current(session_->device);
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, std::max<std::size_t>(count(size), 1));
  if (status != cudaSuccess) throw refusal_of(status, "cudaMalloc", size);
  return {session_, static_cast<std::byte*>(data)};
}

HostMemory Backend::allocate_host(Bytes size, HostKind kind) {
  constexpr auto refused = BackendError::Kind::out_of_host_memory;
  const std::size_t bytes = std::max<std::size_t>(count(size), 1);
  if (kind == HostKind::pageable) {
    auto* const data = static_cast<std::byte*>(::operator new(bytes, host_alignment, std::nothrow));
    if (data == nullptr) throw BackendError(refused, 0, "operator new" + of_bytes(size) + ": no memory", size);
    return {session_, data, kind};
  }
  const CurrentDevice current(session_->device);
  const NearDevice near(session_->numa_node);
  void* data = nullptr;
  const cudaError_t status = cudaHostAlloc(&data, bytes, cudaHostAllocPortable);
  if (status == cudaSuccess) return {session_, static_cast<std::byte*>(data), kind};
  BackendError error = refusal_of(status, "cudaHostAlloc", size);
  // Systems report in several ways that they refuse to lock memory. Only a lost device is another kind of error.
  if (error.kind != BackendError::Kind::device_lost) error.kind = refused;
  throw error;
}

Address Backend::address(DeviceMemory& memory, Bytes offset, Bytes size) { return {memory.data_ + offset.value, size}; }

Event Backend::make_event() {
  const CurrentDevice current(session_->device);
  return Event(new_event(cudaEventDisableTiming));
}

// ---- work

void Backend::copy_to_device(const Address& to, const HostMemory& from, Bytes from_offset, Bytes size,
                             std::span<const Event* const> waits, Event& event) {
  copy(QueueKind::h2d, to, Bytes{}, from, from_offset, size, waits, event);
}

void Backend::copy_to_host(HostMemory& to, Bytes to_offset, const Address& from, Bytes size,
                           std::span<const Event* const> waits, Event& event) {
  copy(QueueKind::d2h, to, to_offset, from, Bytes{}, size, waits, event);
}

void Backend::copy_part_to_device(const Address& to, Bytes to_offset, const HostMemory& from, Bytes from_offset,
                                  Bytes size, std::span<const Event* const> waits, Event& event) {
  if (capturing()) throw UsageError("a graph cannot contain copies of values that are in a file");
  copy(QueueKind::staged_h2d, to, to_offset, from, from_offset, size, waits, event);
}

void Backend::copy_part_to_host(HostMemory& to, Bytes to_offset, const Address& from, Bytes from_offset, Bytes size,
                                std::span<const Event* const> waits, Event& event) {
  if (capturing()) throw UsageError("a graph cannot contain copies of values that are in a file");
  copy(QueueKind::staged_d2h, to, to_offset, from, from_offset, size, waits, event);
}

void Backend::copy(QueueKind queue, const Address& to, Bytes to_offset, const HostMemory& from, Bytes from_offset,
                   Bytes size, std::span<const Event* const> waits, Event& event) {
  from.await_contents();
  session_->queue_waits(queue, waits);
  const cudaError_t status = cudaMemcpyAsync(to.data() + to_offset.value, from.data() + from_offset.value, count(size),
                                             cudaMemcpyHostToDevice, session_->stream(queue));
  if (status != cudaSuccess) throw error_of(status, "cudaMemcpyAsync to the device", of_bytes(size));
  session_->record(queue, event);
}

void Backend::copy(QueueKind queue, HostMemory& to, Bytes to_offset, const Address& from, Bytes from_offset, Bytes size,
                   std::span<const Event* const> waits, Event& event) {
  to.fills_from(queue);
  session_->queue_waits(queue, waits);
  const cudaError_t status = cudaMemcpyAsync(to.data() + to_offset.value, from.data() + from_offset.value, count(size),
                                             cudaMemcpyDeviceToHost, session_->stream(queue));
  if (status != cudaSuccess) throw error_of(status, "cudaMemcpyAsync to the host", of_bytes(size));
  to.record_filled_by(queue);
  session_->record(queue, event);
}

void Backend::copy_on_device(const Address& to, Bytes to_offset, const Address& from, Bytes from_offset, Bytes size) {
  const cudaError_t status = cudaMemcpyAsync(to.data() + to_offset.value, from.data() + from_offset.value, count(size),
                                             cudaMemcpyDeviceToDevice, session_->stream(QueueKind::compute));
  if (status != cudaSuccess) throw error_of(status, "cudaMemcpyAsync on the device", of_bytes(size));
}

void Backend::queue_transfer(QueueKind queue, std::shared_ptr<swapmm::detail::FileTransfer> transfer,
                             HostMemory* filled, std::span<const Event* const> waits, Event& event) {
  if (capturing()) throw UsageError("a graph cannot contain reads and writes of a file");
  const cudaStream_t stream = session_->stream(queue);
  if (filled != nullptr) filled->fills_from(queue);
  session_->queue_waits(queue, waits);
  detail::queue_transfer(transfer, stream);
  if (filled != nullptr) filled->record_filled_by(queue);
  session_->record(queue, event);
  event.transfer_ = std::move(transfer);
}

void Backend::read_file(FileMemory& file, Bytes file_offset, HostMemory& to, Bytes to_offset, Bytes size,
                        std::span<const Event* const> waits, Event& event) {
  const std::span<std::byte> bytes{to.data() + to_offset.value, count(size)};
  queue_transfer(QueueKind::file_read, std::make_shared<swapmm::detail::FileTransfer>(file, file_offset, bytes), &to,
                 waits, event);
}

void Backend::write_file(FileMemory& file, Bytes file_offset, const HostMemory& from, Bytes from_offset, Bytes size,
                         std::span<const Event* const> waits, Event& event) {
  const std::span<const std::byte> bytes{from.data() + from_offset.value, count(size)};
  queue_transfer(QueueKind::file_write, std::make_shared<swapmm::detail::FileTransfer>(file, file_offset, bytes),
                 nullptr, waits, event);
}

void Backend::wait(QueueKind queue, std::span<const Event* const> waits) { session_->queue_waits(queue, waits); }
void Backend::record(QueueKind queue, Event& event) { session_->record(queue, event); }
void Backend::flush(QueueKind) {}  // streams start by themselves

cudaStream_t& Backend::queue() { return session_->streams[index(QueueKind::compute)]; }

WaitList Backend::wait_list(std::span<const Event* const> waits) {
  WaitList list;
  list.session_ = session_.get();
  for (const Event* const event : waits) {
    if (const cudaEvent_t wanted = session_->native(*event); wanted != nullptr) list.add(wanted);
  }
  return list;
}

void WaitList::events_for_other_streams(std::vector<cudaEvent_t>& all) const {
  all.assign(events().begin(), events().end());
  if (session_ != nullptr) all.push_back(session_->reached_by_compute());
}

void WaitList::queue_on(cudaStream_t stream) const {
  const auto wait = [&](cudaEvent_t event) { check(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent"); };
  for (const cudaEvent_t event : events()) wait(event);
  if (session_ != nullptr && stream != session_->stream(QueueKind::compute)) wait(session_->reached_by_compute());
}

void Backend::adopt(Event& event, NativeEvent native) {
  const CurrentDevice current(session_->device, session_->default_stream);
  const cudaStream_t compute = session_->stream(QueueKind::compute);
  if (native.event_ != nullptr) check(cudaStreamWaitEvent(compute, native.event_, 0), "cudaStreamWaitEvent");
  session_->record(QueueKind::compute, event);
}

// ---- status and waits of the host

EventStatus Backend::status(const Event& event) {
  if (event.current_ == nullptr) return EventStatus::complete;
  cudaEvent_t asked = event.current_;
  if (event.capture_ != nullptr) {
    if (event.capture_->state == Capture::State::open) return EventStatus::running;
    if (event.capture_->state == Capture::State::failed) return EventStatus::failed;
    asked = event.capture_->done.get();
  }
  const cudaError_t status = cudaEventQuery(asked);
  const bool failed = event.transfer_ != nullptr && event.transfer_->has_failed();
  if (status == cudaSuccess) return failed ? EventStatus::failed : EventStatus::complete;
  if (status != cudaErrorNotReady) throw error_of(status, "cudaEventQuery: work on the device");
  forget(status);
  return EventStatus::running;
}

void Backend::wait(const Event& event) {
  if (event.current_ == nullptr) return;
  cudaEvent_t asked = event.current_;
  if (event.capture_ != nullptr) {
    if (event.capture_->state == Capture::State::open) {
      throw UsageError(
          "the host waits for work that is being captured and does not run: read values, and upload them, "
          "outside of a captured iteration");
    }
    asked = session_->native(event);  // throws if there is nothing to wait for
  }
  check(cudaEventSynchronize(asked), "cudaEventSynchronize: work on the device");
  if (event.transfer_ != nullptr) event.transfer_->check();
}

void Backend::finish() { session_->finish(); }

// ---- times

void Backend::set_timing(bool on) { session_->timing = on; }

std::optional<std::chrono::nanoseconds> Backend::elapsed(const Event& from, const Event& to) {
  const auto timed = [](const Event& event) {
    return event.current_ != nullptr && event.current_ == event.timed_.get() && event.capture_ == nullptr;
  };
  if (!timed(from) || !timed(to)) return std::nullopt;
  float milliseconds = 0;
  const cudaError_t status = cudaEventElapsedTime(&milliseconds, from.current_, to.current_);
  if (status != cudaSuccess) {
    if (sticks(status)) throw error_of(status, "cudaEventElapsedTime");
    forget(status);  // one of the events has not ended
    return std::nullopt;
  }
  if (milliseconds < 0) return std::nullopt;
  return std::chrono::nanoseconds(std::llround(static_cast<double>(milliseconds) * 1e6));
}

}  // namespace swapmm::cuda
