// SPDX-License-Identifier: Apache-2.0
#include "themes.hpp"

namespace swapmm::opencl::layer::record {
namespace {

using calls::CallKind;

// All bytes of an object.
void add_whole(Hook& hook, cl_mem handle, Access access) {
  add_operand(hook, handle, access, 0, recorder().memory(recorder().find(handle)).bytes);
}

// Commands on images and shared virtual memory. What they do with buffers is told all the same.
struct Foreign {
  template <class... Arguments>
  static void before(Hook& hook, Arguments&...) {
    hook.call.kind = CallKind::foreign;
  }
};

struct ReadImage : Foreign {
  template <class... Rest>
  static void before(Hook& hook, cl_command_queue&, cl_mem& image, cl_bool& blocking, Rest&...) {
    hook.call.kind = CallKind::foreign;
    hook.call.blocking = blocking != CL_FALSE;
    add_whole(hook, image, Access::read);
  }
};

struct WriteImage : Foreign {
  template <class... Rest>
  static void before(Hook& hook, cl_command_queue&, cl_mem& image, cl_bool& blocking, Rest&...) {
    hook.call.kind = CallKind::foreign;
    hook.call.blocking = blocking != CL_FALSE;
    add_whole(hook, image, Access::update);
  }
};

struct FillImage {
  template <class... Rest>
  static void before(Hook& hook, cl_command_queue&, cl_mem& image, Rest&...) {
    hook.call.kind = CallKind::foreign;
    add_whole(hook, image, Access::update);
  }
};

struct CopyBoth {
  template <class... Rest>
  static void before(Hook& hook, cl_command_queue&, cl_mem& from, cl_mem& to, Rest&...) {
    hook.call.kind = CallKind::foreign;
    add_whole(hook, from, Access::read);
    add_whole(hook, to, Access::update);
  }
};

// Its function runs on the host, and may tell the program that commands before it have ended.
struct Native {
  static void before(Hook& hook, cl_command_queue&, void(CL_CALLBACK*&)(void*), void*&, size_t&, cl_uint& count,
                     const cl_mem*& objects, const void**&, cl_uint&, const cl_event*&, cl_event*&) {
    recorder().pending().forget_reads();
    hook.call.kind = CallKind::foreign;
    for (cl_uint i = 0; i < count && objects != nullptr; ++i) add_whole(hook, objects[i], Access::update);
  }
};

struct Migrate {
  static void before(Hook& hook, cl_command_queue&, cl_uint& count, const cl_mem*& objects,
                     cl_mem_migration_flags& flags, cl_uint&, const cl_event*&, cl_event*&) {
    hook.call.kind = CallKind::migrate;
    hook.call.flags = flags;
    for (cl_uint i = 0; i < count && objects != nullptr; ++i) {
      hook.call.objects.push_back(recorder().find(objects[i]));
    }
  }
};

}  // namespace

void wrap_foreign(cl_icd_dispatch& table) {
  SWAPMM_WRAP(clEnqueueReadImage, ReadImage);
  SWAPMM_WRAP(clEnqueueWriteImage, WriteImage);
  SWAPMM_WRAP(clEnqueueFillImage, FillImage);
  SWAPMM_WRAP(clEnqueueCopyImage, CopyBoth);
  SWAPMM_WRAP(clEnqueueCopyImageToBuffer, CopyBoth);
  SWAPMM_WRAP(clEnqueueCopyBufferToImage, CopyBoth);
  SWAPMM_WRAP(clEnqueueNativeKernel, Native);
  SWAPMM_WRAP(clEnqueueMigrateMemObjects, Migrate);
  SWAPMM_WRAP(clEnqueueSVMFree, Foreign);
  SWAPMM_WRAP(clEnqueueSVMMemcpy, Foreign);
  SWAPMM_WRAP(clEnqueueSVMMemFill, Foreign);
  SWAPMM_WRAP(clEnqueueSVMMap, Foreign);
  SWAPMM_WRAP(clEnqueueSVMUnmap, Foreign);
  SWAPMM_WRAP(clEnqueueSVMMigrateMem, Foreign);
  SWAPMM_WRAP(clEnqueueAcquireGLObjects, Foreign);
  SWAPMM_WRAP(clEnqueueReleaseGLObjects, Foreign);
  SWAPMM_WRAP(clEnqueueAcquireEGLObjectsKHR, Foreign);
  SWAPMM_WRAP(clEnqueueReleaseEGLObjectsKHR, Foreign);
}

}  // namespace swapmm::opencl::layer::record
