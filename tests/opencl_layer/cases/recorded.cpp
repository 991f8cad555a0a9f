// SPDX-License-Identifier: Apache-2.0
// Programs whose logs tests/opencl_layer/record.py knows call by call.
#include <array>
#include <cstring>
#include <thread>

#include "harness.hpp"

using namespace cases;

// Each kind of command once, in a known order.
CASE(recorded, all_kinds) {
  const Setup setup(CL_QUEUE_PROFILING_ENABLE);
  const Words data = numbers(7);
  const cl_mem a = setup.buffer_of(data);
  const cl_mem b = setup.buffer(buffer_bytes, CL_MEM_READ_WRITE);
  const cl_mem constant = setup.buffer_of(numbers(8), CL_MEM_READ_ONLY);
  const cl_buffer_region region{4096, 8192};
  cl_int status = CL_SUCCESS;
  const cl_mem part = clCreateSubBuffer(b, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
  OK(status);
  const cl_kernel blend = setup.kernel("blend");
  set_argument(blend, 0, b);
  set_argument(blend, 1, a);
  set_argument(blend, 2, constant);
  launch(setup.queue, blend, word_count);
  const cl_uint pattern = 0x01020304;
  OK(clEnqueueFillBuffer(setup.queue, part, &pattern, sizeof pattern, 1024, 2048, 0, nullptr, nullptr));
  OK(clEnqueueCopyBuffer(setup.queue, a, b, 16, 64, 128, 0, nullptr, nullptr));
  // 3 rows of 8 bytes
  const std::array<std::size_t, 3> from{4, 1, 0};
  const std::array<std::size_t, 3> host_from{0, 2, 0};
  const std::array<std::size_t, 3> size{8, 3, 1};
  const std::string rows = "........................aaaaaaaa--bbbbbbbb--cccccccc--";
  OK(clEnqueueWriteBufferRect(setup.queue, a, CL_TRUE, from.data(), host_from.data(), size.data(), 256, 0, 10, 0,
                              rows.data() + 4, 0, nullptr, nullptr));
  cl_event written = nullptr;
  const Words words = numbers(9, 64);
  OK(clEnqueueWriteBuffer(setup.queue, b, CL_FALSE, 512, 256, words.data(), 0, nullptr, &written));
  const cl_event gate = clCreateUserEvent(setup.context, &status);
  OK(status);
  const std::array<cl_event, 2> both{written, gate};
  cl_event marked = nullptr;
  OK(clEnqueueMarkerWithWaitList(setup.queue, 2, both.data(), &marked));
  OK(clSetUserEventStatus(gate, CL_COMPLETE));
  OK(clWaitForEvents(1, &marked));
  auto* const mapped = static_cast<cl_uint*>(
      clEnqueueMapBuffer(setup.queue, b, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 128, 32, 0, nullptr, nullptr, &status));
  OK(status);
  for (cl_uint i = 0; i < 8; ++i) mapped[i] += i;
  OK(clEnqueueUnmapMemObject(setup.queue, b, mapped, 0, nullptr, nullptr));
  Words read(word_count);
  OK(clEnqueueReadBuffer(setup.queue, b, CL_FALSE, 0, buffer_bytes, read.data(), 0, nullptr, nullptr));
  OK(clFinish(setup.queue));
  say_words("b", read);
  say_words("a", setup.read(a));
  say_status("a read beyond the end",
             clEnqueueReadBuffer(setup.queue, b, CL_TRUE, buffer_bytes, 4, read.data(), 0, nullptr, nullptr));
  release_events({written, gate, marked});
  OK(clReleaseKernel(blend));
  release_buffers({part, a, b, constant});
}

// A loop that a trace can be made of: two kernels, an input, a result for the host.
CASE(recorded, loop) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem weights = setup.buffer_of(numbers(1));
  const cl_mem input = setup.buffer();
  const cl_mem hidden = setup.buffer();
  for (cl_uint step = 0; step < 12; ++step) {
    const Words words = numbers(100 + step);
    OK(clEnqueueWriteBuffer(setup.queue, input, CL_TRUE, 0, buffer_bytes, words.data(), 0, nullptr, nullptr));
    kernels.blend(setup.queue, hidden, weights, input);
    kernels.grow(setup.queue, weights, step);
    say_words("hidden", setup.read(hidden));
  }
  release_buffers({weights, input, hidden});
}

// Several threads, each with a queue and buffers of its own.
CASE(recorded, threads) {
  const Setup setup;
  const Kernels kernels(setup);
  constexpr std::size_t count = 4;
  std::array<Words, count> results;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&setup, &results, i] {
      const Kernels own(setup);
      const cl_command_queue queue = setup.another_queue();
      const cl_mem data = setup.buffer_of(numbers(static_cast<cl_uint>(i)));
      for (cl_uint k = 0; k < 25; ++k) own.grow(queue, data, k);
      results[i].resize(word_count);
      OK(clEnqueueReadBuffer(queue, data, CL_TRUE, 0, buffer_bytes, results[i].data(), 0, nullptr, nullptr));
      release_buffers({data});
      OK(clReleaseCommandQueue(queue));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Words& words : results) say_words("data", words);
}
