// SPDX-License-Identifier: Apache-2.0
// Sub-buffers: a range of a buffer as an object of its own.

#include "harness.hpp"

using namespace cases;

namespace {

constexpr std::size_t quarter = buffer_bytes / 4, quarter_count = word_count / 4;

cl_mem part_of(cl_mem root, std::size_t origin, std::size_t bytes, cl_mem_flags flags = 0, cl_int* status = nullptr) {
  const cl_buffer_region region{origin, bytes};
  cl_int error = CL_SUCCESS;
  const cl_mem made = clCreateSubBuffer(root, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
  if (status != nullptr)
    *status = error;
  else
    OK(error);
  return made;
}

// Uses three other buffers, so that anything else may leave.
void push_all_out(const Setup& setup, const Kernels& kernels, const std::vector<cl_mem>& others) {
  kernels.blend(setup.queue, others[0], others[1], others[2]);
  kernels.blend(setup.queue, others[1], others[2], others[0]);
}

std::vector<cl_mem> three_others(const Setup& setup) {
  return {setup.buffer_of(numbers(71)), setup.buffer_of(numbers(72)), setup.buffer_of(numbers(73))};
}

}  // namespace

CASE(subbuffers, written_through_the_part) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto others = three_others(setup);
  const cl_mem root = setup.buffer_of(numbers(1)), part = part_of(root, quarter, quarter);
  kernels.grow(setup.queue, part, 5, quarter_count);
  push_all_out(setup, kernels, others);
  say_words("root", setup.read(root));
  kernels.grow(setup.queue, root, 6);
  push_all_out(setup, kernels, others);
  say_words("part", setup.read(part, quarter_count));
  release_buffers(others);
  release_buffers({part, root});
}

CASE(subbuffers, written_through_the_root) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto others = three_others(setup);
  const cl_mem root = setup.buffer();
  const cl_mem first = part_of(root, 0, quarter), last = part_of(root, 3 * quarter, quarter);
  const Words words = numbers(3);
  OK(clEnqueueWriteBuffer(setup.queue, root, CL_TRUE, 0, buffer_bytes, words.data(), 0, nullptr, nullptr));
  push_all_out(setup, kernels, others);
  kernels.affine(setup.queue, last, first, 3, quarter_count);
  push_all_out(setup, kernels, others);
  say_words("root", setup.read(root));
  release_buffers(others);
  release_buffers({first, last, root});
}

CASE(subbuffers, overlapping) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto others = three_others(setup);
  const cl_mem root = setup.buffer_of(numbers(1));
  const cl_mem a = part_of(root, 0, 2 * quarter), b = part_of(root, quarter, 2 * quarter);
  for (cl_uint i = 0; i < 3; ++i) {
    kernels.grow(setup.queue, a, i, 2 * quarter_count);
    push_all_out(setup, kernels, others);
    kernels.grow(setup.queue, b, i, 2 * quarter_count);
  }
  say_words("a", setup.read(a, 2 * quarter_count));
  say_words("b", setup.read(b, 2 * quarter_count));
  say_words("root", setup.read(root));
  release_buffers(others);
  release_buffers({b, a, root});  // NVIDIA's driver crashes where those that overlap do not go the latest first
}

CASE(subbuffers, root_and_part_in_one_launch) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto others = three_others(setup);
  const cl_mem root = setup.buffer_of(numbers(1)), last = part_of(root, 3 * quarter, quarter);
  // Reads the first quarter of the root, writes the last.
  kernels.affine(setup.queue, last, root, 8, quarter_count);
  push_all_out(setup, kernels, others);
  kernels.affine(setup.queue, root, last, 9, quarter_count);
  say_words("root", setup.read(root));
  release_buffers(others);
  release_buffers({last, root});
}

CASE(subbuffers, root_released_first) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto others = three_others(setup);
  const cl_mem root = setup.buffer_of(numbers(1)), part = part_of(root, 2 * quarter, quarter);
  OK(clReleaseMemObject(root));
  push_all_out(setup, kernels, others);
  kernels.grow(setup.queue, part, 5, quarter_count);
  push_all_out(setup, kernels, others);
  say_words("part", setup.read(part, quarter_count));
  expect(memory_info<cl_mem>(part, CL_MEM_ASSOCIATED_MEMOBJECT) == root, "the root still is the part's");
  release_buffers(others);
  OK(clReleaseMemObject(part));
}

CASE(subbuffers, nested_is_refused) {
  const Setup setup;
  const cl_mem root = setup.buffer(), part = part_of(root, quarter, 2 * quarter);
  cl_int status = CL_SUCCESS;
  const cl_mem nested = part_of(part, 0, quarter, 0, &status);
  say_ruled("nested", status, CL_INVALID_MEM_OBJECT, {CL_SUCCESS});  // NVIDIA's driver makes it
  expect(is_native() || nested == nullptr, "no sub-buffer of a sub-buffer");
  if (nested != nullptr) OK(clReleaseMemObject(nested));
  release_buffers({part, root});
}

CASE(subbuffers, creation_errors) {
  const Setup setup;
  const cl_mem root = setup.buffer(), reads = setup.buffer(buffer_bytes, CL_MEM_READ_ONLY);
  const cl_mem writes = setup.buffer(buffer_bytes, CL_MEM_WRITE_ONLY);
  const cl_mem hidden = setup.buffer(buffer_bytes, CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS);
  const auto attempt = [&](const char* what, cl_mem of, std::size_t origin, std::size_t bytes, cl_mem_flags flags,
                           cl_int rule = CL_SUCCESS) {
    cl_int status = CL_SUCCESS;
    const cl_mem made = part_of(of, origin, bytes, flags, &status);
    // NVIDIA's driver makes some that it should refuse.
    if (rule == CL_SUCCESS) {
      say_status(what, status);
    } else {
      say_ruled(what, status, rule, {CL_SUCCESS});
    }
    if (made != nullptr) OK(clReleaseMemObject(made));
  };
  attempt("size 0", root, 0, 0, 0);
  attempt("beyond the end", root, 3 * quarter, 2 * quarter, 0, CL_INVALID_VALUE);
  attempt("begins at the end", root, buffer_bytes, quarter, 0);
  attempt("misaligned", root, 4, quarter, 0, CL_MISALIGNED_SUB_BUFFER_OFFSET);
  attempt("writes of what is read only", reads, 0, quarter, CL_MEM_WRITE_ONLY);
  attempt("read-write of what is read only", reads, 0, quarter, CL_MEM_READ_WRITE);
  attempt("reads of what is write only", writes, 0, quarter, CL_MEM_READ_ONLY);
  attempt("read-write of what is write only", writes, 0, quarter, CL_MEM_READ_WRITE);
  attempt("host access of what has none", hidden, 0, quarter, CL_MEM_HOST_READ_ONLY);
  attempt("host pointer flag", root, 0, quarter, CL_MEM_USE_HOST_PTR);
  attempt("copy flag", root, 0, quarter, CL_MEM_COPY_HOST_PTR);
  attempt("reads of all", root, 0, quarter, CL_MEM_READ_ONLY);
  cl_int status = CL_SUCCESS;
  expect(clCreateSubBuffer(root, 0, CL_BUFFER_CREATE_TYPE_REGION, nullptr, &status) == nullptr, "no region");
  say_status("no region", status);
  const cl_buffer_region region{0, quarter};
  expect(clCreateSubBuffer(root, 0, 0, &region, &status) == nullptr, "no type");
  say_status("no type", status);
  release_buffers({root, reads, writes, hidden});
}

CASE(subbuffers, flags_are_the_roots) {
  const Setup setup;
  Words words = numbers(1);
  const cl_mem reads = setup.buffer(buffer_bytes, CL_MEM_READ_ONLY);
  const cl_mem uses = setup.buffer(buffer_bytes, CL_MEM_USE_HOST_PTR | CL_MEM_READ_WRITE, words.data());
  const cl_mem hidden = setup.buffer(buffer_bytes, CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS);
  for (cl_mem root : {reads, uses, hidden}) {
    const cl_mem part = part_of(root, quarter, quarter);
    // The driver may or may not name the default, and the root's host pointer flags.
    const cl_mem_flags access = CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS;
    say("flags %llx, type %x, offset %zu, size %zu, references %u",
        static_cast<unsigned long long>(memory_info<cl_mem_flags>(part, CL_MEM_FLAGS) & access),
        memory_info<cl_mem_object_type>(part, CL_MEM_TYPE), memory_info<std::size_t>(part, CL_MEM_OFFSET),
        memory_info<std::size_t>(part, CL_MEM_SIZE), references(part));
    expect(memory_info<cl_mem>(part, CL_MEM_ASSOCIATED_MEMOBJECT) == root, "the root is told");
    expect(memory_info<cl_context>(part, CL_MEM_CONTEXT) == setup.context, "the context is told");
    if (root == uses)
      expect(memory_info<char*>(part, CL_MEM_HOST_PTR) == reinterpret_cast<char*>(words.data()) + quarter,
             "the host pointer is the part's");
    OK(clReleaseMemObject(part));
  }
  release_buffers({reads, uses, hidden});
}

CASE(subbuffers, transfers) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto others = three_others(setup);
  const cl_mem root = setup.buffer_of(numbers(1));
  const cl_mem a = part_of(root, quarter, quarter), b = part_of(root, 2 * quarter, quarter);
  const Words words = numbers(2, 100);
  OK(clEnqueueWriteBuffer(setup.queue, a, CL_TRUE, 40, 400, words.data(), 0, nullptr, nullptr));
  push_all_out(setup, kernels, others);
  OK(clEnqueueCopyBuffer(setup.queue, a, b, 0, 100, 1000, 0, nullptr, nullptr));
  push_all_out(setup, kernels, others);
  const cl_uint pattern[2] = {1, 2};
  OK(clEnqueueFillBuffer(setup.queue, b, pattern, 8, 2048, 64, 0, nullptr, nullptr));
  OK(clEnqueueCopyBuffer(setup.queue, a, root, 0, 0, 1000, 0, nullptr, nullptr));
  const std::size_t from[3] = {4, 1, 0}, to[3] = {8, 2, 0}, region[3] = {16, 4, 1};
  // PoCL 3.1 crashes if one of the two is a sub-buffer.
  OK(clEnqueueCopyBufferRect(setup.queue, root, others[0], from, to, region, 64, 0, 128, 0, 0, nullptr, nullptr));
  Words rows(64);
  OK(clEnqueueReadBufferRect(setup.queue, b, CL_TRUE, from, to, region, 64, 0, 32, 0, rows.data(), 0, nullptr,
                             nullptr));
  say_words("rows", rows);
  say_words("a", setup.read(a, quarter_count));
  say_words("b", setup.read(b, quarter_count));
  say_words("root", setup.read(root));
  say_words("other", setup.read(others[0]));
  say_status("beyond the part",
             clEnqueueReadBuffer(setup.queue, a, CL_TRUE, quarter - 4, 8, rows.data(), 0, nullptr, nullptr));
  say_status("fill beyond the part", clEnqueueFillBuffer(setup.queue, a, pattern, 4, quarter, 4, 0, nullptr, nullptr));
  release_buffers(others);
  release_buffers({a, b, root});
}

// A part at the beginning of its root, written whole by each command after the root has left: the rest stays as it is.
CASE(subbuffers, first_parts_written_whole) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto others = three_others(setup);
  const cl_mem root = setup.buffer_of(numbers(1));
  const cl_mem half = part_of(root, 0, 2 * quarter);
  const Words words = numbers(2, 2 * quarter_count);
  const cl_uint pattern = 7;
  const auto write = [&](int way) {
    if (way == 0) return clEnqueueCopyBuffer(setup.queue, others[0], half, 0, 0, 2 * quarter, 0, nullptr, nullptr);
    if (way == 1) return clEnqueueFillBuffer(setup.queue, half, &pattern, 4, 0, 2 * quarter, 0, nullptr, nullptr);
    return clEnqueueWriteBuffer(setup.queue, half, CL_TRUE, 0, 2 * quarter, words.data(), 0, nullptr, nullptr);
  };
  for (int way = 0; way < 3; ++way) {
    push_all_out(setup, kernels, others);
    OK(write(way));
    say_words("root", setup.read(root));
  }
  release_buffers(others);
  release_buffers({half, root});
}

// Both are ranges of one buffer: what overlaps in it overlaps.
CASE(subbuffers, overlapping_copies) {
  const Setup setup;
  const cl_mem root = setup.buffer_of(numbers(1));
  const cl_mem a = part_of(root, 0, 2 * quarter), b = part_of(root, quarter, 2 * quarter);
  say_status("apart", clEnqueueCopyBuffer(setup.queue, a, b, 0, quarter, quarter, 0, nullptr, nullptr));
  say_status("within the root, apart",
             clEnqueueCopyBuffer(setup.queue, root, root, 0, quarter, 64, 0, nullptr, nullptr));
  say_status("within the root", clEnqueueCopyBuffer(setup.queue, root, root, 0, 32, 64, 0, nullptr, nullptr));
  say_words("root", setup.read(root));
  release_buffers({a, b, root});
}

CASE(subbuffers, many_parts) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem roots[] = {setup.buffer_of(numbers(1)), setup.buffer_of(numbers(2)), setup.buffer_of(numbers(3))};
  std::vector<cl_mem> parts;
  for (cl_mem root : roots)
    for (std::size_t i = 0; i < 16; ++i) parts.push_back(part_of(root, i * buffer_bytes / 16, buffer_bytes / 16));
  for (std::size_t i = 0; i < parts.size(); ++i)
    kernels.blend(setup.queue, parts[i], parts[(i + 17) % 48], parts[(i + 5) % 48], word_count / 16);
  for (cl_mem root : roots) say_words("root", setup.read(root));
  say("references of a root: %u", references(roots[0]) >= 1 ? 1u : 0u);
  release_buffers(parts);
  release_buffers({roots[0], roots[1], roots[2]});
}

// An argument that is a part, kept while its root is pushed out.
CASE(subbuffers, kept_argument) {
  const Setup setup;
  const Kernels kernels(setup);
  const auto others = three_others(setup);
  const cl_mem root = setup.buffer_of(numbers(1)), part = part_of(root, quarter, quarter);
  const cl_kernel grow = setup.kernel("grow");
  set_argument(grow, 0, part);
  set_argument(grow, 1, 3u);
  for (int i = 0; i < 4; ++i) {
    launch(setup.queue, grow, quarter_count);
    push_all_out(setup, kernels, others);
  }
  say_words("root", setup.read(root));
  OK(clReleaseKernel(grow));
  release_buffers(others);
  release_buffers({part, root});
}
