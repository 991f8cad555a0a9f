// SPDX-License-Identifier: Apache-2.0
// Events of commands: information, callbacks, profiling.

#include "harness.hpp"

#include <atomic>
#include <mutex>

using namespace cases;

namespace {

// Callbacks may still run when a wait has returned.
template <class Holds>
void await(Holds holds, const char* what) {
  expect(comes_true(holds), what);
}

}  // namespace

CASE(events, every_command_type) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem a = setup.buffer_of(numbers(1)), b = setup.buffer_of(numbers(2));
  std::vector<cl_event> events(10);
  cl_event* next = events.data();
  Words words(word_count);
  const cl_uint pattern = 1;
  const std::size_t origin[3] = {0, 0, 0}, region[3] = {16, 2, 1};
  OK(clEnqueueWriteBuffer(setup.queue, a, CL_FALSE, 0, 400, words.data(), 0, nullptr, next++));
  OK(clEnqueueFillBuffer(setup.queue, a, &pattern, 4, 0, 400, 0, nullptr, next++));
  OK(clEnqueueCopyBuffer(setup.queue, a, b, 0, 0, 400, 0, nullptr, next++));
  kernels.grow(setup.queue, b, 3, word_count, {}, next++);
  OK(clEnqueueCopyBufferRect(setup.queue, a, b, origin, origin, region, 64, 0, 64, 0, 0, nullptr, next++));
  OK(clEnqueueReadBufferRect(setup.queue, b, CL_FALSE, origin, origin, region, 64, 0, 64, 0, words.data(), 0, nullptr,
                             next++));
  OK(clEnqueueWriteBufferRect(setup.queue, a, CL_FALSE, origin, origin, region, 64, 0, 64, 0, words.data(), 0, nullptr,
                              next++));
  OK(clEnqueueReadBuffer(setup.queue, b, CL_FALSE, 0, 400, words.data(), 0, nullptr, next++));
  cl_int error = CL_SUCCESS;
  void* mapped = clEnqueueMapBuffer(setup.queue, a, CL_FALSE, CL_MAP_READ, 0, 400, 0, nullptr, next++, &error);
  OK(error);
  OK(clEnqueueUnmapMemObject(setup.queue, a, mapped, 0, nullptr, next++));
  OK(clWaitForEvents(static_cast<cl_uint>(events.size()), events.data()));
  for (cl_event one : events) {
    say("type %x, status %d", event_info<cl_command_type>(one, CL_EVENT_COMMAND_TYPE), status_of(one));
    expect(event_info<cl_uint>(one, CL_EVENT_REFERENCE_COUNT) >= 1, "the program holds a reference");
    expect(event_info<cl_command_queue>(one, CL_EVENT_COMMAND_QUEUE) == setup.queue, "the queue is told");
    expect(event_info<cl_context>(one, CL_EVENT_CONTEXT) == setup.context, "the context is told");
    OK(clReleaseEvent(one));
  }
  say_words("b", setup.read(b));
  release_buffers({a, b});
}

CASE(events, of_a_blocking_read) {
  const Setup setup;
  const cl_mem a = setup.buffer_of(numbers(1));
  Words words(word_count);
  cl_event event = nullptr;
  OK(clEnqueueReadBuffer(setup.queue, a, CL_TRUE, 0, buffer_bytes, words.data(), 0, nullptr, &event));
  say("status %d", status_of(event));
  OK(clReleaseEvent(event));
  OK(clEnqueueWriteBuffer(setup.queue, a, CL_TRUE, 0, buffer_bytes, words.data(), 0, nullptr, &event));
  say("status %d", status_of(event));
  OK(clReleaseEvent(event));
  release_buffers({a});
}

CASE(events, retained_and_released) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem a = setup.buffer_of(numbers(1));
  cl_event event = nullptr;
  kernels.grow(setup.queue, a, 1, word_count, {}, &event);
  OK(clFinish(setup.queue));
  for (int i = 0; i < 3; ++i) OK(clRetainEvent(event));
  // Drivers count references of their own.
  expect(event_info<cl_uint>(event, CL_EVENT_REFERENCE_COUNT) >= 4, "four references or more");
  for (int i = 0; i < 3; ++i) OK(clReleaseEvent(event));
  expect(event_info<cl_uint>(event, CL_EVENT_REFERENCE_COUNT) >= 1, "one reference or more");
  OK(clReleaseEvent(event));
  // Released before its command has run.
  kernels.grow(setup.queue, a, 1, word_count, {}, &event);
  OK(clReleaseEvent(event));
  say_words("a", setup.read(a));
  release_buffers({a});
}

CASE(events, callbacks_of_each_status) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem a = setup.buffer_of(numbers(1));
  cl_int error = CL_SUCCESS;
  const cl_event gate = clCreateUserEvent(setup.context, &error);
  OK(error);
  cl_event event = nullptr;
  kernels.grow(setup.queue, a, 1, word_count, {gate}, &event);
  struct Told {
    std::atomic<int> complete{0}, running{0}, submitted{0};
    std::atomic<bool> right_event{true}, right_status{true};
    cl_event event = nullptr;
  } told;
  told.event = event;
  const auto count = [](cl_event of, cl_int status, std::atomic<int>& counter, Told& all, cl_int wanted) {
    if (of != all.event) all.right_event = false;
    if (status > wanted) all.right_status = false;
    ++counter;
  };
  static const auto static_count = count;
  const auto on_complete = [](cl_event of, cl_int status, void* data) {
    auto& all = *static_cast<Told*>(data);
    static_count(of, status, all.complete, all, CL_COMPLETE);
  };
  const auto on_running = [](cl_event of, cl_int status, void* data) {
    auto& all = *static_cast<Told*>(data);
    static_count(of, status, all.running, all, CL_RUNNING);
  };
  const auto on_submitted = [](cl_event of, cl_int status, void* data) {
    auto& all = *static_cast<Told*>(data);
    static_count(of, status, all.submitted, all, CL_SUBMITTED);
  };
  OK(clSetEventCallback(event, CL_COMPLETE, on_complete, &told));
  OK(clSetEventCallback(event, CL_COMPLETE, on_complete, &told));
  OK(clSetEventCallback(event, CL_RUNNING, on_running, &told));
  OK(clSetEventCallback(event, CL_SUBMITTED, on_submitted, &told));
  OK(clSetUserEventStatus(gate, CL_COMPLETE));
  OK(clFinish(setup.queue));
  await([&] { return told.complete == 2 && told.running == 1 && told.submitted == 1; }, "all callbacks come");
  say("complete %d, running %d, submitted %d", told.complete.load(), told.running.load(), told.submitted.load());
  expect(told.right_event, "the event is the program's");
  expect(told.right_status, "the status is reached");
  // Registered after the command is complete: called all the same.
  OK(clSetEventCallback(event, CL_COMPLETE, on_complete, &told));
  await([&] { return told.complete == 3; }, "a late callback comes");
  say_status("queued", clSetEventCallback(event, CL_QUEUED, on_complete, &told));
  say_status("no function", clSetEventCallback(event, CL_COMPLETE, nullptr, &told));
  OK(clReleaseEvent(gate));
  OK(clReleaseEvent(event));
  release_buffers({a});
}

// Callbacks enqueue, as the specification allows for calls that do not block.
CASE(events, callback_enqueues) {
  const Setup setup;
  const Kernels kernels(setup);
  struct Shared {
    const Setup* setup;
    const Kernels* kernels;
    cl_mem a, b;
    std::atomic<bool> done{false};
  } shared{&setup, &kernels, setup.buffer_of(numbers(1)), setup.buffer_of(numbers(2)), {}};
  cl_event event = nullptr;
  kernels.grow(setup.queue, shared.a, 1, word_count, {}, &event);
  OK(clSetEventCallback(
      event, CL_COMPLETE,
      [](cl_event, cl_int, void* data) {
        auto& all = *static_cast<Shared*>(data);
        all.kernels->affine(all.setup->queue, all.b, all.a, 5);
        OK(clFlush(all.setup->queue));
        all.done = true;
      },
      &shared));
  OK(clFlush(setup.queue));
  await([&] { return shared.done.load(); }, "the callback comes");
  say_words("b", setup.read(shared.b));
  OK(clReleaseEvent(event));
  release_buffers({shared.a, shared.b});
}

CASE(events, callback_of_an_event_released_at_once) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem a = setup.buffer_of(numbers(1));
  std::atomic<int> count{0};
  for (cl_uint i = 0; i < 20; ++i) {
    cl_event event = nullptr;
    kernels.grow(setup.queue, a, i, word_count, {}, &event);
    OK(clSetEventCallback(
        event, CL_COMPLETE, [](cl_event, cl_int, void* data) { ++*static_cast<std::atomic<int>*>(data); }, &count));
    OK(clReleaseEvent(event));
  }
  OK(clFinish(setup.queue));
  await([&] { return count == 20; }, "all callbacks come");
  say("%d callbacks", count.load());
  say_words("a", setup.read(a));
  release_buffers({a});
}

CASE(events, profiling) {
  const Setup setup(CL_QUEUE_PROFILING_ENABLE);
  const Kernels kernels(setup);
  const std::vector<cl_mem> buffers{setup.buffer_of(numbers(1)), setup.buffer_of(numbers(2)),
                                    setup.buffer_of(numbers(3)), setup.buffer_of(numbers(4))};
  std::vector<cl_event> events;
  Words words(word_count);
  const cl_uint pattern = 1;
  for (std::size_t i = 0; i < 4; ++i) {
    cl_event event = nullptr;
    kernels.blend(setup.queue, buffers[i], buffers[(i + 1) % 4], buffers[(i + 2) % 4], word_count, {}, &event);
    events.push_back(event);
  }
  events.resize(9);
  OK(clEnqueueWriteBuffer(setup.queue, buffers[0], CL_FALSE, 0, 400, words.data(), 0, nullptr, &events[4]));
  OK(clEnqueueFillBuffer(setup.queue, buffers[1], &pattern, 4, 0, 400, 0, nullptr, &events[5]));
  OK(clEnqueueCopyBuffer(setup.queue, buffers[0], buffers[1], 0, 0, 400, 0, nullptr, &events[6]));
  OK(clEnqueueReadBuffer(setup.queue, buffers[1], CL_FALSE, 0, 400, words.data(), 0, nullptr, &events[7]));
  OK(clEnqueueMarkerWithWaitList(setup.queue, 0, nullptr, &events[8]));
  OK(clFinish(setup.queue));
  for (std::size_t i = 0; i < events.size(); ++i) {
    cl_ulong times[4] = {};
    const cl_profiling_info names[] = {CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_SUBMIT,
                                       CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END};
    cl_int status = CL_SUCCESS;
    for (std::size_t n = 0; n < 4 && status == CL_SUCCESS; ++n) {
      std::size_t bytes = 0;
      status = clGetEventProfilingInfo(events[i], names[n], sizeof(cl_ulong), &times[n], &bytes);
    }
    say_status("profiling", status);
    // Of markers drivers tell little.
    if (i != 8)
      expect(times[0] != 0 && times[0] <= times[1] && times[1] <= times[2] && times[2] <= times[3], "times in order");
    OK(clReleaseEvent(events[i]));
  }
  release_buffers(buffers);
}

CASE(events, profiling_is_off) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem a = setup.buffer_of(numbers(1));
  cl_event event = nullptr;
  kernels.grow(setup.queue, a, 1, word_count, {}, &event);
  OK(clWaitForEvents(1, &event));
  cl_ulong time = 0;
  say_status("profiling", clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof time, &time, nullptr));
  OK(clReleaseEvent(event));
  release_buffers({a});
}

CASE(events, wait_list_errors) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem a = setup.buffer_of(numbers(1));
  cl_event event = nullptr;
  kernels.grow(setup.queue, a, 1, word_count, {}, &event);
  cl_uint word = 0;
  const cl_event hole[] = {nullptr};
  say_status("count without a list", clEnqueueReadBuffer(setup.queue, a, CL_TRUE, 0, 4, &word, 1, nullptr, nullptr));
  say_status("list without a count", clEnqueueReadBuffer(setup.queue, a, CL_TRUE, 0, 4, &word, 0, &event, nullptr));
  say_ruled("list with NULL", clEnqueueReadBuffer(setup.queue, a, CL_TRUE, 0, 4, &word, 1, hole, nullptr),
            CL_INVALID_EVENT_WAIT_LIST, {CL_INVALID_EVENT});
  say_status("marker, count without a list", clEnqueueMarkerWithWaitList(setup.queue, 1, nullptr, nullptr));
  say_status("wait for none", clWaitForEvents(0, nullptr));
  say_status("wait for NULL", clWaitForEvents(1, nullptr));
  OK(clFinish(setup.queue));
  say_words("a", setup.read(a));
  OK(clReleaseEvent(event));
  release_buffers({a});
}

// The event is complete once its results can be read through another queue.
CASE(events, polled) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_command_queue other = setup.another_queue();
  const cl_mem a = setup.buffer_of(numbers(1)), b = setup.buffer_of(numbers(2));
  for (cl_uint i = 0; i < 4; ++i) {
    cl_event event = nullptr;
    kernels.blend(setup.queue, a, b, a, word_count, {}, &event);
    OK(clFlush(setup.queue));
    await([&] { return status_of(event) == CL_COMPLETE; }, "the command completes without a wait");
    Words words(word_count);
    OK(clEnqueueReadBuffer(other, a, CL_TRUE, 0, buffer_bytes, words.data(), 0, nullptr, nullptr));
    say_words("polled", words);
    OK(clReleaseEvent(event));
  }
  OK(clReleaseCommandQueue(other));
  release_buffers({a, b});
}
