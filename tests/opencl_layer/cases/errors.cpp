// SPDX-License-Identifier: Apache-2.0
// NULL and other wrong arguments, of every entry point that takes an object.

#include "harness.hpp"

using namespace cases;

namespace {

struct Row {
  const char* call;
  cl_int status;
};
void say_all(const std::vector<Row>& rows) {
  for (const Row& row : rows) say_status(row.call, row.status);
}
template <class Create>
cl_int created(Create create) {
  cl_int error = CL_SUCCESS;
  expect(create(&error) == nullptr, "nothing is made");
  return error;
}

}  // namespace

CASE(errors, null_memory) {
  const Setup setup;
  const cl_command_queue q = setup.queue;
  const cl_mem m = setup.buffer(64);
  cl_uint word = 0;
  const std::size_t o[3] = {0, 0, 0}, r[3] = {4, 1, 1};
  say_all({
      {"read", clEnqueueReadBuffer(q, nullptr, CL_TRUE, 0, 4, &word, 0, nullptr, nullptr)},
      {"write", clEnqueueWriteBuffer(q, nullptr, CL_TRUE, 0, 4, &word, 0, nullptr, nullptr)},
      {"read rect", clEnqueueReadBufferRect(q, nullptr, CL_TRUE, o, o, r, 0, 0, 0, 0, &word, 0, nullptr, nullptr)},
      {"write rect", clEnqueueWriteBufferRect(q, nullptr, CL_TRUE, o, o, r, 0, 0, 0, 0, &word, 0, nullptr, nullptr)},
      {"copy from", clEnqueueCopyBuffer(q, nullptr, m, 0, 0, 4, 0, nullptr, nullptr)},
      {"copy to", clEnqueueCopyBuffer(q, m, nullptr, 0, 0, 4, 0, nullptr, nullptr)},
      {"fill", clEnqueueFillBuffer(q, nullptr, &word, 4, 0, 4, 0, nullptr, nullptr)},
      {"unmap", clEnqueueUnmapMemObject(q, nullptr, &word, 0, nullptr, nullptr)},
      {"retain", clRetainMemObject(nullptr)},
      {"release", clReleaseMemObject(nullptr)},
      {"info", clGetMemObjectInfo(nullptr, CL_MEM_SIZE, 0, nullptr, nullptr)},
      {"image info", clGetImageInfo(nullptr, CL_IMAGE_WIDTH, 0, nullptr, nullptr)},
      {"destructor", clSetMemObjectDestructorCallback(
                         nullptr, [](cl_mem, void*) {}, nullptr)},
      {"map", created([&](cl_int* e) {
         return clEnqueueMapBuffer(q, nullptr, CL_TRUE, CL_MAP_READ, 0, 4, 0, nullptr, nullptr, e);
       })},
      {"sub-buffer", created([&](cl_int* e) {
         const cl_buffer_region region{0, 4};
         return clCreateSubBuffer(nullptr, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, e);
       })},
  });
  OK(clReleaseMemObject(m));
}

CASE(errors, null_queue) {
  const Setup setup;
  const cl_mem m = setup.buffer(64);
  const cl_kernel k = setup.kernel("one");
  cl_uint word = 0;
  const std::size_t o[3] = {0, 0, 0}, r[3] = {4, 1, 1}, size = 1;
  say_all({
      {"read", clEnqueueReadBuffer(nullptr, m, CL_TRUE, 0, 4, &word, 0, nullptr, nullptr)},
      {"write", clEnqueueWriteBuffer(nullptr, m, CL_TRUE, 0, 4, &word, 0, nullptr, nullptr)},
      {"read rect", clEnqueueReadBufferRect(nullptr, m, CL_TRUE, o, o, r, 0, 0, 0, 0, &word, 0, nullptr, nullptr)},
      {"write rect", clEnqueueWriteBufferRect(nullptr, m, CL_TRUE, o, o, r, 0, 0, 0, 0, &word, 0, nullptr, nullptr)},
      {"copy", clEnqueueCopyBuffer(nullptr, m, m, 0, 8, 4, 0, nullptr, nullptr)},
      {"copy rect", clEnqueueCopyBufferRect(nullptr, m, m, o, o, r, 0, 0, 0, 0, 0, nullptr, nullptr)},
      {"fill", clEnqueueFillBuffer(nullptr, m, &word, 4, 0, 4, 0, nullptr, nullptr)},
      {"unmap", clEnqueueUnmapMemObject(nullptr, m, &word, 0, nullptr, nullptr)},
      {"launch", clEnqueueNDRangeKernel(nullptr, k, 1, nullptr, &size, nullptr, 0, nullptr, nullptr)},
      {"task", clEnqueueTask(nullptr, k, 0, nullptr, nullptr)},
      {"marker", clEnqueueMarkerWithWaitList(nullptr, 0, nullptr, nullptr)},
      {"barrier", clEnqueueBarrierWithWaitList(nullptr, 0, nullptr, nullptr)},
      {"migrate", clEnqueueMigrateMemObjects(nullptr, 1, &m, 0, 0, nullptr, nullptr)},
      {"flush", clFlush(nullptr)},
      {"finish", clFinish(nullptr)},
      {"retain", clRetainCommandQueue(nullptr)},
      {"release", clReleaseCommandQueue(nullptr)},
      {"info", clGetCommandQueueInfo(nullptr, CL_QUEUE_CONTEXT, 0, nullptr, nullptr)},
  });
  OK(clReleaseKernel(k));
  OK(clReleaseMemObject(m));
}

CASE(errors, null_kernel_and_program) {
  const Setup setup;
  cl_uint word = 0;
  say_all({
      {"argument", clSetKernelArg(nullptr, 0, sizeof word, &word)},
      {"retain kernel", clRetainKernel(nullptr)},
      {"release kernel", clReleaseKernel(nullptr)},
      {"kernel info", clGetKernelInfo(nullptr, CL_KERNEL_NUM_ARGS, 0, nullptr, nullptr)},
      {"argument info", clGetKernelArgInfo(nullptr, 0, CL_KERNEL_ARG_NAME, 0, nullptr, nullptr)},
      {"work group info",
       clGetKernelWorkGroupInfo(nullptr, setup.device, CL_KERNEL_WORK_GROUP_SIZE, 0, nullptr, nullptr)},
      {"build", clBuildProgram(nullptr, 0, nullptr, "", nullptr, nullptr)},
      {"compile", clCompileProgram(nullptr, 0, nullptr, "", 0, nullptr, nullptr, nullptr, nullptr)},
      {"kernels", clCreateKernelsInProgram(nullptr, 0, nullptr, &word)},
      {"retain program", clRetainProgram(nullptr)},
      {"release program", clReleaseProgram(nullptr)},
      {"program info", clGetProgramInfo(nullptr, CL_PROGRAM_CONTEXT, 0, nullptr, nullptr)},
      {"kernel", created([](cl_int* e) { return clCreateKernel(nullptr, "grow", e); })},
  });
}

CASE(errors, null_event_and_context) {
  const Setup setup;
  const cl_image_format format{CL_R, CL_UNSIGNED_INT32};
  cl_image_desc description{};
  description.image_type = CL_MEM_OBJECT_IMAGE1D;
  description.image_width = 4;
  const char* source = "";
  say_all({
      {"retain event", clRetainEvent(nullptr)},
      {"release event", clReleaseEvent(nullptr)},
      {"set status", clSetUserEventStatus(nullptr, CL_COMPLETE)},
      {"event info", clGetEventInfo(nullptr, CL_EVENT_CONTEXT, 0, nullptr, nullptr)},
      {"profiling", clGetEventProfilingInfo(nullptr, CL_PROFILING_COMMAND_END, 0, nullptr, nullptr)},
      {"callback", clSetEventCallback(
                       nullptr, CL_COMPLETE, [](cl_event, cl_int, void*) {}, nullptr)},
      {"retain context", clRetainContext(nullptr)},
      {"release context", clReleaseContext(nullptr)},
      {"context info", clGetContextInfo(nullptr, CL_CONTEXT_DEVICES, 0, nullptr, nullptr)},
      {"buffer", created([](cl_int* e) { return clCreateBuffer(nullptr, 0, 4, nullptr, e); })},
      {"image", created([&](cl_int* e) { return clCreateImage(nullptr, 0, &format, &description, nullptr, e); })},
      {"queue", created([&](cl_int* e) { return clCreateCommandQueue(nullptr, setup.device, 0, e); })},
      {"user event", created([](cl_int* e) { return clCreateUserEvent(nullptr, e); })},
      {"program", created([&](cl_int* e) { return clCreateProgramWithSource(nullptr, 1, &source, nullptr, e); })},
      {"sampler",
       created([](cl_int* e) { return clCreateSampler(nullptr, CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, e); })},
  });
}

CASE(errors, creation) {
  const Setup setup;
  cl_device_id device = setup.device;
  say_all({
      {"context without devices",
       created([&](cl_int* e) { return clCreateContext(nullptr, 0, &device, nullptr, nullptr, e); })},
      {"context of NULL", created([](cl_int* e) { return clCreateContext(nullptr, 1, nullptr, nullptr, nullptr, e); })},
      {"queue of no device", created([&](cl_int* e) { return clCreateCommandQueue(setup.context, nullptr, 0, e); })},
      {"queue with unknown properties",
       created([&](cl_int* e) { return clCreateCommandQueue(setup.context, device, 1u << 30, e); })},
  });
}

// Errors leave everything as it was.
CASE(errors, between_commands) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem a = setup.buffer_of(numbers(1)), b = setup.buffer_of(numbers(2)), c = setup.buffer_of(numbers(3));
  cl_uint word = 0;
  for (cl_uint i = 0; i < 6; ++i) {
    kernels.blend(setup.queue, a, b, c);
    expect(clEnqueueReadBuffer(setup.queue, a, CL_TRUE, buffer_bytes, 4, &word, 0, nullptr, nullptr) != CL_SUCCESS,
           "beyond");
    expect(clEnqueueCopyBuffer(setup.queue, a, a, 0, 4, 8, 0, nullptr, nullptr) != CL_SUCCESS, "overlap");
    const cl_kernel unset = setup.kernel("grow");
    const std::size_t size = 4;
    expect(clEnqueueNDRangeKernel(setup.queue, unset, 1, nullptr, &size, nullptr, 0, nullptr, nullptr) != CL_SUCCESS,
           "no arguments");
    OK(clReleaseKernel(unset));
    kernels.blend(setup.queue, b, c, a);
    expect(clSetMemObjectDestructorCallback(b, nullptr, nullptr) != CL_SUCCESS, "no callback");
    kernels.grow(setup.queue, c, i);
  }
  for (cl_mem one : {a, b, c}) say_words("one", setup.read(one));
  release_buffers({a, b, c});
}

CASE(errors, rectangles_that_begin_behind_64_bits) {
  const Setup setup;
  const cl_mem one = setup.buffer_of(numbers(1)), two = setup.buffer_of(numbers(2)),
               three = setup.buffer_of(numbers(3));
  const std::size_t none[3] = {0, 0, 0}, row[3] = {32, 1, 1}, rows[3] = {4, 2, 1};
  const std::size_t before[3] = {~std::size_t{0} - 15, 0, 0};
  std::vector<cl_uint> words(buffer_bytes / 4, 7);
  say_all({
      {"write", clEnqueueWriteBufferRect(setup.queue, two, CL_TRUE, before, none, row, 0, 0, 0, 0, words.data(), 0,
                                         nullptr, nullptr)},
      {"read", clEnqueueReadBufferRect(setup.queue, two, CL_TRUE, before, none, row, 0, 0, 0, 0, words.data(), 0,
                                       nullptr, nullptr)},
      {"copy to", clEnqueueCopyBufferRect(setup.queue, one, two, none, before, row, 0, 0, 0, 0, 0, nullptr, nullptr)},
      {"copy from", clEnqueueCopyBufferRect(setup.queue, two, one, before, none, row, 0, 0, 0, 0, 0, nullptr, nullptr)},
  });
  say_status("pitch", clEnqueueWriteBufferRect(setup.queue, two, CL_TRUE, none, none, rows, ~std::size_t{0} - 7, 0, 0,
                                               0, words.data(), 0, nullptr, nullptr));
  for (cl_mem each : {one, two, three}) say_words("each", setup.read(each));
  release_buffers({one, two, three});
}
