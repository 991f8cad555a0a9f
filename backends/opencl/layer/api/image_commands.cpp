// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>

#include "../memory.hpp"
#include "../queue.hpp"
#include "checks.hpp"
#include "install.hpp"

namespace swapmm::opencl::layer::api {
namespace {

cl_int check_image(const Queue& queue, cl_mem handle, Memory*& memory) {
  if (const cl_int wrong = check_memory(queue, handle, memory); wrong != CL_SUCCESS) return wrong;
  return memory->is_buffer() ? CL_INVALID_MEM_OBJECT : CL_SUCCESS;
}

cl_int CL_API_CALL read_image(cl_command_queue handle, cl_mem image, cl_bool blocking, const size_t* origin,
                              const size_t* region, size_t row, size_t slice, void* to, cl_uint count,
                              const cl_event* waits, cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) {
    return down.clEnqueueReadImage(handle, image, blocking, origin, region, row, slice, to, count, waits, event);
  }
  Memory* memory = nullptr;
  if (const cl_int wrong = check_image(*queue, image, memory); wrong != CL_SUCCESS) return wrong;
  if (origin == nullptr || region == nullptr || to == nullptr) return CL_INVALID_VALUE;
  const Three from = three(origin);
  const Three part = three(region);
  const Place place{CL_COMMAND_READ_IMAGE, count, waits, event, blocking != CL_FALSE};
  return enqueue(*queue, place, [=, use = Use(memory)](Context& context, cl_event* native) {
    return context.direct(native, [&](cl_event* made) {
      return down.clEnqueueReadImage(context.queue(), use->native(), CL_FALSE, from.data(), part.data(), row, slice, to,
                                     0, nullptr, made);
    });
  });
}

cl_int CL_API_CALL write_image(cl_command_queue handle, cl_mem image, cl_bool blocking, const size_t* origin,
                               const size_t* region, size_t row, size_t slice, const void* source, cl_uint count,
                               const cl_event* waits, cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) {
    return down.clEnqueueWriteImage(handle, image, blocking, origin, region, row, slice, source, count, waits, event);
  }
  Memory* memory = nullptr;
  if (const cl_int wrong = check_image(*queue, image, memory); wrong != CL_SUCCESS) return wrong;
  if (origin == nullptr || region == nullptr || source == nullptr) return CL_INVALID_VALUE;
  const Three to = three(origin);
  const Three part = three(region);
  const Place place{CL_COMMAND_WRITE_IMAGE, count, waits, event, blocking != CL_FALSE};
  return enqueue(*queue, place, [=, use = Use(memory)](Context& context, cl_event* native) {
    return context.direct(native, [&](cl_event* made) {
      return down.clEnqueueWriteImage(context.queue(), use->native(), CL_FALSE, to.data(), part.data(), row, slice,
                                      source, 0, nullptr, made);
    });
  });
}

cl_int CL_API_CALL copy_image(cl_command_queue handle, cl_mem from, cl_mem to, const size_t* from_origin,
                              const size_t* to_origin, const size_t* region, cl_uint count, const cl_event* waits,
                              cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) {
    return down.clEnqueueCopyImage(handle, from, to, from_origin, to_origin, region, count, waits, event);
  }
  Memory* source = nullptr;
  Memory* target = nullptr;
  if (const cl_int wrong = check_image(*queue, from, source); wrong != CL_SUCCESS) return wrong;
  if (const cl_int wrong = check_image(*queue, to, target); wrong != CL_SUCCESS) return wrong;
  if (from_origin == nullptr || to_origin == nullptr || region == nullptr) return CL_INVALID_VALUE;
  const Three a = three(from_origin);
  const Three b = three(to_origin);
  const Three part = three(region);
  const Place place{CL_COMMAND_COPY_IMAGE, count, waits, event};
  return enqueue(*queue, place, [=, x = Use(source), y = Use(target)](Context& context, cl_event* native) {
    return context.direct(native, [&](cl_event* made) {
      return down.clEnqueueCopyImage(context.queue(), x->native(), y->native(), a.data(), b.data(), part.data(), 0,
                                     nullptr, made);
    });
  });
}

cl_int CL_API_CALL fill_image(cl_command_queue handle, cl_mem image, const void* color, const size_t* origin,
                              const size_t* region, cl_uint count, const cl_event* waits, cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) return down.clEnqueueFillImage(handle, image, color, origin, region, count, waits, event);
  Memory* memory = nullptr;
  if (const cl_int wrong = check_image(*queue, image, memory); wrong != CL_SUCCESS) return wrong;
  if (color == nullptr || origin == nullptr || region == nullptr) return CL_INVALID_VALUE;
  // Four values of four bytes; one for depth images.
  cl_image_format format{};
  {
    const Lock lock = memory->context().lock();
    (void)down.clGetImageInfo(memory->native(), CL_IMAGE_FORMAT, sizeof format, &format, nullptr);
  }
  std::array<cl_uint, 4> value{};
  std::memcpy(value.data(), color, format.image_channel_order == CL_DEPTH ? sizeof(cl_float) : sizeof value);
  const Three to = three(origin);
  const Three part = three(region);
  const Place place{CL_COMMAND_FILL_IMAGE, count, waits, event};
  return enqueue(*queue, place, [=, use = Use(memory)](Context& context, cl_event* native) {
    return context.direct(native, [&](cl_event* made) {
      return down.clEnqueueFillImage(context.queue(), use->native(), value.data(), to.data(), part.data(), 0, nullptr,
                                     made);
    });
  });
}

// The driver gets the allocation that the buffer lies in, and cannot see where the buffer ends.
bool beyond(Memory& image, const Three& region, const Memory& buffer, std::size_t offset) {
  std::size_t element = 0;
  const Lock lock = image.context().lock();
  (void)down.clGetImageInfo(image.native(), CL_IMAGE_ELEMENT_SIZE, sizeof element, &element, nullptr);
  std::optional<Bytes> bytes{Bytes{element}};
  for (const std::size_t each : region) {
    if (bytes) bytes = checked_multiply(*bytes, each);
  }
  return !bytes || bytes->value > buffer.facts().size - offset;
}

// Copies between an image and a buffer: run(queue, allocation, begin, waits, list). The driver knows how many bytes of
// the buffer that touches: it counts as all.
template <class Run>
cl_int between(Context& context, Memory& buffer, Access access, cl_event* native, Run&& run) {
  Bundle bundle;
  bundle.add(buffer, access);
  return on_buffer(context, {"image copy", 0, HostPart::none}, bundle, buffer, native, run);
}

cl_int CL_API_CALL image_to_buffer(cl_command_queue handle, cl_mem image, cl_mem buffer, const size_t* origin,
                                   const size_t* region, size_t offset, cl_uint count, const cl_event* waits,
                                   cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) {
    return down.clEnqueueCopyImageToBuffer(handle, image, buffer, origin, region, offset, count, waits, event);
  }
  Memory* source = nullptr;
  Memory* target = nullptr;
  if (const cl_int wrong = check_image(*queue, image, source); wrong != CL_SUCCESS) return wrong;
  if (const cl_int wrong = check_buffer(*queue, buffer, offset, 1, target); wrong != CL_SUCCESS) return wrong;
  if (origin == nullptr || region == nullptr) return CL_INVALID_VALUE;
  const Three from = three(origin);
  const Three part = three(region);
  if (beyond(*source, part, *target, offset)) return CL_INVALID_VALUE;
  const Place place{CL_COMMAND_COPY_IMAGE_TO_BUFFER, count, waits, event};
  return enqueue(*queue, place, [=, x = Use(source), y = Use(target)](Context& context, cl_event* native) {
    return between(context, *y, Access::update, native,
                   [&](cl_command_queue on, cl_mem real, std::size_t begin, cl_uint n, const cl_event* list) {
                     return down.clEnqueueCopyImageToBuffer(on, x->native(), real, from.data(), part.data(),
                                                            begin + offset, n, list, native);
                   });
  });
}

cl_int CL_API_CALL buffer_to_image(cl_command_queue handle, cl_mem buffer, cl_mem image, size_t offset,
                                   const size_t* origin, const size_t* region, cl_uint count, const cl_event* waits,
                                   cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) {
    return down.clEnqueueCopyBufferToImage(handle, buffer, image, offset, origin, region, count, waits, event);
  }
  Memory* source = nullptr;
  Memory* target = nullptr;
  if (const cl_int wrong = check_buffer(*queue, buffer, offset, 1, source); wrong != CL_SUCCESS) return wrong;
  if (const cl_int wrong = check_image(*queue, image, target); wrong != CL_SUCCESS) return wrong;
  if (origin == nullptr || region == nullptr) return CL_INVALID_VALUE;
  const Three to = three(origin);
  const Three part = three(region);
  if (beyond(*target, part, *source, offset)) return CL_INVALID_VALUE;
  const Place place{CL_COMMAND_COPY_BUFFER_TO_IMAGE, count, waits, event};
  return enqueue(*queue, place, [=, x = Use(source), y = Use(target)](Context& context, cl_event* native) {
    return between(context, *x, Access::read, native,
                   [&](cl_command_queue on, cl_mem real, std::size_t begin, cl_uint n, const cl_event* list) {
                     return down.clEnqueueCopyBufferToImage(on, real, y->native(), begin + offset, to.data(),
                                                            part.data(), n, list, native);
                   });
  });
}

}  // namespace

void install_image_commands(cl_icd_dispatch& table) {
  table.clEnqueueReadImage = read_image;
  table.clEnqueueWriteImage = write_image;
  table.clEnqueueCopyImage = copy_image;
  table.clEnqueueFillImage = fill_image;
  table.clEnqueueCopyImageToBuffer = image_to_buffer;
  table.clEnqueueCopyBufferToImage = buffer_to_image;
}

}  // namespace swapmm::opencl::layer::api
