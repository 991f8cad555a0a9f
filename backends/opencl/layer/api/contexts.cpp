// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <vector>

#include "../queue.hpp"
#include "install.hpp"

namespace swapmm::opencl::layer::api {
namespace {

// ---- contexts: the driver's own, with a record beside them

cl_context CL_API_CALL create_context(const cl_context_properties* properties, cl_uint count,
                                      const cl_device_id* devices,
                                      void(CL_CALLBACK* notify)(const char*, const void*, size_t, void*), void* data,
                                      cl_int* status) {
  const cl_context made = down.clCreateContext(properties, count, devices, notify, data, status);
  (void)Context::of(made);
  return made;
}

cl_context CL_API_CALL create_context_from_type(const cl_context_properties* properties, cl_device_type type,
                                                void(CL_CALLBACK* notify)(const char*, const void*, size_t, void*),
                                                void* data, cl_int* status) {
  const cl_context made = down.clCreateContextFromType(properties, type, notify, data, status);
  (void)Context::of(made);
  return made;
}

cl_int CL_API_CALL retain_context(cl_context handle) {
  Context* const context = Context::of(handle);
  if (context == nullptr) return down.clRetainContext(handle);
  context->retain_for_program();
  return CL_SUCCESS;
}

cl_int CL_API_CALL release_context(cl_context handle) {
  Context* const context = Context::of(handle);
  if (context == nullptr) return down.clReleaseContext(handle);
  return context->release_for_program() ? CL_SUCCESS : CL_INVALID_CONTEXT;
}

cl_int CL_API_CALL context_info(cl_context handle, cl_context_info what, size_t size, void* into, size_t* needed) {
  Context* const context = Context::of(handle);
  if (context != nullptr && what == CL_CONTEXT_REFERENCE_COUNT) {
    return answer(context->references(), size, into, needed);
  }
  return down.clGetContextInfo(handle, what, size, into, needed);
}

// ---- queues

cl_command_queue made_queue(Context& context, cl_command_queue native, cl_command_queue_properties properties) {
  if (native == nullptr || !context.managed()) return native;
  if ((properties & CL_QUEUE_ON_DEVICE) != 0) return native;  // kernels fill it
  return (new Queue(context, native, properties))->handle();
}

cl_command_queue CL_API_CALL create_queue(cl_context handle, cl_device_id device,
                                          cl_command_queue_properties properties, cl_int* status) {
  const cl_command_queue native = down.clCreateCommandQueue(handle, device, properties, status);
  Context* const context = Context::of(handle);
  return context == nullptr ? native : made_queue(*context, native, properties);
}

cl_command_queue CL_API_CALL create_queue_with_properties(cl_context handle, cl_device_id device,
                                                          const cl_queue_properties* properties, cl_int* status) {
  const cl_command_queue native = down.clCreateCommandQueueWithProperties(handle, device, properties, status);
  Context* const context = Context::of(handle);
  if (context == nullptr) return native;
  cl_command_queue_properties bits = 0;
  for (const cl_queue_properties* each = properties; each != nullptr && *each != 0; each += 2) {
    if (*each == CL_QUEUE_PROPERTIES) bits = each[1];
  }
  return made_queue(*context, native, bits);
}

cl_int CL_API_CALL retain_queue(cl_command_queue handle) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) return down.clRetainCommandQueue(handle);
  return queue->retain() ? CL_SUCCESS : CL_INVALID_COMMAND_QUEUE;
}

cl_int CL_API_CALL release_queue(cl_command_queue handle) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) return down.clReleaseCommandQueue(handle);
  {
    const Lock lock = queue->context().lock();
    submit_held_back(queue->context());
    queue->context().flush();  // the API's implicit flush
  }
  return queue->release() ? CL_SUCCESS : CL_INVALID_COMMAND_QUEUE;
}

cl_int CL_API_CALL queue_info(cl_command_queue handle, cl_command_queue_info what, size_t size, void* into,
                              size_t* needed) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) return down.clGetCommandQueueInfo(handle, what, size, into, needed);
  if (what == CL_QUEUE_REFERENCE_COUNT) return answer(queue->references(), size, into, needed);
  return down.clGetCommandQueueInfo(queue->native(), what, size, into, needed);
}

cl_int CL_API_CALL set_queue_property(cl_command_queue handle, cl_command_queue_properties properties, cl_bool enable,
                                      cl_command_queue_properties* old) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) return down.clSetCommandQueueProperty(handle, properties, enable, old);
  return down.clSetCommandQueueProperty(queue->native(), properties, enable, old);
}

cl_int CL_API_CALL set_default_device_queue(cl_context context, cl_device_id device, cl_command_queue handle) {
  return down.clSetDefaultDeviceCommandQueue(context, device, handle);  // queues on the device are the driver's own
}

cl_int CL_API_CALL flush(cl_command_queue handle) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) return down.clFlush(handle);
  const Lock lock = queue->context().lock();
  if (!settings().waits_for_values) submit_held_back(queue->context());  // else the alarm sees to them
  queue->context().flush();
  return CL_SUCCESS;
}

cl_int CL_API_CALL finish(cl_command_queue handle) {
  Queue* const queue = Queue::from(handle);
  return queue == nullptr ? down.clFinish(handle) : queue->finish();
}

}  // namespace

void install_contexts(cl_icd_dispatch& table) {
  table.clCreateContext = create_context;
  table.clCreateContextFromType = create_context_from_type;
  table.clRetainContext = retain_context;
  table.clReleaseContext = release_context;
  table.clGetContextInfo = context_info;
  table.clCreateCommandQueue = create_queue;
  table.clCreateCommandQueueWithProperties = create_queue_with_properties;
  table.clRetainCommandQueue = retain_queue;
  table.clReleaseCommandQueue = release_queue;
  table.clGetCommandQueueInfo = queue_info;
  table.clSetCommandQueueProperty = set_queue_property;
  table.clSetDefaultDeviceCommandQueue = set_default_device_queue;
  table.clFlush = flush;
  table.clFinish = finish;
}

}  // namespace swapmm::opencl::layer::api
