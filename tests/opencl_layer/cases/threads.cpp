// SPDX-License-Identifier: Apache-2.0
// Several threads at once.

#include "harness.hpp"

#include <functional>
#include <thread>

using namespace cases;

namespace {

void on_threads(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  for (std::thread& one : threads) one.join();
}

}  // namespace

CASE(threads, queues_of_their_own) {
  const Setup setup;
  std::vector<Words> results(4);
  on_threads(4, [&](std::size_t t) {
    const Kernels kernels(setup);
    const cl_command_queue queue = setup.another_queue();
    std::vector<cl_mem> buffers;
    for (cl_uint i = 0; i < 4; ++i) buffers.push_back(setup.buffer_of(numbers(static_cast<cl_uint>(10 * t) + i)));
    for (std::size_t i = 0; i < 30; ++i)
      kernels.blend(queue, buffers[i % 4], buffers[(i + 1) % 4], buffers[(i + 2) % 4]);
    results[t].resize(word_count);
    OK(clEnqueueReadBuffer(queue, buffers[1], CL_TRUE, 0, buffer_bytes, results[t].data(), 0, nullptr, nullptr));
    release_buffers(buffers);
    OK(clReleaseCommandQueue(queue));
  });
  for (const Words& words : results) say_words("thread", words);
}

CASE(threads, contexts_of_their_own) {
  // Some drivers cannot make their first contexts on several threads at once.
  const Setup setups[3];
  std::vector<Words> results(3);
  on_threads(3, [&](std::size_t t) {
    const Setup& setup = setups[t];
    const Kernels kernels(setup);
    std::vector<cl_mem> buffers;
    for (cl_uint i = 0; i < 4; ++i) buffers.push_back(setup.buffer_of(numbers(static_cast<cl_uint>(10 * t) + i)));
    for (std::size_t i = 0; i < 20; ++i)
      kernels.blend(setup.queue, buffers[i % 4], buffers[(i + 1) % 4], buffers[(i + 2) % 4]);
    results[t] = setup.read(buffers[1]);
    release_buffers(buffers);
  });
  for (const Words& words : results) say_words("thread", words);
}

// One queue, each thread's commands on buffers of its own.
CASE(threads, one_queue) {
  const Setup setup;
  std::vector<Words> results(4);
  on_threads(4, [&](std::size_t t) {
    const Kernels kernels(setup);
    const cl_mem a = setup.buffer_of(numbers(static_cast<cl_uint>(t))), b = setup.buffer();
    for (cl_uint i = 0; i < 20; ++i) {
      kernels.affine(setup.queue, b, a, i);
      kernels.affine(setup.queue, a, b, i);
    }
    results[t] = setup.read(a);
    release_buffers({a, b});
  });
  for (const Words& words : results) say_words("thread", words);
}

// All read the same buffer while it may leave.
CASE(threads, shared_input) {
  const Setup setup;
  const cl_mem shared = setup.buffer_of(numbers(99));
  std::vector<Words> results(4);
  on_threads(4, [&](std::size_t t) {
    const Kernels kernels(setup);
    const cl_command_queue queue = setup.another_queue();
    const cl_mem mine = setup.buffer_of(numbers(static_cast<cl_uint>(t))), other = setup.buffer_of(numbers(7));
    for (int i = 0; i < 15; ++i) {
      kernels.blend(queue, mine, shared, mine);
      kernels.blend(queue, other, mine, shared);
    }
    results[t].resize(word_count);
    OK(clEnqueueReadBuffer(queue, other, CL_TRUE, 0, buffer_bytes, results[t].data(), 0, nullptr, nullptr));
    OK(clReleaseCommandQueue(queue));
    release_buffers({mine, other});
  });
  for (const Words& words : results) say_words("thread", words);
  OK(clReleaseMemObject(shared));
}

CASE(threads, create_and_release) {
  const Setup setup;
  std::vector<std::uint64_t> results(4);
  on_threads(4, [&](std::size_t t) {
    for (cl_uint i = 0; i < 60; ++i) {
      const cl_mem made = setup.buffer_of(numbers(i, 1024 + t));
      OK(clRetainMemObject(made));
      Words words(100);
      OK(clEnqueueReadBuffer(setup.queue, made, CL_TRUE, 40, 400, words.data(), 0, nullptr, nullptr));
      results[t] = results[t] * 31 + hash(words);
      OK(clReleaseMemObject(made));
      OK(clReleaseMemObject(made));
    }
  });
  for (std::uint64_t one : results) say("%016llx", static_cast<unsigned long long>(one));
}

// Maps, transfers and launches side by side.
CASE(threads, maps_and_transfers) {
  const Setup setup;
  std::vector<Words> results(3);
  on_threads(3, [&](std::size_t t) {
    const Kernels kernels(setup);
    const cl_command_queue queue = setup.another_queue();
    const cl_mem a = setup.buffer_of(numbers(static_cast<cl_uint>(t))), b = setup.buffer_of(numbers(5));
    for (cl_uint i = 0; i < 12; ++i) {
      cl_int error = CL_SUCCESS;
      auto* mapped = static_cast<cl_uint*>(clEnqueueMapBuffer(queue, a, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                                              buffer_bytes, 0, nullptr, nullptr, &error));
      OK(error);
      for (std::size_t w = 0; w < word_count; w += 7) mapped[w] += i;
      OK(clEnqueueUnmapMemObject(queue, a, mapped, 0, nullptr, nullptr));
      OK(clEnqueueCopyBuffer(queue, a, b, 0, buffer_bytes / 2, buffer_bytes / 2, 0, nullptr, nullptr));
      kernels.blend(queue, a, b, a);
    }
    results[t].resize(word_count);
    OK(clEnqueueReadBuffer(queue, a, CL_TRUE, 0, buffer_bytes, results[t].data(), 0, nullptr, nullptr));
    release_buffers({a, b});
    OK(clReleaseCommandQueue(queue));
  });
  for (const Words& words : results) say_words("thread", words);
}
