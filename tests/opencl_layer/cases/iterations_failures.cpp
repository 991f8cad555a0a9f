// SPDX-License-Identifier: Apache-2.0
// Loops in which a call fails in each step, as in programs that try what a device can do and take another way then.

#include <array>

#include "harness.hpp"

using namespace cases;

namespace {

constexpr cl_uint steps_with_failures = 40;

/// A step of a few launches, whose buffers do not fit into half of their size.
struct LoopWithFailures {
  LoopWithFailures() {
    for (cl_uint i = 0; i < 8; ++i) layers.push_back(setup.buffer_of(numbers(20 + i)));
  }
  ~LoopWithFailures() { release_buffers(layers); }
  LoopWithFailures(const LoopWithFailures&) = delete;
  LoopWithFailures& operator=(const LoopWithFailures&) = delete;

  template <class InTheMiddle>
  void run(InTheMiddle&& in_the_middle) {
    for (cl_uint step = 0; step < steps_with_failures; ++step) {
      const Words batch = numbers(100 + step);
      OK(clEnqueueWriteBuffer(setup.queue, layers[0], CL_TRUE, 0, buffer_bytes, batch.data(), 0, nullptr, nullptr));
      for (std::size_t i = 1; i < 4; ++i) kernels.blend(setup.queue, layers[i], layers[i - 1], layers[i + 3]);
      in_the_middle();
      for (std::size_t i = 4; i < 8; ++i) kernels.affine(setup.queue, layers[i], layers[i - 1], step % 3);
      cl_uint loss = 0;
      OK(clEnqueueReadBuffer(setup.queue, layers[7], CL_TRUE, 0, 4, &loss, 0, nullptr, nullptr));
      losses.push_back(loss);
    }
    say_words("losses", losses);
    for (cl_mem one : layers) say_words("layer", setup.read(one));
  }

  Setup setup;
  Kernels kernels{setup};
  std::vector<cl_mem> layers;
  Words losses;
};

}  // namespace

// First with as many work items in a group as no device has, then with those that the device can have.
CASE(iterations, launch_refused_in_each_step) {
  LoopWithFailures loop;
  const cl_kernel kernel = loop.setup.kernel("affine");
  loop.run([&] {
    set_argument(kernel, 0, loop.layers[6]);
    set_argument(kernel, 1, loop.layers[2]);
    set_argument(kernel, 2, 7);
    for (const std::size_t group : {word_count, std::size_t{1}}) {
      const cl_int status =
          clEnqueueNDRangeKernel(loop.setup.queue, kernel, 1, nullptr, &word_count, &group, 0, nullptr, nullptr);
      expect((status == CL_SUCCESS) == (group == 1), "only the large group is refused");
    }
  });
  OK(clReleaseKernel(kernel));
}

// A buffer that no device can have, and then one that is never used.
CASE(iterations, buffer_refused_in_each_step) {
  LoopWithFailures loop;
  loop.run([&] {
    cl_int status = CL_SUCCESS;
    const cl_mem made = clCreateBuffer(loop.setup.context, CL_MEM_READ_WRITE, ~std::size_t{0} / 2, nullptr, &status);
    // NVIDIA's driver makes it: it looks for memory at the first use.
    expect((made == nullptr && status != CL_SUCCESS) || (is_native() && status == CL_SUCCESS), "it is refused");
    if (made != nullptr) OK(clReleaseMemObject(made));
    release_buffers({loop.setup.buffer()});
  });
}

namespace {

/// Of an image three times as large as the loop's buffers together. With a budget of a fifth of all, it is refused.
constexpr std::size_t edge_of_image = 627;

}  // namespace

CASE(iterations, image_tried_in_each_step) {
  LoopWithFailures loop;
  loop.run([&] {
    const cl_image_format format{CL_R, CL_UNSIGNED_INT32};
    cl_image_desc shape{};
    shape.image_type = CL_MEM_OBJECT_IMAGE2D;
    shape.image_width = shape.image_height = edge_of_image;
    const cl_mem image = clCreateImage(loop.setup.context, CL_MEM_READ_WRITE, &format, &shape, nullptr, nullptr);
    if (image != nullptr) OK(clReleaseMemObject(image));
  });
}

CASE(iterations, large_launch_tried_in_each_step) {
  LoopWithFailures loop;
  constexpr std::size_t count = 8 * word_count;
  const std::array<cl_mem, 2> large{loop.setup.buffer(count * 4), loop.setup.buffer(count * 4)};
  const cl_kernel kernel = loop.setup.kernel("affine");
  loop.run([&] {
    set_argument(kernel, 0, large[0]);
    set_argument(kernel, 1, large[1]);
    set_argument(kernel, 2, 7);
    (void)clEnqueueNDRangeKernel(loop.setup.queue, kernel, 1, nullptr, &count, nullptr, 0, nullptr, nullptr);
  });
  OK(clReleaseKernel(kernel));
  release_buffers({large[0], large[1]});
}
