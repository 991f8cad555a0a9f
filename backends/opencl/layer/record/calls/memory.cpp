// SPDX-License-Identifier: Apache-2.0
#include "../../memory.hpp"
#include "../host_bytes.hpp"
#include "themes.hpp"

namespace swapmm::opencl::layer::record {
namespace {

using calls::ObjectKind;

// The API copies the bytes, or may read them at any time from now on.
void note_host(Hook& hook, cl_mem_flags flags, std::size_t size, const void* host) {
  if (host == nullptr || (flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR)) == 0) return;
  hook.call.host = host_range(host, size);
  log_input(recorder(), hook.call.sequence, *hook.call.host);
}

void buffer_made(Hook& hook, cl_mem made, cl_context context, cl_mem_flags flags, std::size_t size, const void* host) {
  hook.call.parent = recorder().find(context);
  hook.call.flags = flags;
  hook.call.bytes = size;
  const calls::Object object = hook.made(made, ObjectKind::buffer);
  if (object == 0) return;
  recorder().add_memory(object, {flags, size, object, 0});
  note_host(hook, flags, size, host);
}

struct CreateBuffer {
  static void after(Hook& hook, cl_mem made, cl_context context, cl_mem_flags flags, size_t size, void* host, cl_int*) {
    buffer_made(hook, made, context, flags, size, host);
  }
};

struct CreateBufferWithProperties {
  static void after(Hook& hook, cl_mem made, cl_context context, const cl_mem_properties*, cl_mem_flags flags,
                    size_t size, void* host, cl_int*) {
    buffer_made(hook, made, context, flags, size, host);
  }
};

struct CreatePart {
  static void after(Hook& hook, cl_mem made, cl_mem handle, cl_mem_flags flags, cl_buffer_create_type type,
                    const void* what, cl_int*) {
    const calls::Object parent = recorder().find(handle);
    const KnownMemory above = recorder().memory(parent);
    hook.call.parent = parent;
    hook.call.flags = flags;
    const calls::Object object = hook.made(made, ObjectKind::part);
    if (object == 0 || type != CL_BUFFER_CREATE_TYPE_REGION) return;
    const auto& region = *static_cast<const cl_buffer_region*>(what);
    hook.call.offset = region.origin;
    hook.call.bytes = region.size;
    constexpr cl_mem_flags access = CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY;
    if ((flags & access) == 0) flags |= above.flags & access;
    recorder().add_memory(object, {flags, region.size, above.root, above.offset + region.origin});
  }
};

// What is not managed has a size for the layer, and nothing else that a log could repeat.
void foreign_made(Hook& hook, cl_mem made, cl_context context, ObjectKind kind) {
  hook.call.parent = recorder().find(context);
  const calls::Object object = hook.made(made, kind);
  if (object == 0) return;
  std::size_t size = 0;
  if (next.clGetMemObjectInfo(made, CL_MEM_SIZE, sizeof size, &size, nullptr) == CL_SUCCESS) hook.call.bytes = size;
  recorder().add_memory(object, {0, hook.call.bytes, object, 0});
}

struct CreateImage {
  template <class... Rest>
  static void after(Hook& hook, cl_mem made, cl_context context, Rest...) {
    foreign_made(hook, made, context, ObjectKind::image);
  }
};

struct CreateOther {
  template <class... Rest>
  static void after(Hook& hook, cl_mem made, cl_context context, Rest...) {
    foreign_made(hook, made, context, ObjectKind::other);
  }
};

}  // namespace

void add_operand(Hook& hook, cl_mem handle, Access access, std::uint64_t offset, std::uint64_t bytes) {
  calls::Operand operand;
  operand.object = recorder().find(handle);
  operand.access = access;
  operand.offset = offset;
  operand.bytes = bytes;
  if (operand.object != 0) hook.call.operands.push_back(operand);
}

void wrap_memory(cl_icd_dispatch& table) {
  SWAPMM_WRAP(clCreateBuffer, CreateBuffer);
  SWAPMM_WRAP(clCreateBufferWithProperties, CreateBufferWithProperties);
  SWAPMM_WRAP(clCreateSubBuffer, CreatePart);
  SWAPMM_WRAP(clCreateImage, CreateImage);
  SWAPMM_WRAP(clCreateImageWithProperties, CreateImage);
  SWAPMM_WRAP(clCreateImage2D, CreateImage);
  SWAPMM_WRAP(clCreateImage3D, CreateImage);
  SWAPMM_WRAP(clCreatePipe, CreateOther);
  SWAPMM_WRAP(clCreateFromGLBuffer, CreateOther);
  SWAPMM_WRAP(clCreateFromGLTexture, CreateOther);
  SWAPMM_WRAP(clCreateFromGLTexture2D, CreateOther);
  SWAPMM_WRAP(clCreateFromGLTexture3D, CreateOther);
  SWAPMM_WRAP(clCreateFromGLRenderbuffer, CreateOther);
  SWAPMM_WRAP(clCreateFromEGLImageKHR, CreateOther);
}

}  // namespace swapmm::opencl::layer::record
