// SPDX-License-Identifier: Apache-2.0
#include <swapmm/cuda/session.hpp>

#include <string>
#include <vector>

#include <swapmm/base/error.hpp>
#include <swapmm/cuda/devices.hpp>
#include <swapmm/cuda/numa.hpp>
#include <swapmm/cuda/status.hpp>

namespace swapmm::cuda::detail {

namespace {

constexpr Bytes allocation_alignment{256};        // guaranteed by cudaMalloc
constexpr Bytes slab{std::uint64_t{512} << 20U};  // large, because page-locking is a slow call

int attribute(int device, cudaDeviceAttr what) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, what, device), "cudaDeviceGetAttribute");
  return value;
}

Capabilities capabilities_of(const Device& device) {
  Capabilities can;
  can.device_name = device.name + " (CUDA)";
  can.alignment = allocation_alignment;
  can.copy_engines = attribute(device.number, cudaDevAttrAsyncEngineCount) >= 2 ? 2 : 1;
  can.failures_stick = true;
  can.graph_capture = true;
  can.host_slab = slab;
  return can;
}

const Device& usable(const DeviceList& list, int number) {
  if (number < 0 || static_cast<std::size_t>(number) >= list.devices.size()) {
    throw UsageError(
        "there is no CUDA device with number " + std::to_string(number) + ". " +
        (list.devices.empty() ? list.why_none : "There are " + std::to_string(list.devices.size()) + ", from 0 on."));
  }
  const Device& device = list.devices[static_cast<std::size_t>(number)];
  if (!device.obstacle.empty()) {
    throw UsageError("CUDA device " + describe(device));
  }
  return device;
}

StreamHandle new_stream() {
  cudaStream_t stream = nullptr;
  // Not ordered with the legacy default stream: otherwise a program that uses that stream would stop all swaps.
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return StreamHandle(stream);
}

}  // namespace

EventHandle new_event(unsigned flags) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, flags), "cudaEventCreateWithFlags");
  return EventHandle(event);
}

// ---- CurrentDevice

CurrentDevice::CurrentDevice(int device, bool needed) {
  if (!needed) return;
  int now = device;
  check(cudaGetDevice(&now), "cudaGetDevice");
  if (now == device) return;
  check(cudaSetDevice(device), "cudaSetDevice");
  before_ = now;
}

CurrentDevice::CurrentDevice(std::nothrow_t, int device, bool needed) noexcept {
  if (!needed) return;
  int now = device;
  forget(cudaGetDevice(&now));
  if (now == device) return;
  const cudaError_t status = cudaSetDevice(device);
  if (status == cudaSuccess) before_ = now;
  forget(status);
}

CurrentDevice::~CurrentDevice() {
  if (before_ >= 0) forget(cudaSetDevice(before_));
}

// ---- Session

Session::Session(int device_, const Settings& settings) : device(device_), nvtx(settings.nvtx) {
  const DeviceList list = devices();
  const Device& chosen = usable(list, device);
  capabilities = capabilities_of(chosen);
  numa_node = numa_node_of(chosen.bus, "/sys/bus/pci/devices");
  const CurrentDevice current(device);
  if (settings.stream && *settings.stream == cudaStreamPerThread) {
    throw UsageError(
        "the per-thread default stream is a different stream in each thread: give the backend a stream of your own");
  }
  for (const QueueKind queue : {QueueKind::compute, QueueKind::h2d, QueueKind::d2h}) {
    const std::size_t i = index(queue);
    joints[i] = new_event(cudaEventDisableTiming);
    if (queue == QueueKind::compute && settings.stream) {
      streams[i] = *settings.stream;
      continue;
    }
    own[i] = new_stream();
    streams[i] = own[i].get();
  }
  if (!settings.stream) return;
  default_stream = *settings.stream == nullptr || *settings.stream == cudaStreamLegacy;
  // An event cannot be recorded in a stream of another device, so this detects such a stream.
  const cudaError_t status = cudaEventRecord(joints[0].get(), *settings.stream);
  if (status == cudaErrorInvalidResourceHandle || status == cudaErrorInvalidValue) {
    forget(status);
    throw UsageError("the CUDA stream given with device " + std::to_string(device) + " belongs to another device");
  }
  check(status, "cudaEventRecord");
}

Session::~Session() { finish_quietly(); }

void Session::make_stream(QueueKind queue) const {
  const CurrentDevice current(device);
  own[index(queue)] = new_stream();
  streams[index(queue)] = own[index(queue)].get();
}

cudaEvent_t Session::native(const Event& event) const {
  if (event.current_ == nullptr) return nullptr;
  if (event.capture_ == nullptr) {
    // Work queued before a capture has ended before it, and the graph must not refer to its event.
    return capture == nullptr ? event.current_ : nullptr;
  }
  if (event.capture_ == capture) return event.current_;
  if (event.capture_->state == Capture::State::runs) return event.capture_->done.get();
  throw BackendError(BackendError::Kind::failed, 0, "the work was captured into a graph that never ran");
}

void Session::queue_waits(QueueKind queue, std::span<const Event* const> waits) const {
  const CurrentDevice current(device, default_stream);
  for (const Event* const event : waits) {
    const cudaEvent_t wanted = native(*event);
    if (wanted != nullptr) check(cudaStreamWaitEvent(stream(queue), wanted, 0), "cudaStreamWaitEvent");
  }
}

void Session::record(QueueKind queue, Event& event) const {
  const CurrentDevice current(device, default_stream || (timing && !event.timed_));
  if (timing && !event.timed_) event.timed_ = new_event(cudaEventDefault);
  const cudaEvent_t next = timing ? event.timed_.get() : event.plain_.get();
  check(cudaEventRecord(next, stream(queue)), "cudaEventRecord");
  event.current_ = next;
  event.capture_ = capture;
  event.transfer_.reset();
}

cudaEvent_t Session::reached_by_compute() {
  const CurrentDevice current(device, default_stream || !reached);
  if (!reached) reached = new_event(cudaEventDisableTiming);
  check(cudaEventRecord(reached.get(), stream(QueueKind::compute)), "cudaEventRecord");
  return reached.get();
}

void Session::end_memory(const Memory& memory) noexcept {
  try {
    waiting_.push_back(memory);
  } catch (const std::bad_alloc&) {
    return;  // the memory stays until the process ends
  }
  finish_quietly();
}

void Session::free_waiting() noexcept {
  if (waiting_.empty()) return;
  const CurrentDevice current(std::nothrow, device);
  for (const Memory& memory : waiting_) {
    switch (memory.kind) {
      case Memory::device: forget(cudaFree(memory.data)); break;
      case Memory::pinned: forget(cudaFreeHost(memory.data)); break;
      case Memory::pageable: ::operator delete(memory.data, host_alignment); break;
    }
  }
  waiting_.clear();
}

void Session::finish() {
  if (capture != nullptr) return;
  const CurrentDevice current(device, default_stream);
  for_each_stream([](cudaStream_t stream) {
    const cudaError_t status = cudaStreamSynchronize(stream);
    if (status == cudaSuccess) return;
    BackendError error = error_of(status, "cudaStreamSynchronize");
    if (error.kind == BackendError::Kind::device_lost) throw error;
  });
  free_waiting();
}

void Session::finish_quietly() noexcept {
  if (capture != nullptr) return;
  const CurrentDevice current(std::nothrow, device, default_stream);
  for_each_stream([](cudaStream_t stream) { forget(cudaStreamSynchronize(stream)); });
  free_waiting();
}

}  // namespace swapmm::cuda::detail
