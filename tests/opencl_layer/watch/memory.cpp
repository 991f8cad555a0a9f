// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include <cstddef>
#include <memory>

#include "kernels.hpp"

namespace watch {
namespace {

const cl_icd_dispatch* down = nullptr;

// These functions are called with locks of others held: they call nothing of OpenCL.
void CL_CALLBACK tell_destroyed(cl_mem, void* number) { ledger().destroyed(reinterpret_cast<std::uintptr_t>(number)); }

/// Lets the driver tell when it destroys the object. The first callback is the last one to be called.
void follow(cl_mem object, std::uint64_t number) {
  down->clSetMemObjectDestructorCallback(object, tell_destroyed, reinterpret_cast<void*>(number));
}

/// A callback of the layer above. It may let another thread take the memory, so the ledger knows before.
struct Told {
  void(CL_CALLBACK* function)(cl_mem, void*);
  void* data;
  std::uint64_t number;
};
void CL_CALLBACK tell_above(cl_mem object, void* data) {
  const std::unique_ptr<Told> told(static_cast<Told*>(data));
  ledger().destroyed(told->number);
  told->function(object, told->data);
}
cl_int CL_API_CALL set_destructor_callback(cl_mem object, void(CL_CALLBACK* function)(cl_mem, void*), void* data) {
  if (function == nullptr) return down->clSetMemObjectDestructorCallback(object, function, data);
  auto told = std::make_unique<Told>(Told{function, data, ledger().number_of(object)});
  const cl_int status = down->clSetMemObjectDestructorCallback(object, tell_above, told.get());
  if (status == CL_SUCCESS) (void)told.release();
  return status;
}

void refuse(cl_int* error) {
  if (error != nullptr) *error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
}

bool in_host_memory(cl_mem_flags flags) { return (flags & (CL_MEM_ALLOC_HOST_PTR | CL_MEM_USE_HOST_PTR)) != 0; }

template <class Create>
cl_mem create_buffer(cl_mem_flags flags, std::size_t bytes, cl_int* error, Create create) {
  const bool pinned = in_host_memory(flags);
  if (!ledger().take(bytes, pinned)) {
    refuse(error);
    return nullptr;
  }
  const cl_mem made = create();
  if (made == nullptr) {
    ledger().give_back(bytes, pinned);
    return nullptr;
  }
  follow(made, ledger().made(made, nullptr, bytes, pinned, false));
  return made;
}

// The size of an image is known once it is made.
template <class Create>
cl_mem create_image(cl_mem parent, cl_int* error, Create create) {
  const cl_mem made = create();
  if (made == nullptr) return nullptr;
  std::size_t bytes = 0;
  if (parent == nullptr) {
    down->clGetMemObjectInfo(made, CL_MEM_SIZE, sizeof bytes, &bytes, nullptr);
    if (!ledger().take(bytes, false)) {
      down->clReleaseMemObject(made);
      refuse(error);
      return nullptr;
    }
  }
  follow(made, ledger().made(made, parent, bytes, false, true));
  return made;
}

cl_mem parent_of(const cl_image_desc* description) {
  return description == nullptr ? nullptr : description->mem_object;
}

cl_mem CL_API_CALL buffer(cl_context context, cl_mem_flags flags, std::size_t bytes, void* host, cl_int* error) {
  return create_buffer(flags, bytes, error, [&] { return down->clCreateBuffer(context, flags, bytes, host, error); });
}

cl_mem CL_API_CALL buffer_with_properties(cl_context context, const cl_mem_properties* properties, cl_mem_flags flags,
                                          std::size_t bytes, void* host, cl_int* error) {
  return create_buffer(flags, bytes, error, [&] {
    return down->clCreateBufferWithProperties(context, properties, flags, bytes, host, error);
  });
}

cl_mem CL_API_CALL sub_buffer(cl_mem parent, cl_mem_flags flags, cl_buffer_create_type type, const void* region,
                              cl_int* error) {
  const cl_mem made = down->clCreateSubBuffer(parent, flags, type, region, error);
  if (made == nullptr) return nullptr;
  follow(made, ledger().made(made, parent, 0, false, false));
  return made;
}

cl_mem CL_API_CALL image(cl_context context, cl_mem_flags flags, const cl_image_format* format,
                         const cl_image_desc* description, void* host, cl_int* error) {
  return create_image(parent_of(description), error,
                      [&] { return down->clCreateImage(context, flags, format, description, host, error); });
}

cl_mem CL_API_CALL image_with_properties(cl_context context, const cl_mem_properties* properties, cl_mem_flags flags,
                                         const cl_image_format* format, const cl_image_desc* description, void* host,
                                         cl_int* error) {
  return create_image(parent_of(description), error, [&] {
    return down->clCreateImageWithProperties(context, properties, flags, format, description, host, error);
  });
}

cl_mem CL_API_CALL image_2d(cl_context context, cl_mem_flags flags, const cl_image_format* format, std::size_t width,
                            std::size_t height, std::size_t pitch, void* host, cl_int* error) {
  return create_image(nullptr, error,
                      [&] { return down->clCreateImage2D(context, flags, format, width, height, pitch, host, error); });
}

cl_mem CL_API_CALL image_3d(cl_context context, cl_mem_flags flags, const cl_image_format* format, std::size_t width,
                            std::size_t height, std::size_t depth, std::size_t pitch, std::size_t slice, void* host,
                            cl_int* error) {
  return create_image(nullptr, error, [&] {
    return down->clCreateImage3D(context, flags, format, width, height, depth, pitch, slice, host, error);
  });
}

void* CL_API_CALL svm_alloc(cl_context context, cl_svm_mem_flags flags, std::size_t bytes, cl_uint alignment) {
  void* made = down->clSVMAlloc(context, flags, bytes, alignment);
  if (made == nullptr || ledger().made_svm(made, bytes)) return made;
  down->clSVMFree(context, made);
  return nullptr;
}

void CL_API_CALL svm_free(cl_context context, void* pointer) {
  ledger().destroyed_svm(pointer);
  down->clSVMFree(context, pointer);
}

cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem object, cl_bool blocking, std::size_t offset,
                               std::size_t bytes, void* to, cl_uint wait_count, const cl_event* waits,
                               cl_event* event) {
  ledger().used({object}, false);
  ledger().transferred(bytes, 0);
  return down->clEnqueueReadBuffer(queue, object, blocking, offset, bytes, to, wait_count, waits, event);
}

cl_int CL_API_CALL write_buffer(cl_command_queue queue, cl_mem object, cl_bool blocking, std::size_t offset,
                                std::size_t bytes, const void* from, cl_uint wait_count, const cl_event* waits,
                                cl_event* event) {
  ledger().used({object}, false);
  ledger().transferred(0, bytes);
  return down->clEnqueueWriteBuffer(queue, object, blocking, offset, bytes, from, wait_count, waits, event);
}

std::uint64_t volume(const std::size_t* region) {
  return region == nullptr ? 0 : std::uint64_t{region[0]} * region[1] * region[2];
}

cl_int CL_API_CALL read_rect(cl_command_queue queue, cl_mem object, cl_bool blocking, const std::size_t* origin,
                             const std::size_t* host_origin, const std::size_t* region, std::size_t row,
                             std::size_t slice, std::size_t host_row, std::size_t host_slice, void* to,
                             cl_uint wait_count, const cl_event* waits, cl_event* event) {
  ledger().used({object}, false);
  ledger().transferred(volume(region), 0);
  return down->clEnqueueReadBufferRect(queue, object, blocking, origin, host_origin, region, row, slice, host_row,
                                       host_slice, to, wait_count, waits, event);
}

cl_int CL_API_CALL write_rect(cl_command_queue queue, cl_mem object, cl_bool blocking, const std::size_t* origin,
                              const std::size_t* host_origin, const std::size_t* region, std::size_t row,
                              std::size_t slice, std::size_t host_row, std::size_t host_slice, const void* from,
                              cl_uint wait_count, const cl_event* waits, cl_event* event) {
  ledger().used({object}, false);
  ledger().transferred(0, volume(region));
  return down->clEnqueueWriteBufferRect(queue, object, blocking, origin, host_origin, region, row, slice, host_row,
                                        host_slice, from, wait_count, waits, event);
}

cl_int CL_API_CALL copy_buffer(cl_command_queue queue, cl_mem from, cl_mem to, std::size_t from_offset,
                               std::size_t to_offset, std::size_t bytes, cl_uint wait_count, const cl_event* waits,
                               cl_event* event) {
  ledger().used({from, to}, false);
  return down->clEnqueueCopyBuffer(queue, from, to, from_offset, to_offset, bytes, wait_count, waits, event);
}

cl_int CL_API_CALL copy_rect(cl_command_queue queue, cl_mem from, cl_mem to, const std::size_t* from_origin,
                             const std::size_t* to_origin, const std::size_t* region, std::size_t from_row,
                             std::size_t from_slice, std::size_t to_row, std::size_t to_slice, cl_uint wait_count,
                             const cl_event* waits, cl_event* event) {
  ledger().used({from, to}, false);
  return down->clEnqueueCopyBufferRect(queue, from, to, from_origin, to_origin, region, from_row, from_slice, to_row,
                                       to_slice, wait_count, waits, event);
}

cl_int CL_API_CALL fill_buffer(cl_command_queue queue, cl_mem object, const void* pattern, std::size_t pattern_bytes,
                               std::size_t offset, std::size_t bytes, cl_uint wait_count, const cl_event* waits,
                               cl_event* event) {
  ledger().used({object}, false);
  return down->clEnqueueFillBuffer(queue, object, pattern, pattern_bytes, offset, bytes, wait_count, waits, event);
}

void* CL_API_CALL map_buffer(cl_command_queue queue, cl_mem object, cl_bool blocking, cl_map_flags flags,
                             std::size_t offset, std::size_t bytes, cl_uint wait_count, const cl_event* waits,
                             cl_event* event, cl_int* error) {
  ledger().used({object}, false);
  return down->clEnqueueMapBuffer(queue, object, blocking, flags, offset, bytes, wait_count, waits, event, error);
}

cl_int CL_API_CALL image_to_buffer(cl_command_queue queue, cl_mem from, cl_mem to, const std::size_t* origin,
                                   const std::size_t* region, std::size_t offset, cl_uint wait_count,
                                   const cl_event* waits, cl_event* event) {
  ledger().used({from, to}, false);
  return down->clEnqueueCopyImageToBuffer(queue, from, to, origin, region, offset, wait_count, waits, event);
}

cl_int CL_API_CALL buffer_to_image(cl_command_queue queue, cl_mem from, cl_mem to, std::size_t offset,
                                   const std::size_t* origin, const std::size_t* region, cl_uint wait_count,
                                   const cl_event* waits, cl_event* event) {
  ledger().used({from, to}, false);
  return down->clEnqueueCopyBufferToImage(queue, from, to, offset, origin, region, wait_count, waits, event);
}

}  // namespace

void keep_ledger(cl_icd_dispatch& table, const cl_icd_dispatch& below) {
  down = &below;
  table = below;
  table.clCreateBuffer = buffer;
  table.clCreateBufferWithProperties = buffer_with_properties;
  table.clCreateSubBuffer = sub_buffer;
  table.clCreateImage = image;
  table.clCreateImageWithProperties = image_with_properties;
  table.clCreateImage2D = image_2d;
  table.clCreateImage3D = image_3d;
  table.clSetMemObjectDestructorCallback = set_destructor_callback;
  table.clSVMAlloc = svm_alloc;
  table.clSVMFree = svm_free;
  table.clEnqueueReadBuffer = read_buffer;
  table.clEnqueueWriteBuffer = write_buffer;
  table.clEnqueueReadBufferRect = read_rect;
  table.clEnqueueWriteBufferRect = write_rect;
  table.clEnqueueCopyBuffer = copy_buffer;
  table.clEnqueueCopyBufferRect = copy_rect;
  table.clEnqueueFillBuffer = fill_buffer;
  table.clEnqueueMapBuffer = map_buffer;
  table.clEnqueueCopyImageToBuffer = image_to_buffer;
  table.clEnqueueCopyBufferToImage = buffer_to_image;
  watch_kernels(table, below);
}

}  // namespace watch
