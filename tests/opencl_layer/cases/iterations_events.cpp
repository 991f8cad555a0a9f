// SPDX-License-Identifier: Apache-2.0
// Loops, and what a program learns of their commands: events, times, errors. Commands of a loop may be held back, which
// nobody may notice.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "harness.hpp"

using namespace cases;

namespace {

constexpr cl_uint rounds = 40;

/// A loop on buffers that stay, with one command that the case does in its own way.
struct Loop {
  explicit Loop(cl_command_queue_properties properties = 0) : setup(properties), kernels(setup) {
    for (cl_uint i = 0; i < 3; ++i) weights.push_back(setup.buffer_of(numbers(1 + i)));
    for (cl_uint i = 0; i < 8; ++i) layers.push_back(setup.buffer_of(numbers(20 + i)));
  }
  ~Loop() {
    release_buffers(weights);
    release_buffers(layers);
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// own(step) is called in the middle of each step.
  template <class Own>
  void run(Own&& own) {
    for (cl_uint step = 0; step < rounds; ++step) {
      input = numbers(100 + step);
      OK(clEnqueueWriteBuffer(setup.queue, layers[0], CL_TRUE, 0, buffer_bytes, input.data(), 0, nullptr, nullptr));
      for (std::size_t i = 1; i < 8; ++i) {
        kernels.blend(setup.queue, layers[i], layers[i - 1], weights[i % 3]);
        if (i == 4) own(step);
      }
      for (std::size_t i = 8; i-- > 1;) kernels.affine(setup.queue, weights[i % 3], layers[i], 3);
      cl_uint loss = 0;
      OK(clEnqueueReadBuffer(setup.queue, weights[0], CL_TRUE, 0, 4, &loss, 0, nullptr, nullptr));
      losses.push_back(loss);
    }
    say_words("losses", losses);
    for (cl_mem one : layers) say_words("layer", setup.read(one));
    for (cl_mem one : weights) say_words("weights", setup.read(one));
  }

  Setup setup;
  Kernels kernels;
  std::vector<cl_mem> weights, layers;
  Words input, losses;
};

void CL_CALLBACK count_call(cl_event, cl_int status, void* counter) {
  if (status == CL_COMPLETE) static_cast<std::atomic<int>*>(counter)->fetch_add(1);
}

}  // namespace

// The callback comes though the program calls nothing else.
CASE(iterations, callback_of_a_command) {
  Loop loop;
  std::atomic<int> called{0};
  int expected = 0;
  loop.run([&](cl_uint step) {
    cl_event event = nullptr;
    loop.kernels.grow(loop.setup.queue, loop.layers[4], step, word_count, {}, &event);
    if (step % 4 == 3) {
      OK(clSetEventCallback(event, CL_COMPLETE, count_call, &called));
      OK(clFlush(loop.setup.queue));
      ++expected;
      expect(comes_true([&] { return called == expected; }), "the callback is called");
    }
    OK(clReleaseEvent(event));
  });
}

// The status comes to CL_COMPLETE though the program calls nothing else.
CASE(iterations, polled_command) {
  Loop loop;
  loop.run([&](cl_uint step) {
    cl_event event = nullptr;
    loop.kernels.grow(loop.setup.queue, loop.layers[4], step, word_count, {}, &event);
    if (step % 3 == 2) {
      OK(clFlush(loop.setup.queue));
      expect(comes_true([&] { return status_of(event) == CL_COMPLETE; }), "the command ends");
    }
    OK(clReleaseEvent(event));
  });
}

// A command runs though the program does nothing more after clFlush(): a shared variable tells that it has.
CASE(iterations, flushed_read) {
  Loop loop;
  loop.run([&](cl_uint step) {
    static Words found;
    found.assign(word_count, 0);
    cl_event event = nullptr;
    loop.kernels.grow(loop.setup.queue, loop.layers[4], step);
    OK(clEnqueueReadBuffer(loop.setup.queue, loop.layers[4], CL_FALSE, 0, buffer_bytes, found.data(), 0, nullptr,
                           &event));
    if (step % 4 == 3) {
      std::atomic<int> called{0};
      OK(clFlush(loop.setup.queue));
      OK(clSetEventCallback(event, CL_COMPLETE, count_call, &called));
      expect(comes_true([&] { return called == 1; }), "the read ends");
      say_words("found", found);
    } else {
      OK(clWaitForEvents(1, &event));
    }
    OK(clReleaseEvent(event));
  });
}

CASE(iterations, another_queue_waits) {
  Loop loop;
  const cl_command_queue other = loop.setup.another_queue();
  Words found(word_count);
  loop.run([&](cl_uint step) {
    cl_event grown = nullptr, written = nullptr;
    loop.kernels.grow(loop.setup.queue, loop.layers[4], step, word_count, {}, &grown);
    OK(clFlush(loop.setup.queue));
    loop.kernels.affine(other, loop.layers[6], loop.layers[4], step, word_count, {grown}, &written);
    OK(clFlush(other));
    if (step % 5 == 4) {
      OK(clEnqueueReadBuffer(other, loop.layers[6], CL_TRUE, 0, buffer_bytes, found.data(), 1, &written, nullptr));
      say_words("found", found);
    }
    const cl_event both[] = {grown, written};
    OK(clEnqueueBarrierWithWaitList(loop.setup.queue, 2, both, nullptr));
    release_events({grown, written});
  });
  OK(clReleaseCommandQueue(other));
}

CASE(iterations, times_of_a_command) {
  Loop loop(CL_QUEUE_PROFILING_ENABLE);
  loop.run([&](cl_uint step) {
    cl_event event = nullptr;
    loop.kernels.grow(loop.setup.queue, loop.layers[4], step, word_count, {}, &event);
    if (step % 3 == 2) {
      OK(clWaitForEvents(1, &event));
      cl_ulong times[4] = {};
      const cl_profiling_info names[] = {CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_SUBMIT,
                                         CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END};
      for (int i = 0; i < 4; ++i) OK(clGetEventProfilingInfo(event, names[i], sizeof times[i], &times[i], nullptr));
      expect(times[0] <= times[1] && times[1] <= times[2] && times[2] <= times[3], "the times are in order");
    }
    OK(clReleaseEvent(event));
  });
}

CASE(iterations, times_of_all_commands) {
  const Setup setup(CL_QUEUE_PROFILING_ENABLE);
  const Kernels kernels(setup);
  std::vector<cl_mem> layers;
  for (cl_uint i = 0; i < 8; ++i) layers.push_back(setup.buffer_of(numbers(i)));
  for (cl_uint step = 0; step < rounds; ++step) {
    std::vector<cl_event> events(9);
    for (std::size_t i = 0; i < 8; ++i) {
      kernels.blend(setup.queue, layers[i], layers[(i + 1) % 8], layers[(i + 3) % 8], word_count, {}, &events[i]);
    }
    cl_uint loss = 0;
    OK(clEnqueueReadBuffer(setup.queue, layers[0], CL_TRUE, 0, 4, &loss, 0, nullptr, &events[8]));
    bool all = true;
    for (cl_event event : events) {
      cl_ulong begin = 0, end = 0;
      all = all && clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, 8, &begin, nullptr) == CL_SUCCESS &&
            clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, 8, &end, nullptr) == CL_SUCCESS && begin <= end;
    }
    expect(all, "each command of a step has times");
    release_events(events);
  }
  for (cl_mem one : layers) say_words("layer", setup.read(one));
  release_buffers(layers);
}

CASE(iterations, facts_of_a_command) {
  Loop loop;
  loop.run([&](cl_uint step) {
    cl_event event = nullptr;
    loop.kernels.grow(loop.setup.queue, loop.layers[4], step, word_count, {}, &event);
    const cl_int status = status_of(event);
    expect(status >= CL_COMPLETE && status <= CL_QUEUED, "the status of a command");
    expect(event_info<cl_command_type>(event, CL_EVENT_COMMAND_TYPE) == CL_COMMAND_NDRANGE_KERNEL, "its type");
    expect(event_info<cl_command_queue>(event, CL_EVENT_COMMAND_QUEUE) == loop.setup.queue, "its queue");
    expect(event_info<cl_context>(event, CL_EVENT_CONTEXT) == loop.setup.context, "its context");
    OK(clReleaseEvent(event));
  });
}

CASE(iterations, user_events_in_between) {
  Loop loop;
  loop.run([&](cl_uint step) {
    if (step % 6 != 5) return loop.kernels.grow(loop.setup.queue, loop.layers[4], step);
    cl_int status = CL_SUCCESS;
    const cl_event gate = clCreateUserEvent(loop.setup.context, &status);
    OK(status);
    loop.kernels.grow(loop.setup.queue, loop.layers[4], step, word_count, {gate});
    loop.kernels.affine(loop.setup.queue, loop.layers[7], loop.layers[1], step);
    OK(clSetUserEventStatus(gate, CL_COMPLETE));
    OK(clReleaseEvent(gate));
  });
}

// The bytes are there when the user event is set, not before.
CASE(iterations, written_after_a_user_event) {
  Loop loop;
  Words late(word_count);
  loop.run([&](cl_uint step) {
    cl_int status = CL_SUCCESS;
    const cl_event gate = clCreateUserEvent(loop.setup.context, &status);
    OK(status);
    const bool waits = step % 3 == 2;
    const Words early = numbers(step + (waits ? 1000 : 500)), right = numbers(step + 500);
    std::copy(early.begin(), early.end(), late.begin());
    cl_event written = nullptr;
    if (!waits) OK(clSetUserEventStatus(gate, CL_COMPLETE));
    OK(clEnqueueWriteBuffer(loop.setup.queue, loop.layers[3], CL_FALSE, 0, buffer_bytes, late.data(), 1, &gate,
                            &written));
    loop.kernels.grow(loop.setup.queue, loop.layers[4], step);
    if (waits) {
      OK(clFlush(loop.setup.queue));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      std::copy(right.begin(), right.end(), late.begin());
      OK(clSetUserEventStatus(gate, CL_COMPLETE));
    }
    OK(clWaitForEvents(1, &written));
    release_events({gate, written});
  });
}

CASE(iterations, markers_and_barriers) {
  Loop loop;
  loop.run([&](cl_uint step) {
    cl_event marker = nullptr, grown = nullptr;
    loop.kernels.grow(loop.setup.queue, loop.layers[4], step, word_count, {}, &grown);
    OK(clEnqueueMarkerWithWaitList(loop.setup.queue, step % 2, step % 2 == 0 ? nullptr : &grown, &marker));
    OK(clEnqueueBarrierWithWaitList(loop.setup.queue, 0, nullptr, nullptr));
    loop.kernels.affine(loop.setup.queue, loop.layers[7], loop.layers[4], step, word_count, {marker, grown});
    if (step % 7 == 6) {
      OK(clWaitForEvents(1, &marker));
      expect(status_of(marker) == CL_COMPLETE && status_of(grown) == CL_COMPLETE,
             "a marker ends after what it waits for");
    }
    release_events({marker, grown});
  });
}

namespace {

/// Calls that fail, each for a reason of its own.
void wrong_calls(const Loop& loop) {
  const Setup& setup = loop.setup;
  const Kernels& kernels = loop.kernels;
  const std::size_t count = word_count, too_large_group = std::size_t{1} << 20, odd_group = 1000;
  set_argument(kernels.grow_kernel, 0, loop.layers[4]);
  set_argument(kernels.grow_kernel, 1, 1u);
  const auto launch_with = [&](cl_kernel kernel, const std::size_t* global, const std::size_t* local) {
    return clEnqueueNDRangeKernel(setup.queue, kernel, 1, nullptr, global, local, 0, nullptr, nullptr);
  };
  say_status("work-group too large", launch_with(kernels.grow_kernel, &count, &too_large_group));
  say_status("odd work-group", launch_with(kernels.grow_kernel, &count, &odd_group));
  const cl_kernel unset = setup.kernel("blend");
  say_status("no arguments", launch_with(unset, &count, nullptr));
  set_argument(unset, 0, loop.layers[1]);
  say_status("some arguments", launch_with(unset, &count, nullptr));
  OK(clReleaseKernel(unset));
  Words words(16);
  say_status("read beyond the end", clEnqueueReadBuffer(setup.queue, loop.layers[1], CL_FALSE, buffer_bytes - 4, 64,
                                                        words.data(), 0, nullptr, nullptr));
  const cl_event none = nullptr;
  say_ruled("wait list", clEnqueueFillBuffer(setup.queue, loop.layers[1], words.data(), 4, 0, 64, 1, &none, nullptr),
            CL_INVALID_EVENT_WAIT_LIST, {CL_INVALID_EVENT});
  say_status("pattern", clEnqueueFillBuffer(setup.queue, loop.layers[1], words.data(), 3, 0, 63, 0, nullptr, nullptr));
  say_status("overlap",
             clEnqueueCopyBuffer(setup.queue, loop.layers[1], loop.layers[1], 0, 16, 64, 0, nullptr, nullptr));
}

}  // namespace

CASE(iterations, wrong_calls_in_one_step) {
  Loop loop;
  loop.run([&](cl_uint step) {
    loop.kernels.grow(loop.setup.queue, loop.layers[4], step);
    if (step == 20) wrong_calls(loop);
  });
}

// Errors are told at once, though they are what the loop does in each step.
CASE(iterations, wrong_calls_in_each_step) {
  Loop loop;
  loop.run([&](cl_uint step) {
    loop.kernels.grow(loop.setup.queue, loop.layers[4], step);
    wrong_calls(loop);
  });
}

// An event of a command that fails is not there; the rest of the step is.
CASE(iterations, a_command_that_comes_after_a_failure) {
  Loop loop;
  loop.run([&](cl_uint step) {
    cl_int status = CL_SUCCESS;
    const cl_event gate = clCreateUserEvent(loop.setup.context, &status);
    OK(status);
    if (step % 8 != 7) {
      OK(clSetUserEventStatus(gate, CL_COMPLETE));
      loop.kernels.grow(loop.setup.queue, loop.layers[4], step, word_count, {gate});
    } else {
      OK(clSetUserEventStatus(gate, CL_COMPLETE));
      OK(clWaitForEvents(1, &gate));
      loop.kernels.grow(loop.setup.queue, loop.layers[4], step);
    }
    OK(clReleaseEvent(gate));
  });
}

// Two threads, each with a loop and a queue of its own.
namespace {
void loop_of_a_thread(const Setup& setup, cl_command_queue queue, cl_uint seed, Words& losses) {
  const Kernels kernels(setup);
  std::vector<cl_mem> layers;
  for (cl_uint i = 0; i < 7; ++i) layers.push_back(setup.buffer_of(numbers(seed + i)));
  for (cl_uint step = 0; step < rounds; ++step) {
    for (std::size_t i = 0; i < 7; ++i) kernels.blend(queue, layers[i], layers[(i + 1) % 7], layers[(i + 2) % 7]);
    cl_uint loss = 0;
    OK(clEnqueueReadBuffer(queue, layers[0], CL_TRUE, 0, 4, &loss, 0, nullptr, nullptr));
    losses.push_back(loss);
  }
  Words all(word_count);
  for (cl_mem one : layers) {
    OK(clEnqueueReadBuffer(queue, one, CL_TRUE, 0, buffer_bytes, all.data(), 0, nullptr, nullptr));
    losses.push_back(static_cast<cl_uint>(hash(all)));
  }
  release_buffers(layers);
}
}  // namespace

CASE(iterations, two_threads_in_a_context) {
  const Setup setup;
  const cl_command_queue other = setup.another_queue();
  Words first, second;
  std::thread thread([&] { loop_of_a_thread(setup, other, 50, second); });
  loop_of_a_thread(setup, setup.queue, 1, first);
  thread.join();
  say_words("first", first);
  say_words("second", second);
  OK(clReleaseCommandQueue(other));
}

CASE(iterations, two_threads_with_contexts) {
  const Setup setup, another;
  Words first, second;
  std::thread thread([&] { loop_of_a_thread(another, another.queue, 50, second); });
  loop_of_a_thread(setup, setup.queue, 1, first);
  thread.join();
  say_words("first", first);
  say_words("second", second);
}
