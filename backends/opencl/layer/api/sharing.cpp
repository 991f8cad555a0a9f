// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "../memory.hpp"
#include "../queue.hpp"
#include "checks.hpp"
#include "install.hpp"
#include "native_objects.hpp"

// Objects that are shared with OpenGL and EGL: the driver's own. Their bytes belong to the other API, which had them
// before, so no room is made for them; they count nevertheless.

namespace swapmm::opencl::layer::api {
namespace {

template <class Make>
cl_mem shared(cl_context handle, cl_int* status, Make&& make) {
  Context* const context = Context::of(handle);
  return context == nullptr ? make(status)
                            : make_native(*context, PassedThrough::graphics, Bytes{}, nullptr, status, make);
}

cl_mem CL_API_CALL from_gl_buffer(cl_context context, cl_mem_flags flags, cl_GLuint name, int* status) {
  return shared(context, status, [&](cl_int* told) { return down.clCreateFromGLBuffer(context, flags, name, told); });
}
cl_mem CL_API_CALL from_gl_texture(cl_context context, cl_mem_flags flags, cl_GLenum target, cl_GLint level,
                                   cl_GLuint name, cl_int* status) {
  return shared(context, status,
                [&](cl_int* told) { return down.clCreateFromGLTexture(context, flags, target, level, name, told); });
}
cl_mem CL_API_CALL from_gl_texture_2d(cl_context context, cl_mem_flags flags, cl_GLenum target, cl_GLint level,
                                      cl_GLuint name, cl_int* status) {
  return shared(context, status,
                [&](cl_int* told) { return down.clCreateFromGLTexture2D(context, flags, target, level, name, told); });
}
cl_mem CL_API_CALL from_gl_texture_3d(cl_context context, cl_mem_flags flags, cl_GLenum target, cl_GLint level,
                                      cl_GLuint name, cl_int* status) {
  return shared(context, status,
                [&](cl_int* told) { return down.clCreateFromGLTexture3D(context, flags, target, level, name, told); });
}
cl_mem CL_API_CALL from_gl_renderbuffer(cl_context context, cl_mem_flags flags, cl_GLuint name, cl_int* status) {
  return shared(context, status,
                [&](cl_int* told) { return down.clCreateFromGLRenderbuffer(context, flags, name, told); });
}
cl_mem CL_API_CALL from_egl_image(cl_context context, CLeglDisplayKHR display, CLeglImageKHR image, cl_mem_flags flags,
                                  const cl_egl_image_properties_khr* properties, cl_int* status) {
  return shared(context, status, [&](cl_int* told) {
    return down.clCreateFromEGLImageKHR(context, display, image, flags, properties, told);
  });
}

cl_int CL_API_CALL gl_object_info(cl_mem handle, cl_gl_object_type* type, cl_GLuint* name) {
  Memory* const memory = Memory::from(handle);
  return down.clGetGLObjectInfo(memory == nullptr ? handle : native_handle(*memory), type, name);
}
cl_int CL_API_CALL gl_texture_info(cl_mem handle, cl_gl_texture_info what, size_t size, void* into, size_t* needed) {
  Memory* const memory = Memory::from(handle);
  return down.clGetGLTextureInfo(memory == nullptr ? handle : native_handle(*memory), what, size, into, needed);
}

using Hand = cl_int(CL_API_CALL*)(cl_command_queue, cl_uint, const cl_mem*, cl_uint, const cl_event*, cl_event*);

cl_int hand_over(Hand hand, cl_command_type type, cl_command_queue handle, cl_uint objects, const cl_mem* list,
                 cl_uint count, const cl_event* waits, cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) return hand(handle, objects, list, count, waits, event);
  if ((objects == 0) != (list == nullptr)) return CL_INVALID_VALUE;
  std::vector<Use> uses;
  for (cl_uint i = 0; i < objects; ++i) {
    Memory* memory = nullptr;
    if (const cl_int wrong = check_memory(*queue, list[i], memory); wrong != CL_SUCCESS) return wrong;
    uses.emplace_back(memory);
  }
  return enqueue(*queue, {type, count, waits, event}, [=](Context& context, cl_event* native) {
    return context.direct(native, [&](cl_event* made) {
      std::vector<cl_mem> natives;
      natives.reserve(uses.size());
      for (const Use& use : uses) natives.push_back(use->native());
      return hand(context.queue(), objects, natives.empty() ? nullptr : natives.data(), 0, nullptr, made);
    });
  });
}

cl_int CL_API_CALL acquire_gl(cl_command_queue queue, cl_uint objects, const cl_mem* list, cl_uint count,
                              const cl_event* waits, cl_event* event) {
  return hand_over(down.clEnqueueAcquireGLObjects, CL_COMMAND_ACQUIRE_GL_OBJECTS, queue, objects, list, count, waits,
                   event);
}
cl_int CL_API_CALL release_gl(cl_command_queue queue, cl_uint objects, const cl_mem* list, cl_uint count,
                              const cl_event* waits, cl_event* event) {
  return hand_over(down.clEnqueueReleaseGLObjects, CL_COMMAND_RELEASE_GL_OBJECTS, queue, objects, list, count, waits,
                   event);
}
cl_int CL_API_CALL acquire_egl(cl_command_queue queue, cl_uint objects, const cl_mem* list, cl_uint count,
                               const cl_event* waits, cl_event* event) {
  return hand_over(down.clEnqueueAcquireEGLObjectsKHR, CL_COMMAND_ACQUIRE_EGL_OBJECTS_KHR, queue, objects, list, count,
                   waits, event);
}
cl_int CL_API_CALL release_egl(cl_command_queue queue, cl_uint objects, const cl_mem* list, cl_uint count,
                               const cl_event* waits, cl_event* event) {
  return hand_over(down.clEnqueueReleaseEGLObjectsKHR, CL_COMMAND_RELEASE_EGL_OBJECTS_KHR, queue, objects, list, count,
                   waits, event);
}

// An event of another API.
cl_event foreign(cl_context handle, cl_event native, cl_command_type type) {
  Context* const context = Context::of(handle);
  if (native == nullptr || context == nullptr || !context->managed()) return native;
  auto* const event = new Event(*context, nullptr, type);
  event->submitted(native);
  return event->handle();
}
cl_event CL_API_CALL event_from_gl(cl_context context, cl_GLsync sync, cl_int* status) {
  return foreign(context, down.clCreateEventFromGLsyncKHR(context, sync, status), CL_COMMAND_GL_FENCE_SYNC_OBJECT_KHR);
}
cl_event CL_API_CALL event_from_egl(cl_context context, CLeglSyncKHR sync, CLeglDisplayKHR display, cl_int* status) {
  return foreign(context, down.clCreateEventFromEGLSyncKHR(context, sync, display, status),
                 CL_COMMAND_EGL_FENCE_SYNC_OBJECT_KHR);
}

}  // namespace

void install_sharing(cl_icd_dispatch& table) {
  table.clCreateFromGLBuffer = from_gl_buffer;
  table.clCreateFromGLTexture = from_gl_texture;
  table.clCreateFromGLTexture2D = from_gl_texture_2d;
  table.clCreateFromGLTexture3D = from_gl_texture_3d;
  table.clCreateFromGLRenderbuffer = from_gl_renderbuffer;
  table.clGetGLObjectInfo = gl_object_info;
  table.clGetGLTextureInfo = gl_texture_info;
  table.clEnqueueAcquireGLObjects = acquire_gl;
  table.clEnqueueReleaseGLObjects = release_gl;
  table.clCreateEventFromGLsyncKHR = event_from_gl;
  table.clCreateFromEGLImageKHR = from_egl_image;
  table.clEnqueueAcquireEGLObjectsKHR = acquire_egl;
  table.clEnqueueReleaseEGLObjectsKHR = release_egl;
  table.clCreateEventFromEGLSyncKHR = event_from_egl;
}

}  // namespace swapmm::opencl::layer::api
