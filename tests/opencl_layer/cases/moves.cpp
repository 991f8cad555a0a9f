// SPDX-License-Identifier: Apache-2.0
// Loops that need few copies, if the layer knows what needs none: see few_moves.py.

#include "harness.hpp"

using namespace cases;

CASE(moves, images_made_one_after_another) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto buffers = buffers_of(setup, 12);
  std::vector<cl_mem> images;
  for (cl_uint step = 0; step < 40; ++step) {
    cl_image_desc description{};
    description.image_type = CL_MEM_OBJECT_IMAGE2D;
    description.image_width = description.image_height = 8;
    constexpr cl_image_format format{CL_R, CL_UNSIGNED_INT32};
    cl_int error = CL_SUCCESS;
    images.push_back(clCreateImage(setup.context, CL_MEM_READ_WRITE, &format, &description, nullptr, &error));
    OK(error);
    for (const cl_mem buffer : buffers) kernels.grow(setup.queue, buffer, step);
    OK(clFinish(setup.queue));
  }
  for (const cl_mem buffer : buffers) say_words("buffer", setup.read(buffer));
  release_buffers(buffers);
  release_buffers(images);
}

CASE(moves, beside_an_empty_context) {
  const Setup empty;
  {
    const Kernels kernels(empty);
    const auto buffer = empty.buffer_of(numbers(1));
    kernels.grow(empty.queue, buffer, 1);
    say_words("buffer", empty.read(buffer));
    release_buffers({buffer});
  }
  const Setup setup;
  const Kernels kernels(setup);
  const auto buffers = buffers_of(setup, 12);
  for (cl_uint step = 0; step < 20; ++step) {
    for (const cl_mem buffer : buffers) kernels.grow(setup.queue, buffer, step);
    OK(clFinish(setup.queue));
  }
  for (const cl_mem buffer : buffers) say_words("buffer", setup.read(buffer));
  // The first one can have a part again.
  {
    const Kernels others(empty);
    const auto again = buffers_of(empty, 4);
    for (const cl_mem buffer : again) others.grow(empty.queue, buffer, 2);
    for (const cl_mem buffer : again) say_words("again", empty.read(buffer));
    release_buffers(again);
  }
  for (const cl_mem buffer : buffers) kernels.grow(setup.queue, buffer, 3);
  for (const cl_mem buffer : buffers) say_words("buffer", setup.read(buffer));
  release_buffers(buffers);
}

CASE(moves, released_before_they_run) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem kept = setup.buffer_of(numbers(1));
  for (cl_uint step = 0; step < 30; ++step) {
    cl_int error = CL_SUCCESS;
    const cl_event gate = clCreateUserEvent(setup.context, &error);
    OK(error);
    std::vector<cl_mem> temporaries;
    for (int i = 0; i < 6; ++i) temporaries.push_back(setup.buffer());
    kernels.affine(setup.queue, temporaries[0], kept, step, word_count, {gate});
    for (std::size_t i = 1; i < temporaries.size(); ++i) {
      kernels.affine(setup.queue, temporaries[i], temporaries[i - 1], step);
    }
    kernels.blend(setup.queue, kept, temporaries.back(), kept);
    release_buffers(temporaries);
    OK(clSetUserEventStatus(gate, CL_COMPLETE));
    say_words("kept", setup.read(kept));
    release_events({gate});
  }
  release_buffers({kept});
}
