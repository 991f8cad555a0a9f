// SPDX-License-Identifier: Apache-2.0
// Kernels that overwrite a whole buffer again and again, and then, in a launch that looks nearly the same, do not: what
// is not written keeps its bytes. Each launch comes so often that a layer may have learned from the ones before.

#include "harness.hpp"

using namespace cases;

namespace {

const char* const source = R"(
kernel void upto(global uint* to, uint n, uint value) { size_t i = get_global_id(0); if (i < n) to[i] = value * (uint)i; }
kernel void bytes(global uchar* to, uchar value) { to[get_global_id(0)] = value; }
kernel void strided(global uint* to, uint stride, uint value) { to[get_global_id(0) * stride] = value; }
kernel void masked(global uint* to, global const uint* mask, uint value) {
  size_t i = get_global_id(0);
  if (mask[i]) to[i] = value;
}
kernel void scattered(global uint* to, global const uint* index, uint value) { to[index[get_global_id(0)]] = value; }
kernel void counted(global uint* to, global const uint* count, uint value) {
  for (uint i = get_global_id(0); i < count[0]; i += get_global_size(0)) to[i] = value + i;
}
kernel void by_group(global uint* to, uint value) {
  to[get_group_id(0) * 64 + get_local_id(0)] = value + (uint)get_local_id(0);
}
kernel void by_local_index(global uint* to, global const uint* from, uint value) {
  local uint at[64];
  size_t l = get_local_id(0);
  at[l] = from[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  to[get_group_id(0) * 64 + at[l]] = value;
}
kernel void two(global uint* a, global uint* b, uint value) {
  size_t i = get_global_id(0);
  a[i] = value;
  b[2 * i] = value + 1u;
}
kernel void one_of(global uint* a, global uint* b, uint which, uint value) {
  global uint* to = which ? a : b;
  to[get_global_id(0)] = value;
}
kernel void shifted(global uint* to, global const uint* from, uint by) {
  size_t i = get_global_id(0);
  to[i] = by;
  barrier(CLK_GLOBAL_MEM_FENCE);
  to[i] = from[i] + by;
}
kernel void totals(global uint* to, global uint* sum, uint value) {
  to[get_global_id(0)] = value;
  atomic_add(sum, value);
}
kernel void null_too(global uint* to, global uint* other, uint value) {
  size_t i = get_global_id(0);
  if (other) other[i] = value;
  if (!other || i < 100) to[i] = value;
}
)";

/// A launch of a kernel of the source, several times, and the buffers behind it each time. They change in between, so
/// bytes that are lost, or come from an earlier time, are seen.
struct Repeated {
  Repeated() : program(setup.build(source)), others{setup.buffer_of(numbers(90)), setup.buffer_of(numbers(91))} {}
  ~Repeated() {
    release_buffers(others);
    clReleaseProgram(program);
  }
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;

  cl_kernel kernel(const char* name) const {
    cl_int error = CL_SUCCESS;
    const cl_kernel made = clCreateKernel(program, name, &error);
    OK(error);
    return made;
  }

  /// `set(round)` sets the arguments that differ from round to round.
  template <class Set>
  void run(const char* what, cl_kernel one, const std::vector<cl_mem>& shown, std::size_t count, Set set,
           std::size_t group = 0, std::size_t offset = 0) {
    for (cl_uint round = 0; round < 5; ++round) {
      for (cl_uint i = 0; i < shown.size(); ++i) {
        const Words fresh = numbers(seed++);
        OK(clEnqueueWriteBuffer(setup.queue, shown[i], CL_TRUE, 0, buffer_bytes, fresh.data(), 0, nullptr, nullptr));
      }
      kernels.blend(setup.queue, others[0], others[1], others[0]);  // so that they leave
      set(round);
      OK(clEnqueueNDRangeKernel(setup.queue, one, 1, offset == 0 ? nullptr : &offset, &count,
                                group == 0 ? nullptr : &group, 0, nullptr, nullptr));
      kernels.blend(setup.queue, others[1], others[0], others[1]);
      for (cl_mem each : shown) say_words(what, setup.read(each));
    }
    kernels.blend(setup.queue, others[0], others[1], others[0]);
    say_words("others", setup.read(others[0]));
  }

  const Setup setup;
  const Kernels kernels{setup};
  cl_program program;
  std::vector<cl_mem> others;
  cl_uint seed = 1;
};

}  // namespace

CASE(whole_writes, as_far_as_a_scalar_says) {
  Repeated repeated;
  const cl_kernel kernel = repeated.kernel("upto");
  const cl_mem to = repeated.setup.buffer();
  set_argument(kernel, 0, to);
  set_argument(kernel, 2, 3u);
  for (const cl_uint n :
       {cl_uint{word_count}, cl_uint{word_count} - 1, cl_uint{word_count}, 7u, cl_uint{word_count} + 5}) {
    repeated.run("to", kernel, {to}, word_count, [&](cl_uint) { set_argument(kernel, 1, n); });
  }
  OK(clReleaseKernel(kernel));
  release_buffers({to});
}

// Each launch has another value, which does not matter for where it writes, until another one does.
CASE(whole_writes, whatever_a_scalar_says) {
  Repeated repeated;
  const cl_kernel kernel = repeated.kernel("upto");
  const cl_mem to = repeated.setup.buffer();
  cl_uint value = 3;
  set_argument(kernel, 0, to);
  for (const cl_uint n : {cl_uint{word_count}, cl_uint{word_count} - 1}) {
    set_argument(kernel, 1, n);
    repeated.run("to", kernel, {to}, word_count, [&](cl_uint) { set_argument(kernel, 2, value++); });
  }
  OK(clReleaseKernel(kernel));
  release_buffers({to});
}

CASE(whole_writes, all_but_one_byte) {
  Repeated repeated;
  const cl_kernel kernel = repeated.kernel("bytes");
  const cl_mem to = repeated.setup.buffer();
  set_argument(kernel, 0, to);
  const cl_uchar value = 17;
  OK(clSetKernelArg(kernel, 1, sizeof value, &value));
  for (const std::size_t count : {buffer_bytes, buffer_bytes - 1, buffer_bytes}) {
    repeated.run("to", kernel, {to}, count, [](cl_uint) {});
  }
  repeated.run(
      "to", kernel, {to}, buffer_bytes - 1, [](cl_uint) {}, 0, 1);
  OK(clReleaseKernel(kernel));
  release_buffers({to});
}

// Whatever bytes a layer may fill a buffer with to see what is written: a kernel may write the same ones.
CASE(whole_writes, of_every_byte) {
  Repeated repeated;
  const cl_kernel kernel = repeated.kernel("bytes");
  const cl_mem to = repeated.setup.buffer();
  set_argument(kernel, 0, to);
  for (const cl_uchar value : {cl_uchar{0xA5}, cl_uchar{0x5A}, cl_uchar{0}, cl_uchar{0xFF}, cl_uchar{0xAA}}) {
    OK(clSetKernelArg(kernel, 1, sizeof value, &value));
    repeated.run("whole", kernel, {to}, buffer_bytes, [](cl_uint) {});
    repeated.run("part", kernel, {to}, buffer_bytes / 2 + 3, [](cl_uint) {});
  }
  OK(clReleaseKernel(kernel));
  release_buffers({to});
}

CASE(whole_writes, strided) {
  Repeated repeated;
  const cl_kernel kernel = repeated.kernel("strided");
  const cl_mem to = repeated.setup.buffer();
  set_argument(kernel, 0, to);
  set_argument(kernel, 2, 5u);
  for (const cl_uint stride : {1u, 2u, 3u}) {
    set_argument(kernel, 1, stride);
    repeated.run("to", kernel, {to}, word_count / stride, [](cl_uint) {});
  }
  OK(clReleaseKernel(kernel));
  release_buffers({to});
}

// At first the data lets the kernel write everything.
CASE(whole_writes, as_data_says) {
  Repeated repeated;
  const cl_mem to = repeated.setup.buffer();
  Words all(word_count), some(word_count);
  for (cl_uint i = 0; i < word_count; ++i) {
    all[i] = i;
    some[i] = i & ~1u;
  }
  const cl_mem index = repeated.setup.buffer_of(all), other_index = repeated.setup.buffer_of(some);
  const cl_mem ones = repeated.setup.buffer_of(Words(word_count, 1)), few = repeated.setup.buffer_of(some);
  const cl_mem count = repeated.setup.buffer_of(Words(word_count, word_count)),
               less = repeated.setup.buffer_of(Words(word_count, 1000));
  const struct {
    const char* name;
    cl_mem first, second;
  } each[] = {{"masked", ones, few}, {"scattered", index, other_index}, {"counted", count, less}};
  for (const auto& one : each) {
    const cl_kernel kernel = repeated.kernel(one.name);
    set_argument(kernel, 0, to);
    set_argument(kernel, 2, 9u);
    for (const cl_mem by : {one.first, one.second}) {
      set_argument(kernel, 1, by);
      repeated.run(one.name, kernel, {to}, word_count, [](cl_uint) {});
    }
    OK(clReleaseKernel(kernel));
  }
  release_buffers({to, index, other_index, ones, few, count, less});
}

CASE(whole_writes, by_groups) {
  Repeated repeated;
  const cl_mem to = repeated.setup.buffer();
  const cl_kernel kernel = repeated.kernel("by_group");
  set_argument(kernel, 0, to);
  set_argument(kernel, 1, 4u);
  for (const std::size_t group : {64U, 32U, 64U, 16U}) {
    repeated.run(
        "to", kernel, {to}, word_count / 64 * group, [](cl_uint) {}, group);
  }
  OK(clReleaseKernel(kernel));
  const cl_kernel indexed = repeated.kernel("by_local_index");
  Words same(word_count), crowded(word_count);
  for (cl_uint i = 0; i < word_count; ++i) {
    same[i] = 63 - i % 64;
    crowded[i] = i % 8;
  }
  const cl_mem from = repeated.setup.buffer_of(same), other = repeated.setup.buffer_of(crowded);
  set_argument(indexed, 0, to);
  set_argument(indexed, 2, 4u);
  for (const cl_mem one : {from, other}) {
    set_argument(indexed, 1, one);
    repeated.run(
        "by local memory", indexed, {to}, word_count, [](cl_uint) {}, 64);
  }
  OK(clReleaseKernel(indexed));
  release_buffers({to, from, other});
}

CASE(whole_writes, two_buffers) {
  Repeated repeated;
  const cl_mem a = repeated.setup.buffer(), b = repeated.setup.buffer();
  const cl_kernel two = repeated.kernel("two"), one_of = repeated.kernel("one_of");
  set_argument(two, 0, a);
  set_argument(two, 1, b);
  set_argument(two, 2, 8u);
  repeated.run("half", two, {a, b}, word_count / 2, [](cl_uint) {});
  set_argument(one_of, 0, a);
  set_argument(one_of, 1, b);
  set_argument(one_of, 3, 6u);
  for (const cl_uint which : {0u, 1u, 0u}) {
    set_argument(one_of, 2, which);
    repeated.run("one of two", one_of, {a, b}, word_count, [](cl_uint) {});
  }
  set_argument(one_of, 1, a);
  repeated.run("twice the same", one_of, {a}, word_count, [](cl_uint) {});
  OK(clReleaseKernel(two));
  OK(clReleaseKernel(one_of));
  release_buffers({a, b});
}

CASE(whole_writes, read_by_another_argument) {
  Repeated repeated;
  const cl_mem a = repeated.setup.buffer(), b = repeated.setup.buffer_of(numbers(92));
  const cl_kernel kernel = repeated.kernel("shifted");
  set_argument(kernel, 0, a);
  set_argument(kernel, 1, b);
  set_argument(kernel, 2, 8u);
  repeated.run("apart", kernel, {a}, word_count, [](cl_uint) {});
  const cl_kernel blend = repeated.kernels.blend_kernel;
  set_argument(blend, 0, a);
  set_argument(blend, 2, b);
  for (const cl_mem from : {b, a, b}) {
    set_argument(blend, 1, from);
    repeated.run("its own", blend, {a}, word_count, [&](cl_uint) {
      set_argument(blend, 0, a);
      set_argument(blend, 1, from);
      set_argument(blend, 2, b);
    });
  }
  OK(clReleaseKernel(kernel));
  release_buffers({a, b});
}

// A launch has its effect once, however often a layer tries it.
CASE(whole_writes, counts_once) {
  Repeated repeated;
  const cl_mem to = repeated.setup.buffer(), sum = repeated.setup.buffer_of(Words(word_count, 0));
  const cl_kernel kernel = repeated.kernel("totals");
  set_argument(kernel, 0, to);
  set_argument(kernel, 1, sum);
  set_argument(kernel, 2, 3u);
  repeated.run("to", kernel, {to}, word_count,
               [&](cl_uint round) { say("round %u: %u", round, repeated.setup.read(sum, 1)[0]); });
  say_words("sum", repeated.setup.read(sum));
  OK(clReleaseKernel(kernel));
  release_buffers({to, sum});
}

CASE(whole_writes, null_or_not) {
  Repeated repeated;
  const cl_mem to = repeated.setup.buffer(), other = repeated.setup.buffer(), none = nullptr;
  const cl_kernel kernel = repeated.kernel("null_too");
  set_argument(kernel, 0, to);
  set_argument(kernel, 2, 3u);
  for (const cl_mem one : {none, other, none}) {
    set_argument(kernel, 1, one);
    repeated.run("to", kernel, {to, other}, word_count, [](cl_uint) {});
  }
  OK(clReleaseKernel(kernel));
  release_buffers({to, other});
}

CASE(whole_writes, parts_of_buffers) {
  Repeated repeated;
  const cl_mem to = repeated.setup.buffer();
  const cl_buffer_region halves[] = {{0, buffer_bytes / 2}, {buffer_bytes / 2, buffer_bytes / 2}, {0, buffer_bytes}};
  const cl_kernel kernel = repeated.kernel("upto");
  set_argument(kernel, 1, cl_uint{word_count});
  set_argument(kernel, 2, 3u);
  for (const cl_buffer_region& region : halves) {
    cl_int error = CL_SUCCESS;
    const cl_mem part = clCreateSubBuffer(to, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
    OK(error);
    set_argument(kernel, 0, part);
    repeated.run("to", kernel, {to}, region.size / sizeof(cl_uint), [](cl_uint) {});
    OK(clReleaseMemObject(part));
  }
  OK(clReleaseKernel(kernel));
  release_buffers({to});
}

// The same from a binary, whose source a layer may have seen.
CASE(whole_writes, from_binary) {
  Repeated repeated;
  std::size_t bytes = 0;
  OK(clGetProgramInfo(repeated.program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr));
  std::vector<unsigned char> binary(bytes);
  unsigned char* into = binary.data();
  OK(clGetProgramInfo(repeated.program, CL_PROGRAM_BINARIES, sizeof into, &into, nullptr));
  const unsigned char* from = binary.data();
  cl_int error = CL_SUCCESS;
  const cl_program program =
      clCreateProgramWithBinary(repeated.setup.context, 1, &repeated.setup.device, &bytes, &from, nullptr, &error);
  OK(error);
  OK(clBuildProgram(program, 1, &repeated.setup.device, "", nullptr, nullptr));
  const cl_kernel kernel = clCreateKernel(program, "upto", &error);
  OK(error);
  const cl_mem to = repeated.setup.buffer();
  set_argument(kernel, 0, to);
  set_argument(kernel, 2, 3u);
  for (const cl_uint n : {cl_uint{word_count}, 7u}) {
    set_argument(kernel, 1, n);
    repeated.run("to", kernel, {to}, word_count, [](cl_uint) {});
  }
  OK(clReleaseKernel(kernel));
  OK(clReleaseProgram(program));
  release_buffers({to});
}

// Events and their times are those of one launch.
CASE(whole_writes, events) {
  Repeated repeated;
  const cl_command_queue queue = repeated.setup.another_queue(CL_QUEUE_PROFILING_ENABLE);
  const cl_kernel kernel = repeated.kernel("upto");
  const cl_mem to = repeated.setup.buffer();
  set_argument(kernel, 0, to);
  set_argument(kernel, 1, cl_uint{word_count});
  set_argument(kernel, 2, 3u);
  for (int round = 0; round < 5; ++round) {
    cl_event event = nullptr;
    launch(queue, kernel, word_count, {}, &event);
    OK(clWaitForEvents(1, &event));
    cl_ulong times[4] = {};
    const cl_profiling_info names[] = {CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_SUBMIT,
                                       CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END};
    for (int i = 0; i < 4; ++i) OK(clGetEventProfilingInfo(event, names[i], sizeof times[i], &times[i], nullptr));
    expect(times[0] <= times[1] && times[1] <= times[2] && times[2] <= times[3], "times are in order");
    expect(status_of(event) == CL_COMPLETE, "the launch is complete");
    OK(clReleaseEvent(event));
    repeated.kernels.blend(queue, repeated.others[0], repeated.others[1], repeated.others[0]);
  }
  say_words("to", repeated.setup.read(to));
  OK(clReleaseKernel(kernel));
  OK(clReleaseCommandQueue(queue));
  release_buffers({to});
}
