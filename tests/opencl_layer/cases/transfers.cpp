// SPDX-License-Identifier: Apache-2.0
// Reads, writes, copies and fills: blocking or not, in part, rectangular.

#include "harness.hpp"

#include <string_view>

using namespace cases;

CASE(transfers, in_part) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem a = setup.buffer_of(numbers(1)), b = setup.buffer_of(numbers(2));
  std::vector<unsigned char> bytes(1001);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i);
  for (std::size_t i = 0; i < 5; ++i) {
    OK(clEnqueueWriteBuffer(setup.queue, a, CL_TRUE, 3 + 7777 * i, bytes.size(), bytes.data(), 0, nullptr, nullptr));
    kernels.grow(setup.queue, b, 1);
    std::vector<unsigned char> back(777);
    OK(clEnqueueReadBuffer(setup.queue, a, CL_TRUE, 5 + 7777 * i, back.size(), back.data(), 0, nullptr, nullptr));
    say("back: %016llx", static_cast<unsigned long long>(hash(back.data(), back.size())));
  }
  say_words("a", setup.read(a));
  say_words("b", setup.read(b));
  OK(clReleaseMemObject(a));
  OK(clReleaseMemObject(b));
}

// Since OpenCL 2.1 they do nothing, after what they wait for; a fill always could.
CASE(transfers, of_no_bytes) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem a = setup.buffer_of(numbers(1));
  char version[256] = {};
  OK(clGetDeviceInfo(setup.device, CL_DEVICE_VERSION, sizeof version, version, nullptr));
  const bool may = std::string_view(version) >= "OpenCL 2.1";
  cl_uint word = 17;
  kernels.grow(setup.queue, a, 1);
  for (const cl_bool blocking : {CL_FALSE, CL_TRUE}) {
    for (const std::size_t offset : {std::size_t{0}, std::size_t{12}, std::size_t{buffer_bytes}}) {
      cl_event events[] = {nullptr, nullptr, nullptr};
      const auto fill = clEnqueueFillBuffer(setup.queue, a, &word, 4, offset, 0, 0, nullptr, &events[0]);
      say_status("fill", fill);
      const cl_uint waits = fill == CL_SUCCESS ? 1 : 0;
      const cl_event* const list = waits != 0 ? events : nullptr;
      const auto read = clEnqueueReadBuffer(setup.queue, a, blocking, offset, 0, &word, waits, list, &events[1]);
      const auto write = clEnqueueWriteBuffer(setup.queue, a, blocking, offset, 0, &word, waits, list, &events[2]);
      if (may) {
        say("read %d, write %d", read, write);
      } else {
        expect(read == write, "both or none");
      }
      for (const cl_event event : events) {
        if (event == nullptr) continue;
        OK(clWaitForEvents(1, &event));
        if (may) say("type %x", event_info<cl_command_type>(event, CL_EVENT_COMMAND_TYPE));
        OK(clReleaseEvent(event));
      }
    }
    const std::size_t beyond = buffer_bytes + 4;
    say_status("fill", clEnqueueFillBuffer(setup.queue, a, &word, 4, beyond, 0, 0, nullptr, nullptr));
    say_status("read", clEnqueueReadBuffer(setup.queue, a, blocking, beyond, 0, &word, 0, nullptr, nullptr));
    say_status("write", clEnqueueWriteBuffer(setup.queue, a, blocking, beyond, 0, &word, 0, nullptr, nullptr));
  }
  say("%u", word);
  say_words("a", setup.read(a));
  OK(clReleaseMemObject(a));
}

CASE(transfers, not_blocking) {
  const Setup setup;
  const Kernels kernels(setup);
  std::vector<cl_mem> buffers;
  std::vector<Words> from, to(6, Words(word_count));
  for (cl_uint i = 0; i < 6; ++i) {
    buffers.push_back(setup.buffer());
    from.push_back(numbers(i));
  }
  for (std::size_t i = 0; i < 6; ++i)
    OK(clEnqueueWriteBuffer(setup.queue, buffers[i], CL_FALSE, 0, buffer_bytes, from[i].data(), 0, nullptr, nullptr));
  for (std::size_t i = 0; i < 6; ++i)
    kernels.blend(setup.queue, buffers[i], buffers[(i + 1) % 6], buffers[(i + 2) % 6]);
  for (std::size_t i = 0; i < 6; ++i)
    OK(clEnqueueReadBuffer(setup.queue, buffers[i], CL_FALSE, 0, buffer_bytes, to[i].data(), 0, nullptr, nullptr));
  OK(clFinish(setup.queue));
  for (const Words& words : to) say_words("read", words);
  for (cl_mem one : buffers) OK(clReleaseMemObject(one));
}

// What is written between two reads that do not block is not in the first.
CASE(transfers, order_of_what_does_not_block) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem a = setup.buffer_of(numbers(1)), b = setup.buffer_of(numbers(2));
  std::vector<Words> reads(8, Words(word_count));
  for (cl_uint i = 0; i < reads.size(); ++i) {
    OK(clEnqueueReadBuffer(setup.queue, a, CL_FALSE, 0, buffer_bytes, reads[i].data(), 0, nullptr, nullptr));
    kernels.blend(setup.queue, a, b, a);
    kernels.grow(setup.queue, b, i);
  }
  OK(clFinish(setup.queue));
  for (const Words& words : reads) say_words("read", words);
  OK(clReleaseMemObject(a));
  OK(clReleaseMemObject(b));
}

CASE(transfers, fills) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem a = setup.buffer(), b = setup.buffer_of(numbers(2));
  std::vector<unsigned char> pattern(128);
  for (std::size_t i = 0; i < pattern.size(); ++i) pattern[i] = static_cast<unsigned char>(3 * i + 1);
  OK(clEnqueueFillBuffer(setup.queue, a, pattern.data(), 1, 0, buffer_bytes, 0, nullptr, nullptr));
  say_words("whole", setup.read(a));
  for (std::size_t bytes = 1; bytes <= 128; bytes *= 2) {
    OK(clEnqueueFillBuffer(setup.queue, a, pattern.data(), bytes, 256 * bytes, 4 * bytes, 0, nullptr, nullptr));
    kernels.grow(setup.queue, b, 1);
  }
  say_words("in part", setup.read(a));
  // The pattern is copied at the call.
  cl_uint word = 5;
  OK(clEnqueueFillBuffer(setup.queue, a, &word, 4, 0, buffer_bytes, 0, nullptr, nullptr));
  word = 6;
  OK(clEnqueueFillBuffer(setup.queue, a, &word, 4, 8, 16, 0, nullptr, nullptr));
  word = 7;
  kernels.blend(setup.queue, b, a, a);
  say_words("b", setup.read(b));
  OK(clReleaseMemObject(a));
  OK(clReleaseMemObject(b));
}

CASE(transfers, copies) {
  const Setup setup;
  const Kernels kernels(setup);
  std::vector<cl_mem> buffers;
  for (cl_uint i = 0; i < 5; ++i) buffers.push_back(setup.buffer_of(numbers(i)));
  for (std::size_t i = 0; i < 5; ++i) {
    OK(clEnqueueCopyBuffer(setup.queue, buffers[i], buffers[(i + 1) % 5], 100 * i, 333 * i, 20000 + i, 0, nullptr,
                           nullptr));
    kernels.grow(setup.queue, buffers[(i + 3) % 5], 2);
  }
  OK(clEnqueueCopyBuffer(setup.queue, buffers[0], buffers[4], 0, 0, buffer_bytes, 0, nullptr, nullptr));
  OK(clEnqueueCopyBuffer(setup.queue, buffers[0], buffers[0], 0, buffer_bytes / 2, buffer_bytes / 2, 0, nullptr,
                         nullptr));
  for (cl_mem one : buffers) say_words("copied", setup.read(one));
  for (cl_mem one : buffers) OK(clReleaseMemObject(one));
}

CASE(transfers, copy_errors) {
  const Setup setup;
  const cl_mem a = setup.buffer_of(numbers(1)), b = setup.buffer_of(numbers(2));
  const auto copy = [&](const char* what, cl_mem from, cl_mem to, std::size_t at, std::size_t into, std::size_t bytes) {
    say_status(what, clEnqueueCopyBuffer(setup.queue, from, to, at, into, bytes, 0, nullptr, nullptr));
  };
  copy("overlap", a, a, 0, 100, 101);
  copy("overlap from behind", a, a, 100, 0, 101);
  // NVIDIA's driver copies what is in its place already.
  say_ruled("the same place", clEnqueueCopyBuffer(setup.queue, a, a, 0, 0, 100, 0, nullptr, nullptr),
            CL_MEM_COPY_OVERLAP, {CL_SUCCESS});
  copy("touching", a, a, 0, 100, 100);
  copy("beyond the source", a, b, buffer_bytes - 4, 0, 8);
  copy("beyond the target", a, b, 0, buffer_bytes - 4, 8);
  copy("offset beyond", a, b, buffer_bytes + 1, 0, 1);
  OK(clFinish(setup.queue));
  say_words("a", setup.read(a));
  say_words("b", setup.read(b));
  OK(clReleaseMemObject(a));
  OK(clReleaseMemObject(b));
}

CASE(transfers, rectangles_read) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem a = setup.buffer_of(numbers(1)), b = setup.buffer_of(numbers(2));
  std::vector<unsigned char> host(40000, 9);
  const std::size_t from[3] = {12, 3, 2}, to[3] = {5, 1, 1}, region[3] = {40, 7, 5};
  OK(clEnqueueReadBufferRect(setup.queue, a, CL_TRUE, from, to, region, 64, 1024, 100, 1000, host.data(), 0, nullptr,
                             nullptr));
  say("in space: %016llx", static_cast<unsigned long long>(hash(host.data(), host.size())));
  kernels.grow(setup.queue, b, 1);
  const std::size_t zero[3] = {0, 0, 0};
  OK(clEnqueueReadBufferRect(setup.queue, a, CL_FALSE, from, zero, region, 64, 0, 0, 0, host.data(), 0, nullptr,
                             nullptr));
  OK(clFinish(setup.queue));
  say("tight: %016llx", static_cast<unsigned long long>(hash(host.data(), host.size())));
  OK(clReleaseMemObject(a));
  OK(clReleaseMemObject(b));
}

CASE(transfers, rectangles_written) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem a = setup.buffer_of(numbers(1)), b = setup.buffer_of(numbers(2));
  std::vector<unsigned char> host(40000);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<unsigned char>(i % 251);
  const std::size_t to[3] = {12, 3, 2}, from[3] = {5, 1, 1}, region[3] = {40, 7, 5};
  OK(clEnqueueWriteBufferRect(setup.queue, a, CL_FALSE, to, from, region, 64, 1024, 100, 1000, host.data(), 0, nullptr,
                              nullptr));
  kernels.blend(setup.queue, b, a, a);
  OK(clFinish(setup.queue));
  say_words("a", setup.read(a));
  OK(clEnqueueWriteBufferRect(setup.queue, b, CL_TRUE, to, from, region, 0, 0, 0, 0, host.data(), 0, nullptr, nullptr));
  say_words("b", setup.read(b));
  OK(clReleaseMemObject(a));
  OK(clReleaseMemObject(b));
}

CASE(transfers, rectangles_copied) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem a = setup.buffer_of(numbers(1)), b = setup.buffer_of(numbers(2)), c = setup.buffer_of(numbers(3));
  const std::size_t from[3] = {12, 3, 2}, to[3] = {20, 1, 1}, region[3] = {40, 7, 5};
  OK(clEnqueueCopyBufferRect(setup.queue, a, b, from, to, region, 64, 1024, 128, 2048, 0, nullptr, nullptr));
  kernels.grow(setup.queue, c, 1);
  // Within one buffer, with the same pitches, and apart.
  const std::size_t low[3] = {0, 0, 0}, high[3] = {0, 0, 8};
  OK(clEnqueueCopyBufferRect(setup.queue, c, c, low, high, region, 64, 1024, 64, 1024, 0, nullptr, nullptr));
  for (cl_mem one : {a, b, c}) say_words("copied", setup.read(one));
  const std::size_t near[3] = {4, 1, 0};
  // NVIDIA's driver copies what overlaps, and copies nothing without complaint.
  say_ruled("overlap",
            clEnqueueCopyBufferRect(setup.queue, c, c, low, near, region, 64, 1024, 64, 1024, 0, nullptr, nullptr),
            CL_MEM_COPY_OVERLAP, {CL_SUCCESS});
  const std::size_t far[3] = {0, 0, 64};
  say_status("beyond",
             clEnqueueCopyBufferRect(setup.queue, a, b, far, low, region, 64, 1024, 64, 1024, 0, nullptr, nullptr));
  const std::size_t none[3] = {0, 1, 1};
  say_ruled("empty",
            clEnqueueCopyBufferRect(setup.queue, a, b, low, low, none, 64, 1024, 64, 1024, 0, nullptr, nullptr),
            CL_INVALID_VALUE, {CL_SUCCESS});
  say_status("row too short",
             clEnqueueCopyBufferRect(setup.queue, a, b, low, low, region, 32, 1024, 64, 1024, 0, nullptr, nullptr));
  for (cl_mem one : {a, b, c}) OK(clReleaseMemObject(one));
}

// Whatever lies beside what on the device, they are different buffers.
CASE(transfers, rectangles_of_small_buffers) {
  const Setup setup;
  std::vector<cl_mem> buffers;
  for (cl_uint i = 0; i < 6; ++i) buffers.push_back(setup.buffer_of(numbers(i, 128)));
  const std::size_t low[] = {0, 0, 0}, high[] = {0, 1, 0}, region[] = {33, 4, 3};
  for (std::size_t i = 0; i < 6; ++i) {
    for (std::size_t j = 0; j < 6; ++j) {
      if (i == j) continue;
      OK(clEnqueueCopyBufferRect(setup.queue, buffers[i], buffers[j], low, high, region, 33, 132, 33, 132, 0, nullptr,
                                 nullptr));
    }
  }
  for (cl_mem one : buffers) say_words("one", setup.read(one, 128));
  release_buffers(buffers);
}

CASE(transfers, errors) {
  const Setup setup;
  const cl_mem a = setup.buffer_of(numbers(1));
  cl_uint words[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  const auto read = [&](const char* what, std::size_t offset, std::size_t bytes, void* to) {
    say_status(what, clEnqueueReadBuffer(setup.queue, a, CL_TRUE, offset, bytes, to, 0, nullptr, nullptr));
  };
  const auto write = [&](const char* what, std::size_t offset, std::size_t bytes, const void* from) {
    say_status(what, clEnqueueWriteBuffer(setup.queue, a, CL_TRUE, offset, bytes, from, 0, nullptr, nullptr));
  };
  read("read beyond", buffer_bytes - 4, 8, words);
  read("read at the end", buffer_bytes, 4, words);
  read("read to NULL", 0, 4, nullptr);
  write("write beyond", buffer_bytes - 4, 8, words);
  write("write from NULL", 0, 4, nullptr);
  const auto fill = [&](const char* what, const void* pattern, std::size_t bytes, std::size_t offset,
                        std::size_t size) {
    say_status(what, clEnqueueFillBuffer(setup.queue, a, pattern, bytes, offset, size, 0, nullptr, nullptr));
  };
  fill("fill with NULL", nullptr, 4, 0, 16);
  fill("fill with nothing", words, 0, 0, 16);
  fill("fill with three bytes", words, 3, 0, 12);
  fill("fill with 256 bytes", words, 256, 0, 256);
  fill("fill misaligned", words, 4, 2, 16);
  fill("fill of half a pattern", words, 4, 0, 18);
  fill("fill beyond", words, 4, buffer_bytes - 4, 8);
  say_words("unchanged", setup.read(a));
  OK(clReleaseMemObject(a));
}

// A hint that changes no contents.
CASE(transfers, migration) {
  const Setup setup;
  const Kernels kernels(setup);
  cl_mem objects[] = {setup.buffer_of(numbers(1)), setup.buffer_of(numbers(2)), setup.buffer_of(numbers(3))};
  OK(clEnqueueMigrateMemObjects(setup.queue, 2, objects, CL_MIGRATE_MEM_OBJECT_HOST, 0, nullptr, nullptr));
  kernels.blend(setup.queue, objects[0], objects[1], objects[2]);
  cl_event event = nullptr;
  OK(clEnqueueMigrateMemObjects(setup.queue, 1, objects, 0, 0, nullptr, &event));
  OK(clWaitForEvents(1, &event));
  say_status("status", status_of(event));
  say("type: %x", event_info<cl_command_type>(event, CL_EVENT_COMMAND_TYPE));
  OK(clReleaseEvent(event));
  for (cl_mem one : objects) say_words("migrated", setup.read(one));
  say_status("none", clEnqueueMigrateMemObjects(setup.queue, 0, objects, 0, 0, nullptr, nullptr));
  say_status("NULL", clEnqueueMigrateMemObjects(setup.queue, 1, nullptr, 0, 0, nullptr, nullptr));
  for (cl_mem one : objects) OK(clReleaseMemObject(one));
}
