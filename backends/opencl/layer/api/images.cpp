// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <vector>

#include "../memory.hpp"
#include "install.hpp"
#include "native_objects.hpp"

namespace swapmm::opencl::layer::api {
namespace {

std::size_t channels_of(cl_channel_order order) {
  switch (order) {
    case CL_RG:
    case CL_RA:
    case CL_RGx: return 2;
    case CL_RGB:
    case CL_RGBx:
    case CL_sRGB: return 3;
    case CL_RGBA:
    case CL_BGRA:
    case CL_ARGB:
    case CL_ABGR:
    case CL_sRGBA:
    case CL_sBGRA:
    case CL_sRGBx: return 4;
    default: return 1;
  }
}

std::size_t element_size(const cl_image_format& format) {
  switch (format.image_channel_data_type) {
    case CL_UNORM_SHORT_565:
    case CL_UNORM_SHORT_555: return 2;
    case CL_UNORM_INT_101010:
    case CL_UNORM_INT24: return 4;
    case CL_SNORM_INT8:
    case CL_UNORM_INT8:
    case CL_SIGNED_INT8:
    case CL_UNSIGNED_INT8: return channels_of(format.image_channel_order);
    case CL_SNORM_INT16:
    case CL_UNORM_INT16:
    case CL_SIGNED_INT16:
    case CL_UNSIGNED_INT16:
    case CL_HALF_FLOAT: return 2 * channels_of(format.image_channel_order);
    default: return 4 * channels_of(format.image_channel_order);
  }
}

// What the driver needs at least. What it really took is asked afterwards.
Bytes estimate(const cl_image_format& format, const cl_image_desc& what) {
  const std::size_t element = element_size(format);
  const std::size_t row = std::max(what.image_row_pitch, what.image_width * element);
  const bool has_rows = what.image_type == CL_MEM_OBJECT_IMAGE2D || what.image_type == CL_MEM_OBJECT_IMAGE2D_ARRAY ||
                        what.image_type == CL_MEM_OBJECT_IMAGE3D;
  const std::size_t slice = std::max(what.image_slice_pitch, row * (has_rows ? what.image_height : 1));
  const bool is_array =
      what.image_type == CL_MEM_OBJECT_IMAGE1D_ARRAY || what.image_type == CL_MEM_OBJECT_IMAGE2D_ARRAY;
  const std::size_t slices = what.image_type == CL_MEM_OBJECT_IMAGE3D ? what.image_depth
                             : is_array                               ? what.image_array_size
                                                                      : 1;
  return Bytes{slice * slices};
}

template <class Make>
cl_mem make_image(cl_context handle, const cl_image_format* format, const cl_image_desc* description, cl_int* status,
                  Make&& make) {
  Context* const context = Context::of(handle);
  if (context == nullptr || format == nullptr || description == nullptr) return make(description, status);
  Memory* const parent = Memory::from(description->mem_object);
  if (parent == nullptr) {
    return make_native(*context, PassedThrough::image, estimate(*format, *description), nullptr, status,
                       [&](cl_int* told) { return make(description, told); });
  }
  cl_image_desc real = *description;
  if (&parent->context() != context) return result<cl_mem>(nullptr, CL_INVALID_MEM_OBJECT, status);
  {
    const Lock lock = context->lock();
    if (parent->is_buffer()) {
      const bool is_root = &parent->root() == parent;
      // A buffer of which the driver makes no image goes on leaving the device. Parts of one are seldom wrong.
      const cl_int pinned = parent->root().pin([&](cl_mem native) {
        if (!is_root) return CL_SUCCESS;
        cl_int told = CL_SUCCESS;
        real.mem_object = native;
        const cl_mem trial = make(&real, &told);
        if (trial != nullptr) down.clReleaseMemObject(trial);
        return told;
      });
      if (pinned != CL_SUCCESS) return result<cl_mem>(nullptr, pinned, status);
    }
    real.mem_object = parent->native();
  }
  // Its bytes are its parent's.
  return make_native(*context, PassedThrough::image, Bytes{}, parent, status,
                     [&](cl_int* told) { return make(&real, told); });
}

cl_mem CL_API_CALL create_image(cl_context handle, cl_mem_flags flags, const cl_image_format* format,
                                const cl_image_desc* description, void* host, cl_int* status) {
  return make_image(handle, format, description, status, [&](const cl_image_desc* what, cl_int* told) {
    return down.clCreateImage(handle, flags, format, what, host, told);
  });
}

cl_mem CL_API_CALL create_image_with_properties(cl_context handle, const cl_mem_properties* properties,
                                                cl_mem_flags flags, const cl_image_format* format,
                                                const cl_image_desc* description, void* host, cl_int* status) {
  return make_image(handle, format, description, status, [&](const cl_image_desc* what, cl_int* told) {
    return down.clCreateImageWithProperties(handle, properties, flags, format, what, host, told);
  });
}

cl_mem CL_API_CALL create_image_2d(cl_context handle, cl_mem_flags flags, const cl_image_format* format, size_t width,
                                   size_t height, size_t row, void* host, cl_int* status) {
  cl_image_desc description{};
  description.image_type = CL_MEM_OBJECT_IMAGE2D;
  description.image_width = width;
  description.image_height = height;
  description.image_row_pitch = row;
  return make_image(handle, format, &description, status, [&](const cl_image_desc*, cl_int* told) {
    return down.clCreateImage2D(handle, flags, format, width, height, row, host, told);
  });
}

cl_mem CL_API_CALL create_image_3d(cl_context handle, cl_mem_flags flags, const cl_image_format* format, size_t width,
                                   size_t height, size_t depth, size_t row, size_t slice, void* host, cl_int* status) {
  cl_image_desc description{};
  description.image_type = CL_MEM_OBJECT_IMAGE3D;
  description.image_width = width;
  description.image_height = height;
  description.image_depth = depth;
  description.image_row_pitch = row;
  description.image_slice_pitch = slice;
  return make_image(handle, format, &description, status, [&](const cl_image_desc*, cl_int* told) {
    return down.clCreateImage3D(handle, flags, format, width, height, depth, row, slice, host, told);
  });
}

cl_mem CL_API_CALL create_pipe(cl_context handle, cl_mem_flags flags, cl_uint packet, cl_uint packets,
                               const cl_pipe_properties* properties, cl_int* status) {
  Context* const context = Context::of(handle);
  const auto make = [&](cl_int* told) { return down.clCreatePipe(handle, flags, packet, packets, properties, told); };
  if (context == nullptr) return make(status);
  return make_native(*context, PassedThrough::pipe, Bytes{std::size_t{packet} * packets}, nullptr, status, make);
}

cl_int CL_API_CALL image_info(cl_mem handle, cl_image_info what, size_t size, void* into, size_t* needed) {
  Memory* const memory = Memory::from(handle);
  if (memory == nullptr) return down.clGetImageInfo(handle, what, size, into, needed);
  const cl_mem native = native_handle(*memory);
  if (native == nullptr || memory->is_buffer()) return CL_INVALID_MEM_OBJECT;
  if (what == CL_IMAGE_BUFFER) {
    Memory* const parent = memory->parent();
    const bool buffer = parent != nullptr && parent->is_buffer();
    return answer(buffer ? parent->handle() : nullptr, size, into, needed);
  }
  return down.clGetImageInfo(native, what, size, into, needed);
}

cl_int CL_API_CALL pipe_info(cl_mem handle, cl_pipe_info what, size_t size, void* into, size_t* needed) {
  Memory* const memory = Memory::from(handle);
  if (memory == nullptr) return down.clGetPipeInfo(handle, what, size, into, needed);
  const cl_mem native = native_handle(*memory);
  return native == nullptr ? CL_INVALID_MEM_OBJECT : down.clGetPipeInfo(native, what, size, into, needed);
}

}  // namespace

void install_images(cl_icd_dispatch& table) {
  table.clCreateImage = create_image;
  table.clCreateImageWithProperties = create_image_with_properties;
  table.clCreateImage2D = create_image_2d;
  table.clCreateImage3D = create_image_3d;
  table.clCreatePipe = create_pipe;
  table.clGetImageInfo = image_info;
  table.clGetPipeInfo = pipe_info;
}

}  // namespace swapmm::opencl::layer::api
