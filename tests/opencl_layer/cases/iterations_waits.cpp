// SPDX-License-Identifier: Apache-2.0
// Loops whose host waits in each step for a value that is there long before the step ends, as a program that learns
// waits for its loss. What a step computes last is read at the end of the program only.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <utility>

#include "harness.hpp"

using namespace cases;

namespace {

constexpr cl_uint learning_steps = 40;
constexpr std::size_t loss_count = 64;

/// A step: forward, the loss, and backward. Layers and slopes are overwritten in the next step, but nothing tells
/// before.
struct Learner {
  explicit Learner(cl_command_queue_properties properties = 0) : setup(properties), kernels(setup) {
    for (cl_uint i = 0; i < 3; ++i) weights.push_back(setup.buffer_of(numbers(i)));
    for (cl_uint i = 0; i < 8; ++i) layers.push_back(setup.buffer_of(numbers(10 + i)));
    for (cl_uint i = 0; i < 8; ++i) slopes.push_back(setup.buffer_of(numbers(20 + i)));
    loss = setup.buffer_of(numbers(30, loss_count));
  }
  ~Learner() {
    release_buffers(weights);
    release_buffers(layers);
    release_buffers(slopes);
    release_buffers({loss});
  }
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  void forward_layers() const {
    for (std::size_t i = 1; i < layers.size(); ++i) {
      kernels.blend(setup.queue, layers[i], layers[i - 1], weights[i % weights.size()]);
    }
  }
  void forward() const {
    forward_layers();
    kernels.affine(setup.queue, loss, layers.back(), 1, loss_count);
  }
  void backward(cl_event* of_last = nullptr) const {
    for (std::size_t i = layers.size(); i-- > 0;) {
      kernels.blend(setup.queue, slopes[i], layers[i], i + 1 < slopes.size() ? slopes[i + 1] : layers[i]);
    }
    for (std::size_t i = 0; i < weights.size(); ++i) {
      kernels.blend(setup.queue, weights[i], slopes[i], slopes[i + 1], word_count, {},
                    i + 1 == weights.size() ? of_last : nullptr);
    }
  }
  void say_state() const {
    say_words("losses", losses);
    for (cl_mem one : layers) say_words("layer", setup.read(one));
    for (cl_mem one : slopes) say_words("slope", setup.read(one));
    for (cl_mem one : weights) say_words("weights", setup.read(one));
  }

  Setup setup;
  Kernels kernels;
  std::vector<cl_mem> weights, layers, slopes;
  cl_mem loss = nullptr;
  Words losses;
};

/// Runs the steps; wait(learner, into) enqueues a read of the loss and waits for it.
void learn(Learner& learner, cl_bool blocking_write, const std::function<void(Learner&, Words&)>& wait) {
  for (cl_uint step = 0; step < learning_steps; ++step) {
    Words batch = numbers(100 + step);
    Words seen(loss_count);
    OK(clEnqueueWriteBuffer(learner.setup.queue, learner.layers[0], blocking_write, 0, buffer_bytes, batch.data(), 0,
                            nullptr, nullptr));
    if (blocking_write == CL_TRUE) batch.assign(batch.size(), 0xdead);
    learner.forward();
    learner.backward();
    wait(learner, seen);
    batch.assign(batch.size(), 0xbeef);  // the program waited, so its memory is its own again
    learner.losses.push_back(seen[step % loss_count]);
    seen.assign(seen.size(), 0);
  }
  learner.say_state();
}

void read_loss(const Learner& learner, Words& into, cl_bool blocking, cl_event* event = nullptr) {
  OK(clEnqueueReadBuffer(learner.setup.queue, learner.loss, blocking, 0, loss_count * 4, into.data(), 0, nullptr,
                         event));
}

}  // namespace

namespace {

/// The loss is that of the step before: a step's first command makes it, so all else may run after the wait. The
/// program computes by itself for a while after the `slow` last but two steps.
void learn_late(cl_bool blocking, cl_uint slow = 0) {
  Learner learner;
  const cl_command_queue queue = learner.setup.queue;
  for (cl_uint step = 0; step < learning_steps; ++step) {
    const Words batch = numbers(100 + step);
    Words seen(loss_count);
    learner.kernels.affine(queue, learner.loss, learner.weights[0], 1, loss_count);
    OK(clEnqueueWriteBuffer(queue, learner.layers[0], blocking, 0, buffer_bytes, batch.data(), 0, nullptr, nullptr));
    learner.forward_layers();
    learner.backward();
    read_loss(learner, seen, blocking);
    if (blocking == CL_FALSE) OK(clFinish(queue));
    learner.losses.push_back(seen[step % loss_count]);
    if (step + 2 < learning_steps && step + 2 + slow >= learning_steps) {
      std::this_thread::sleep_for(std::chrono::milliseconds(3400));
    }
  }
  learner.say_state();
}

/// How many, of the environment.
cl_uint slow_steps() {
  const char* const text = std::getenv("CASES_SLOW_STEPS");
  return text == nullptr ? 0 : static_cast<cl_uint>(std::atoi(text));
}

}  // namespace

CASE(iterations, loss_known_early_slow) { learn_late(CL_FALSE, slow_steps()); }
CASE(iterations, loss_known_early) { learn_late(CL_FALSE); }
CASE(iterations, loss_known_early_blocking) { learn_late(CL_TRUE); }

CASE(iterations, loss_then_finish) {
  Learner learner;
  learn(learner, CL_FALSE, [](Learner& of, Words& into) {
    read_loss(of, into, CL_FALSE);
    OK(clFinish(of.setup.queue));
  });
}

CASE(iterations, loss_read_at_once) {
  Learner learner;
  learn(learner, CL_TRUE, [](Learner& of, Words& into) { read_loss(of, into, CL_TRUE); });
}

CASE(iterations, loss_out_of_order) {
  Learner learner(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const cl_command_queue queue = learner.setup.queue;
  for (cl_uint step = 0; step < learning_steps; ++step) {
    const Words batch = numbers(100 + step);
    Words seen(loss_count);
    OK(clEnqueueWriteBuffer(queue, learner.layers[0], CL_TRUE, 0, buffer_bytes, batch.data(), 0, nullptr, nullptr));
    for (std::size_t i = 1; i < learner.layers.size(); ++i) {
      learner.kernels.blend(queue, learner.layers[i], learner.layers[i - 1], learner.weights[i % 3]);
      OK(clEnqueueBarrierWithWaitList(queue, 0, nullptr, nullptr));
    }
    learner.kernels.affine(queue, learner.loss, learner.layers.back(), 1, loss_count);
    for (std::size_t i = 1; i < 4; ++i) learner.kernels.affine(queue, learner.weights[i % 3], learner.layers[i], 3);
    OK(clEnqueueBarrierWithWaitList(queue, 0, nullptr, nullptr));
    read_loss(learner, seen, CL_FALSE);
    OK(clFinish(queue));
    learner.losses.push_back(seen[step % loss_count]);
  }
  learner.say_state();
}

// The read's event tells that the value is there.
CASE(iterations, loss_by_its_event) {
  Learner learner;
  learn(learner, CL_TRUE, [](Learner& of, Words& into) {
    cl_event read = nullptr;
    read_loss(of, into, CL_FALSE, &read);
    OK(clFlush(of.setup.queue));
    OK(clWaitForEvents(1, &read));
    expect(info<cl_int>(clGetEventInfo, read, CL_EVENT_COMMAND_EXECUTION_STATUS) == CL_COMPLETE,
           "the read is complete");
    release_events({read});
  });
}

// In an order, what comes before a command has ended when that command has: a read before a blocking write, and a read
// before another one whose event is waited for.
CASE(iterations, reads_before_other_waits) {
  Learner learner;
  const cl_command_queue queue = learner.setup.queue;
  const cl_mem other = learner.setup.buffer_of(numbers(40));
  for (cl_uint step = 0; step < learning_steps; ++step) {
    Words batch = numbers(100 + step);
    Words first(loss_count), second(loss_count), third(loss_count);
    OK(clEnqueueWriteBuffer(queue, learner.layers[0], CL_FALSE, 0, buffer_bytes, batch.data(), 0, nullptr, nullptr));
    learner.forward();
    read_loss(learner, first, CL_FALSE);
    learner.backward();
    OK(clEnqueueWriteBuffer(queue, other, CL_TRUE, 0, buffer_bytes, batch.data(), 0, nullptr, nullptr));
    learner.losses.push_back(first[step % loss_count]);
    learner.kernels.affine(queue, learner.loss, other, step, loss_count);
    read_loss(learner, second, CL_FALSE);
    learner.kernels.affine(queue, learner.loss, learner.layers[2], 5, loss_count);
    cl_event read = nullptr;
    read_loss(learner, third, CL_FALSE, &read);
    learner.kernels.affine(queue, learner.weights[0], learner.layers[1], 3);
    OK(clWaitForEvents(1, &read));
    release_events({read});
    learner.losses.push_back(second[step % loss_count]);
    learner.losses.push_back(third[step % loss_count]);
    batch.assign(batch.size(), 0xbeef);
  }
  release_buffers({other});
  learner.say_state();
}

// A program that keeps events may ask for them later.
CASE(iterations, finish_completes_events) {
  Learner learner;
  for (cl_uint step = 0; step < learning_steps; ++step) {
    const Words batch = numbers(100 + step);
    Words seen(loss_count);
    cl_event last = nullptr, read = nullptr;
    OK(clEnqueueWriteBuffer(learner.setup.queue, learner.layers[0], CL_FALSE, 0, buffer_bytes, batch.data(), 0, nullptr,
                            nullptr));
    learner.forward();
    learner.backward(&last);
    read_loss(learner, seen, CL_FALSE, &read);
    OK(clFinish(learner.setup.queue));
    for (cl_event each : {last, read}) {
      expect(info<cl_int>(clGetEventInfo, each, CL_EVENT_COMMAND_EXECUTION_STATUS) == CL_COMPLETE, "complete");
    }
    release_events({last, read});
    learner.losses.push_back(seen[step % loss_count]);
  }
  learner.say_state();
}

// The loss is written once more before it is read, and again behind the read.
CASE(iterations, loss_written_around_its_read) {
  Learner learner;
  const cl_command_queue queue = learner.setup.queue;
  for (cl_uint step = 0; step < learning_steps; ++step) {
    const Words batch = numbers(100 + step);
    Words first(loss_count), second(loss_count);
    OK(clEnqueueWriteBuffer(queue, learner.layers[0], CL_FALSE, 0, buffer_bytes, batch.data(), 0, nullptr, nullptr));
    learner.forward();
    for (std::size_t i = 4; i-- > 1;) learner.kernels.affine(queue, learner.weights[i % 3], learner.layers[i], 3);
    learner.kernels.grow(queue, learner.loss, step % 2, loss_count);
    read_loss(learner, first, CL_FALSE);
    learner.kernels.affine(queue, learner.loss, learner.layers[3], 2, loss_count);
    for (std::size_t i = 8; i-- > 4;) learner.kernels.affine(queue, learner.weights[i % 3], learner.layers[i], 5);
    read_loss(learner, second, CL_FALSE);
    OK(clFinish(queue));
    learner.losses.push_back(first[step % loss_count]);
    learner.losses.push_back(second[step % loss_count]);
  }
  learner.say_state();
}

// The last command that changes the loss reads it, too.
CASE(iterations, loss_updated_before_its_read) {
  Learner learner;
  learn(learner, CL_FALSE, [](Learner& of, Words& into) {
    of.kernels.grow(of.setup.queue, of.loss, 9, loss_count);
    of.kernels.affine(of.setup.queue, of.layers[1], of.layers[2], 4);
    read_loss(of, into, CL_FALSE);
    OK(clFinish(of.setup.queue));
  });
}

// What a kernel prints is there when the wait ends.
CASE(iterations, kernel_that_prints) {
  Learner learner;
  const cl_program program = learner.setup.build(R"(
    kernel void tell(global const uint* slopes) { printf("the kernel sees %u\n", slopes[0]); })");
  cl_int status = CL_SUCCESS;
  const cl_kernel tell = clCreateKernel(program, "tell", &status);
  OK(status);
  for (cl_uint step = 0; step < learning_steps; ++step) {
    const Words batch = numbers(100 + step);
    Words seen(loss_count);
    OK(clEnqueueWriteBuffer(learner.setup.queue, learner.layers[0], CL_FALSE, 0, buffer_bytes, batch.data(), 0, nullptr,
                            nullptr));
    learner.forward();
    learner.backward();
    set_argument(tell, 0, learner.slopes[0]);
    launch(learner.setup.queue, tell, 1);
    read_loss(learner, seen, CL_FALSE);
    OK(clFinish(learner.setup.queue));
    learner.losses.push_back(seen[0]);
    say("step %u: %u", step, seen[0]);
    std::fflush(stdout);
  }
  learner.say_state();
  OK(clReleaseKernel(tell));
  OK(clReleaseProgram(program));
}
