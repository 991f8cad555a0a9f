// SPDX-License-Identifier: Apache-2.0
// Buffers with every flag and of odd sizes.

#include "harness.hpp"

#include <cstdlib>

using namespace cases;

namespace {

// Writes, computes, reads; another buffer pushes it out in between.
void use_buffer(const Setup& setup, const char* name, cl_mem used) {
  const Kernels kernels(setup);
  const cl_mem other = setup.buffer_of(numbers(3));
  kernels.affine(setup.queue, used, other, 5);
  kernels.grow(setup.queue, other, 1);
  kernels.grow(setup.queue, used, 2);
  kernels.affine(setup.queue, other, used, 1);
  say_words(name, setup.read(used));
  say_words("other", setup.read(other));
  OK(clReleaseMemObject(other));
}

}  // namespace

// A buffer may lie in shared virtual memory: then both are the same bytes.
CASE(buffers, in_shared_memory) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto able = info<cl_device_svm_capabilities>(clGetDeviceInfo, setup.device, CL_DEVICE_SVM_CAPABILITIES);
  if ((able & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) == 0) return say("no shared memory");
  auto* const shared = static_cast<cl_uint*>(clSVMAlloc(setup.context, CL_MEM_READ_WRITE, 2 * buffer_bytes, 0));
  const Words words = numbers(3);
  OK(clEnqueueSVMMemcpy(setup.queue, CL_TRUE, shared, words.data(), buffer_bytes, 0, nullptr, nullptr));
  OK(clEnqueueSVMMemcpy(setup.queue, CL_TRUE, shared + word_count, words.data(), buffer_bytes, 0, nullptr, nullptr));
  const cl_mem part = setup.buffer(buffer_bytes, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, shared + word_count);
  say("uses shared memory: %u", memory_info<cl_bool>(part, CL_MEM_USES_SVM_POINTER));
  kernels.grow(setup.queue, part, 5);
  OK(clSetKernelArgSVMPointer(kernels.grow_kernel, 0, shared + word_count));
  set_argument(kernels.grow_kernel, 1, 6u);
  launch(setup.queue, kernels.grow_kernel, word_count);
  kernels.grow(setup.queue, part, 7);
  OK(clFinish(setup.queue));
  OK(clEnqueueSVMMap(setup.queue, CL_TRUE, CL_MAP_READ, shared, 2 * buffer_bytes, 0, nullptr, nullptr));
  say_words("untouched", Words(shared, shared + word_count));
  say_words("through both", Words(shared + word_count, shared + 2 * word_count));
  OK(clEnqueueSVMUnmap(setup.queue, shared, 0, nullptr, nullptr));
  say_words("buffer", setup.read(part));
  OK(clReleaseMemObject(part));
  clSVMFree(setup.context, shared);
}

CASE(buffers, read_write) {
  const Setup setup;
  const cl_mem one = setup.buffer();
  use_buffer(setup, "read-write", one);
  OK(clReleaseMemObject(one));
}

CASE(buffers, no_flags) {
  const Setup setup;
  const cl_mem one = setup.buffer(buffer_bytes, 0);
  use_buffer(setup, "no flags", one);
  const auto flags = memory_info<cl_mem_flags>(one, CL_MEM_FLAGS);
  expect(flags == 0 || flags == CL_MEM_READ_WRITE, "the default is read-write");
  OK(clReleaseMemObject(one));
}

CASE(buffers, alloc_host) {
  const Setup setup;
  const cl_mem one = setup.buffer(buffer_bytes, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR);
  use_buffer(setup, "alloc host", one);
  OK(clReleaseMemObject(one));
}

CASE(buffers, alloc_and_copy_host) {
  const Setup setup;
  const Words words = numbers(7);
  const cl_mem one = setup.buffer_of(words, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR);
  expect(setup.read(one) == words, "the bytes at creation");
  use_buffer(setup, "alloc and copy", one);
  OK(clReleaseMemObject(one));
}

CASE(buffers, copy_host) {
  const Setup setup;
  Words words = numbers(7);
  const cl_mem one = setup.buffer_of(words);
  for (cl_uint& word : words) word = 0;  // copied at creation: this changes nothing
  say_words("copied", setup.read(one));
  use_buffer(setup, "copy", one);
  OK(clReleaseMemObject(one));
}

CASE(buffers, copy_host_read_only) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem from = setup.buffer_of(numbers(8), CL_MEM_READ_ONLY);
  const cl_mem to = setup.buffer(buffer_bytes, CL_MEM_WRITE_ONLY);
  const cl_mem third = setup.buffer_of(numbers(9));
  kernels.affine(setup.queue, to, from, 9);
  kernels.grow(setup.queue, third, 4);
  kernels.blend(setup.queue, third, from, from);
  say_words("write-only", setup.read(to));
  say_words("read-only", setup.read(from));
  say_words("third", setup.read(third));
  for (cl_mem one : {from, to, third}) OK(clReleaseMemObject(one));
}

// A write-only buffer that a kernel writes in part keeps the rest.
CASE(buffers, write_only_in_part) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem to = setup.buffer(buffer_bytes, CL_MEM_WRITE_ONLY), from = setup.buffer_of(numbers(2), CL_MEM_READ_ONLY);
  const Words words = numbers(1);
  OK(clEnqueueWriteBuffer(setup.queue, to, CL_TRUE, 0, buffer_bytes, words.data(), 0, nullptr, nullptr));
  kernels.affine(setup.queue, to, from, 9, 100);
  say_words("in part", setup.read(to));
  OK(clReleaseMemObject(to));
  OK(clReleaseMemObject(from));
}

CASE(buffers, use_host) {
  const Setup setup;
  Words words = numbers(7);
  const cl_mem one = setup.buffer(buffer_bytes, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, words.data());
  say_words("used", setup.read(one));
  use_buffer(setup, "use host", one);
  // Mapping gives the program's own memory.
  cl_int error = CL_SUCCESS;
  void* mapped =
      clEnqueueMapBuffer(setup.queue, one, CL_TRUE, CL_MAP_READ, 0, buffer_bytes, 0, nullptr, nullptr, &error);
  OK(error);
  expect(mapped == words.data(), "the program's memory is mapped");
  say_words("own memory", words);
  OK(clEnqueueUnmapMemObject(setup.queue, one, mapped, 0, nullptr, nullptr));
  OK(clFinish(setup.queue));
  expect(memory_info<void*>(one, CL_MEM_HOST_PTR) == words.data(), "the host pointer is told");
  OK(clReleaseMemObject(one));
}

// An address that no driver could want.
CASE(buffers, use_host_unaligned) {
  const Setup setup;
  const Kernels kernels(setup);
  std::vector<unsigned char> memory(buffer_bytes + 64);
  unsigned char* odd = memory.data() + 4;
  for (std::size_t i = 0; i < buffer_bytes; ++i) odd[i] = static_cast<unsigned char>(i * 7);
  const cl_mem one = setup.buffer(buffer_bytes, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, odd);
  const cl_mem other = setup.buffer();
  kernels.affine(setup.queue, other, one, 1);
  kernels.grow(setup.queue, one, 1);
  say_words("other", setup.read(other));
  say_words("one", setup.read(one));
  cl_int error = CL_SUCCESS;
  void* mapped =
      clEnqueueMapBuffer(setup.queue, one, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 128, 256, 0, nullptr, nullptr, &error);
  OK(error);
  expect(mapped == odd + 128, "the program's memory is mapped");
  *static_cast<cl_uint*>(mapped) = 42;
  OK(clEnqueueUnmapMemObject(setup.queue, one, mapped, 0, nullptr, nullptr));
  kernels.grow(setup.queue, one, 1);
  say_words("after the map", setup.read(one));
  OK(clReleaseMemObject(one));
  OK(clReleaseMemObject(other));
}

CASE(buffers, host_access) {
  const Setup setup;
  const Kernels kernels(setup);
  Words words = numbers(1);
  const cl_mem none = setup.buffer(buffer_bytes, CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS);
  const cl_mem reads = setup.buffer_of(words, CL_MEM_READ_WRITE | CL_MEM_HOST_READ_ONLY);
  const cl_mem writes = setup.buffer(buffer_bytes, CL_MEM_READ_WRITE | CL_MEM_HOST_WRITE_ONLY);
  OK(clEnqueueWriteBuffer(setup.queue, writes, CL_TRUE, 0, buffer_bytes, words.data(), 0, nullptr, nullptr));
  kernels.affine(setup.queue, none, writes, 3);
  kernels.affine(setup.queue, writes, none, 4);
  kernels.affine(setup.queue, reads, writes, 5);
  say_words("through all three", setup.read(reads));
  for (cl_mem one : {none, reads, writes})
    say("flags: %llx", static_cast<unsigned long long>(memory_info<cl_mem_flags>(one, CL_MEM_FLAGS)));
  // Copies and fills are the device's own.
  const cl_uint pattern = 9;
  OK(clEnqueueFillBuffer(setup.queue, none, &pattern, sizeof pattern, 0, 400, 0, nullptr, nullptr));
  OK(clEnqueueCopyBuffer(setup.queue, none, reads, 0, 0, 800, 0, nullptr, nullptr));
  say_words("after fill and copy", setup.read(reads));
  for (cl_mem one : {none, reads, writes}) OK(clReleaseMemObject(one));
}

CASE(buffers, host_access_refused) {
  const Setup setup;
  std::vector<cl_uint> words(16);
  const std::size_t origin[3] = {0, 0, 0}, region[3] = {4, 2, 1};
  const cl_mem_flags kinds[] = {0, CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY, CL_MEM_HOST_NO_ACCESS};
  for (const cl_mem_flags flags : kinds) {
    const cl_mem one = setup.buffer(64, CL_MEM_READ_WRITE | flags);
    const cl_uint pattern = 0;
    OK(clEnqueueFillBuffer(setup.queue, one, &pattern, 4, 0, 64, 0, nullptr, nullptr));
    say("flags %llx", static_cast<unsigned long long>(flags));
    say_status("read", clEnqueueReadBuffer(setup.queue, one, CL_TRUE, 0, 64, words.data(), 0, nullptr, nullptr));
    say_status("write", clEnqueueWriteBuffer(setup.queue, one, CL_TRUE, 0, 64, words.data(), 0, nullptr, nullptr));
    say_status("read rect", clEnqueueReadBufferRect(setup.queue, one, CL_TRUE, origin, origin, region, 0, 0, 0, 0,
                                                    words.data(), 0, nullptr, nullptr));
    say_status("write rect", clEnqueueWriteBufferRect(setup.queue, one, CL_TRUE, origin, origin, region, 0, 0, 0, 0,
                                                      words.data(), 0, nullptr, nullptr));
    for (const cl_map_flags map :
         {cl_map_flags{CL_MAP_READ}, cl_map_flags{CL_MAP_WRITE}, cl_map_flags{CL_MAP_WRITE_INVALIDATE_REGION}}) {
      cl_int error = CL_SUCCESS;
      void* mapped = clEnqueueMapBuffer(setup.queue, one, CL_TRUE, map, 0, 64, 0, nullptr, nullptr, &error);
      const bool is_refused = (flags & (map == CL_MAP_READ ? CL_MEM_HOST_WRITE_ONLY : CL_MEM_HOST_READ_ONLY)) != 0 ||
                              (flags & CL_MEM_HOST_NO_ACCESS) != 0;
      // NVIDIA's driver lets a buffer be mapped to be overwritten that the host may not write.
      say_ruled(map == CL_MAP_READ    ? "map to read"
                : map == CL_MAP_WRITE ? "map to write"
                                      : "map to invalidate",
                error, is_refused ? CL_INVALID_OPERATION : CL_SUCCESS,
                map == CL_MAP_WRITE_INVALIDATE_REGION ? std::initializer_list<cl_int>{CL_SUCCESS}
                                                      : std::initializer_list<cl_int>{});
      if (mapped != nullptr) OK(clEnqueueUnmapMemObject(setup.queue, one, mapped, 0, nullptr, nullptr));
    }
    OK(clFinish(setup.queue));
    OK(clReleaseMemObject(one));
  }
}

CASE(buffers, flags_refused) {
  const Setup setup;
  cl_uint word[16] = {};
  const auto make = [&](cl_mem_flags flags, std::size_t bytes, void* host) {
    cl_int error = CL_SUCCESS;
    const cl_mem made = clCreateBuffer(setup.context, flags, bytes, host, &error);
    expect((made != nullptr) == (error == CL_SUCCESS), "an object or an error");
    if (made != nullptr) OK(clReleaseMemObject(made));
    return error;
  };
  const auto create = [&](const char* what, cl_mem_flags flags, std::size_t bytes, void* host) {
    say_status(what, make(flags, bytes, host));
  };
  create("size 0", CL_MEM_READ_WRITE, 0, nullptr);
  create("read and write only", CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 64, nullptr);
  create("read-write and read only", CL_MEM_READ_WRITE | CL_MEM_READ_ONLY, 64, nullptr);
  // NVIDIA's driver takes both, and buffers of any size as long as nothing uses them.
  say_ruled("use and copy", make(CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR, 64, word), CL_INVALID_VALUE, {CL_SUCCESS});
  create("use and alloc", CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR, 64, word);
  create("use of NULL", CL_MEM_USE_HOST_PTR, 64, nullptr);
  create("copy of NULL", CL_MEM_COPY_HOST_PTR, 64, nullptr);
  create("pointer without a flag", CL_MEM_READ_WRITE, 64, word);
  create("pointer with alloc", CL_MEM_ALLOC_HOST_PTR, 64, word);
  create("host reads and writes only", CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY, 64, nullptr);
  create("host reads only and nothing", CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS, 64, nullptr);
  say_ruled("larger than any", make(CL_MEM_READ_WRITE, std::size_t{1} << 60, nullptr), CL_INVALID_BUFFER_SIZE,
            {CL_SUCCESS, CL_MEM_OBJECT_ALLOCATION_FAILURE});
  create("fits", CL_MEM_READ_WRITE, 64, nullptr);
  // No place for the error.
  const cl_mem silent = clCreateBuffer(setup.context, CL_MEM_READ_WRITE, 0, nullptr, nullptr);
  expect(silent == nullptr, "no object of size 0");
}

CASE(buffers, with_properties) {
  const Setup setup;
  const Kernels kernels(setup);
  cl_int error = CL_SUCCESS;
  Words words = numbers(2);
  const cl_mem_properties none[] = {0};
  const cl_mem one =
      clCreateBufferWithProperties(setup.context, nullptr, CL_MEM_COPY_HOST_PTR, buffer_bytes, words.data(), &error);
  OK(error);
  const cl_mem two =
      clCreateBufferWithProperties(setup.context, none, CL_MEM_READ_WRITE, buffer_bytes, nullptr, &error);
  OK(error);
  kernels.affine(setup.queue, two, one, 3);
  say_words("two", setup.read(two));
  std::size_t bytes = 99;
  say_status("properties of one", clGetMemObjectInfo(one, CL_MEM_PROPERTIES, 0, nullptr, &bytes));
  say("%zu bytes", bytes);
  cl_mem_properties told[4] = {7, 7, 7, 7};
  say_status("properties of two", clGetMemObjectInfo(two, CL_MEM_PROPERTIES, sizeof told, told, &bytes));
  say("%zu bytes: %llu", bytes, static_cast<unsigned long long>(told[0]));
  const cl_mem_properties unknown[] = {12345, 1, 0};
  const cl_mem refused = clCreateBufferWithProperties(setup.context, unknown, 0, 64, nullptr, &error);
  expect(refused == nullptr, "an unknown property is refused");
  say_status("unknown property", error);
  OK(clReleaseMemObject(one));
  OK(clReleaseMemObject(two));
}

CASE(buffers, one_byte) {
  const Setup setup;
  const cl_mem one = setup.buffer(1), other = setup.buffer(1);
  unsigned char byte = 200, back = 0;
  OK(clEnqueueWriteBuffer(setup.queue, one, CL_TRUE, 0, 1, &byte, 0, nullptr, nullptr));
  OK(clEnqueueCopyBuffer(setup.queue, one, other, 0, 0, 1, 0, nullptr, nullptr));
  byte = 7;
  OK(clEnqueueFillBuffer(setup.queue, one, &byte, 1, 0, 1, 0, nullptr, nullptr));
  OK(clEnqueueReadBuffer(setup.queue, other, CL_TRUE, 0, 1, &back, 0, nullptr, nullptr));
  say("copied: %u", back);
  OK(clEnqueueReadBuffer(setup.queue, one, CL_TRUE, 0, 1, &back, 0, nullptr, nullptr));
  say("filled: %u; %zu byte", back, memory_info<std::size_t>(one, CL_MEM_SIZE));
  OK(clReleaseMemObject(one));
  OK(clReleaseMemObject(other));
}

CASE(buffers, odd_sizes) {
  const Setup setup;
  std::vector<cl_mem> buffers;
  const std::vector<std::size_t> sizes{1, 3, 7, 63, 65, 127, 129, 1021, 4093, 65537};
  for (std::size_t bytes : sizes) {
    std::vector<unsigned char> data(bytes);
    for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<unsigned char>(i * 31 + bytes);
    buffers.push_back(setup.buffer(bytes, CL_MEM_COPY_HOST_PTR, data.data()));
  }
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    const std::size_t part = sizes[i] - sizes[i] / 3;
    OK(clEnqueueCopyBuffer(setup.queue, buffers[i], buffers[i + 1], sizes[i] / 3, 1, part, 0, nullptr, nullptr));
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::vector<unsigned char> data(sizes[i]);
    OK(clEnqueueReadBuffer(setup.queue, buffers[i], CL_TRUE, 0, sizes[i], data.data(), 0, nullptr, nullptr));
    say("%zu: %016llx", sizes[i], static_cast<unsigned long long>(hash(data.data(), data.size())));
    OK(clReleaseMemObject(buffers[i]));
  }
}

// The bytes are anything, but no call fails.
CASE(buffers, never_written) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem a = setup.buffer(), b = setup.buffer(), c = setup.buffer();
  Words words(word_count);
  say_status("read", clEnqueueReadBuffer(setup.queue, a, CL_TRUE, 0, buffer_bytes, words.data(), 0, nullptr, nullptr));
  kernels.affine(setup.queue, b, a, 1);
  say_status("copy", clEnqueueCopyBuffer(setup.queue, a, b, 0, 0, 100, 0, nullptr, nullptr));
  cl_int error = CL_SUCCESS;
  void* mapped = clEnqueueMapBuffer(setup.queue, c, CL_TRUE, CL_MAP_READ, 0, 64, 0, nullptr, nullptr, &error);
  say_status("map", error);
  OK(clEnqueueUnmapMemObject(setup.queue, c, mapped, 0, nullptr, nullptr));
  // What was written in part keeps that part.
  OK(clEnqueueWriteBuffer(setup.queue, c, CL_TRUE, 1000, 400, numbers(4, 100).data(), 0, nullptr, nullptr));
  kernels.affine(setup.queue, b, a, 1);
  Words part(100);
  OK(clEnqueueReadBuffer(setup.queue, c, CL_TRUE, 1000, 400, part.data(), 0, nullptr, nullptr));
  say_words("part", part);
  say_status("finish", clFinish(setup.queue));
  for (cl_mem one : {a, b, c}) OK(clReleaseMemObject(one));
}
