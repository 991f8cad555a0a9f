// SPDX-License-Identifier: Apache-2.0
#include <swapmm/opencl/backend.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/backend/device_choice.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/opencl/devices.hpp>
#include <swapmm/opencl/file_thread.hpp>
#include <swapmm/opencl/info.hpp>
#include <swapmm/opencl/released_memory.hpp>
#include <swapmm/opencl/session.hpp>
#include <swapmm/opencl/status.hpp>

namespace swapmm::opencl {

using detail::check_allocation;
using detail::execution_status;
using detail::ReleasedMemory;
using detail::require_own_process;
using detail::Session;

namespace {

// Suits caches as well as DMA engines.
constexpr std::align_val_t host_alignment{4096};

std::string of_bytes(Bytes size) { return " of " + std::to_string(size.value) + " bytes"; }

// Drivers also report "out of resources" if they refuse memory.
bool refuses_memory(cl_int status) {
  return status == CL_MEM_OBJECT_ALLOCATION_FAILURE || status == CL_INVALID_BUFFER_SIZE ||
         status == CL_OUT_OF_RESOURCES || status == CL_OUT_OF_HOST_MEMORY;
}

}  // namespace

void detail::check_allocation(cl_int status, const char* call, Bytes size, BackendError::Kind refused) {
  if (status == CL_SUCCESS) return;
  BackendError error = error_of(status, call, of_bytes(size));
  if (refuses_memory(status)) error.kind = refused;
  error.need = size;
  throw error;
}

// ---- DeviceMemory

DeviceMemory::DeviceMemory(Handle<cl_mem> buffer, Bytes size)
    : buffer_(std::move(buffer)), size_(size), followed_(ReleasedMemory::of_process().follow(buffer_.get())) {}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  if (this == &other) return *this;
  end();
  buffer_ = std::move(other.buffer_);
  size_ = other.size_;
  followed_ = other.followed_;
  return *this;
}

DeviceMemory::~DeviceMemory() { end(); }

void DeviceMemory::end() noexcept {
  if (!buffer_) return;
  if (followed_ && !in_forked_child()) ReleasedMemory::of_process().leaving();
  buffer_.reset();
}

// ---- HostMemory

HostMemory::HostMemory(std::shared_ptr<Session> session, Handle<cl_mem> pinned, std::byte* data)
    : session_(std::move(session)), pinned_(std::move(pinned)), data_(data) {}

HostMemory& HostMemory::operator=(HostMemory&& other) noexcept {
  if (this == &other) return *this;
  end();
  session_ = std::move(other.session_);
  pinned_ = std::move(other.pinned_);
  data_ = other.data_;
  last_use_ = std::move(other.last_use_);
  return *this;
}

HostMemory::~HostMemory() { end(); }

void HostMemory::end() noexcept {
  if (session_ == nullptr) return;
  for (const Handle<cl_event>& use : last_use_) {
    if (!use) continue;
    try {
      session_->flush_for_wait();  // it may depend on work in any queue
      const cl_event event = use.get();
      if (clWaitForEvents(1, &event) != CL_SUCCESS) session_->finish();  // the copy failed, or only this call
    } catch (const BackendError&) {
      break;  // the device is lost: there is nothing to wait for
    }
  }
  if (pinned_ && in_forked_child()) {
    pinned_.reset();
  } else if (pinned_) {
    clEnqueueUnmapMemObject(session_->chores.get(), pinned_.get(), data_, 0, nullptr, nullptr);
    clFinish(session_->chores.get());
    pinned_.reset();
  } else {
    ::operator delete(data_, host_alignment);
  }
  session_.reset();
}

// Until nothing is on its way into it any more. Work that has failed is told by the events of whoever waits for it; a
// wait that fails while the work still runs is an error here, because the contents are not there.
void HostMemory::await_contents() const {
  for (const QueueKind writer : {QueueKind::d2h, QueueKind::staged_d2h, QueueKind::file_read}) {
    const cl_event last = last_use_[index(writer)].get();
    if (last == nullptr || execution_status(last) <= CL_COMPLETE) continue;
    session_->flush_for_wait();
    const cl_int waited = clWaitForEvents(1, &last);
    if (waited != CL_SUCCESS && execution_status(last) > CL_COMPLETE) throw error_of(waited, "clWaitForEvents");
  }
}

// ---- Backend: handles

Backend::Backend(cl_context context, cl_device_id device, cl_command_queue queue)
    : session_(std::make_shared<Session>(context, device, queue)) {}

namespace {

/// One context for the devices of each platform.
std::vector<Backend> backends_on(std::span<const Device> all, std::span<const std::size_t> positions,
                                 std::ostream& say) {
  struct Context {
    std::vector<cl_device_id> devices;
    std::string text;
    Handle<cl_context> handle;
  };
  std::map<std::size_t, cl_platform_id> platforms;  // by position
  std::map<cl_platform_id, Context> contexts;
  for (const std::size_t position : positions) {
    const auto [platform, is_new] = platforms.try_emplace(position);
    if (!is_new) continue;
    platform->second = detail::device_value<cl_platform_id>(all[position].id, CL_DEVICE_PLATFORM);
    Context& context = contexts[platform->second];
    context.devices.push_back(all[position].id);
    context.text += (context.text.empty() ? " for " : ", ") + describe(all[position], position);
  }
  for (auto& [platform, context] : contexts) {
    cl_int status = CL_SUCCESS;
    context.handle = Handle<cl_context>(clCreateContext(nullptr, static_cast<cl_uint>(context.devices.size()),
                                                        context.devices.data(), nullptr, nullptr, &status));
    if (status != CL_SUCCESS) throw error_of(status, "clCreateContext", context.text);
  }
  std::vector<Backend> made;
  made.reserve(positions.size());
  for (const std::size_t position : positions) {
    made.emplace_back(contexts.at(platforms.at(position)).handle.get(), all[position].id);
  }
  for (const std::size_t position : positions) {
    if (platforms.erase(position) == 0) continue;  // said already
    say << "swapmm: " << describe(all[position], position)
        << (all[position].shares_memory ? "; it shares the host's memory, so swapping works and saves nothing" : "")
        << '\n';
  }
  return made;
}

}  // namespace

Backend Backend::pick() { return pick(std::clog); }

Backend Backend::pick(std::ostream& say) { return pick(device_from_environment(), say); }

Backend Backend::pick(std::string_view wanted, std::ostream& say) {
  require_own_process();
  const std::vector<Device> all = devices();
  const std::array<std::size_t, 1> chosen{choose(all, wanted)};
  return std::move(backends_on(all, chosen, say).front());
}

std::vector<Backend> Backend::on_devices(std::span<const std::size_t> positions, std::ostream& say) {
  require_own_process();
  const std::vector<Device> all = devices();
  for (const std::size_t position : positions) (void)choose(all, std::to_string(position));
  return backends_on(all, positions, say);
}

cl_context Backend::context() const { return session_->context.get(); }
cl_device_id Backend::device() const { return session_->device; }
const Capabilities& Backend::capabilities() const { return session_->capabilities; }

bool Backend::can_wait_for(const Backend& other) const { return context() == other.context(); }

// ---- objects

DeviceMemory Backend::allocate(Bytes size) {
  require_own_process();
  constexpr auto refused = BackendError::Kind::out_of_device_memory;
  if (size > *capabilities().max_allocation) {  // not every driver enforces its own limit
    check_allocation(CL_INVALID_BUFFER_SIZE, "clCreateBuffer", size, refused);
  }
  Handle<cl_mem> buffer;
  cl_int status = ReleasedMemory::of_process().allocate([&] {
    cl_int created = CL_SUCCESS;
    buffer.reset(clCreateBuffer(context(), CL_MEM_READ_WRITE, static_cast<std::size_t>(size.value), nullptr, &created));
    return created;
  });
  check_allocation(status, "clCreateBuffer", size, refused);
  // A driver may allocate only at the first use, and fail only then. Therefore the first use is here.
  const cl_uchar zero = 0;
  const std::size_t touched = static_cast<std::size_t>(std::min<std::uint64_t>(size.value, 128));
  cl_event native = nullptr;
  status =
      clEnqueueFillBuffer(session_->chores.get(), buffer.get(), &zero, sizeof zero, 0, touched, 0, nullptr, &native);
  check_allocation(status, "the first use (clEnqueueFillBuffer) of a buffer", size, refused);
  const Handle<cl_event> filled(native);
  status = clFinish(session_->chores.get());
  check_allocation(status, "the first use (clFinish) of a buffer", size, refused);
  check_allocation(std::min(execution_status(native), CL_SUCCESS), "the first use of a buffer", size, refused);
  return {std::move(buffer), size};
}

HostMemory Backend::allocate_host(Bytes size, HostKind kind) {
  require_own_process();
  constexpr auto refused = BackendError::Kind::out_of_host_memory;
  const auto bytes = static_cast<std::size_t>(std::max<std::uint64_t>(size.value, 1));
  if (kind == HostKind::pageable) {
    auto* const data = static_cast<std::byte*>(::operator new(bytes, host_alignment, std::nothrow));
    if (data == nullptr) throw BackendError(refused, 0, "operator new" + of_bytes(size) + ": no memory", size);
    return {session_, {}, data};
  }
  cl_int status = CL_SUCCESS;
  Handle<cl_mem> buffer(clCreateBuffer(context(), CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, nullptr, &status));
  check_allocation(status, "clCreateBuffer in host memory", size, refused);
  void* const data = clEnqueueMapBuffer(session_->chores.get(), buffer.get(), CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                        bytes, 0, nullptr, nullptr, &status);
  check_allocation(status, "clEnqueueMapBuffer", size, refused);
  return {session_, std::move(buffer), static_cast<std::byte*>(data)};
}

Address Backend::address(DeviceMemory& memory, Bytes offset, Bytes size) {
  require_own_process();
  const auto refuse = [&](cl_int status) {
    return error_of(status, "clCreateSubBuffer", of_bytes(size) + " at " + std::to_string(offset.value));
  };
  // Not every driver refuses it: NVIDIA's makes a sub-buffer beyond its buffer.
  if (offset > memory.size_ || size > memory.size_ - offset) throw refuse(CL_INVALID_VALUE);
  const cl_mem whole = memory.buffer_.get();
  if (offset.value == 0 && size == memory.size_) {
    auto all = Handle<cl_mem>::retain(whole);
    if (!all) throw error_of(CL_OUT_OF_RESOURCES, "clRetainMemObject");
    return {std::move(all), size};
  }
  const cl_buffer_region region{static_cast<std::size_t>(offset.value), static_cast<std::size_t>(size.value)};
  cl_int status = CL_SUCCESS;
  Handle<cl_mem> part(clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &status));
  if (status != CL_SUCCESS) throw refuse(status);
  return {std::move(part), size};
}

Event Backend::make_event() { return {}; }

// ---- work

void Backend::recorded(Event& event, cl_event native) {
  event.event_.reset(native);
  event.job_.reset();
  event.timed_ = session_->timing;
  event.host_time_.reset();
  if (!session_->timing || !session_->host_timed) return;
  session_->flush_for_wait();
  clWaitForEvents(1, &native);  // the event reports later whether the work failed
  event.host_time_ = std::chrono::steady_clock::now();
}

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
  copy(QueueKind::staged_h2d, to, to_offset, from, from_offset, size, waits, event);
}

void Backend::copy_part_to_host(HostMemory& to, Bytes to_offset, const Address& from, Bytes from_offset, Bytes size,
                                std::span<const Event* const> waits, Event& event) {
  copy(QueueKind::staged_d2h, to, to_offset, from, from_offset, size, waits, event);
}

void Backend::copy(QueueKind queue, const Address& to, Bytes to_offset, const HostMemory& from, Bytes from_offset,
                   Bytes size, std::span<const Event* const> waits, Event& event) {
  if (!from.pinned_ && session_->reads_pageable_early) from.await_contents();
  const WaitList list = wait_list(waits);
  cl_event native = nullptr;
  check(clEnqueueWriteBuffer(session_->use(queue), to.buffer(), CL_FALSE, static_cast<std::size_t>(to_offset.value),
                             static_cast<std::size_t>(size.value), from.data() + from_offset.value, list.size(),
                             list.data(), &native),
        "clEnqueueWriteBuffer");
  Handle<cl_event> made(native);
  from.last_use_[index(queue)] = session_->keep(native);
  recorded(event, made.release());
}

void Backend::copy(QueueKind queue, HostMemory& to, Bytes to_offset, const Address& from, Bytes from_offset, Bytes size,
                   std::span<const Event* const> waits, Event& event) {
  const WaitList list = wait_list(waits);
  cl_event native = nullptr;
  check(clEnqueueReadBuffer(session_->use(queue), from.buffer(), CL_FALSE, static_cast<std::size_t>(from_offset.value),
                            static_cast<std::size_t>(size.value), to.data() + to_offset.value, list.size(), list.data(),
                            &native),
        "clEnqueueReadBuffer");
  Handle<cl_event> made(native);
  to.last_use_[index(queue)] = session_->keep(native);
  recorded(event, made.release());
}

void Backend::copy_on_device(const Address& to, Bytes to_offset, const Address& from, Bytes from_offset, Bytes size) {
  check(clEnqueueCopyBuffer(session_->use(QueueKind::compute), from.buffer(), to.buffer(),
                            static_cast<std::size_t>(from_offset.value), static_cast<std::size_t>(to_offset.value),
                            static_cast<std::size_t>(size.value), 0, nullptr, nullptr),
        "clEnqueueCopyBuffer");
}

// The waits may be for commands of queues that were not flushed. The job keeps their events.
void Backend::queue_job(QueueKind queue, std::shared_ptr<detail::FileJob> job, const HostMemory& host,
                        std::span<const Event* const> waits, Event& event) {
  require_own_process();
  for (const Event* const waited : waits) {
    if (!waited->event_) continue;
    auto kept = Handle<cl_event>::retain(waited->event_.get());
    if (!kept) throw error_of(CL_OUT_OF_RESOURCES, "clRetainEvent");
    job->waits.push_back(std::move(kept));
  }
  cl_int status = CL_SUCCESS;
  job->done.reset(clCreateUserEvent(context(), &status));
  check(status, "clCreateUserEvent");
  auto told = Handle<cl_event>::retain(job->done.get());
  auto used = Handle<cl_event>::retain(job->done.get());
  if (!told || !used) throw error_of(CL_OUT_OF_RESOURCES, "clRetainEvent");
  session_->flush_for_wait();
  session_->file_thread(queue).add(job);
  host.last_use_[index(queue)] = std::move(used);
  event.event_ = std::move(told);
  event.job_ = std::move(job);
  event.timed_ = session_->timing;
  event.host_time_.reset();
}

void Backend::read_file(FileMemory& file, Bytes file_offset, HostMemory& to, Bytes to_offset, Bytes size,
                        std::span<const Event* const> waits, Event& event) {
  const std::span<std::byte> bytes{to.data() + to_offset.value, static_cast<std::size_t>(size.value)};
  queue_job(QueueKind::file_read, std::make_shared<detail::FileJob>(file, file_offset, bytes), to, waits, event);
}

void Backend::write_file(FileMemory& file, Bytes file_offset, const HostMemory& from, Bytes from_offset, Bytes size,
                         std::span<const Event* const> waits, Event& event) {
  const std::span<const std::byte> bytes{from.data() + from_offset.value, static_cast<std::size_t>(size.value)};
  queue_job(QueueKind::file_write, std::make_shared<detail::FileJob>(file, file_offset, bytes), from, waits, event);
}

void Backend::wait(QueueKind queue, std::span<const Event* const> waits) {
  const WaitList list = wait_list(waits);
  if (list.size() == 0) return;  // without a list a barrier would wait for the whole queue
  const bool of_neighbours = is_of_neighbours(queue);
  cl_event native = nullptr;
  check(clEnqueueBarrierWithWaitList(session_->use(queue), list.size(), list.data(), of_neighbours ? &native : nullptr),
        "clEnqueueBarrierWithWaitList");
  if (of_neighbours) session_->set_barrier(queue, Handle<cl_event>(native));
}

void Backend::record(QueueKind queue, Event& event) {
  cl_event native = nullptr;
  check(clEnqueueMarkerWithWaitList(session_->use(queue), 0, nullptr, &native), "clEnqueueMarkerWithWaitList");
  recorded(event, native);
}

void Backend::flush(QueueKind queue) {
  require_own_process();
  session_->lanes[index(queue)].flush();
}

cl_command_queue& Backend::queue() { return session_->use(QueueKind::compute); }

bool Backend::is_of_queue(const NativeEvent& event) {
  cl_command_queue on = nullptr;
  check(clGetEventInfo(event.event_.get(), CL_EVENT_COMMAND_QUEUE, sizeof on, static_cast<void*>(&on), nullptr),
        "clGetEventInfo");
  return on == session_->use(QueueKind::compute);
}

WaitList Backend::wait_list(std::span<const Event* const> waits) {
  WaitList list;
  for (const Event* const event : waits) {
    if (event->event_) list.add(event->event_.get());
  }
  return list;
}

void Backend::adopt(Event& event, NativeEvent native) {
  if (!native.event_) return record(QueueKind::compute, event);
  recorded(event, native.event_.release());
}

// ---- status and waits of the host

EventStatus Backend::status(const Event& event) {
  if (!event.event_) return EventStatus::complete;
  if (in_forked_child()) return EventStatus::failed;
  const cl_int status = execution_status(event.event_.get());
  if (status < 0) return EventStatus::failed;
  if (status == CL_COMPLETE && event.job_ != nullptr && event.job_->transfer.has_failed()) return EventStatus::failed;
  return status == CL_COMPLETE ? EventStatus::complete : EventStatus::running;
}

void Backend::wait(const Event& event) {
  if (!event.event_) return;
  require_own_process();
  const cl_event native = event.event_.get();
  const cl_int waited = clWaitForEvents(1, &native);
  const cl_int status = execution_status(native);
  if (status < 0) throw error_of(status, "work on the device");
  check(waited, "clWaitForEvents");
  if (event.job_ != nullptr) event.job_->transfer.check();
}

void Backend::finish() { session_->finish(); }

// ---- times

void Backend::set_timing(bool on) { session_->timing = on; }

std::optional<std::chrono::nanoseconds> Backend::elapsed(const Event& from, const Event& to) {
  if (!from.event_ || !to.event_ || !from.timed_ || !to.timed_ || in_forked_child()) return std::nullopt;
  if (from.host_time_ && to.host_time_) return *to.host_time_ - *from.host_time_;
  if (from.host_time_ || to.host_time_) return std::nullopt;
  cl_ulong start = 0;
  cl_ulong end = 0;
  // Some drivers have no times for markers, and a queue without profiling has none; then there is no result.
  const auto ask = [](const Event& event, cl_ulong& time) {
    return clGetEventProfilingInfo(event.event_.get(), CL_PROFILING_COMMAND_END, sizeof time, &time, nullptr) ==
           CL_SUCCESS;
  };
  if (!ask(from, start) || !ask(to, end) || start == 0 || end < start) return std::nullopt;
  return std::chrono::nanoseconds(static_cast<std::int64_t>(end - start));
}

}  // namespace swapmm::opencl
