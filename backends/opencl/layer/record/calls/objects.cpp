// SPDX-License-Identifier: Apache-2.0
#include "../../context.hpp"
#include "../../queue.hpp"
#include "themes.hpp"

namespace swapmm::opencl::layer::record {
namespace {

using calls::CallKind;
using calls::ObjectKind;

std::string device_names(cl_uint count, const cl_device_id* devices) {
  std::string names;
  for (cl_uint i = 0; i < count && i < 64; ++i) {
    std::string name(256, '\0');
    std::size_t size = 0;
    if (next.clGetDeviceInfo(devices[i], CL_DEVICE_NAME, name.size(), name.data(), &size) != CL_SUCCESS) continue;
    name.resize(size == 0 ? 0 : size - 1);
    names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

struct CreateContext {
  static void after(Hook& hook, cl_context made, const cl_context_properties*, cl_uint count,
                    const cl_device_id* devices, void(CL_CALLBACK*)(const char*, const void*, size_t, void*), void*,
                    cl_int*) {
    if (hook.made(made, ObjectKind::context) == 0) return;
    hook.call.bytes = count;
    hook.call.name = device_names(count, devices);
  }
};

struct CreateContextFromType {
  static void after(Hook& hook, cl_context made, const cl_context_properties*, cl_device_type,
                    void(CL_CALLBACK*)(const char*, const void*, size_t, void*), void*, cl_int*) {
    if (hook.made(made, ObjectKind::context) == 0) return;
    std::size_t size = 0;
    if (next.clGetContextInfo(made, CL_CONTEXT_DEVICES, 0, nullptr, &size) != CL_SUCCESS) return;
    std::vector<cl_device_id> devices(size / sizeof(cl_device_id));
    if (next.clGetContextInfo(made, CL_CONTEXT_DEVICES, size, devices.data(), nullptr) != CL_SUCCESS) return;
    hook.call.bytes = devices.size();
    hook.call.name = device_names(static_cast<cl_uint>(devices.size()), devices.data());
  }
};

void queue_made(Hook& hook, cl_command_queue made, cl_context context, cl_command_queue_properties properties) {
  hook.call.parent = recorder().find(context);
  hook.call.flags = properties;
  if (hook.made(made, ObjectKind::queue) == 0) return;
  hook.call.queue = 0;
  // So that the log can tell what commands took. The program does not see it.
  Queue* const queue = Queue::from(made);
  if (queue == nullptr) return;
  const Lock lock = queue->context().lock();
  queue->context().time_commands();
}

struct CreateQueue {
  static void after(Hook& hook, cl_command_queue made, cl_context context, cl_device_id,
                    cl_command_queue_properties properties, cl_int*) {
    queue_made(hook, made, context, properties);
  }
};

struct CreateQueueWithProperties {
  static void after(Hook& hook, cl_command_queue made, cl_context context, cl_device_id,
                    const cl_queue_properties* properties, cl_int*) {
    cl_command_queue_properties bits = 0;
    for (const cl_queue_properties* each = properties; each != nullptr && *each != 0; each += 2) {
      if (*each == CL_QUEUE_PROPERTIES) bits = each[1];
    }
    queue_made(hook, made, context, bits);
  }
};

struct CreateUserEvent {
  static void after(Hook& hook, cl_event made, cl_context context, cl_int*) {
    hook.call.parent = recorder().find(context);
    hook.made(made, ObjectKind::user_event);
  }
};

struct CreateSampler {
  template <class... Rest>
  static void after(Hook& hook, cl_sampler made, cl_context context, Rest...) {
    hook.call.parent = recorder().find(context);
    hook.made(made, ObjectKind::sampler);
  }
};

struct Retain {
  template <class Handle>
  static void before(Hook& hook, Handle& handle) {
    hook.call.kind = CallKind::retain;
    hook.call.object = recorder().find(handle);
    hook.call.object_kind = recorder().kind_of(handle);
  }
  template <class Handle>
  static void after(Hook& hook, cl_int, Handle handle) {
    if (hook.succeeded()) recorder().retained(handle);
  }
};

struct Release {
  template <class Handle>
  static void before(Hook& hook, Handle& handle) {
    hook.call.kind = CallKind::release;
    hook.call.object = recorder().find(handle);
    hook.call.object_kind = recorder().kind_of(handle);
    hook.call.queue = 0;
    recorder().releasing(handle);
  }
};

}  // namespace

void wrap_objects(cl_icd_dispatch& table) {
  SWAPMM_WRAP(clCreateContext, CreateContext);
  SWAPMM_WRAP(clCreateContextFromType, CreateContextFromType);
  SWAPMM_WRAP(clCreateCommandQueue, CreateQueue);
  SWAPMM_WRAP(clCreateCommandQueueWithProperties, CreateQueueWithProperties);
  SWAPMM_WRAP(clCreateUserEvent, CreateUserEvent);
  SWAPMM_WRAP(clCreateSampler, CreateSampler);
  SWAPMM_WRAP(clCreateSamplerWithProperties, CreateSampler);
  SWAPMM_WRAP(clRetainContext, Retain);
  SWAPMM_WRAP(clRetainCommandQueue, Retain);
  SWAPMM_WRAP(clRetainMemObject, Retain);
  SWAPMM_WRAP(clRetainProgram, Retain);
  SWAPMM_WRAP(clRetainKernel, Retain);
  SWAPMM_WRAP(clRetainEvent, Retain);
  SWAPMM_WRAP(clRetainSampler, Retain);
  SWAPMM_WRAP(clReleaseContext, Release);
  SWAPMM_WRAP(clReleaseCommandQueue, Release);
  SWAPMM_WRAP(clReleaseMemObject, Release);
  SWAPMM_WRAP(clReleaseProgram, Release);
  SWAPMM_WRAP(clReleaseKernel, Release);
  SWAPMM_WRAP(clReleaseEvent, Release);
  SWAPMM_WRAP(clReleaseSampler, Release);
}

}  // namespace swapmm::opencl::layer::record
