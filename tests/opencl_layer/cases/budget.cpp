// SPDX-License-Identifier: Apache-2.0
// Launches that are too large. CASES_BUDGET, in bytes, says where the limit is; without it there is none. The output is
// the same in both cases.

#include "harness.hpp"

#include <malloc.h>

#include <cstdlib>
#include <thread>

using namespace cases;

namespace {

std::size_t budget() {
  const char* text = std::getenv("CASES_BUDGET");
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}
bool is_too_large(std::size_t bytes) { return budget() != 0 && bytes > budget(); }

constexpr std::size_t large = std::size_t{384} << 10;  // three of them exceed 1 MiB, two do not

void expect_refusal(cl_int status, std::size_t bytes, const char* what) {
  expect(status == (is_too_large(bytes) ? CL_MEM_OBJECT_ALLOCATION_FAILURE : CL_SUCCESS), what);
}

struct ThreeLarge {
  explicit ThreeLarge(const Setup& setup) {
    for (cl_uint i = 0; i < 3; ++i) all.push_back(setup.buffer_of(numbers(i, large / sizeof(cl_uint))));
  }
  ~ThreeLarge() { release_buffers(all); }
  ThreeLarge(const ThreeLarge&) = delete;
  ThreeLarge& operator=(const ThreeLarge&) = delete;
  std::vector<cl_mem> all;
};

cl_int blend_large(const Setup& setup, const Kernels& kernels, cl_mem to, cl_mem a, cl_mem b,
                   cl_event* event = nullptr) {
  set_argument(kernels.blend_kernel, 0, to);
  set_argument(kernels.blend_kernel, 1, a);
  set_argument(kernels.blend_kernel, 2, b);
  const std::size_t size = word_count;
  return clEnqueueNDRangeKernel(setup.queue, kernels.blend_kernel, 1, nullptr, &size, nullptr, 0, nullptr, event);
}

}  // namespace

CASE(budget, launch_above_fails_alone) {
  const Setup setup;
  const Kernels kernels(setup);
  const ThreeLarge large_ones(setup);
  const auto& all = large_ones.all;
  const cl_mem scratch = setup.buffer_of(numbers(9));
  for (int round = 0; round < 3; ++round) {
    // The result goes where nobody looks: it is there natively alone.
    const cl_mem unseen = setup.buffer(large);
    expect_refusal(blend_large(setup, kernels, unseen, all[1], all[2]), 3 * large, "the launch above the budget");
    OK(clReleaseMemObject(unseen));
    expect(blend_large(setup, kernels, all[0], all[0], all[1]) == CL_SUCCESS, "two fit");
    kernels.grow(setup.queue, scratch, 1);
  }
  for (cl_mem one : all) say_words("one", setup.read(one, large / sizeof(cl_uint)));
  say_words("scratch", setup.read(scratch));
  OK(clReleaseMemObject(scratch));
}

CASE(budget, buffers_beyond_it) {
  const Setup setup;
  const Kernels kernels(setup);
  std::vector<cl_mem> buffers;
  for (cl_uint i = 0; i < 40; ++i) buffers.push_back(setup.buffer_of(numbers(i)));  // 2.5 MiB
  for (std::size_t i = 0; i < 120; ++i)
    kernels.blend(setup.queue, buffers[i % 40], buffers[(i * 7 + 1) % 40], buffers[(i * 3 + 2) % 40]);
  std::uint64_t sum = 0;
  for (cl_mem one : buffers) sum = sum * 31 + hash(setup.read(one));
  say("%016llx", static_cast<unsigned long long>(sum));
  release_buffers(buffers);
}

// Two large buffers are copied; a third copy of them does not stay on the device.
CASE(budget, transfers_beyond_it) {
  const Setup setup;
  const ThreeLarge large_ones(setup);
  const auto& all = large_ones.all;
  for (std::size_t i = 0; i < 6; ++i)
    OK(clEnqueueCopyBuffer(setup.queue, all[i % 3], all[(i + 1) % 3], 1000 * i, 777 * i, large / 2, 0, nullptr,
                           nullptr));
  for (cl_mem one : all) say_words("one", setup.read(one, large / sizeof(cl_uint)));
}

// Mapped memory is the host's: all may be mapped at once.
CASE(budget, maps_beyond_it) {
  const Setup setup;
  const Kernels kernels(setup);
  const ThreeLarge large_ones(setup);
  std::vector<cl_uint*> mapped;
  for (cl_mem one : large_ones.all) {
    cl_int error = CL_SUCCESS;
    mapped.push_back(static_cast<cl_uint*>(clEnqueueMapBuffer(setup.queue, one, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                                              large, 0, nullptr, nullptr, &error)));
    OK(error);
  }
  for (std::size_t i = 0; i < large / sizeof(cl_uint); ++i) mapped[0][i] += mapped[1][i] ^ mapped[2][i];
  for (std::size_t i = 0; i < 3; ++i)
    OK(clEnqueueUnmapMemObject(setup.queue, large_ones.all[i], mapped[i], 0, nullptr, nullptr));
  for (cl_mem one : large_ones.all) kernels.grow(setup.queue, one, 1, large / sizeof(cl_uint));
  for (cl_mem one : large_ones.all) say_words("one", setup.read(one, large / sizeof(cl_uint)));
}

// Images cannot leave: buffers make room, and what still does not fit is refused.
CASE(budget, images_take_their_share) {
  const Setup setup;
  const Kernels kernels(setup);
  std::vector<cl_mem> buffers;
  for (cl_uint i = 0; i < 12; ++i) buffers.push_back(setup.buffer_of(numbers(i)));
  for (std::size_t i = 0; i < 12; ++i) kernels.grow(setup.queue, buffers[i], 1);
  const cl_image_format format{CL_R, CL_UNSIGNED_INT32};
  cl_image_desc description{};
  description.image_type = CL_MEM_OBJECT_IMAGE2D;
  description.image_width = 256;
  description.image_height = 256;  // 256 KiB
  std::vector<cl_mem> images;
  std::size_t bytes = 0;
  for (int i = 0; i < 6; ++i) {
    cl_int error = CL_SUCCESS;
    const cl_mem made = clCreateImage(setup.context, CL_MEM_READ_WRITE, &format, &description, nullptr, &error);
    bytes += 256 << 10;
    if (made != nullptr)
      images.push_back(made);
    else
      expect(is_too_large(bytes) && error == CL_MEM_OBJECT_ALLOCATION_FAILURE, "refused for want of memory alone");
  }
  while (images.size() > 2) {
    OK(clReleaseMemObject(images.back()));
    images.pop_back();
  }
  for (std::size_t i = 0; i < 24; ++i)
    kernels.blend(setup.queue, buffers[i % 12], buffers[(i + 5) % 12], buffers[(i + 3) % 12]);
  for (cl_mem one : buffers) say_words("one", setup.read(one));
  release_buffers(images);
  release_buffers(buffers);
}

// Beside an image there is no room for any of the buffers: the host reaches their bytes all the same.
CASE(budget, transfers_beside_an_image) {
  const Setup setup;
  const std::size_t bytes = std::size_t{512} << 10;
  const std::size_t count = bytes / sizeof(cl_uint);
  std::vector<cl_mem> buffers;
  for (cl_uint i = 0; i < 4; ++i) buffers.push_back(setup.buffer_of(numbers(i, count)));
  const cl_uint seven = 7;
  OK(clEnqueueFillBuffer(setup.queue, buffers[3], &seven, sizeof seven, 0, bytes, 0, nullptr, nullptr));
  const cl_image_format format{CL_RGBA, CL_UNSIGNED_INT32};
  cl_image_desc description{};
  description.image_type = CL_MEM_OBJECT_IMAGE2D;
  description.image_width = 200;
  description.image_height = 200;  // 625 KiB
  cl_int error = CL_SUCCESS;
  const cl_mem image = clCreateImage(setup.context, CL_MEM_READ_WRITE, &format, &description, nullptr, &error);
  OK(error);
  say_words("read", setup.read(buffers[0], count));
  const Words written = numbers(9, count);
  OK(clEnqueueWriteBuffer(setup.queue, buffers[1], CL_TRUE, 64, bytes - 64, written.data(), 0, nullptr, nullptr));
  auto* const mapped = static_cast<cl_uint*>(clEnqueueMapBuffer(
      setup.queue, buffers[2], CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0, nullptr, nullptr, &error));
  OK(error);
  for (std::size_t i = 0; i < count; i += 2) mapped[i] += mapped[i + 1];
  OK(clEnqueueUnmapMemObject(setup.queue, buffers[2], mapped, 0, nullptr, nullptr));
  OK(clEnqueueFillBuffer(setup.queue, buffers[3], &seven, sizeof seven, bytes / 2, bytes / 4, 0, nullptr, nullptr));
  for (const cl_mem each : buffers) say_words("buffer", setup.read(each, count));
  OK(clReleaseMemObject(image));
  for (const cl_mem each : buffers) say_words("buffer", setup.read(each, count));
  release_buffers(buffers);
}

// The budget has room for the buffer once, and not for a copy of it.
CASE(budget, image_of_most_of_it) {
  const Setup setup;
  const Kernels kernels(setup);
  const std::size_t bytes = std::size_t{768} << 10;
  const cl_mem buffer = setup.buffer_of(numbers(4, bytes / sizeof(cl_uint)));
  kernels.grow(setup.queue, buffer, 1, bytes / sizeof(cl_uint));
  const cl_image_format format{CL_RGBA, CL_UNSIGNED_INT32};
  cl_image_desc description{};
  description.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER;
  description.image_width = bytes / 16;
  description.mem_object = buffer;
  cl_int error = CL_SUCCESS;
  const cl_mem image = clCreateImage(setup.context, CL_MEM_READ_WRITE, &format, &description, nullptr, &error);
  OK(error);
  kernels.grow(setup.queue, buffer, 2, bytes / sizeof(cl_uint));
  say_words("buffer", setup.read(buffer, bytes / sizeof(cl_uint)));
  OK(clReleaseMemObject(image));
  OK(clReleaseMemObject(buffer));
}

// Its value is in host memory, where transfers and maps reach it.
CASE(budget, transfers_of_one_above_it) {
  const Setup setup;
  const Kernels kernels(setup);
  const std::size_t count = std::size_t{5} << 17;  // 2.5 MiB
  const std::size_t bytes = count * sizeof(cl_uint);
  const cl_mem small = setup.buffer_of(numbers(1));
  const cl_mem huge = setup.buffer_of(numbers(2, count));
  say_words("as made", setup.read(huge, count));
  kernels.grow(setup.queue, small, 3);
  // Page-locked memory: NVIDIA's driver takes the bytes of other memory at the call that writes them.
  cl_int error = CL_SUCCESS;
  const cl_mem locked = setup.buffer(buffer_bytes, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR);
  void* const part = clEnqueueMapBuffer(setup.queue, locked, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, buffer_bytes, 0,
                                        nullptr, nullptr, &error);
  OK(error);
  cl_event is_read = nullptr;
  OK(clEnqueueReadBuffer(setup.queue, small, CL_FALSE, 0, buffer_bytes, part, 0, nullptr, &is_read));
  // The bytes that it writes are there once the event before it has come.
  OK(clEnqueueWriteBuffer(setup.queue, huge, CL_FALSE, 4000, buffer_bytes, part, 1, &is_read, nullptr));
  const cl_uint pattern[2] = {11, 12};
  OK(clEnqueueFillBuffer(setup.queue, huge, pattern, sizeof pattern, 1 << 20, (1 << 20) + 800, 0, nullptr, nullptr));
  say_words("after a write and a fill", setup.read(huge, count));
  auto* const mapped = static_cast<cl_uint*>(clEnqueueMapBuffer(setup.queue, huge, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                                                8, bytes - 8, 0, nullptr, nullptr, &error));
  OK(error);
  for (std::size_t i = 0; i < count - 2; i += 3) mapped[i] = mapped[i] * 5 + 1;
  cl_event unmapped = nullptr;
  OK(clEnqueueUnmapMemObject(setup.queue, huge, mapped, 0, nullptr, &unmapped));
  OK(clWaitForEvents(1, &unmapped));
  const cl_buffer_region region{1 << 20, 1 << 20};
  const cl_mem piece = clCreateSubBuffer(huge, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
  OK(error);
  OK(clEnqueueWriteBuffer(setup.queue, piece, CL_TRUE, 12, buffer_bytes, part, 0, nullptr, nullptr));
  say_words("after a map and a part", setup.read(huge, count));
  OK(clEnqueueUnmapMemObject(setup.queue, locked, part, 0, nullptr, nullptr));
  release_events({is_read, unmapped});
  release_buffers({piece, huge, small, locked});
}

CASE(budget, one_buffer_above_it) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem small = setup.buffer_of(numbers(1));
  cl_int error = CL_SUCCESS;
  const std::size_t bytes = std::size_t{2} << 20;
  const cl_mem huge = clCreateBuffer(setup.context, CL_MEM_READ_WRITE, bytes, nullptr, &error);
  OK(error);
  set_argument(kernels.grow_kernel, 0, huge);
  set_argument(kernels.grow_kernel, 1, 1u);
  const std::size_t size = word_count;
  expect_refusal(
      clEnqueueNDRangeKernel(setup.queue, kernels.grow_kernel, 1, nullptr, &size, nullptr, 0, nullptr, nullptr), bytes,
      "a launch on it");
  OK(clFinish(setup.queue));
  OK(clReleaseMemObject(huge));
  kernels.grow(setup.queue, small, 2);
  say_words("small", setup.read(small));
  OK(clReleaseMemObject(small));
}

namespace {

/// A loop, with a launch above the budget in some steps.
template <class Has>
void loop_with_launches_above(Has&& has) {
  const Setup setup;
  const Kernels kernels(setup);
  const ThreeLarge large_ones(setup);
  std::vector<cl_mem> buffers;
  for (cl_uint i = 0; i < 14; ++i) buffers.push_back(setup.buffer_of(numbers(i)));
  Words losses;
  for (cl_uint step = 0; step < 40; ++step) {
    for (std::size_t i = 1; i < 14; ++i) {
      kernels.blend(setup.queue, buffers[i], buffers[i - 1], buffers[(i + 7) % 14]);
      if (i != 6 || !has(step)) continue;
      const cl_mem unseen = setup.buffer(large);
      expect_refusal(blend_large(setup, kernels, unseen, large_ones.all[1], large_ones.all[2]), 3 * large,
                     "the launch above the budget");
      OK(clReleaseMemObject(unseen));
    }
    kernels.affine(setup.queue, buffers[0], buffers[13], step);
    cl_uint loss = 0;
    OK(clEnqueueReadBuffer(setup.queue, buffers[13], CL_TRUE, 0, 4, &loss, 0, nullptr, nullptr));
    losses.push_back(loss);
  }
  say_words("losses", losses);
  for (cl_mem one : buffers) say_words("one", setup.read(one));
  for (cl_mem one : large_ones.all) say_words("large", setup.read(one, large / sizeof(cl_uint)));
  release_buffers(buffers);
}

}  // namespace

CASE(budget, loop_with_a_launch_above) {
  loop_with_launches_above([](cl_uint step) { return step == 21 || step == 25; });
}

CASE(budget, loop_with_launches_above_in_each_step) {
  loop_with_launches_above([](cl_uint) { return true; });
}

CASE(budget, image_that_is_refused_keeps_nothing) {
  const Setup setup;
  const Kernels kernels(setup);
  const ThreeLarge large_ones(setup);
  const auto& all = large_ones.all;
  const cl_image_format format{CL_R, CL_UNSIGNED_INT32};
  cl_image_desc description{};
  description.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER;
  description.image_width = 2 * large / sizeof(cl_uint);  // twice as many as there are
  description.mem_object = all[0];
  cl_int error = CL_SUCCESS;
  const cl_mem made = clCreateImage(setup.context, CL_MEM_READ_WRITE, &format, &description, nullptr, &error);
  say_status("image", error);
  expect(made == nullptr, "no image");
  expect(blend_large(setup, kernels, all[1], all[1], all[2]) == CL_SUCCESS, "the buffer of the image may leave");
  for (cl_mem one : all) say_words("one", setup.read(one, large / sizeof(cl_uint)));
}

// The driver may give an address that one thread has freed to another at once.
CASE(budget, shared_memory_of_several_threads) {
  const Setup setup;
  const auto able = info<cl_device_svm_capabilities>(clGetDeviceInfo, setup.device, CL_DEVICE_SVM_CAPABILITIES);
  if ((able & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) == 0) return say("no shared memory");
  mallopt(M_ARENA_MAX, 1);  // PoCL's addresses are those of malloc()
  std::vector<std::thread> threads;
  for (cl_uint t = 0; t < 4; ++t) {
    threads.emplace_back([&setup, t] {
      for (cl_uint i = 0; i < 10'000; ++i) {
        const std::size_t size = (std::size_t{16} << 10) + (i * 7 + t) % 16 * 1024;
        void* const memory = clSVMAlloc(setup.context, CL_MEM_READ_WRITE, size, 0);
        expect(memory != nullptr, "four of them fit");
        clSVMFree(setup.context, memory);
      }
    });
  }
  for (std::thread& one : threads) one.join();
  void* const most = clSVMAlloc(setup.context, CL_MEM_READ_WRITE, std::size_t{900} << 10, 0);
  expect(most != nullptr, "nothing of them is counted any more");
  clSVMFree(setup.context, most);
  say("all free");
}
