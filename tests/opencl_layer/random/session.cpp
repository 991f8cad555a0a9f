// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <sstream>

#include "kernels.hpp"
#include "random_numbers.hpp"

namespace random_opencl {
namespace {

constexpr std::size_t alignment = 128;  // of the memory for USE_HOST_PTR: no type of OpenCL C wants more

std::uint8_t* aligned(Bytes& bytes) {
  void* pointer = bytes.data();
  std::size_t space = bytes.size();
  return static_cast<std::uint8_t*>(std::align(alignment, bytes.size() - alignment, pointer, space));
}

void count(std::atomic<int>& counter) { counter.fetch_add(1); }

}  // namespace

std::atomic<int> running_steps[4];

void ok(cl_int status, const char* call) {
  if (status != CL_SUCCESS) throw Failure(std::string(call) + " returned " + std::to_string(status));
}

cl_device_id first_device() {
  cl_uint count = 0;
  if (clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0) return nullptr;
  std::vector<cl_platform_id> platforms(count);
  clGetPlatformIDs(count, platforms.data(), nullptr);
  for (cl_platform_id platform : platforms) {
    cl_device_id device = nullptr;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr) == CL_SUCCESS) return device;
  }
  return nullptr;
}

std::string missing_in(cl_device_id device) {
  cl_uint bits = 0;
  clGetDeviceInfo(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof(bits), &bits, nullptr);
  if (sub_buffer_alignment % (bits / 8) != 0)
    return "sub-buffers must have an alignment of " + std::to_string(bits / 8);
  cl_command_queue_properties properties = 0;
  clGetDeviceInfo(device, CL_DEVICE_QUEUE_PROPERTIES, sizeof(properties), &properties, nullptr);
  if ((properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0) return "no queues out of order";
  return {};
}

bool has_images(cl_device_id device) {
  cl_bool images = CL_FALSE;
  clGetDeviceInfo(device, CL_DEVICE_IMAGE_SUPPORT, sizeof(images), &images, nullptr);
  return images == CL_TRUE;
}

Session::Session(cl_device_id device, const Program& program, const Schedule& schedule)
    : device_(device),
      program_(program),
      schedule_(schedule),
      queues_(program.queues.size()),
      memories_(program.objects.size()),
      object_memory_(program.objects.size()),
      shared_(program.objects.size()),
      events_(schedule.steps.size()),
      mapped_(schedule.steps.size()),
      host_memory_(schedule.steps.size()),
      seen_(schedule.steps.size()),
      workers_(4) {
  for (const Step& step : schedule.steps) expected_callbacks_ += step.has_callback ? 1 : 0;
}

std::uint64_t Session::run() {
  try {
    for (int i = 0; i != program_.contexts; ++i) {
      cl_int status = CL_SUCCESS;
      contexts_.push_back(clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &status));
      ok(status, "clCreateContext");
      const char* source = kernel_source;
      programs_.push_back(clCreateProgramWithSource(contexts_.back(), 1, &source, nullptr, &status));
      ok(status, "clCreateProgramWithSource");
      ok(clBuildProgram(programs_.back(), 1, &device_, program_.seed % 2 == 0 ? "" : "-cl-kernel-arg-info", nullptr,
                        nullptr),
         "clBuildProgram");
    }
    for (std::size_t i = 0; i != queues_.size(); ++i) create_queue(static_cast<int>(i));
  } catch (const Failure& failure) {
    std::cout << "seed " << program_.seed << ": " << failure.what() << std::endl;
    std::_Exit(1);
  }
  const int phases = static_cast<int>(2 * program_.sections.size());
  for (int phase = 0; phase <= phases; ++phase) {
    const int threads = phase % 2 == 0 ? 1 : program_.sections[index(phase / 2)].threads;
    if (threads == 1) {
      run_thread(phase, 0);
      continue;
    }
    std::vector<std::thread> running;
    for (int thread = 0; thread != threads; ++thread)
      running.emplace_back([this, phase, thread] { run_thread(phase, thread); });
    for (std::thread& thread : running) thread.join();
  }
  release_everything();
  std::uint64_t digest = 14695981039346656037U;
  for (const std::uint64_t seen : seen_) digest = (digest ^ seen) * 1099511628211U;
  return digest;
}

void Session::run_thread(int section, int thread) {
  for (int i = 0; i != static_cast<int>(schedule_.steps.size()); ++i) {
    const Step& step = schedule_.steps[index(i)];
    if (step.what.section != section || step.what.thread != thread) continue;
    running_steps[thread] = i;
    try {
      run_step(workers_[index(thread)], i);
    } catch (const Failure& failure) {
      std::ostringstream text;
      text << "seed " << program_.seed << ", step " << i;
      if (step.action >= 0) text << " (action " << step.action << ")";
      text << ": " << failure.what() << "\n  " << text_of(step, index(i), program_) << '\n';
      std::cout << text.str() << std::flush;
      std::_Exit(1);
    }
  }
}

void Session::run_step(Worker& worker, int number) {
  const Step& step = schedule_.steps[index(number)];
  if (!shared_command(step, number)) run_command(worker, step, number);
  if (step.has_callback) set_callback(number);
  for (const int last : step.last_uses) {
    ok(clReleaseEvent(std::exchange(events_[index(last)], nullptr)), "clReleaseEvent");
  }
}

void Session::run_command(Worker& worker, const Step& step, int number) {
  switch (step.what.kind) {
    case Kind::create: create(step); break;
    case Kind::release:
      ok(clReleaseMemObject(std::exchange(memories_[index(step.what.objects[0])], nullptr)), "clReleaseMemObject");
      break;
    case Kind::write:
    case Kind::read: transfer(step, number); break;
    case Kind::copy: copy(step, number); break;
    case Kind::fill: fill(step, number); break;
    case Kind::map: map(step, number); break;
    case Kind::unmap: unmap(step, number); break;
    case Kind::launch: launch(worker, step, number); break;
    case Kind::native: run_native(step, number); break;
    case Kind::user_event: {
      cl_int status = CL_SUCCESS;
      const int context = program_.queues[index(step.what.queue)].context;
      events_[index(number)] = clCreateUserEvent(contexts_[index(context)], &status);
      ok(status, "clCreateUserEvent");
      break;
    }
    case Kind::set_user_event: set_user_event(worker, step); break;
    case Kind::barrier:
    case Kind::marker: mark(step, number); break;
    case Kind::finish: ok(clFinish(queue(step)), "clFinish"); break;
    case Kind::flush: ok(clFlush(queue(step)), "clFlush"); break;
    case Kind::wait: step.what.fails ? wait_for_failure(step) : wait(step); break;
    case Kind::new_queue:
      ok(clReleaseCommandQueue(queue(step)), "clReleaseCommandQueue");
      create_queue(step.what.queue);
      break;
    case Kind::check_read: check_read(schedule_.steps[index(step.target)], step.target); break;
    case Kind::touch_map: touch(step, number); break;
    case Kind::join_setters:
      for (std::thread& setter : worker.setters) setter.join();
      worker.setters.clear();
      break;
  }
}

void Session::set_callback(int number) {
  const auto called = [](cl_event, cl_int status, void* session) {
    if (status != CL_COMPLETE) count(static_cast<Session*>(session)->wrong_callbacks_);
    count(static_cast<Session*>(session)->callbacks_);
  };
  ok(clSetEventCallback(events_[index(number)], CL_COMPLETE, called, this), "clSetEventCallback");
}

void Session::create_queue(int number) {
  const Queue& queue = program_.queues[index(number)];
  cl_int status = CL_SUCCESS;
  const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, queue.properties, 0};
  queues_[index(number)] =
      number % 2 == 0
          ? clCreateCommandQueue(contexts_[index(queue.context)], device_, queue.properties, &status)
          : clCreateCommandQueueWithProperties(contexts_[index(queue.context)], device_, properties, &status);
  ok(status, "clCreateCommandQueue");
}

void Session::create(const Step& step) {
  const int id = step.what.objects[0];
  const Object& that = object(id);
  cl_mem& handle = memories_[index(id)];
  cl_context context = contexts_[index(that.context)];
  cl_int status = CL_SUCCESS;
  Bytes contents = has_contents(that) ? random_bytes(that.seed, that.size) : Bytes();
  void* host = contents.empty() ? nullptr : contents.data();
  if (that.parent < 0 && (that.flags & CL_MEM_USE_HOST_PTR) != 0) {
    object_memory_[index(id)].resize(that.size + alignment);
    host = aligned(object_memory_[index(id)]);
    std::copy(contents.begin(), contents.end(), static_cast<std::uint8_t*>(host));
  }
  if (is_image(that)) {
    const cl_image_format format{CL_RGBA, CL_UNSIGNED_INT32};
    cl_image_desc description{};
    description.image_type = CL_MEM_OBJECT_IMAGE2D;
    description.image_width = that.width;
    description.image_height = that.height;
    handle = clCreateImage(context, that.given_flags, &format, &description, host, &status);
    ok(status, "clCreateImage");
  } else if (that.parent >= 0) {
    const cl_buffer_region region{that.origin, that.size};
    handle = clCreateSubBuffer(memory(that.parent), that.given_flags, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
    ok(status, "clCreateSubBuffer");
  } else {
    handle = clCreateBuffer(context, that.given_flags, that.size, host, &status);
    ok(status, "clCreateBuffer");
  }
  std::fill(contents.begin(), contents.end(), std::uint8_t{0xee});  // it was copied
  query(id);
  if (step.what.seed % 4 == 0) {
    expected_destroyed_.fetch_add(1);
    const auto destroyed = [](cl_mem, void* session) { count(static_cast<Session*>(session)->destroyed_); };
    ok(clSetMemObjectDestructorCallback(handle, destroyed, this), "clSetMemObjectDestructorCallback");
  }
}

void Session::query(int id) {
  const Object& that = object(id);
  const auto is = [&](cl_mem_info what, const char* name, auto expected) {
    auto value = expected;
    ok(clGetMemObjectInfo(memory(id), what, sizeof(value), &value, nullptr), name);
    if (value != expected) throw Failure(std::string("clGetMemObjectInfo: ") + name + " is wrong");
  };
  if (!is_image(that)) is(CL_MEM_SIZE, "CL_MEM_SIZE", that.size);
  is(CL_MEM_REFERENCE_COUNT, "CL_MEM_REFERENCE_COUNT", cl_uint{1});
  is(CL_MEM_MAP_COUNT, "CL_MEM_MAP_COUNT", cl_uint{0});
  is(CL_MEM_CONTEXT, "CL_MEM_CONTEXT", contexts_[index(that.context)]);
  is(CL_MEM_OFFSET, "CL_MEM_OFFSET", that.origin);
  // The parent may be released, and its handle gone, but not here.
  is(CL_MEM_ASSOCIATED_MEMOBJECT, "CL_MEM_ASSOCIATED_MEMOBJECT", that.parent < 0 ? cl_mem{} : memory(that.parent));
}

void Session::set_user_event(Worker& worker, const Step& step) {
  cl_event event = events_[index(step.target)];
  const cl_int status = step.what.fails ? -1 - static_cast<cl_int>(step.what.seed % 80) : CL_COMPLETE;
  if (!step.by_helper) {
    ok(clSetUserEventStatus(event, status), "clSetUserEventStatus");
    return;
  }
  const std::chrono::microseconds delay{step.what.seed % 1500};
  worker.setters.emplace_back([event, status, delay] {
    std::this_thread::sleep_for(delay);
    if (clSetUserEventStatus(event, status) == CL_SUCCESS) return;
    std::cout << "clSetUserEventStatus failed in a helper thread" << std::endl;
    std::_Exit(1);
  });
}

void Session::wait(const Step& step) {
  const cl_event event = events_[index(step.waits[0])];
  if (step.what.section % 2 == 0 || step.what.seed % 4 != 0 ||
      program_.sections[index(step.what.section / 2)].threads > 1) {
    ok(clWaitForEvents(1, &event), "clWaitForEvents");
  } else {
    ok(clFlush(queue(step)), "clFlush");
    cl_int status = CL_QUEUED;
    while (status > CL_COMPLETE) {
      ok(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr), "clGetEventInfo");
      if (status > CL_COMPLETE) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  inspect(step.waits[0], step.waits[0]);
}

/// The command never ran, and whoever waits for it is told so.
void Session::wait_for_failure(const Step& step) {
  const cl_event event = events_[index(step.waits[0])];
  const cl_int waited = clWaitForEvents(1, &event);
  if (waited != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
    throw Failure("clWaitForEvents of a command that cannot run returned " + std::to_string(waited));
  cl_int status = CL_QUEUED;
  ok(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr), "clGetEventInfo");
  if (status >= 0) throw Failure("a command that cannot run has status " + std::to_string(status));
}

void Session::inspect(int which, int number) {
  const cl_event event = events_[index(which)];
  cl_int status = CL_QUEUED;
  ok(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr), "clGetEventInfo");
  if (status != CL_COMPLETE) throw Failure("an event has status " + std::to_string(status) + " after a wait for it");
  cl_command_type type = 0;
  ok(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, nullptr), "clGetEventInfo");
  const Step& step = schedule_.steps[index(which)];
  if (step.what.kind == Kind::launch && type != CL_COMMAND_NDRANGE_KERNEL)
    throw Failure("CL_EVENT_COMMAND_TYPE is wrong");
  if ((program_.queues[index(step.what.queue)].properties & CL_QUEUE_PROFILING_ENABLE) == 0) return;
  if (step.what.kind != Kind::launch) return;
  cl_ulong begin = 0;
  cl_ulong end = 0;
  ok(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof(begin), &begin, nullptr),
     "clGetEventProfilingInfo");
  ok(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(end), &end, nullptr), "clGetEventProfilingInfo");
  if (begin > end) throw Failure("step " + std::to_string(number) + " ended before it began");
}

void Session::note(int number, std::uint64_t seen) { seen_[index(number)] = seen; }

std::vector<cl_event> Session::waits_of(const Step& step) const {
  std::vector<cl_event> waits;
  for (const int wait : step.waits) waits.push_back(events_[index(wait)]);
  return waits;
}

cl_event* Session::event_of(const Step& step, int number) { return step.has_event ? &events_[index(number)] : nullptr; }

void Session::release_worker(Worker& worker) {
  for (auto& [key, kernel] : worker.kernels) ok(clReleaseKernel(kernel.handle), "clReleaseKernel");
  for (cl_kernel clone : worker.clones) ok(clReleaseKernel(clone), "clReleaseKernel");
}

void Session::release_everything() {
  try {
    for (Worker& worker : workers_) release_worker(worker);
    for (cl_event event : events_) {
      if (event != nullptr) ok(clReleaseEvent(event), "clReleaseEvent");
    }
    for (cl_mem memory : memories_) {
      if (memory != nullptr) ok(clReleaseMemObject(memory), "clReleaseMemObject");
    }
    for (std::size_t i = 0; i != shared_.size(); ++i) {
      if (shared_[i] != nullptr) clSVMFree(contexts_[index(program_.objects[i].context)], shared_[i]);
    }
    for (cl_command_queue queue : queues_) ok(clReleaseCommandQueue(queue), "clReleaseCommandQueue");
    for (cl_program program : programs_) ok(clReleaseProgram(program), "clReleaseProgram");
    for (cl_context context : contexts_) ok(clReleaseContext(context), "clReleaseContext");
    wait_for_callbacks();
  } catch (const Failure& failure) {
    std::cout << "seed " << program_.seed << ", at the end: " << failure.what() << std::endl;
    std::_Exit(1);
  }
}

void Session::wait_for_callbacks() {
  const auto wait_for = [](const std::function<bool()>& done) {
    for (int i = 0; i != 10000 && !done(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  wait_for([&] { return callbacks_ >= expected_callbacks_ && destroyed_ >= expected_destroyed_; });
  if (callbacks_ != expected_callbacks_) {
    throw Failure(std::to_string(callbacks_) + " callbacks of events were called, not " +
                  std::to_string(expected_callbacks_));
  }
  if (wrong_callbacks_ != 0) throw Failure("callbacks of events were called with a wrong status");
  if (destroyed_ != expected_destroyed_) {
    throw Failure(std::to_string(destroyed_) + " callbacks of memory objects were called, not " +
                  std::to_string(expected_destroyed_));
  }
}

}  // namespace random_opencl
