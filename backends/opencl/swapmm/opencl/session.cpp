// SPDX-License-Identifier: Apache-2.0
#include <swapmm/opencl/session.hpp>

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/base/error.hpp>
#include <swapmm/opencl/info.hpp>
#include <swapmm/opencl/status.hpp>

namespace swapmm::opencl::detail {

namespace {

std::atomic<bool> forked{false};

// Detects fork() from the first backend on. If it throws, the next backend tries again.
void watch_for_fork() {
  [[maybe_unused]] static const bool watching = [] {
    if (pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); }) != 0)
      throw std::bad_alloc();
    return true;
  }();
}

Handle<cl_command_queue> make_queue(cl_context context, cl_device_id device, cl_command_queue_properties properties) {
  cl_int status = CL_SUCCESS;
  Handle<cl_command_queue> queue(clCreateCommandQueue(context, device, properties, &status));
  check(status, "clCreateCommandQueue");
  return queue;
}

template <class T>
T queue_value(cl_command_queue queue, cl_command_queue_info what) {
  T value{};
  check(clGetCommandQueueInfo(queue, what, sizeof value, &value, nullptr), "clGetCommandQueueInfo");
  return value;
}

void require_device_of(cl_context context, cl_device_id device) {
  require_own_process();
  if (context == nullptr) throw UsageError("an OpenCL backend needs a context: it is null");
  if (device == nullptr) throw UsageError("an OpenCL backend needs a device: it is null");
  std::size_t bytes = 0;
  check(clGetContextInfo(context, CL_CONTEXT_DEVICES, 0, nullptr, &bytes), "clGetContextInfo");
  std::vector<cl_device_id> devices(bytes / sizeof(cl_device_id));
  check(clGetContextInfo(context, CL_CONTEXT_DEVICES, bytes, devices.data(), nullptr), "clGetContextInfo");
  if (std::find(devices.begin(), devices.end(), device) == devices.end()) {
    throw UsageError("the OpenCL context does not contain the device " + device_text(device, CL_DEVICE_NAME));
  }
}

void require_queue_of(cl_command_queue queue, cl_context context, cl_device_id device) {
  if (queue_value<cl_context>(queue, CL_QUEUE_CONTEXT) != context) {
    throw UsageError("the OpenCL queue belongs to another context than the one given with it");
  }
  if (queue_value<cl_device_id>(queue, CL_QUEUE_DEVICE) != device) {
    throw UsageError("the OpenCL queue belongs to another device than the one given with it");
  }
  const auto properties = queue_value<cl_command_queue_properties>(queue, CL_QUEUE_PROPERTIES);
  if ((properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0) {
    throw UsageError("the OpenCL queue runs out of order: operations need an in-order queue");
  }
}

Lane compute_lane(cl_context context, cl_device_id device, cl_command_queue queue) {
  require_device_of(context, device);
  if (queue == nullptr) return {make_queue(context, device, 0), true};
  require_queue_of(queue, context, device);
  auto kept = Handle<cl_command_queue>::retain(queue);
  if (!kept) throw error_of(CL_OUT_OF_RESOURCES, "clRetainCommandQueue");
  return {std::move(kept), false};
}

Capabilities capabilities_of(cl_device_id device) {
  Capabilities can;
  const auto platform = device_value<cl_platform_id>(device, CL_DEVICE_PLATFORM);
  can.device_name = device_text(device, CL_DEVICE_NAME) + " (" + platform_text(platform, CL_PLATFORM_NAME) + ")";
  // The value is in bits. All drivers report at least 8; this avoids a division by zero if one does not.
  can.alignment = Bytes{std::max<std::uint64_t>(device_value<cl_uint>(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8, 1)};
  can.view_alignment = can.alignment;  // a view may be a sub-buffer, too
  can.max_allocation = Bytes{device_value<cl_ulong>(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE)};
  can.host_shares_memory = shares_memory(device);
  can.device_memory = Bytes{device_value<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE)};
  return can;
}

}  // namespace

bool is_forked_child() noexcept { return forked.load(std::memory_order_relaxed); }

void require_own_process() {
  if (!in_forked_child()) return;
  throw BackendError(BackendError::Kind::device_lost, 0,
                     "this process is a child of fork(), and the OpenCL driver is its parent's: start another program "
                     "(exec), or fork before the first backend is made");
}

// ---- Lane

void Lane::make(cl_context context, cl_device_id device) {
  plain_ = make_queue(context, device, 0);
  current_ = plain_.get();
}

void Lane::change(cl_context context, cl_device_id device, bool profiled) {
  if (!profiled_) profiled_ = make_queue(context, device, CL_QUEUE_PROFILING_ENABLE);
  const cl_command_queue next = profiled ? profiled_.get() : plain_.get();
  if (used_) {
    cl_event native = nullptr;
    check(clEnqueueMarkerWithWaitList(current_, 0, nullptr, &native), "clEnqueueMarkerWithWaitList");
    const Handle<cl_event> end(native);
    check(clFlush(current_), "clFlush");
    // Nothing may be queued after work that has failed: PoCL never runs it.
    if (execution_status(native) > CL_COMPLETE) {
      check(clEnqueueBarrierWithWaitList(next, 1, &native, nullptr), "clEnqueueBarrierWithWaitList");
    }
  }
  current_ = next;
  profiled_now_ = profiled;
}

void Lane::flush() const {
  if (current_ != nullptr) check(clFlush(current_), "clFlush");
}

void Lane::finish() const {
  // Failed work is not an error here; its events report it.
  for (const cl_command_queue queue : {plain_.get(), profiled_.get()}) {
    if (queue == nullptr) continue;
    const cl_int status = clFinish(queue);
    if (kind_of(status) == BackendError::Kind::device_lost) throw error_of(status, "clFinish");
  }
}

// ---- Session

Session::Session(cl_context context_, cl_device_id device_, cl_command_queue queue)
    : device(device_),
      lanes{compute_lane(context_, device_, queue), Lane(make_queue(context_, device_, 0), true),
            Lane(make_queue(context_, device_, 0), true), Lane(), Lane()},
      chores(make_queue(context_, device_, 0)) {
  watch_for_fork();
  context = Handle<cl_context>::retain(context_);
  if (!context) throw error_of(CL_OUT_OF_RESOURCES, "clRetainContext");
  capabilities = capabilities_of(device);
  reads_pageable_early = device_text(device, CL_DEVICE_VENDOR).find("NVIDIA") != std::string::npos;
  host_timed = queue != nullptr &&
               (queue_value<cl_command_queue_properties>(queue, CL_QUEUE_PROPERTIES) & CL_QUEUE_PROFILING_ENABLE) == 0;
}

Session::~Session() {
  try {
    finish();
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // The device is lost: there is nothing to wait for.
  }
}

void Session::finish() const {
  flush_for_wait();
  for (const Lane& lane : lanes) lane.finish();
  for (const cl_command_queue queue : neighbour_queues_) clFinish(queue);  // events tell what failed
  for (FileThread& thread : file_threads_) thread.finish();
}

void Session::flush_for_wait() const {
  require_own_process();
  for (const cl_command_queue queue : neighbour_queues_) clFlush(queue);
  for (const Lane& lane : lanes) {
    try {
      lane.flush();
    } catch (const BackendError& error) {
      if (error.kind == BackendError::Kind::device_lost) throw;
    }
  }
}

Handle<cl_command_queue> Session::add_neighbour_queue(cl_device_id neighbour) {
  neighbour_queues_.reserve(neighbour_queues_.size() + 1);
  Handle<cl_command_queue> queue = make_queue(context.get(), neighbour, 0);
  neighbour_queues_.push_back(queue.get());
  return queue;
}

void Session::remove_neighbour_queue(cl_command_queue queue) noexcept { std::erase(neighbour_queues_, queue); }

}  // namespace swapmm::opencl::detail

bool swapmm::opencl::in_forked_child() noexcept { return detail::is_forked_child(); }
