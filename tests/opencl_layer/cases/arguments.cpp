// SPDX-License-Identifier: Apache-2.0
// Kernel arguments: kept, cloned, NULL, local, by value.

#include "harness.hpp"

#include <cstring>

using namespace cases;

CASE(arguments, kept_across_launches) {
  const Setup setup;
  const cl_kernel blend = setup.kernel("blend");
  const cl_mem a = setup.buffer_of(numbers(1)), b = setup.buffer_of(numbers(2)), c = setup.buffer_of(numbers(3)),
               d = setup.buffer_of(numbers(4));
  set_argument(blend, 0, a);
  set_argument(blend, 1, b);
  set_argument(blend, 2, c);
  launch(setup.queue, blend, word_count);
  set_argument(blend, 1, a);
  launch(setup.queue, blend, word_count);
  set_argument(blend, 0, d);
  launch(setup.queue, blend, word_count);
  launch(setup.queue, blend, word_count);
  for (cl_mem one : {a, b, c, d}) say_words("one", setup.read(one));
  OK(clReleaseKernel(blend));
  release_buffers({a, b, c, d});
}

CASE(arguments, cloned_kernel) {
  const Setup setup;
  const cl_kernel affine = setup.kernel("affine");
  const cl_mem a = setup.buffer_of(numbers(1)), b = setup.buffer_of(numbers(2)), c = setup.buffer_of(numbers(3));
  set_argument(affine, 0, a);
  set_argument(affine, 1, b);
  set_argument(affine, 2, 7u);
  cl_int error = CL_SUCCESS;
  const cl_kernel clone = clCloneKernel(affine, &error);
  OK(error);
  set_argument(affine, 2, 9u);
  set_argument(affine, 0, c);
  launch(setup.queue, clone, word_count);
  launch(setup.queue, affine, word_count);
  OK(clReleaseKernel(affine));
  set_argument(clone, 1, c);
  set_argument(clone, 0, b);
  launch(setup.queue, clone, word_count);
  for (cl_mem one : {a, b, c}) say_words("one", setup.read(one));
  OK(clReleaseKernel(clone));
  release_buffers({a, b, c});
}

CASE(arguments, null_buffers) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_kernel kernel = setup.kernel("null_or_not");
  const cl_mem to = setup.buffer(), from = setup.buffer_of(numbers(2)), other = setup.buffer_of(numbers(3));
  const cl_mem null = nullptr;
  set_argument(kernel, 0, to);
  OK(clSetKernelArg(kernel, 1, sizeof(cl_mem), nullptr));
  launch(setup.queue, kernel, word_count);
  say_words("NULL value", setup.read(to, 16));
  set_argument(kernel, 1, from);
  launch(setup.queue, kernel, word_count);
  kernels.grow(setup.queue, other, 1);
  say_words("a buffer", setup.read(to));
  set_argument(kernel, 1, null);
  launch(setup.queue, kernel, word_count);
  say_words("value NULL", setup.read(to, 16));
  OK(clReleaseKernel(kernel));
  release_buffers({to, from, other});
}

CASE(arguments, local_memory) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_kernel kernel = setup.kernel("reversed");
  const cl_mem to = setup.buffer(), from = setup.buffer_of(numbers(2)), other = setup.buffer_of(numbers(3));
  const std::size_t size = word_count;
  for (std::size_t group : {std::size_t{8}, std::size_t{64}}) {
    set_argument(kernel, 0, to);
    set_argument(kernel, 1, from);
    OK(clSetKernelArg(kernel, 2, group * sizeof(cl_uint), nullptr));
    OK(clEnqueueNDRangeKernel(setup.queue, kernel, 1, nullptr, &size, &group, 0, nullptr, nullptr));
    kernels.blend(setup.queue, other, to, from);
  }
  say_words("to", setup.read(to));
  say_words("other", setup.read(other));
  OK(clReleaseKernel(kernel));
  release_buffers({to, from, other});
}

CASE(arguments, structures) {
  const Setup setup;
  const cl_kernel kernel = setup.kernel("structured");
  const cl_mem to = setup.buffer(), from = setup.buffer_of(numbers(2));
  struct Parameters {
    cl_uint factor;
    cl_uchar kind;
    cl_ulong added;
  } parameters;
  std::memset(&parameters, 0, sizeof parameters);
  parameters = {3, 200, 0x100000007u};
  set_argument(kernel, 0, to);
  set_argument(kernel, 1, from);
  OK(clSetKernelArg(kernel, 2, sizeof parameters, &parameters));
  parameters.factor = 0;  // the value is copied
  launch(setup.queue, kernel, word_count);
  say_words("to", setup.read(to));
  OK(clReleaseKernel(kernel));
  release_buffers({to, from});
}

CASE(arguments, constant_memory) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_kernel kernel = setup.kernel("looked_up");
  const cl_mem to = setup.buffer(), table = setup.buffer_of(numbers(2, 64), CL_MEM_READ_ONLY),
               other = setup.buffer_of(numbers(3));
  set_argument(kernel, 0, to);
  set_argument(kernel, 1, table);
  set_argument(kernel, 2, 64u);
  for (cl_uint i = 0; i < 3; ++i) {
    launch(setup.queue, kernel, word_count);
    kernels.blend(setup.queue, other, to, to);
  }
  say_words("to", setup.read(to));
  say_words("other", setup.read(other));
  OK(clReleaseKernel(kernel));
  release_buffers({to, table, other});
}

// An integer that looks like a handle is an integer.
CASE(arguments, integer_equal_to_a_handle) {
  const Setup setup;
  const cl_kernel kernel = setup.kernel("wide");
  const cl_mem to = setup.buffer(), victim = setup.buffer_of(numbers(1));
  cl_ulong value = 0;
  std::memcpy(&value, &victim, sizeof victim);
  set_argument(kernel, 0, to);
  OK(clSetKernelArg(kernel, 1, sizeof value, &value));
  launch(setup.queue, kernel, 16);
  const Words words = setup.read(to, 16);
  bool equal = true;
  for (cl_uint word : words) equal = equal && word == (static_cast<cl_uint>(value >> 32) ^ static_cast<cl_uint>(value));
  expect(equal, "the kernel gets the integer");
  // The handle of an object that is gone: still an integer.
  OK(clReleaseMemObject(victim));
  OK(clSetKernelArg(kernel, 1, sizeof value, &value));
  launch(setup.queue, kernel, 16);
  expect(setup.read(to, 16) == words, "the kernel gets it again");
  OK(clReleaseKernel(kernel));
  release_buffers({to});
}

CASE(arguments, errors) {
  const Setup setup;
  const cl_kernel kernel = setup.kernel("affine"), local = setup.kernel("reversed");
  const cl_mem a = setup.buffer();
  const cl_uint word = 1;
  const cl_ulong wide = 1;
  say_status("index beyond", clSetKernelArg(kernel, 3, sizeof word, &word));
  say_status("too large a scalar", clSetKernelArg(kernel, 2, sizeof wide, &wide));
  say_status("too small a scalar", clSetKernelArg(kernel, 2, 2, &word));
  say_status("no scalar", clSetKernelArg(kernel, 2, sizeof word, nullptr));
  say_status("a word for a buffer", clSetKernelArg(kernel, 0, sizeof word, &word));
  say_status("local of size 0", clSetKernelArg(local, 2, 0, nullptr));
  say_status("local with a value", clSetKernelArg(local, 2, sizeof word, &word));
  // Nothing but the first is set: no launch.
  const std::size_t size = 16;
  set_argument(kernel, 0, a);
  say_status("launch without arguments",
             clEnqueueNDRangeKernel(setup.queue, kernel, 1, nullptr, &size, nullptr, 0, nullptr, nullptr));
  say_status("task without arguments", clEnqueueTask(setup.queue, kernel, 0, nullptr, nullptr));
  OK(clReleaseKernel(kernel));
  OK(clReleaseKernel(local));
  OK(clReleaseMemObject(a));
}

// An argument that was refused leaves the one before it.
CASE(arguments, refused_one_changes_nothing) {
  const Setup setup;
  const cl_kernel kernel = setup.kernel("affine");
  const cl_mem a = setup.buffer_of(numbers(1)), b = setup.buffer_of(numbers(2));
  const cl_ulong wide = 1;
  set_argument(kernel, 0, a);
  set_argument(kernel, 1, b);
  set_argument(kernel, 2, 5u);
  expect(clSetKernelArg(kernel, 2, sizeof wide, &wide) != CL_SUCCESS, "too large a scalar is refused");
  expect(clSetKernelArg(kernel, 3, sizeof(cl_mem), &a) != CL_SUCCESS, "an index beyond is refused");
  launch(setup.queue, kernel, word_count);
  say_words("a", setup.read(a));
  OK(clReleaseKernel(kernel));
  release_buffers({a, b});
}
