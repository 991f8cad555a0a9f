// SPDX-License-Identifier: Apache-2.0
// Images of each kind beside buffers that leave and come back.

#include "harness.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

using namespace cases;

namespace {

const char* const image_source = R"(
constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
kernel void invert(write_only image2d_t to, read_only image2d_t from) {
  int2 at = (int2)(get_global_id(0), get_global_id(1));
  write_imageui(to, at, read_imageui(from, nearest, at) * 3u + 1u);
}
kernel void sampled(global uint* to, read_only image2d_t from, sampler_t how) {
  size_t i = get_global_id(0);
  to[i] = read_imageui(from, how, (int2)((int)(i % 80) - 8, (int)(i / 80) - 4)).x;
}
kernel void from_words(write_only image2d_t to, global const uint* words) {
  int2 at = (int2)(get_global_id(0), get_global_id(1));
  write_imageui(to, at, (uint4)(words[at.x + 64 * at.y]));
}
)";

constexpr std::size_t width = 64, height = 32;
constexpr cl_image_format words_format{CL_R, CL_UNSIGNED_INT32};

cl_mem image(const Setup& setup, cl_mem_object_type type, std::size_t w, std::size_t h, std::size_t depth,
             std::size_t layers, cl_mem_flags flags = CL_MEM_READ_WRITE, void* host = nullptr) {
  cl_image_desc description{};
  description.image_type = type;
  description.image_width = w;
  description.image_height = h;
  description.image_depth = depth;
  description.image_array_size = layers;
  cl_int error = CL_SUCCESS;
  const cl_mem made = clCreateImage(setup.context, flags, &words_format, &description, host, &error);
  OK(error);
  return made;
}
cl_mem flat_image(const Setup& setup, const Words& words) {
  return image(setup, CL_MEM_OBJECT_IMAGE2D, width, height, 0, 0, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
               const_cast<cl_uint*>(words.data()));
}
Words read_image(const Setup& setup, cl_mem object, std::size_t w, std::size_t h, std::size_t d) {
  const std::size_t origin[3] = {0, 0, 0}, region[3] = {w, h, d};
  Words words(w * h * d);
  OK(clEnqueueReadImage(setup.queue, object, CL_TRUE, origin, region, 0, 0, words.data(), 0, nullptr, nullptr));
  return words;
}

}  // namespace

CASE(images, each_kind) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem a = setup.buffer_of(numbers(1)), b = setup.buffer_of(numbers(2)), c = setup.buffer_of(numbers(3));
  struct Kind {
    const char* name;
    cl_mem_object_type type;
    std::size_t w, h, depth, layers;
  };
  const Kind kinds[] = {{"1D", CL_MEM_OBJECT_IMAGE1D, 64, 0, 0, 0},
                        {"1D array", CL_MEM_OBJECT_IMAGE1D_ARRAY, 64, 0, 0, 5},
                        {"2D", CL_MEM_OBJECT_IMAGE2D, 64, 32, 0, 0},
                        {"2D array", CL_MEM_OBJECT_IMAGE2D_ARRAY, 16, 8, 0, 4},
                        {"3D", CL_MEM_OBJECT_IMAGE3D, 16, 8, 4, 0}};
  for (const Kind& kind : kinds) {
    const cl_mem made = image(setup, kind.type, kind.w, kind.h, kind.depth, kind.layers);
    const std::size_t h = kind.type == CL_MEM_OBJECT_IMAGE1D_ARRAY ? kind.layers : std::max<std::size_t>(kind.h, 1);
    const std::size_t d = kind.type == CL_MEM_OBJECT_IMAGE2D_ARRAY ? kind.layers : std::max<std::size_t>(kind.depth, 1);
    const std::size_t origin[3] = {0, 0, 0}, region[3] = {kind.w, h, d};
    const Words words = numbers(kind.type, kind.w * h * d);
    OK(clEnqueueWriteImage(setup.queue, made, CL_TRUE, origin, region, 0, 0, words.data(), 0, nullptr, nullptr));
    kernels.blend(setup.queue, a, b, c);
    kernels.blend(setup.queue, b, c, a);
    say("%s: %s, type %x, width %zu, height %zu, depth %zu, layers %zu", kind.name,
        read_image(setup, made, kind.w, h, d) == words ? "as written" : "changed",
        memory_info<cl_mem_object_type>(made, CL_MEM_TYPE), info<std::size_t>(clGetImageInfo, made, CL_IMAGE_WIDTH),
        info<std::size_t>(clGetImageInfo, made, CL_IMAGE_HEIGHT),
        info<std::size_t>(clGetImageInfo, made, CL_IMAGE_DEPTH),
        info<std::size_t>(clGetImageInfo, made, CL_IMAGE_ARRAY_SIZE));
    say("element %zu, row %zu, slice %zu, references %u",
        info<std::size_t>(clGetImageInfo, made, CL_IMAGE_ELEMENT_SIZE),
        info<std::size_t>(clGetImageInfo, made, CL_IMAGE_ROW_PITCH),
        info<std::size_t>(clGetImageInfo, made, CL_IMAGE_SLICE_PITCH), references(made));
    expect(memory_info<cl_context>(made, CL_MEM_CONTEXT) == setup.context, "the context is told");
    OK(clReleaseMemObject(made));
  }
  say_words("a", setup.read(a));
  release_buffers({a, b, c});
}

CASE(images, arguments) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_program program = setup.build(image_source);
  cl_int error = CL_SUCCESS;
  const cl_kernel invert = clCreateKernel(program, "invert", &error);
  OK(error);
  const cl_mem a = flat_image(setup, numbers(1)), b = flat_image(setup, numbers(2));
  const cl_mem x = setup.buffer_of(numbers(3)), y = setup.buffer_of(numbers(4)), z = setup.buffer_of(numbers(5));
  const std::size_t size[2] = {width, height};
  for (int i = 0; i < 4; ++i) {
    set_argument(invert, 0, i % 2 == 0 ? a : b);
    set_argument(invert, 1, i % 2 == 0 ? b : a);
    OK(clEnqueueNDRangeKernel(setup.queue, invert, 2, nullptr, size, nullptr, 0, nullptr, nullptr));
    kernels.blend(setup.queue, x, y, z);
    kernels.blend(setup.queue, y, z, x);
  }
  say_words("a", read_image(setup, a, width, height, 1));
  say_words("b", read_image(setup, b, width, height, 1));
  say_words("x", setup.read(x));
  OK(clReleaseKernel(invert));
  OK(clReleaseProgram(program));
  release_buffers({a, b, x, y, z});
}

CASE(images, samplers) {
  const Setup setup;
  const cl_program program = setup.build(image_source);
  cl_int error = CL_SUCCESS;
  const cl_kernel sampled = clCreateKernel(program, "sampled", &error);
  OK(error);
  const cl_mem from = flat_image(setup, numbers(1)), to = setup.buffer();
  for (const cl_addressing_mode mode :
       {cl_addressing_mode{CL_ADDRESS_CLAMP}, cl_addressing_mode{CL_ADDRESS_CLAMP_TO_EDGE}}) {
    const cl_sampler sampler = clCreateSampler(setup.context, CL_FALSE, mode, CL_FILTER_NEAREST, &error);
    OK(error);
    set_argument(sampled, 0, to);
    set_argument(sampled, 1, from);
    OK(clSetKernelArg(sampled, 2, sizeof sampler, &sampler));
    launch(setup.queue, sampled, 80 * 40);
    say_words("sampled", setup.read(to, 80 * 40));
    say("references %u, mode %x", info<cl_uint>(clGetSamplerInfo, sampler, CL_SAMPLER_REFERENCE_COUNT),
        info<cl_addressing_mode>(clGetSamplerInfo, sampler, CL_SAMPLER_ADDRESSING_MODE));
    OK(clReleaseSampler(sampler));
  }
  OK(clReleaseKernel(sampled));
  OK(clReleaseProgram(program));
  release_buffers({from, to});
}

CASE(images, with_buffers) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_program program = setup.build(image_source);
  cl_int error = CL_SUCCESS;
  const cl_kernel from_words = clCreateKernel(program, "from_words", &error);
  OK(error);
  const cl_mem words = setup.buffer_of(numbers(1)), other = setup.buffer_of(numbers(2)),
               third = setup.buffer_of(numbers(3));
  const cl_mem to = flat_image(setup, numbers(4));
  const std::size_t size[2] = {width, height}, origin[3] = {0, 0, 0}, region[3] = {width, height, 1},
                    part[3] = {20, 10, 1};
  set_argument(from_words, 0, to);
  set_argument(from_words, 1, words);
  OK(clEnqueueNDRangeKernel(setup.queue, from_words, 2, nullptr, size, nullptr, 0, nullptr, nullptr));
  kernels.blend(setup.queue, other, third, words);
  OK(clEnqueueCopyImageToBuffer(setup.queue, to, other, origin, region, 400, 0, nullptr, nullptr));
  kernels.blend(setup.queue, third, words, other);
  const std::size_t corner[3] = {7, 5, 0};
  OK(clEnqueueCopyBufferToImage(setup.queue, third, to, 800, corner, part, 0, nullptr, nullptr));
  say_words("image", read_image(setup, to, width, height, 1));
  say_words("other", setup.read(other));
  say_words("third", setup.read(third));
  say_status("beyond the buffer",
             clEnqueueCopyImageToBuffer(setup.queue, to, other, origin, region, buffer_bytes - 4, 0, nullptr, nullptr));
  OK(clReleaseKernel(from_words));
  OK(clReleaseProgram(program));
  release_buffers({words, other, third, to});
}

CASE(images, copied_and_filled) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem a = flat_image(setup, numbers(1)), b = flat_image(setup, numbers(2)), x = setup.buffer_of(numbers(3));
  const std::size_t from[3] = {1, 2, 0}, to[3] = {30, 11, 0}, part[3] = {20, 10, 1};
  OK(clEnqueueCopyImage(setup.queue, a, b, from, to, part, 0, nullptr, nullptr));
  kernels.grow(setup.queue, x, 1);
  const cl_uint colour[4] = {5, 6, 7, 8};
  OK(clEnqueueFillImage(setup.queue, a, colour, from, part, 0, nullptr, nullptr));
  say_words("a", read_image(setup, a, width, height, 1));
  say_words("b", read_image(setup, b, width, height, 1));
  say_words("x", setup.read(x));
  release_buffers({a, b, x});
}

CASE(images, mapped) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem a = flat_image(setup, numbers(1)), x = setup.buffer_of(numbers(3)), y = setup.buffer_of(numbers(4));
  const std::size_t origin[3] = {4, 2, 0}, region[3] = {20, 10, 1};
  std::size_t row = 0, slice = 0;
  cl_int error = CL_SUCCESS;
  auto* mapped = static_cast<unsigned char*>(clEnqueueMapImage(
      setup.queue, a, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, origin, region, &row, &slice, 0, nullptr, nullptr, &error));
  OK(error);
  kernels.affine(setup.queue, x, y, 1);
  Words seen;
  for (std::size_t i = 0; i < 10; ++i)
    for (std::size_t j = 0; j < 20; ++j) {
      auto* word = reinterpret_cast<cl_uint*>(mapped + i * row) + j;
      seen.push_back(*word);
      *word += 1;
    }
  say_words("seen", seen);
  OK(clEnqueueUnmapMemObject(setup.queue, a, mapped, 0, nullptr, nullptr));
  say_words("a", read_image(setup, a, width, height, 1));
  say_words("x", setup.read(x));
  release_buffers({a, x, y});
}

// The deprecated functions, which programs still use.
CASE(images, old_functions) {
  const Setup setup;
  Words words = numbers(1, 8 * 4 * 2);
  cl_int error = CL_SUCCESS;
  const cl_mem flat =
      clCreateImage2D(setup.context, CL_MEM_COPY_HOST_PTR, &words_format, 8, 8, 0, words.data(), &error);
  OK(error);
  const cl_mem deep =
      clCreateImage3D(setup.context, CL_MEM_COPY_HOST_PTR, &words_format, 8, 4, 2, 0, 0, words.data(), &error);
  OK(error);
  say_words("2D", read_image(setup, flat, 8, 8, 1));
  say_words("3D", read_image(setup, deep, 8, 4, 2));
  release_buffers({flat, deep});
}

CASE(images, of_a_buffer) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem root = setup.buffer_of(numbers(1)), other = setup.buffer_of(numbers(2)),
               third = setup.buffer_of(numbers(3));
  cl_image_desc description{};
  description.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER;
  description.image_width = 1024;
  description.mem_object = root;
  cl_int error = CL_SUCCESS;
  const cl_mem view = clCreateImage(setup.context, CL_MEM_READ_WRITE, &words_format, &description, nullptr, &error);
  OK(error);
  expect(memory_info<cl_mem>(view, CL_MEM_ASSOCIATED_MEMOBJECT) == root, "the buffer is told");
  expect(info<cl_mem>(clGetImageInfo, view, CL_IMAGE_BUFFER) == root, "the buffer is told by the image");
  kernels.grow(setup.queue, root, 1);
  kernels.blend(setup.queue, other, third, other);
  say_words("through the image", read_image(setup, view, 1024, 1, 1));
  const std::size_t origin[3] = {0, 0, 0}, region[3] = {512, 1, 1};
  OK(clEnqueueWriteImage(setup.queue, view, CL_TRUE, origin, region, 0, 0, numbers(9, 512).data(), 0, nullptr,
                         nullptr));
  kernels.blend(setup.queue, other, third, other);
  say_words("through the buffer", setup.read(root));
  OK(clReleaseMemObject(root));
  say_words("the buffer released", read_image(setup, view, 1024, 1, 1));
  OK(clReleaseMemObject(view));
  release_buffers({other, third});
}

CASE(images, errors) {
  const Setup setup;
  cl_image_desc description{};
  description.image_type = CL_MEM_OBJECT_IMAGE2D;
  description.image_width = 8;
  description.image_height = 8;
  const auto create = [&](const char* what, cl_mem_flags flags, const cl_image_format* format, const cl_image_desc* of,
                          void* host) {
    cl_int error = CL_SUCCESS;
    const cl_mem made = clCreateImage(setup.context, flags, format, of, host, &error);
    say_status(what, error);
    if (made != nullptr) OK(clReleaseMemObject(made));
  };
  create("no format", 0, nullptr, &description, nullptr);
  create("no description", 0, &words_format, nullptr, nullptr);
  create("copy of NULL", CL_MEM_COPY_HOST_PTR, &words_format, &description, nullptr);
  const cl_mem buffer = setup.buffer();
  cl_uint words[64] = {};
  const std::size_t origin[3] = {0, 0, 0}, region[3] = {8, 8, 1};
  say_ruled("read of a buffer",
            clEnqueueReadImage(setup.queue, buffer, CL_TRUE, origin, region, 0, 0, words, 0, nullptr, nullptr),
            CL_INVALID_MEM_OBJECT, {CL_INVALID_VALUE});
  const cl_mem made = image(setup, CL_MEM_OBJECT_IMAGE2D, 8, 8, 0, 0);
  const std::size_t beyond[3] = {4, 4, 0};
  say_status("read beyond",
             clEnqueueReadImage(setup.queue, made, CL_TRUE, beyond, region, 0, 0, words, 0, nullptr, nullptr));
  release_buffers({buffer, made});
}

CASE(images, map_behind_an_event_that_fails) {
  const Setup setup;
  const cl_mem flat = flat_image(setup, numbers(1, width * height));
  const std::size_t origin[3] = {0, 0, 0}, region[3] = {width, height, 1};
  for (int i = 0; i < 3; ++i) {
    cl_int error = CL_SUCCESS;
    const cl_event gate = clCreateUserEvent(setup.context, &error);
    OK(error);
    std::thread fails([gate] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      clSetUserEventStatus(gate, -5);
    });
    std::size_t row = 0;
    void* const mapped = clEnqueueMapImage(setup.queue, flat, CL_TRUE, CL_MAP_READ, origin, region, &row, nullptr, 1,
                                           &gate, nullptr, &error);
    fails.join();
    // PoCL maps all the same.
    say_ruled("map", error, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, {CL_SUCCESS});
    expect((mapped != nullptr) == (error == CL_SUCCESS), "a pointer or an error");
    expect(memory_info<cl_uint>(flat, CL_MEM_MAP_COUNT) == (mapped != nullptr ? 1 : 0), "as many maps as pointers");
    if (mapped != nullptr) OK(clEnqueueUnmapMemObject(setup.queue, flat, mapped, 0, nullptr, nullptr));
    OK(clReleaseEvent(gate));
  }
  say_words("flat", read_image(setup, flat, width, height, 1));
  OK(clReleaseMemObject(flat));
}
