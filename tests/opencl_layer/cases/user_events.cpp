// SPDX-License-Identifier: Apache-2.0
// Events that the program sets itself.

#include "harness.hpp"

#include <atomic>
#include <chrono>
#include <thread>

using namespace cases;

namespace {

cl_event user_event(const Setup& setup) {
  cl_int error = CL_SUCCESS;
  const cl_event made = clCreateUserEvent(setup.context, &error);
  OK(error);
  return made;
}
std::vector<cl_mem> four_buffers(const Setup& setup) {
  return {setup.buffer_of(numbers(1)), setup.buffer_of(numbers(2)), setup.buffer_of(numbers(3)),
          setup.buffer_of(numbers(4))};
}
// Commands that wait for a failed event fail, but how far that goes differs.
const char* outcome(cl_int status) {
  return status < 0 ? "failed" : status == CL_COMPLETE ? "complete" : "not complete";
}

}  // namespace

CASE(user_events, holds_a_command) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto buffers = four_buffers(setup);
  const cl_event gate = user_event(setup);
  cl_event done = nullptr;
  kernels.blend(setup.queue, buffers[0], buffers[1], buffers[2], word_count, {gate}, &done);
  kernels.blend(setup.queue, buffers[3], buffers[0], buffers[2]);
  OK(clFlush(setup.queue));
  expect(status_of(done) > CL_COMPLETE, "the command waits");
  say("user event: %d", status_of(gate));
  OK(clSetUserEventStatus(gate, CL_COMPLETE));
  OK(clWaitForEvents(1, &done));
  say("complete: %d %d", status_of(gate), status_of(done));
  say_words("first", setup.read(buffers[0]));
  say_words("second", setup.read(buffers[3]));
  release_events({gate, done});
  release_buffers(buffers);
}

CASE(user_events, set_before) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto buffers = four_buffers(setup);
  const cl_event gate = user_event(setup);
  OK(clSetUserEventStatus(gate, CL_COMPLETE));
  kernels.blend(setup.queue, buffers[0], buffers[1], buffers[2], word_count, {gate});
  say_words("first", setup.read(buffers[0]));
  say_ruled("set again", clSetUserEventStatus(gate, CL_COMPLETE), CL_INVALID_OPERATION, {CL_SUCCESS});
  release_events({gate});
  release_buffers(buffers);
}

// What another queue does meanwhile comes about.
CASE(user_events, other_queue_goes_on) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_command_queue other = setup.another_queue();
  const auto held = four_buffers(setup), free = four_buffers(setup);
  const cl_event gate = user_event(setup);
  kernels.blend(setup.queue, held[0], held[1], held[2], word_count, {gate});
  OK(clFlush(setup.queue));
  for (std::size_t i = 0; i < 8; ++i) kernels.blend(other, free[i % 4], free[(i + 1) % 4], free[(i + 2) % 4]);
  Words words(word_count);
  OK(clEnqueueReadBuffer(other, free[3], CL_TRUE, 0, buffer_bytes, words.data(), 0, nullptr, nullptr));
  say_words("meanwhile", words);
  OK(clFinish(other));
  OK(clSetUserEventStatus(gate, CL_COMPLETE));
  say_words("held", setup.read(held[0]));
  release_events({gate});
  release_buffers(held);
  release_buffers(free);
  OK(clReleaseCommandQueue(other));
}

// Out of order, what does not wait may pass what does.
CASE(user_events, out_of_order_passes) {
  const Setup setup(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const Kernels kernels(setup);
  const auto held = four_buffers(setup), free = four_buffers(setup);
  const cl_event gate = user_event(setup);
  cl_event held_done = nullptr, free_done = nullptr;
  kernels.blend(setup.queue, held[0], held[1], held[2], word_count, {gate}, &held_done);
  kernels.blend(setup.queue, free[0], free[1], free[2], word_count, {}, &free_done);
  OK(clFlush(setup.queue));
  OK(clWaitForEvents(1, &free_done));
  say("held: %s", outcome(status_of(held_done)));
  OK(clSetUserEventStatus(gate, CL_COMPLETE));
  OK(clWaitForEvents(1, &held_done));
  OK(clFinish(setup.queue));
  say_words("held", setup.read(held[0]));
  say_words("free", setup.read(free[0]));
  release_events({gate, held_done, free_done});
  release_buffers(held);
  release_buffers(free);
}

CASE(user_events, transfers_held) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto buffers = four_buffers(setup);
  const cl_event gate = user_event(setup);
  const Words from = numbers(9);
  Words to(word_count, 0);
  const cl_uint pattern = 3;
  OK(clEnqueueWriteBuffer(setup.queue, buffers[0], CL_FALSE, 0, buffer_bytes, from.data(), 1, &gate, nullptr));
  OK(clEnqueueCopyBuffer(setup.queue, buffers[0], buffers[1], 0, 400, 4000, 0, nullptr, nullptr));
  OK(clEnqueueFillBuffer(setup.queue, buffers[0], &pattern, 4, 0, 4000, 0, nullptr, nullptr));
  kernels.blend(setup.queue, buffers[2], buffers[0], buffers[1]);
  OK(clEnqueueReadBuffer(setup.queue, buffers[2], CL_FALSE, 0, buffer_bytes, to.data(), 0, nullptr, nullptr));
  OK(clFlush(setup.queue));
  expect(to[0] == 0, "nothing was read yet");
  OK(clSetUserEventStatus(gate, CL_COMPLETE));
  OK(clFinish(setup.queue));
  say_words("read", to);
  release_events({gate});
  release_buffers(buffers);
}

CASE(user_events, map_held) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto buffers = four_buffers(setup);
  const cl_event gate = user_event(setup);
  cl_event mapped_event = nullptr;
  kernels.blend(setup.queue, buffers[0], buffers[1], buffers[2], word_count, {gate});
  cl_int error = CL_SUCCESS;
  auto* mapped = static_cast<cl_uint*>(clEnqueueMapBuffer(setup.queue, buffers[0], CL_FALSE, CL_MAP_READ, 0,
                                                          buffer_bytes, 0, nullptr, &mapped_event, &error));
  OK(error);
  OK(clFlush(setup.queue));
  say("mapped: %s", outcome(status_of(mapped_event)));
  OK(clSetUserEventStatus(gate, CL_COMPLETE));
  OK(clWaitForEvents(1, &mapped_event));
  say_words("mapped", Words(mapped, mapped + word_count));
  OK(clEnqueueUnmapMemObject(setup.queue, buffers[0], mapped, 0, nullptr, nullptr));
  OK(clFinish(setup.queue));
  release_events({gate, mapped_event});
  release_buffers(buffers);
}

// Arguments are those of the call, whatever is set before the command runs.
CASE(user_events, arguments_of_the_call) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto buffers = four_buffers(setup);
  const cl_event gate = user_event(setup);
  kernels.affine(setup.queue, buffers[0], buffers[1], 1, word_count, {gate});
  kernels.affine(setup.queue, buffers[2], buffers[1], 2);
  kernels.affine(setup.queue, buffers[3], buffers[0], 3);
  set_argument(kernels.affine_kernel, 2, 99u);
  OK(clSetUserEventStatus(gate, CL_COMPLETE));
  OK(clFinish(setup.queue));
  for (cl_mem one : buffers) say_words("one", setup.read(one));
  release_events({gate});
  release_buffers(buffers);
}

// A buffer that the program releases stays until the command that waits has used it.
CASE(user_events, released_while_held) {
  const Setup setup;
  const auto buffers = four_buffers(setup);
  const cl_event gate = user_event(setup);
  cl_event done = nullptr;
  {
    const Kernels kernels(setup);
    kernels.blend(setup.queue, buffers[0], buffers[1], buffers[2], word_count, {gate}, &done);
  }
  OK(clFlush(setup.queue));
  OK(clReleaseMemObject(buffers[1]));
  OK(clReleaseMemObject(buffers[2]));
  OK(clSetUserEventStatus(gate, CL_COMPLETE));
  OK(clWaitForEvents(1, &done));
  say_words("one", setup.read(buffers[0]));
  release_events({gate, done});
  release_buffers({buffers[0], buffers[3]});
}

CASE(user_events, set_by_another_thread) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto buffers = four_buffers(setup);
  const cl_event gate = user_event(setup);
  kernels.blend(setup.queue, buffers[0], buffers[1], buffers[2], word_count, {gate});
  std::thread setter([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    OK(clSetUserEventStatus(gate, CL_COMPLETE));
  });
  say_words("read while another thread sets", setup.read(buffers[0]));
  setter.join();
  release_events({gate});
  release_buffers(buffers);
}

CASE(user_events, finish_waits_for_another_thread) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto buffers = four_buffers(setup);
  const cl_event gate = user_event(setup);
  cl_event done = nullptr;
  std::atomic<bool> was_set{false};
  kernels.blend(setup.queue, buffers[0], buffers[1], buffers[2], word_count, {gate}, &done);
  std::thread setter([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    was_set = true;
    OK(clSetUserEventStatus(gate, CL_COMPLETE));
  });
  OK(clFinish(setup.queue));
  expect(was_set, "the queue finishes after the event");
  say("done: %d", status_of(done));
  setter.join();
  say_words("one", setup.read(buffers[0]));
  release_events({gate, done});
  release_buffers(buffers);
}

// While one thread waits, another one works.
CASE(user_events, others_work_while_one_waits) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_command_queue other = setup.another_queue();
  const auto held = four_buffers(setup), free = four_buffers(setup);
  const cl_event gate = user_event(setup);
  kernels.blend(setup.queue, held[0], held[1], held[2], word_count, {gate});
  Words late(word_count);
  std::thread waiter([&] {
    OK(clEnqueueReadBuffer(setup.queue, held[0], CL_TRUE, 0, buffer_bytes, late.data(), 0, nullptr, nullptr));
  });
  for (std::size_t i = 0; i < 8; ++i) kernels.blend(other, free[i % 4], free[(i + 1) % 4], free[(i + 2) % 4]);
  Words words(word_count);
  OK(clEnqueueReadBuffer(other, free[0], CL_TRUE, 0, buffer_bytes, words.data(), 0, nullptr, nullptr));
  say_words("meanwhile", words);
  OK(clSetUserEventStatus(gate, CL_COMPLETE));
  waiter.join();
  say_words("late", late);
  release_events({gate});
  release_buffers(held);
  release_buffers(free);
  OK(clReleaseCommandQueue(other));
}

CASE(user_events, chain_of_gates) {
  const Setup setup(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const Kernels kernels(setup);
  const auto buffers = four_buffers(setup);
  std::vector<cl_event> gates, done{nullptr};
  for (cl_uint i = 0; i < 6; ++i) {
    gates.push_back(user_event(setup));
    cl_event event = nullptr;
    kernels.blend(setup.queue, buffers[i % 4], buffers[(i + 1) % 4], buffers[(i + 2) % 4], word_count,
                  i == 0 ? std::vector<cl_event>{gates[i]} : std::vector<cl_event>{gates[i], done.back()}, &event);
    done.push_back(event);
  }
  done.erase(done.begin());
  for (std::size_t i = 6; i-- > 0;) OK(clSetUserEventStatus(gates[i], CL_COMPLETE));  // the last one first
  OK(clFinish(setup.queue));
  for (cl_mem one : buffers) say_words("one", setup.read(one));
  release_events(gates);
  release_events(done);
  release_buffers(buffers);
}

CASE(user_events, callback_sets_the_next) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto buffers = four_buffers(setup);
  const cl_event gate = user_event(setup);
  cl_event first = nullptr, second = nullptr;
  const cl_command_queue other = setup.another_queue();
  kernels.blend(setup.queue, buffers[0], buffers[1], buffers[2], word_count, {}, &first);
  kernels.blend(other, buffers[3], buffers[0], buffers[2], word_count, {gate, first}, &second);
  OK(clSetEventCallback(
      first, CL_COMPLETE,
      [](cl_event, cl_int, void* data) { OK(clSetUserEventStatus(static_cast<cl_event>(data), CL_COMPLETE)); }, gate));
  OK(clFlush(setup.queue));
  OK(clFlush(other));
  OK(clWaitForEvents(1, &second));
  say_words("second", setup.read(buffers[3]));
  release_events({gate, first, second});
  release_buffers(buffers);
  OK(clReleaseCommandQueue(other));
}

CASE(user_events, failed) {
  const Setup setup(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const Kernels kernels(setup);
  const auto buffers = four_buffers(setup);
  const cl_event gate = user_event(setup);
  cl_event first = nullptr, second = nullptr;
  kernels.blend(setup.queue, buffers[0], buffers[1], buffers[2], word_count, {gate}, &first);
  kernels.blend(setup.queue, buffers[3], buffers[0], buffers[2], word_count, {first}, &second);
  OK(clFlush(setup.queue));
  OK(clSetUserEventStatus(gate, -5));
  say_ruled("wait for the gate", clWaitForEvents(1, &gate), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, {CL_SUCCESS});
  say_status("wait for the first", clWaitForEvents(1, &first));
  // NVIDIA's driver says that what waits for a failed command is complete, although it has not run.
  const bool deviates = is_native() && status_of(second) == CL_COMPLETE;
  say("gate %d, first %s, second %s", status_of(gate), outcome(status_of(first)),
      deviates ? outcome(-1) : outcome(status_of(second)));
  // Neither ran.
  say_words("first", setup.read(buffers[0]));
  say_words("second", setup.read(buffers[3]));
  release_events({gate, first, second});
  release_buffers(buffers);
}

CASE(user_events, information) {
  const Setup setup;
  const cl_event gate = user_event(setup);
  say("type %x, status %d, references %u", event_info<cl_command_type>(gate, CL_EVENT_COMMAND_TYPE), status_of(gate),
      event_info<cl_uint>(gate, CL_EVENT_REFERENCE_COUNT));
  expect(event_info<cl_command_queue>(gate, CL_EVENT_COMMAND_QUEUE) == nullptr, "a user event has no queue");
  expect(event_info<cl_context>(gate, CL_EVENT_CONTEXT) == setup.context, "the context is told");
  say_ruled("submitted", clSetUserEventStatus(gate, CL_SUBMITTED), CL_INVALID_VALUE, {CL_SUCCESS});
  say_ruled("running", clSetUserEventStatus(gate, CL_RUNNING), CL_INVALID_VALUE, {CL_SUCCESS});
  say_status("complete", clSetUserEventStatus(gate, CL_COMPLETE));
  say_ruled("complete again", clSetUserEventStatus(gate, CL_COMPLETE), CL_INVALID_OPERATION, {CL_SUCCESS});
  cl_ulong time = 0;
  say_status("profiling", clGetEventProfilingInfo(gate, CL_PROFILING_COMMAND_END, sizeof time, &time, nullptr));
  release_events({gate});
}

// What waited for the gate keeps nothing for good.
CASE(user_events, contexts_end) {
  static std::atomic<int> ended{0};
  int expected = 0;
  for (const cl_command_queue_properties order :
       {cl_command_queue_properties{0}, cl_command_queue_properties{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}}) {
    for (const bool has_event : {true, false}) {
      const Setup setup(order);
      const auto end = [](cl_context, void*) { ++ended; };
      if (clSetContextDestructorCallback(setup.context, end, nullptr) == CL_SUCCESS) ++expected;  // since OpenCL 3.0
      const cl_mem buffer = setup.buffer_of(numbers(1));
      const cl_event gate = user_event(setup);
      const cl_uint zero = 0;
      cl_event filled = nullptr;
      OK(clEnqueueFillBuffer(setup.queue, buffer, &zero, sizeof zero, 0, buffer_bytes, 1, &gate,
                             has_event ? &filled : nullptr));
      OK(clSetUserEventStatus(gate, CL_COMPLETE));
      OK(clFinish(setup.queue));
      release_events({gate});
      if (has_event) release_events({filled});
      release_buffers({buffer});
    }
  }
  for (int i = 0; i < 1000 && ended < expected; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  expect(ended == expected, "all contexts have ended");
}
