// SPDX-License-Identifier: Apache-2.0
// Several queues and contexts, in order and out of order, with markers and barriers.

#include "harness.hpp"

using namespace cases;

namespace {

constexpr cl_command_queue_properties out_of_order = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;

}  // namespace

CASE(queues, two_by_events) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_command_queue queues[2] = {setup.queue, setup.another_queue()};
  const auto buffers = buffers_of(setup, 6);
  std::vector<cl_event> events;
  for (std::size_t i = 0; i < 24; ++i) {
    cl_event event = nullptr;
    kernels.blend(queues[i % 2], buffers[i % 6], buffers[(i + 1) % 6], buffers[(i + 3) % 6], word_count,
                  events.empty() ? std::vector<cl_event>{} : std::vector<cl_event>{events.back()}, &event);
    OK(clFlush(queues[i % 2]));
    events.push_back(event);
  }
  OK(clFinish(queues[0]));
  OK(clFinish(queues[1]));
  for (cl_mem one : buffers) say_words("one", setup.read(one));
  release_events(events);
  release_buffers(buffers);
  OK(clReleaseCommandQueue(queues[1]));
}

CASE(queues, two_by_finish) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_command_queue queues[2] = {setup.queue, setup.another_queue(out_of_order)};
  const auto buffers = buffers_of(setup, 6);
  for (std::size_t i = 0; i < 12; ++i) {
    kernels.blend(queues[i % 2], buffers[i % 6], buffers[(i + 1) % 6], buffers[(i + 3) % 6]);
    OK(clFinish(queues[i % 2]));
  }
  for (cl_mem one : buffers) say_words("one", setup.read(one));
  release_buffers(buffers);
  OK(clReleaseCommandQueue(queues[1]));
}

// Each queue works on buffers of its own.
CASE(queues, eight_apart) {
  const Setup setup;
  const Kernels kernels(setup);
  std::vector<cl_command_queue> queues;
  for (std::size_t i = 0; i < 8; ++i) queues.push_back(setup.another_queue(i % 2 == 0 ? 0 : out_of_order));
  const auto buffers = buffers_of(setup, 16);
  for (cl_uint round = 0; round < 4; ++round)
    for (std::size_t i = 0; i < 8; ++i) {
      kernels.affine(queues[i], buffers[2 * i], buffers[2 * i + 1], round);
      OK(clEnqueueBarrierWithWaitList(queues[i], 0, nullptr, nullptr));
      kernels.affine(queues[i], buffers[2 * i + 1], buffers[2 * i], round);
      OK(clEnqueueBarrierWithWaitList(queues[i], 0, nullptr, nullptr));
    }
  for (cl_command_queue one : queues) OK(clFinish(one));
  for (cl_mem one : buffers) say_words("one", setup.read(one));
  release_buffers(buffers);
  for (cl_command_queue one : queues) OK(clReleaseCommandQueue(one));
}

CASE(queues, out_of_order_by_events) {
  const Setup setup(out_of_order);
  const Kernels kernels(setup);
  const auto buffers = buffers_of(setup, 5);
  std::vector<cl_event> events(1);
  kernels.grow(setup.queue, buffers[0], 0, word_count, {}, events.data());
  for (cl_uint i = 1; i < 15; ++i) {
    cl_event event = nullptr;
    kernels.blend(setup.queue, buffers[i % 5], buffers[(i + 2) % 5], buffers[(i + 4) % 5], word_count, {events.back()},
                  &event);
    events.push_back(event);
  }
  OK(clWaitForEvents(1, &events.back()));
  for (cl_mem one : buffers) say_words("one", setup.read(one));
  release_events(events);
  release_buffers(buffers);
}

// A diamond: two commands after one, one after both.
CASE(queues, out_of_order_diamond) {
  const Setup setup(out_of_order);
  const Kernels kernels(setup);
  const auto buffers = buffers_of(setup, 5);
  cl_event first = nullptr, left = nullptr, right = nullptr, last = nullptr;
  kernels.grow(setup.queue, buffers[0], 1, word_count, {}, &first);
  kernels.affine(setup.queue, buffers[1], buffers[0], 2, word_count, {first}, &left);
  kernels.affine(setup.queue, buffers[2], buffers[0], 3, word_count, {first}, &right);
  kernels.blend(setup.queue, buffers[3], buffers[1], buffers[2], word_count, {left, right}, &last);
  Words words(word_count);
  OK(clEnqueueReadBuffer(setup.queue, buffers[3], CL_TRUE, 0, buffer_bytes, words.data(), 1, &last, nullptr));
  say_words("last", words);
  for (cl_event one : {first, left, right, last}) say_status("status", status_of(one));
  release_events({first, left, right, last});
  release_buffers(buffers);
}

CASE(queues, out_of_order_barriers) {
  const Setup setup(out_of_order);
  const Kernels kernels(setup);
  const auto buffers = buffers_of(setup, 5);
  for (std::size_t i = 0; i < 10; ++i) {
    kernels.blend(setup.queue, buffers[i % 5], buffers[(i + 1) % 5], buffers[(i + 2) % 5]);
    if (i % 2 == 0)
      OK(clEnqueueBarrierWithWaitList(setup.queue, 0, nullptr, nullptr));
    else
      OK(clEnqueueBarrier(setup.queue));
  }
  Words words(word_count);
  OK(clEnqueueReadBuffer(setup.queue, buffers[4], CL_FALSE, 0, buffer_bytes, words.data(), 0, nullptr, nullptr));
  OK(clFinish(setup.queue));
  say_words("last", words);
  release_buffers(buffers);
}

CASE(queues, markers) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_command_queue other = setup.another_queue();
  const auto buffers = buffers_of(setup, 4);
  cl_event all = nullptr, some = nullptr, old = nullptr, barrier = nullptr;
  kernels.grow(setup.queue, buffers[0], 1);
  kernels.grow(setup.queue, buffers[1], 2);
  OK(clEnqueueMarkerWithWaitList(setup.queue, 0, nullptr, &all));
  OK(clEnqueueMarker(setup.queue, &old));
  OK(clEnqueueMarkerWithWaitList(other, 1, &all, &some));
  OK(clEnqueueBarrierWithWaitList(other, 1, &old, &barrier));
  OK(clFlush(setup.queue));
  kernels.blend(other, buffers[2], buffers[0], buffers[1]);
  OK(clFinish(other));
  for (cl_event one : {all, some, old, barrier}) {
    const auto type = event_info<cl_command_type>(one, CL_EVENT_COMMAND_TYPE);
    constexpr cl_command_type wait_of_nvidia = 0x4003;  // of a marker and of a barrier with a list
    const bool deviates = is_native() && (one == some || one == barrier) && type == wait_of_nvidia;
    const cl_command_type rule = one == barrier ? CL_COMMAND_BARRIER : CL_COMMAND_MARKER;
    say("type %x, %s", deviates ? rule : type, name_of(status_of(one)));
  }
  say_words("blended", setup.read(buffers[2]));
  release_events({all, some, old, barrier});
  release_buffers(buffers);
  OK(clReleaseCommandQueue(other));
}

CASE(queues, two_contexts) {
  const Setup first, second;
  const Kernels first_kernels(first), second_kernels(second);
  const auto a = buffers_of(first, 4), b = buffers_of(second, 4);
  for (std::size_t round = 0; round < 8; ++round) {
    first_kernels.blend(first.queue, a[round % 4], a[(round + 1) % 4], a[(round + 2) % 4]);
    second_kernels.blend(second.queue, b[round % 4], b[(round + 3) % 4], b[(round + 2) % 4]);
    if (round % 4 != 3) continue;
    const Words words = first.read(a[0]);
    OK(clEnqueueWriteBuffer(second.queue, b[1], CL_TRUE, 0, buffer_bytes, words.data(), 0, nullptr, nullptr));
  }
  for (cl_mem one : a) say_words("a", first.read(one));
  for (cl_mem one : b) say_words("b", second.read(one));
  release_buffers(a);
  release_buffers(b);
}

CASE(queues, contexts_come_and_go) {
  for (cl_uint i = 0; i < 6; ++i) {
    const Setup setup(i % 2 == 0 ? 0 : out_of_order);
    const Kernels kernels(setup);
    const auto buffers = buffers_of(setup, 4);
    kernels.blend(setup.queue, buffers[0], buffers[1], buffers[2]);
    OK(clFinish(setup.queue));
    kernels.blend(setup.queue, buffers[3], buffers[0], buffers[2]);
    OK(clFinish(setup.queue));
    say_words("one", setup.read(buffers[3]));
    release_buffers(buffers);
  }
}

// Objects of two contexts do not mix.
CASE(queues, contexts_do_not_mix) {
  const Setup first, second;
  const Kernels kernels(first);
  const cl_mem a = first.buffer_of(numbers(1)), b = second.buffer_of(numbers(2));
  cl_event event = nullptr;
  Words words(word_count);
  OK(clEnqueueReadBuffer(second.queue, b, CL_TRUE, 0, buffer_bytes, words.data(), 0, nullptr, &event));
  say_status("read", clEnqueueReadBuffer(first.queue, b, CL_TRUE, 0, 4, words.data(), 0, nullptr, nullptr));
  say_status("write", clEnqueueWriteBuffer(first.queue, b, CL_TRUE, 0, 4, words.data(), 0, nullptr, nullptr));
  say_status("copy", clEnqueueCopyBuffer(first.queue, a, b, 0, 0, 4, 0, nullptr, nullptr));
  say_status("fill", clEnqueueFillBuffer(first.queue, b, words.data(), 4, 0, 4, 0, nullptr, nullptr));
  say_status("event", clEnqueueReadBuffer(first.queue, a, CL_TRUE, 0, 4, words.data(), 1, &event, nullptr));
  const std::size_t size = 16;
  set_argument(kernels.grow_kernel, 0, a);
  set_argument(kernels.grow_kernel, 1, 1u);
  const cl_int launched =
      clEnqueueNDRangeKernel(second.queue, kernels.grow_kernel, 1, nullptr, &size, nullptr, 0, nullptr, nullptr);
  say_ruled("kernel", launched, CL_INVALID_CONTEXT, {CL_INVALID_KERNEL_ARGS});
  cl_int error = CL_SUCCESS;
  clEnqueueMapBuffer(first.queue, b, CL_TRUE, CL_MAP_READ, 0, 4, 0, nullptr, nullptr, &error);
  say_status("map", error);
  say_words("unchanged", first.read(a));
  OK(clReleaseEvent(event));
  OK(clReleaseMemObject(a));
  OK(clReleaseMemObject(b));
}

// Releasing a queue sends what is in it.
CASE(queues, released_with_work_in_it) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto buffers = buffers_of(setup, 4);
  cl_event event = nullptr;
  const cl_command_queue gone = setup.another_queue();
  kernels.blend(gone, buffers[0], buffers[1], buffers[2]);
  kernels.blend(gone, buffers[3], buffers[0], buffers[2], word_count, {}, &event);
  OK(clReleaseCommandQueue(gone));
  OK(clWaitForEvents(1, &event));
  say_words("one", setup.read(buffers[3]));
  release_events({event});
  release_buffers(buffers);
}

// Objects released in the order that is wrong for most libraries: what is used stays.
CASE(queues, context_released_first) {
  cl_command_queue queue = nullptr;
  cl_mem buffer = nullptr;
  cl_kernel grow = nullptr;
  {
    const Setup setup;
    queue = setup.another_queue();
    buffer = setup.buffer_of(numbers(1));
    grow = setup.kernel("grow");
  }
  set_argument(grow, 0, buffer);
  set_argument(grow, 1, 2u);
  launch(queue, grow, word_count);
  Words words(word_count);
  OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, buffer_bytes, words.data(), 0, nullptr, nullptr));
  say_words("grown", words);
  OK(clReleaseKernel(grow));
  OK(clReleaseMemObject(buffer));
  OK(clReleaseCommandQueue(queue));
}
