// SPDX-License-Identifier: Apache-2.0
// Loops: the same commands again and again, with other data. What a loop never reads is read in the end, because nobody
// may lose it. A part of a loop's buffers fits into the budgets of these cases.

#include <array>
#include <utility>

#include "harness.hpp"

using namespace cases;

namespace {

constexpr cl_uint steps = 40;

/// Reads one number, as a program reads its loss.
cl_uint read_one(const Setup& setup, cl_mem object, std::size_t place = 0) {
  cl_uint one = 0;
  OK(clEnqueueReadBuffer(setup.queue, object, CL_TRUE, place * 4, 4, &one, 0, nullptr, nullptr));
  return one;
}

void say_all(const Setup& setup, const char* what, const std::vector<cl_mem>& buffers) {
  for (cl_mem one : buffers) say_words(what, setup.read(one));
}

void write(const Setup& setup, cl_mem object, const Words& words, cl_bool blocking = CL_TRUE) {
  OK(clEnqueueWriteBuffer(setup.queue, object, blocking, 0, words.size() * 4, words.data(), 0, nullptr, nullptr));
}

/// Forward and backward through layers that stay. Returns the loss.
void step_of(const Setup& setup, const Kernels& kernels, const std::vector<cl_mem>& weights,
             const std::vector<cl_mem>& layers) {
  for (std::size_t i = 1; i < layers.size(); ++i) {
    kernels.blend(setup.queue, layers[i], layers[i - 1], weights[i % weights.size()]);
  }
  for (std::size_t i = layers.size(); i-- > 1;) kernels.affine(setup.queue, weights[i % weights.size()], layers[i], 3);
}

}  // namespace

CASE(iterations, kept_buffers) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto weights = buffers_of(setup, 3, 1), layers = buffers_of(setup, 8, 20);
  Words losses;
  for (cl_uint step = 0; step < steps; ++step) {
    write(setup, layers[0], numbers(100 + step));
    step_of(setup, kernels, weights, layers);
    losses.push_back(read_one(setup, weights[0]));
  }
  say_words("losses", losses);
  say_all(setup, "layer", layers);
  say_all(setup, "weights", weights);
  release_buffers(weights);
  release_buffers(layers);
}

/// The host gives values in each step, and reads the loss now and then.
CASE(iterations, read_every_tenth_step) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto weights = buffers_of(setup, 3, 1), layers = buffers_of(setup, 8, 20);
  Words losses;
  for (cl_uint step = 0; step < 4 * steps; ++step) {
    write(setup, layers[0], numbers(100 + step));
    step_of(setup, kernels, weights, layers);
    if (step % 10 != 9) continue;
    kernels.blend(setup.queue, layers[1], weights[0], weights[1]);
    losses.push_back(read_one(setup, layers[1]));
  }
  say_words("losses", losses);
  say_all(setup, "layer", layers);
  say_all(setup, "weights", weights);
  release_buffers(weights);
  release_buffers(layers);
}

/// As matrix products do that add nothing to what is there: its values matter to nobody.
CASE(iterations, reads_what_nobody_wrote) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto weights = buffers_of(setup, 3, 1), layers = buffers_of(setup, 8, 20);
  cl_mem unwritten = setup.buffer();
  Words losses;
  for (cl_uint step = 0; step < steps; ++step) {
    write(setup, layers[0], numbers(100 + step));
    OK(clEnqueueCopyBuffer(setup.queue, unwritten, layers[1], 0, 0, 64, 0, nullptr, nullptr));
    step_of(setup, kernels, weights, layers);
    losses.push_back(read_one(setup, weights[0]));
  }
  say_words("losses", losses);
  say_all(setup, "layer", layers);
  say_all(setup, "weights", weights);
  release_buffers({unwritten});
  release_buffers(weights);
  release_buffers(layers);
}

CASE(iterations, ping_pong) {
  const Setup setup;
  const Kernels kernels(setup);
  cl_mem now = setup.buffer_of(numbers(1)), next = setup.buffer_of(numbers(2));
  const auto others = buffers_of(setup, 6, 10);
  Words losses;
  for (cl_uint step = 0; step < steps; ++step) {
    kernels.blend(setup.queue, next, now, others[0]);
    for (std::size_t i = 1; i < others.size(); ++i) kernels.blend(setup.queue, others[i], others[i - 1], next);
    kernels.affine(setup.queue, others[0], others[5], step);
    losses.push_back(read_one(setup, next));
    std::swap(now, next);
  }
  say_words("losses", losses);
  say_all(setup, "state", {now, next});
  say_all(setup, "other", others);
  release_buffers({now, next});
  release_buffers(others);
}

namespace {

/// Each step makes its layers anew. `late`: they are released one step later.
void made_anew(bool late) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto weights = buffers_of(setup, 4, 1);
  std::vector<cl_mem> old;
  Words losses;
  for (cl_uint step = 0; step < steps; ++step) {
    std::vector<cl_mem> layers{setup.buffer_of(numbers(100 + step))};
    for (std::size_t i = 1; i < 7; ++i) {
      layers.push_back(setup.buffer());
      kernels.blend(setup.queue, layers[i], layers[i - 1], weights[i % 4]);
    }
    release_buffers(std::exchange(old, {}));
    for (std::size_t i = layers.size(); i-- > 1;) {
      kernels.blend(setup.queue, weights[i % 4], layers[i], layers[i - 1]);
      if (!late) OK(clReleaseMemObject(layers[i]));
    }
    if (late) {
      old = layers;
    } else {
      OK(clReleaseMemObject(layers[0]));
    }
    losses.push_back(read_one(setup, weights[1]));
  }
  say_words("losses", losses);
  say_all(setup, "old layer", old);
  say_all(setup, "weights", weights);
  release_buffers(old);
  release_buffers(weights);
}

}  // namespace

CASE(iterations, made_anew) { made_anew(false); }
CASE(iterations, released_late) { made_anew(true); }

// What is usually released in its step is kept now and then, and read much later.
CASE(iterations, some_kept_for_long) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto weights = buffers_of(setup, 4, 1);
  std::vector<cl_mem> kept;
  Words losses;
  for (cl_uint step = 0; step < steps; ++step) {
    std::vector<cl_mem> layers{setup.buffer_of(numbers(100 + step))};
    for (std::size_t i = 1; i < 7; ++i) {
      layers.push_back(setup.buffer());
      kernels.blend(setup.queue, layers[i], layers[i - 1], weights[i % 4]);
    }
    for (std::size_t i = 7; i-- > 1;) kernels.blend(setup.queue, weights[i % 4], layers[i], layers[i - 1]);
    for (std::size_t i = 0; i < 7; ++i) {
      if (step % 9 == 8 && i % 2 == 1) {
        kept.push_back(layers[i]);
      } else {
        OK(clReleaseMemObject(layers[i]));
      }
    }
    losses.push_back(read_one(setup, weights[1]));
  }
  say_words("losses", losses);
  say_all(setup, "kept", kept);
  say_all(setup, "weights", weights);
  release_buffers(kept);
  release_buffers(weights);
}

CASE(iterations, new_state_each_step) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto others = buffers_of(setup, 5, 10);
  cl_mem state = setup.buffer_of(numbers(1)), older = setup.buffer_of(numbers(2));
  Words losses;
  for (cl_uint step = 0; step < steps; ++step) {
    const cl_mem next = setup.buffer(), inner = setup.buffer();
    kernels.blend(setup.queue, inner, state, older);
    for (std::size_t i = 0; i < others.size(); ++i) kernels.blend(setup.queue, others[i], others[(i + 1) % 5], inner);
    kernels.blend(setup.queue, next, inner, others[4]);
    OK(clReleaseMemObject(inner));
    OK(clReleaseMemObject(older));
    older = std::exchange(state, next);
    losses.push_back(read_one(setup, state));
  }
  say_words("losses", losses);
  say_all(setup, "state", {state, older});
  say_all(setup, "other", others);
  release_buffers({state, older});
  release_buffers(others);
}

// Each step makes the next state. Some old ones stay, and are read at the end. `held`: how many steps a state is
// needed.
namespace {
void checkpoints(std::size_t held) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto others = buffers_of(setup, 6, 10);
  std::vector<cl_mem> states = buffers_of(setup, static_cast<cl_uint>(held), 1), kept;
  Words losses;
  for (cl_uint step = 0; step < steps; ++step) {
    const cl_mem next = setup.buffer();
    kernels.affine(setup.queue, next, states.front(), step);
    for (std::size_t i = 0; i < 6; ++i) kernels.blend(setup.queue, others[i], others[(i + 1) % 6], next);
    states.push_back(next);
    if (step % 7 == 6) {
      kept.push_back(states.front());
    } else {
      OK(clReleaseMemObject(states.front()));
    }
    states.erase(states.begin());
    losses.push_back(read_one(setup, others[0]));
  }
  say_words("losses", losses);
  say_all(setup, "kept", kept);
  say_all(setup, "state", states);
  say_all(setup, "other", others);
  for (const auto& each : {kept, states, others}) release_buffers(each);
}
}  // namespace

// The next state takes the place of the one before, whose last use is over; but some are kept.
CASE(iterations, checkpoints_apart) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto others = buffers_of(setup, 6, 10);
  const cl_mem middle = setup.buffer_of(numbers(2));
  cl_mem state = setup.buffer_of(numbers(1));
  std::vector<cl_mem> kept;
  Words losses;
  for (cl_uint step = 0; step < steps; ++step) {
    kernels.affine(setup.queue, middle, state, step);
    if (step % 7 == 6) {
      kept.push_back(state);
    } else {
      OK(clReleaseMemObject(state));
    }
    state = setup.buffer();
    kernels.affine(setup.queue, state, middle, 1);
    for (std::size_t i = 0; i < 6; ++i) kernels.blend(setup.queue, others[i], others[(i + 1) % 6], state);
    losses.push_back(read_one(setup, others[0]));
  }
  say_words("losses", losses);
  say_all(setup, "kept", kept);
  say_all(setup, "state", {state, middle});
  say_all(setup, "other", others);
  release_buffers({state, middle});
  release_buffers(kept);
  release_buffers(others);
}

CASE(iterations, checkpoints) { checkpoints(1); }
CASE(iterations, checkpoints_of_two) { checkpoints(2); }

CASE(iterations, the_programs_own_memory) {
  const Setup setup;
  const Kernels kernels(setup);
  Words own = numbers(7);
  const cl_mem input = setup.buffer(buffer_bytes, CL_MEM_USE_HOST_PTR, own.data());
  const auto layers = buffers_of(setup, 6, 20);
  Words losses;
  for (cl_uint step = 0; step < steps; ++step) {
    cl_int status = CL_SUCCESS;
    auto* const mapped = static_cast<cl_uint*>(clEnqueueMapBuffer(
        setup.queue, input, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, buffer_bytes, 0, nullptr, nullptr, &status));
    OK(status);
    for (std::size_t i = 0; i < word_count; i += 64) mapped[i] += step;
    OK(clEnqueueUnmapMemObject(setup.queue, input, mapped, 0, nullptr, nullptr));
    kernels.blend(setup.queue, layers[0], input, layers[5]);
    for (std::size_t i = 1; i < 6; ++i) kernels.blend(setup.queue, layers[i], layers[i - 1], input);
    kernels.grow(setup.queue, input, step);
    losses.push_back(read_one(setup, layers[5]));
  }
  say_words("losses", losses);
  say_all(setup, "layer", layers);
  say_words("input", setup.read(input));
  release_buffers(layers);
  OK(clReleaseMemObject(input));
}

CASE(iterations, evaluation_between) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto weights = buffers_of(setup, 3, 1), layers = buffers_of(setup, 7, 20), evaluated = buffers_of(setup, 4, 50);
  Words losses;
  for (cl_uint step = 0; step < steps; ++step) {
    write(setup, layers[0], numbers(100 + step));
    step_of(setup, kernels, weights, layers);
    losses.push_back(read_one(setup, weights[0]));
    if (step % 5 != 4) continue;
    for (std::size_t i = 0; i < 4; ++i) kernels.blend(setup.queue, evaluated[i], weights[i % 3], layers[i]);
    losses.push_back(read_one(setup, evaluated[step % 4]));
  }
  say_words("losses", losses);
  say_all(setup, "layer", layers);
  say_all(setup, "weights", weights);
  say_all(setup, "evaluated", evaluated);
  release_buffers(weights);
  release_buffers(layers);
  release_buffers(evaluated);
}

// A step has ten layers that do the same: a period within the period.
CASE(iterations, layers_within) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto weights = buffers_of(setup, 10, 1);
  const auto layers = buffers_of(setup, 11, 20);
  Words losses;
  for (cl_uint step = 0; step < steps; ++step) {
    for (std::size_t i = 0; i < 10; ++i) {
      kernels.blend(setup.queue, layers[i + 1], layers[i], weights[i]);
      kernels.grow(setup.queue, layers[i + 1], step);
    }
    for (std::size_t i = 10; i-- > 0;) kernels.affine(setup.queue, weights[i], layers[i + 1], 5);
    losses.push_back(read_one(setup, weights[0]));
  }
  say_words("losses", losses);
  say_all(setup, "layer", layers);
  say_all(setup, "weights", weights);
  release_buffers(weights);
  release_buffers(layers);
}

// The host reads nothing, so only many repeats make this a loop.
CASE(iterations, without_reads) {
  const Setup setup;
  const Kernels kernels(setup);
  constexpr std::size_t few = 256;
  std::vector<cl_mem> buffers;
  for (cl_uint i = 0; i < 12; ++i) buffers.push_back(setup.buffer_of(numbers(i, few)));
  for (cl_uint step = 0; step < 300; ++step) {
    for (std::size_t i = 1; i < 12; ++i)
      kernels.blend(setup.queue, buffers[i], buffers[i - 1], buffers[(i + 5) % 12], few);
    kernels.affine(setup.queue, buffers[0], buffers[11], step, few);
  }
  for (cl_mem one : buffers) say_words("buffer", setup.read(one, few));
  release_buffers(buffers);
}

// Nothing tells where a step of equal layers ends, and two buffers change places: twelve iterations until all is as
// before.
CASE(iterations, layers_without_reads) {
  const Setup setup;
  const Kernels kernels(setup);
  constexpr std::size_t few = 256;
  cl_mem now = setup.buffer_of(numbers(1, few)), next = setup.buffer_of(numbers(2, few));
  std::vector<cl_mem> weights;
  for (cl_uint i = 0; i < 6; ++i) weights.push_back(setup.buffer_of(numbers(i, few)));
  for (cl_uint step = 0; step < 600; ++step) {
    for (std::size_t i = 0; i < 6; ++i) {
      kernels.blend(setup.queue, next, now, weights[i], few);
      kernels.affine(setup.queue, weights[i], next, step, few);
    }
    std::swap(now, next);
  }
  for (cl_mem one : {now, next}) say_words("state", setup.read(one, few));
  for (cl_mem one : weights) say_words("weights", setup.read(one, few));
  release_buffers({now, next});
  release_buffers(weights);
}

// Arguments are set once; only a number changes.
CASE(iterations, arguments_kept) {
  const Setup setup;
  const auto buffers = buffers_of(setup, 8, 1);
  std::vector<cl_kernel> blends, grows;
  for (std::size_t i = 0; i < 8; ++i) {
    blends.push_back(setup.kernel("blend"));
    set_argument(blends[i], 0, buffers[i]);
    set_argument(blends[i], 1, buffers[(i + 1) % 8]);
    set_argument(blends[i], 2, buffers[(i + 2) % 8]);
    grows.push_back(setup.kernel("grow"));
    set_argument(grows[i], 0, buffers[i]);
    set_argument(grows[i], 1, cl_uint{1});
  }
  Words losses;
  for (cl_uint step = 0; step < steps; ++step) {
    for (std::size_t i = 0; i < 8; ++i) {
      launch(setup.queue, blends[i], word_count);
      if (step % 3 == 0) set_argument(grows[i], 1, step);
      launch(setup.queue, grows[i], word_count);
      if (step % 7 == 0) set_argument(grows[i], 1, 2 * step);  // the launch has the old one
    }
    losses.push_back(read_one(setup, buffers[0]));
  }
  say_words("losses", losses);
  say_all(setup, "buffer", buffers);
  for (cl_kernel one : blends) OK(clReleaseKernel(one));
  for (cl_kernel one : grows) OK(clReleaseKernel(one));
  release_buffers(buffers);
}

// Some steps do something else: a command more or less, another size, another kernel, another buffer.
CASE(iterations, some_steps_differ) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto weights = buffers_of(setup, 3, 1), layers = buffers_of(setup, 8, 20);
  Words losses;
  for (cl_uint step = 0; step < steps; ++step) {
    write(setup, layers[0], numbers(100 + step));
    for (std::size_t i = 1; i < 8; ++i) {
      if (step == 14 && i == 4) continue;
      const std::size_t count = step == 18 && i == 3 ? word_count / 2 : word_count;
      kernels.blend(setup.queue, layers[i], layers[i - 1], weights[i % 3], count);
      if (step == 22 && i == 5) kernels.grow(setup.queue, layers[2], 9);
      if (step == 26 && i == 6) losses.push_back(read_one(setup, layers[1], 77));
    }
    for (std::size_t i = 8; i-- > 1;) {
      if (step == 30 && i == 2) {
        kernels.blend(setup.queue, weights[i % 3], layers[5], layers[i]);
      } else {
        kernels.affine(setup.queue, weights[i % 3], step == 34 && i == 3 ? layers[7] : layers[i], 3);
      }
    }
    losses.push_back(read_one(setup, weights[0]));
  }
  say_words("losses", losses);
  say_all(setup, "layer", layers);
  say_all(setup, "weights", weights);
  release_buffers(weights);
  release_buffers(layers);
}

// All of a step's values are needed at once, in the middle of a step.
CASE(iterations, everything_read_in_between) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto weights = buffers_of(setup, 3, 1), layers = buffers_of(setup, 8, 20);
  for (cl_uint step = 0; step < steps; ++step) {
    write(setup, layers[0], numbers(100 + step));
    step_of(setup, kernels, weights, layers);
    if (step > 10 && step % 6 == 0) say_all(setup, "layer", layers);
    (void)read_one(setup, weights[0]);
  }
  say_all(setup, "weights", weights);
  release_buffers(weights);
  release_buffers(layers);
}

// What is dead in every step is copied on, mapped, or read in part, once.
CASE(iterations, dead_values_used_once) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto weights = buffers_of(setup, 3, 1), layers = buffers_of(setup, 8, 20);
  const cl_mem copy = setup.buffer_of(numbers(3));
  for (cl_uint step = 0; step < steps; ++step) {
    write(setup, layers[0], numbers(100 + step));
    step_of(setup, kernels, weights, layers);
    (void)read_one(setup, weights[0]);
    if (step == 20) OK(clEnqueueCopyBuffer(setup.queue, layers[5], copy, 0, 0, buffer_bytes, 0, nullptr, nullptr));
    if (step == 25) {
      const cl_uint zero = 0;  // half of it keeps its old value
      OK(clEnqueueFillBuffer(setup.queue, layers[6], &zero, 4, 0, buffer_bytes / 2, 0, nullptr, nullptr));
      say_words("half filled", setup.read(layers[6]));
    }
    if (step == 30) {
      cl_int status = CL_SUCCESS;
      void* const mapped = clEnqueueMapBuffer(setup.queue, layers[4], CL_TRUE, CL_MAP_READ, 0, buffer_bytes, 0, nullptr,
                                              nullptr, &status);
      OK(status);
      say("mapped: %016llx", static_cast<unsigned long long>(hash(mapped, buffer_bytes)));
      OK(clEnqueueUnmapMemObject(setup.queue, layers[4], mapped, 0, nullptr, nullptr));
    }
  }
  say_words("copy", setup.read(copy));
  say_all(setup, "weights", weights);
  release_buffers(weights);
  release_buffers(layers);
  OK(clReleaseMemObject(copy));
}

// Fills, copies, parts and non-blocking transfers.
CASE(iterations, other_commands) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto buffers = buffers_of(setup, 7, 1);
  const cl_buffer_region half{buffer_bytes / 2, buffer_bytes / 2};
  cl_int status = CL_SUCCESS;
  const cl_mem part = clCreateSubBuffer(buffers[2], 0, CL_BUFFER_CREATE_TYPE_REGION, &half, &status);
  OK(status);
  std::vector<Words> inputs(steps), outputs(steps, Words(word_count));
  for (cl_uint step = 0; step < steps; ++step) {
    inputs[step] = numbers(200 + step);
    write(setup, buffers[0], inputs[step], CL_FALSE);
    const cl_uint pattern = step;
    OK(clEnqueueFillBuffer(setup.queue, buffers[1], &pattern, 4, 0, buffer_bytes, 0, nullptr, nullptr));
    kernels.blend(setup.queue, buffers[2], buffers[0], buffers[1]);
    kernels.grow(setup.queue, part, step, word_count / 2);
    OK(clEnqueueCopyBuffer(setup.queue, buffers[2], buffers[3], 0, 0, buffer_bytes, 0, nullptr, nullptr));
    kernels.blend(setup.queue, buffers[4], buffers[3], buffers[6]);
    kernels.blend(setup.queue, buffers[5], buffers[4], buffers[3]);
    kernels.affine(setup.queue, buffers[6], buffers[5], step);
    OK(clEnqueueReadBuffer(setup.queue, buffers[4], CL_FALSE, 0, buffer_bytes, outputs[step].data(), 0, nullptr,
                           nullptr));
    if (step % 8 == 7) OK(clFinish(setup.queue));
  }
  OK(clFinish(setup.queue));
  for (const Words& output : outputs) say_words("output", output);
  say_all(setup, "buffer", buffers);
  OK(clReleaseMemObject(part));
  release_buffers(buffers);
}

CASE(iterations, images_in_between) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto weights = buffers_of(setup, 3, 1), layers = buffers_of(setup, 8, 20);
  Words losses;
  std::vector<cl_mem> images;
  for (cl_uint step = 0; step < steps; ++step) {
    write(setup, layers[0], numbers(100 + step));
    for (std::size_t i = 1; i < 8; ++i) {
      kernels.blend(setup.queue, layers[i], layers[i - 1], weights[i % 3]);
      if (step % 12 == 11 && i == 4) {  // takes a part of the budget
        const cl_image_format format{CL_RGBA, CL_UNSIGNED_INT32};
        cl_image_desc description{};
        description.image_type = CL_MEM_OBJECT_IMAGE2D;
        description.image_width = 32;
        description.image_height = 64;
        cl_int status = CL_SUCCESS;
        images.push_back(clCreateImage(setup.context, CL_MEM_READ_WRITE, &format, &description, nullptr, &status));
        OK(status);
        const std::array<std::size_t, 3> origin{0, 0, 0}, region{32, 64, 1};
        OK(clEnqueueCopyBufferToImage(setup.queue, layers[4], images.back(), 0, origin.data(), region.data(), 0,
                                      nullptr, nullptr));
        Words pixels(32 * 64 * 4);
        OK(clEnqueueReadImage(setup.queue, images.back(), CL_TRUE, origin.data(), region.data(), 0, 0, pixels.data(), 0,
                              nullptr, nullptr));
        say_words("pixels", pixels);
      }
      if (step == 32 && i == 5) release_buffers(std::exchange(images, {}));
    }
    for (std::size_t i = 8; i-- > 1;) kernels.affine(setup.queue, weights[i % 3], layers[i], 3);
    losses.push_back(read_one(setup, weights[0]));
  }
  say_words("losses", losses);
  say_all(setup, "layer", layers);
  say_all(setup, "weights", weights);
  release_buffers(images);
  release_buffers(weights);
  release_buffers(layers);
}

CASE(iterations, two_contexts_in_turn) {
  const Setup first, second;
  const Kernels kernels_1(first), kernels_2(second);
  const auto weights_1 = buffers_of(first, 3, 1), layers_1 = buffers_of(first, 7, 20);
  const auto weights_2 = buffers_of(second, 3, 2), layers_2 = buffers_of(second, 9, 40);
  Words losses;
  for (cl_uint step = 0; step < steps; ++step) {
    write(first, layers_1[0], numbers(100 + step));
    write(second, layers_2[0], numbers(300 + step));
    for (std::size_t i = 1; i < 9; ++i) {
      if (i < 7) kernels_1.blend(first.queue, layers_1[i], layers_1[i - 1], weights_1[i % 3]);
      kernels_2.blend(second.queue, layers_2[i], layers_2[i - 1], weights_2[i % 3]);
    }
    for (std::size_t i = 7; i-- > 1;) kernels_1.affine(first.queue, weights_1[i % 3], layers_1[i], 3);
    for (std::size_t i = 9; i-- > 1;) kernels_2.affine(second.queue, weights_2[i % 3], layers_2[i], 3);
    losses.push_back(read_one(first, weights_1[0]));
    losses.push_back(read_one(second, weights_2[0]));
  }
  say_words("losses", losses);
  say_all(first, "layer of the first", layers_1);
  say_all(second, "layer of the second", layers_2);
  for (const auto& each : {weights_1, layers_1, weights_2, layers_2}) release_buffers(each);
}

// The process ends while commands are queued, with everything as it is.
CASE(iterations, ends_without_finish) {
  const auto& setup = *new Setup;
  const auto& kernels = *new Kernels(setup);
  const auto weights = buffers_of(setup, 3, 1), layers = buffers_of(setup, 8, 20);
  for (cl_uint step = 0; step < steps; ++step) {
    write(setup, layers[0], numbers(100 + step));
    step_of(setup, kernels, weights, layers);
    if (step + 1 < steps) (void)read_one(setup, weights[0]);
  }
  say("the end");
}
