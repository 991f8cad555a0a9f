// SPDX-License-Identifier: Apache-2.0
// Buffers mapped into the program's memory.

#include "harness.hpp"

#include <algorithm>

using namespace cases;

namespace {

cl_uint* map_words(cl_command_queue queue, cl_mem object, cl_map_flags flags, std::size_t offset = 0,
                   std::size_t bytes = buffer_bytes) {
  cl_int error = CL_SUCCESS;
  void* mapped = clEnqueueMapBuffer(queue, object, CL_TRUE, flags, offset, bytes, 0, nullptr, nullptr, &error);
  OK(error);
  return static_cast<cl_uint*>(mapped);
}
void unmap(cl_command_queue queue, cl_mem object, void* mapped) {
  OK(clEnqueueUnmapMemObject(queue, object, mapped, 0, nullptr, nullptr));
}
cl_uint maps(cl_mem object) { return memory_info<cl_uint>(object, CL_MEM_MAP_COUNT); }
/// After an unmapping has ended: drivers count it a moment later.
cl_uint maps_left(cl_mem object, cl_uint expected = 0) {
  (void)comes_true([&] { return maps(object) == expected; });
  return maps(object);
}

void push_out(const Setup& setup, const Kernels& kernels, const std::vector<cl_mem>& others) {
  kernels.blend(setup.queue, others[0], others[1], others[2]);
}
struct Others {
  explicit Others(const Setup& setup)
      : all{setup.buffer_of(numbers(71)), setup.buffer_of(numbers(72)), setup.buffer_of(numbers(73))} {}
  ~Others() {
    for (cl_mem one : all) clReleaseMemObject(one);
  }
  Others(const Others&) = delete;
  Others& operator=(const Others&) = delete;
  std::vector<cl_mem> all;
};

}  // namespace

CASE(maps, read) {
  const Setup setup;
  const Kernels kernels(setup);
  const Others others(setup);
  const cl_mem one = setup.buffer_of(numbers(1));
  kernels.grow(setup.queue, one, 1);
  push_out(setup, kernels, others.all);
  cl_uint* mapped = map_words(setup.queue, one, CL_MAP_READ);
  say_words("mapped", Words(mapped, mapped + word_count));
  unmap(setup.queue, one, mapped);
  kernels.grow(setup.queue, one, 1);
  mapped = map_words(setup.queue, one, CL_MAP_READ, 4000, 8000);
  say_words("a part", Words(mapped, mapped + 2000));
  unmap(setup.queue, one, mapped);
  OK(clFinish(setup.queue));
  say("maps: %u", maps_left(one));
  OK(clReleaseMemObject(one));
}

CASE(maps, write) {
  const Setup setup;
  const Kernels kernels(setup);
  const Others others(setup);
  const cl_mem one = setup.buffer_of(numbers(1));
  cl_uint* mapped = map_words(setup.queue, one, CL_MAP_WRITE, 4000, 8000);
  for (std::size_t i = 0; i < 1000; ++i) mapped[i] = 7;  // the other half keeps its values
  push_out(setup, kernels, others.all);
  unmap(setup.queue, one, mapped);
  push_out(setup, kernels, others.all);
  kernels.grow(setup.queue, one, 1);
  say_words("written", setup.read(one));
  OK(clReleaseMemObject(one));
}

CASE(maps, read_and_write) {
  const Setup setup;
  const Kernels kernels(setup);
  const Others others(setup);
  const cl_mem one = setup.buffer_of(numbers(1));
  for (cl_uint round = 0; round < 4; ++round) {
    cl_uint* mapped = map_words(setup.queue, one, CL_MAP_READ | CL_MAP_WRITE);
    std::reverse(mapped, mapped + word_count);
    unmap(setup.queue, one, mapped);
    push_out(setup, kernels, others.all);
    kernels.grow(setup.queue, one, round);
  }
  say_words("reversed", setup.read(one));
  OK(clReleaseMemObject(one));
}

CASE(maps, invalidate) {
  const Setup setup;
  const Kernels kernels(setup);
  const Others others(setup);
  const cl_mem one = setup.buffer_of(numbers(1));
  cl_uint* mapped = map_words(setup.queue, one, CL_MAP_WRITE_INVALIDATE_REGION, 4000, 8000);
  for (std::size_t i = 0; i < 2000; ++i) mapped[i] = static_cast<cl_uint>(i);
  unmap(setup.queue, one, mapped);
  push_out(setup, kernels, others.all);
  say_words("around and in it", setup.read(one));
  const cl_mem fresh = setup.buffer();
  mapped = map_words(setup.queue, fresh, CL_MAP_WRITE_INVALIDATE_REGION);
  std::fill(mapped, mapped + word_count, 3u);
  unmap(setup.queue, fresh, mapped);
  kernels.blend(setup.queue, fresh, one, fresh);
  say_words("fresh", setup.read(fresh));
  OK(clReleaseMemObject(one));
  OK(clReleaseMemObject(fresh));
}

CASE(maps, several_at_once) {
  const Setup setup;
  const Kernels kernels(setup);
  const Others others(setup);
  const cl_mem one = setup.buffer_of(numbers(1));
  cl_uint* a = map_words(setup.queue, one, CL_MAP_READ | CL_MAP_WRITE, 0, 1000);
  cl_uint* b = map_words(setup.queue, one, CL_MAP_READ | CL_MAP_WRITE, 4000, 1000);
  say("maps: %u", maps(one));
  std::swap_ranges(a, a + 250, b);
  unmap(setup.queue, one, a);
  OK(clFinish(setup.queue));
  say("maps: %u", maps_left(one, 1));
  b[0] = 5;
  push_out(setup, kernels, others.all);
  unmap(setup.queue, one, b);
  OK(clFinish(setup.queue));
  say("maps: %u", maps_left(one));
  say_words("swapped", setup.read(one));
  OK(clReleaseMemObject(one));
}

// Reading may overlap.
CASE(maps, nested_to_read) {
  const Setup setup;
  const Kernels kernels(setup);
  const Others others(setup);
  const cl_mem one = setup.buffer_of(numbers(1));
  cl_uint* outer = map_words(setup.queue, one, CL_MAP_READ);
  cl_uint* inner = map_words(setup.queue, one, CL_MAP_READ, 4000, 1000);
  cl_uint* same = map_words(setup.queue, one, CL_MAP_READ);
  say("maps: %u", maps(one));
  expect(std::equal(inner, inner + 250, outer + 1000), "both show the same");
  expect(std::equal(same, same + word_count, outer), "all show the same");
  unmap(setup.queue, one, outer);
  push_out(setup, kernels, others.all);
  OK(clFinish(setup.queue));
  say_words("inner", Words(inner, inner + 250));
  unmap(setup.queue, one, inner);
  unmap(setup.queue, one, same);
  OK(clFinish(setup.queue));
  say("maps: %u", maps_left(one));
  kernels.grow(setup.queue, one, 2);
  say_words("after", setup.read(one));
  OK(clReleaseMemObject(one));
}

// A kernel may read what is mapped to be read.
CASE(maps, kernel_reads_what_is_mapped) {
  const Setup setup;
  const Kernels kernels(setup);
  const Others others(setup);
  const cl_mem one = setup.buffer_of(numbers(1)), to = setup.buffer();
  cl_uint* mapped = map_words(setup.queue, one, CL_MAP_READ);
  kernels.affine(setup.queue, to, one, 4);
  push_out(setup, kernels, others.all);
  say_words("to", setup.read(to));
  say_words("mapped", Words(mapped, mapped + word_count));
  unmap(setup.queue, one, mapped);
  OK(clFinish(setup.queue));
  OK(clReleaseMemObject(one));
  OK(clReleaseMemObject(to));
}

CASE(maps, many_buffers) {
  const Setup setup;
  const Kernels kernels(setup);
  std::vector<cl_mem> buffers;
  std::vector<cl_uint*> mapped;
  for (cl_uint i = 0; i < 6; ++i) buffers.push_back(setup.buffer_of(numbers(i)));
  for (cl_mem one : buffers) mapped.push_back(map_words(setup.queue, one, CL_MAP_READ | CL_MAP_WRITE));
  for (std::size_t i = 0; i + 1 < 6; ++i) std::copy(mapped[i], mapped[i] + 5000, mapped[i + 1] + 4000);
  for (std::size_t i = 6; i-- > 0;) unmap(setup.queue, buffers[i], mapped[i]);
  for (std::size_t i = 0; i < 6; ++i)
    kernels.blend(setup.queue, buffers[i], buffers[(i + 1) % 6], buffers[(i + 2) % 6]);
  for (cl_mem one : buffers) say_words("one", setup.read(one));
  for (cl_mem one : buffers) OK(clReleaseMemObject(one));
}

CASE(maps, sub_buffer) {
  const Setup setup;
  const Kernels kernels(setup);
  const Others others(setup);
  const cl_mem root = setup.buffer_of(numbers(1));
  const cl_buffer_region region{16384, 16384};
  cl_int error = CL_SUCCESS;
  const cl_mem part = clCreateSubBuffer(root, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
  OK(error);
  cl_uint* mapped = map_words(setup.queue, part, CL_MAP_READ | CL_MAP_WRITE, 400, 4000);
  say_words("part", Words(mapped, mapped + 1000));
  std::fill(mapped, mapped + 500, 11u);
  push_out(setup, kernels, others.all);
  unmap(setup.queue, part, mapped);
  push_out(setup, kernels, others.all);
  say_words("root", setup.read(root));
  mapped = map_words(setup.queue, root, CL_MAP_READ, 16384, 16384);
  say_words("through the root", Words(mapped, mapped + 4096));
  unmap(setup.queue, root, mapped);
  OK(clFinish(setup.queue));
  OK(clReleaseMemObject(part));
  OK(clReleaseMemObject(root));
}

CASE(maps, use_host) {
  const Setup setup;
  const Kernels kernels(setup);
  const Others others(setup);
  Words words = numbers(1);
  const cl_mem one = setup.buffer(buffer_bytes, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, words.data());
  kernels.grow(setup.queue, one, 1);
  push_out(setup, kernels, others.all);
  cl_uint* mapped = map_words(setup.queue, one, CL_MAP_READ | CL_MAP_WRITE, 4000, 8000);
  expect(mapped == words.data() + 1000, "the address is the program's");
  say_words("own memory", Words(words.begin() + 1000, words.begin() + 3000));
  words[1000] = 99;
  unmap(setup.queue, one, mapped);
  kernels.grow(setup.queue, one, 1);
  push_out(setup, kernels, others.all);
  say_words("read", setup.read(one));
  mapped = map_words(setup.queue, one, CL_MAP_WRITE_INVALIDATE_REGION);
  expect(mapped == words.data(), "the address is the program's");
  std::fill(mapped, mapped + word_count, 4u);
  unmap(setup.queue, one, mapped);
  kernels.grow(setup.queue, one, 1);
  say_words("filled and grown", setup.read(one));
  OK(clReleaseMemObject(one));
}

CASE(maps, alloc_host) {
  const Setup setup;
  const Kernels kernels(setup);
  const Others others(setup);
  const cl_mem staging = setup.buffer(buffer_bytes, CL_MEM_ALLOC_HOST_PTR), device = setup.buffer();
  for (cl_uint round = 0; round < 3; ++round) {
    cl_uint* mapped = map_words(setup.queue, staging, CL_MAP_WRITE);
    const Words words = numbers(round);
    std::copy(words.begin(), words.end(), mapped);
    unmap(setup.queue, staging, mapped);
    OK(clEnqueueCopyBuffer(setup.queue, staging, device, 0, 0, buffer_bytes, 0, nullptr, nullptr));
    kernels.grow(setup.queue, device, round);
    push_out(setup, kernels, others.all);
    OK(clEnqueueCopyBuffer(setup.queue, device, staging, 0, 0, buffer_bytes, 0, nullptr, nullptr));
    mapped = map_words(setup.queue, staging, CL_MAP_READ);
    say_words("back", Words(mapped, mapped + word_count));
    unmap(setup.queue, staging, mapped);
  }
  OK(clFinish(setup.queue));
  OK(clReleaseMemObject(staging));
  OK(clReleaseMemObject(device));
}

// Drivers give at least the alignment of the largest type.
CASE(maps, alignment) {
  const Setup setup;
  for (const std::size_t bytes : std::vector<std::size_t>{1, 3, 64, 1000, 65536}) {
    const cl_mem one = setup.buffer(bytes);
    void* mapped = map_words(setup.queue, one, CL_MAP_WRITE_INVALIDATE_REGION, 0, bytes);
    say("%zu bytes: %s", bytes, reinterpret_cast<std::uintptr_t>(mapped) % 128 == 0 ? "aligned" : "not aligned");
    std::fill_n(static_cast<unsigned char*>(mapped), bytes, static_cast<unsigned char>(1));
    unmap(setup.queue, one, mapped);
    OK(clFinish(setup.queue));
    OK(clReleaseMemObject(one));
  }
}

CASE(maps, not_blocking) {
  const Setup setup;
  const Kernels kernels(setup);
  const Others others(setup);
  const cl_mem one = setup.buffer_of(numbers(1));
  kernels.grow(setup.queue, one, 1);
  cl_int error = CL_SUCCESS;
  cl_event ready = nullptr, done = nullptr;
  auto* mapped = static_cast<cl_uint*>(clEnqueueMapBuffer(setup.queue, one, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                                          buffer_bytes, 0, nullptr, &ready, &error));
  OK(error);
  OK(clWaitForEvents(1, &ready));
  say("type %x, %s", event_info<cl_command_type>(ready, CL_EVENT_COMMAND_TYPE), name_of(status_of(ready)));
  say_words("mapped", Words(mapped, mapped + word_count));
  mapped[3] = 3;
  OK(clEnqueueUnmapMemObject(setup.queue, one, mapped, 0, nullptr, &done));
  kernels.grow(setup.queue, one, 2, word_count, {done});
  push_out(setup, kernels, others.all);
  say_words("after", setup.read(one));
  OK(clWaitForEvents(1, &done));
  say("type %x", event_info<cl_command_type>(done, CL_EVENT_COMMAND_TYPE));
  OK(clReleaseEvent(ready));
  OK(clReleaseEvent(done));
  OK(clReleaseMemObject(one));
}

CASE(maps, after_commands_of_another_queue) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_command_queue other = setup.another_queue();
  const cl_mem one = setup.buffer_of(numbers(1)), two = setup.buffer_of(numbers(2));
  cl_event grown = nullptr;
  kernels.blend(setup.queue, one, two, two, word_count, {}, &grown);
  OK(clFlush(setup.queue));
  cl_int error = CL_SUCCESS;
  auto* mapped = static_cast<cl_uint*>(
      clEnqueueMapBuffer(other, one, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, buffer_bytes, 1, &grown, nullptr, &error));
  OK(error);
  say_words("mapped", Words(mapped, mapped + word_count));
  std::reverse(mapped, mapped + word_count);
  OK(clEnqueueUnmapMemObject(other, one, mapped, 0, nullptr, nullptr));
  OK(clFinish(other));
  say_words("one", setup.read(one));
  OK(clReleaseEvent(grown));
  OK(clReleaseCommandQueue(other));
  OK(clReleaseMemObject(one));
  OK(clReleaseMemObject(two));
}

// The bytes that an unmap writes may still be on their way: the program has not touched them.
CASE(maps, unmapped_at_once) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem one = setup.buffer_of(numbers(1));
  for (int round = 0; round < 3; ++round) {
    for (cl_uint i = 0; i < 60; ++i) kernels.grow(setup.queue, one, i);
    cl_int error = CL_SUCCESS;
    void* const mapped = clEnqueueMapBuffer(setup.queue, one, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, 0, buffer_bytes, 0,
                                            nullptr, nullptr, &error);
    OK(error);
    unmap(setup.queue, one, mapped);
    kernels.grow(setup.queue, one, 3);
  }
  say_words("one", setup.read(one));
  OK(clReleaseMemObject(one));
}

CASE(maps, errors) {
  const Setup setup;
  const cl_mem one = setup.buffer_of(numbers(1));
  const auto map = [&](const char* what, cl_map_flags flags, std::size_t offset, std::size_t bytes) {
    cl_int error = CL_SUCCESS;
    void* mapped = clEnqueueMapBuffer(setup.queue, one, CL_TRUE, flags, offset, bytes, 0, nullptr, nullptr, &error);
    // NVIDIA's driver takes a map of nothing, and gives no pointer.
    const bool deviates = is_native() && bytes == 0 && error == CL_SUCCESS;
    say_ruled(what, error, CL_INVALID_VALUE,
              bytes == 0 ? std::initializer_list<cl_int>{CL_SUCCESS} : std::initializer_list<cl_int>{});
    expect(deviates || (mapped != nullptr) == (error == CL_SUCCESS), "a pointer or an error");
    if (mapped != nullptr) unmap(setup.queue, one, mapped);
  };
  map("beyond", CL_MAP_READ, buffer_bytes - 4, 8);
  map("offset beyond", CL_MAP_READ, buffer_bytes + 4, 4);
  map("nothing", CL_MAP_READ, 0, 0);
  cl_uint word = 0;
  say_status("unmap what is not mapped", clEnqueueUnmapMemObject(setup.queue, one, &word, 0, nullptr, nullptr));
  say_ruled("unmap NULL", clEnqueueUnmapMemObject(setup.queue, one, nullptr, 0, nullptr, nullptr), CL_INVALID_VALUE,
            {CL_SUCCESS});
  cl_uint* mapped = map_words(setup.queue, one, CL_MAP_READ);
  unmap(setup.queue, one, mapped);
  OK(clFinish(setup.queue));
  say_status("unmap twice", clEnqueueUnmapMemObject(setup.queue, one, mapped, 0, nullptr, nullptr));
  say("maps: %u", maps(one));
  OK(clReleaseMemObject(one));
}
