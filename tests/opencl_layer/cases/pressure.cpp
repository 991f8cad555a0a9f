// SPDX-License-Identifier: Apache-2.0
// Programs with more buffers than one launch uses: everything leaves and comes back.

#include "harness.hpp"

using namespace cases;

CASE(pressure, chain) {
  const Setup setup;
  const Kernels kernels(setup);
  std::vector<cl_mem> buffers;
  for (cl_uint i = 0; i < 8; ++i) buffers.push_back(setup.buffer_of(numbers(i)));
  for (std::size_t round = 0; round < 3; ++round)
    for (std::size_t i = 0; i < buffers.size(); ++i)
      kernels.blend(setup.queue, buffers[i], buffers[(i + 1) % 8], buffers[(i + 3) % 8]);
  for (cl_mem one : buffers) say_words("chain", setup.read(one));
  for (cl_mem one : buffers) OK(clReleaseMemObject(one));
}

CASE(pressure, training_loop) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem weights = setup.buffer_of(numbers(1));
  std::vector<cl_mem> layers;
  for (cl_uint i = 0; i < 6; ++i) layers.push_back(setup.buffer());
  for (cl_uint step = 0; step < 8; ++step) {
    const Words input = numbers(100 + step);
    OK(clEnqueueWriteBuffer(setup.queue, layers[0], CL_TRUE, 0, buffer_bytes, input.data(), 0, nullptr, nullptr));
    for (std::size_t i = 1; i < layers.size(); ++i) kernels.blend(setup.queue, layers[i], layers[i - 1], weights);
    for (std::size_t i = layers.size(); i-- > 1;) kernels.blend(setup.queue, weights, layers[i], layers[i - 1]);
    cl_uint loss = 0;
    OK(clEnqueueReadBuffer(setup.queue, weights, CL_TRUE, 4 * step, 4, &loss, 0, nullptr, nullptr));
    say("step %u: %u", step, loss);
  }
  say_words("weights", setup.read(weights));
  for (cl_mem one : layers) OK(clReleaseMemObject(one));
  OK(clReleaseMemObject(weights));
}

CASE(pressure, new_buffers_each_step) {
  const Setup setup;
  const Kernels kernels(setup);
  cl_mem state = setup.buffer_of(numbers(1));
  for (cl_uint step = 0; step < 10; ++step) {
    const cl_mem input = setup.buffer_of(numbers(50 + step)), inner = setup.buffer(), next = setup.buffer();
    kernels.blend(setup.queue, inner, state, input);
    kernels.blend(setup.queue, next, inner, state);
    OK(clReleaseMemObject(inner));
    OK(clReleaseMemObject(input));
    OK(clReleaseMemObject(state));
    state = next;
  }
  say_words("state", setup.read(state));
  OK(clReleaseMemObject(state));
}

CASE(pressure, sizes_differ) {
  const Setup setup;
  const Kernels kernels(setup);
  std::vector<cl_mem> buffers;
  std::vector<std::size_t> counts;
  for (cl_uint i = 0; i < 12; ++i) {
    counts.push_back(1000 + 2500 * ((i * 7) % 12) + i);
    buffers.push_back(setup.buffer_of(numbers(i, counts.back())));
  }
  for (std::size_t round = 0; round < 4; ++round)
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const std::size_t other = (i * 5 + round) % buffers.size();
      kernels.affine(setup.queue, buffers[i], buffers[other == i ? (i + 1) % 12 : other], static_cast<cl_uint>(i),
                     1000);
      kernels.grow(setup.queue, buffers[i], 3, counts[i]);
    }
  for (std::size_t i = 0; i < buffers.size(); ++i) say_words("sized", setup.read(buffers[i], counts[i]));
  for (cl_mem one : buffers) OK(clReleaseMemObject(one));
}

CASE(pressure, many_small_buffers) {
  const Setup setup;
  const Kernels kernels(setup);
  std::vector<cl_mem> buffers;
  for (cl_uint i = 0; i < 300; ++i) buffers.push_back(setup.buffer_of(numbers(i, 16 + i)));
  for (cl_uint i = 0; i < 300; ++i) kernels.affine(setup.queue, buffers[i], buffers[(i + 150) % 300], i, 16);
  std::uint64_t all = 0;
  for (cl_uint i = 0; i < 300; ++i) all = all * 31 + hash(setup.read(buffers[i], 16 + i));
  say("300 buffers: %016llx", static_cast<unsigned long long>(all));
  for (cl_mem one : buffers) OK(clReleaseMemObject(one));
}

CASE(pressure, reads_in_between) {
  const Setup setup;
  const Kernels kernels(setup);
  std::vector<cl_mem> buffers;
  for (cl_uint i = 0; i < 6; ++i) buffers.push_back(setup.buffer_of(numbers(i)));
  for (cl_uint round = 0; round < 12; ++round) {
    const cl_mem to = buffers[round % 6];
    kernels.affine(setup.queue, to, buffers[(round + 1) % 6], round);
    const Words part(100, round);
    OK(clEnqueueWriteBuffer(setup.queue, buffers[(round + 2) % 6], CL_FALSE, 400 * round, 400, part.data(), 0, nullptr,
                            nullptr));
    say_words("read", setup.read(buffers[(round + 4) % 6], 200));
  }
  for (cl_mem one : buffers) say_words("end", setup.read(one));
  for (cl_mem one : buffers) OK(clReleaseMemObject(one));
}

// A kernel that has the same buffer as several arguments needs it once.
CASE(pressure, same_buffer_twice) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem a = setup.buffer_of(numbers(1)), b = setup.buffer_of(numbers(2));
  kernels.blend(setup.queue, b, a, a);
  kernels.blend(setup.queue, a, a, b);
  kernels.blend(setup.queue, a, a, a);
  say_words("a", setup.read(a));
  say_words("b", setup.read(b));
  OK(clReleaseMemObject(a));
  OK(clReleaseMemObject(b));
}

// Two phases that alternate, with an evaluation now and then.
CASE(pressure, phases) {
  const Setup setup;
  const Kernels kernels(setup);
  std::vector<cl_mem> a, b;
  for (cl_uint i = 0; i < 4; ++i)
    a.push_back(setup.buffer_of(numbers(i))), b.push_back(setup.buffer_of(numbers(9 + i)));
  for (cl_uint step = 0; step < 12; ++step) {
    const auto& now = step / 3 % 2 == 0 ? a : b;
    for (std::size_t i = 0; i < 4; ++i) kernels.blend(setup.queue, now[i], now[(i + 1) % 4], now[(i + 2) % 4]);
    if (step % 4 == 3) {
      kernels.blend(setup.queue, a[0], a[1], b[1]);
      say_words("evaluation", setup.read(a[0], 64));
    }
  }
  for (cl_mem one : a) say_words("a", setup.read(one));
  for (cl_mem one : b) say_words("b", setup.read(one));
  for (cl_mem one : a) OK(clReleaseMemObject(one));
  for (cl_mem one : b) OK(clReleaseMemObject(one));
}
