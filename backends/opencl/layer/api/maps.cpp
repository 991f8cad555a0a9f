// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <memory>
#include <span>

#include "../memory.hpp"
#include "../queue.hpp"
#include "checks.hpp"
#include "install.hpp"

namespace swapmm::opencl::layer::api {
namespace {

constexpr cl_map_flags map_flags = CL_MAP_READ | CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION;

using Three = std::array<std::size_t, 3>;

bool writes(cl_map_flags flags) { return (flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION)) != 0; }

// Called before the driver gets the command that writes mapped memory back: it may take the bytes at the call, as
// NVIDIA's does, and a program that has not touched them need not have waited until they were there.
void wait_until_read(Context& context, const std::shared_ptr<PendingRead>& read) {
  if (read == nullptr || !read->event) return;
  const cl_event event = read->event.get();
  cl_int status = CL_QUEUED;
  (void)down.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  if (status <= CL_COMPLETE) return;
  context.flush();
  (void)down.clWaitForEvents(1, &event);  // if it fails, its event tells
}

// A map gives the program memory of the layer, or its own with CL_MEM_USE_HOST_PTR, and reads the buffer into it. An
// unmap after a map for writing writes it back. So a buffer that is mapped may leave the device.
void* CL_API_CALL map_buffer(cl_command_queue handle, cl_mem buffer, cl_bool blocking, cl_map_flags flags,
                             size_t offset, size_t size, cl_uint count, const cl_event* waits, cl_event* event,
                             cl_int* status) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) {
    return down.clEnqueueMapBuffer(handle, buffer, blocking, flags, offset, size, count, waits, event, status);
  }
  const auto refuse = [&](cl_int wrong) { return result<void*>(nullptr, wrong, status); };
  Memory* memory = nullptr;
  if (const cl_int wrong = check_buffer(*queue, buffer, offset, size, memory); wrong != CL_SUCCESS) {
    return refuse(wrong);
  }
  const bool invalidates = (flags & CL_MAP_WRITE_INVALIDATE_REGION) != 0;
  if ((flags & ~map_flags) != 0 || (invalidates && flags != CL_MAP_WRITE_INVALIDATE_REGION)) {
    return refuse(CL_INVALID_VALUE);
  }
  if ((flags & CL_MAP_READ) != 0 && !host_may_read(*memory)) return refuse(CL_INVALID_OPERATION);
  if (writes(flags) && !host_may_write(*memory)) return refuse(CL_INVALID_OPERATION);
  const std::size_t at = memory->origin() + offset;
  const auto read = invalidates ? nullptr : std::make_shared<PendingRead>();
  std::byte* address = nullptr;
  {
    const Lock lock = memory->context().lock();
    address = memory->root().map_address(at);
    if (address == nullptr) return refuse(CL_MAP_FAILURE);
    memory->mappings.push_back({address, at, size, flags, read});
  }
  const Place place{CL_COMMAND_MAP_BUFFER, count, waits, event, blocking != CL_FALSE};
  const cl_int mapped = [&] {
    if (invalidates) return enqueue(*queue, place, mark);
    return enqueue(*queue, place, [=, use = Use(memory)](Context& context, cl_event* native) {
      const cl_int status = on_range(
          context, {"map", size, HostPart::reads}, *use, Access::read, offset, size, native,
          [&](cl_command_queue on, cl_mem root, std::size_t from, cl_uint n, const cl_event* list) {
            return down.clEnqueueReadBuffer(on, root, CL_FALSE, from, size, address, n, list, native);
          },
          [&](Core& core, const Tensor& tensor, Bytes from) { core.download(tensor, from, std::span(address, size)); });
      if (status == CL_SUCCESS) read->event = context.keep(*native);
      return status;
    });
  }();
  if (mapped != CL_SUCCESS) {
    const Lock lock = memory->context().lock();
    const auto mine = std::find_if(memory->mappings.rbegin(), memory->mappings.rend(), [&](const Mapping& each) {
      return each.address == address && each.size == size && each.flags == flags;
    });
    if (mine != memory->mappings.rend()) {
      memory->mappings.erase(std::next(mine).base());
      memory->root().mapping_ended();
    }
    return refuse(mapped);
  }
  return result<void*>(address, CL_SUCCESS, status);
}

cl_int unmap_buffer(Queue& queue, Memory& memory, void* address, const Place& place) {
  Mapping mapping{};
  std::shared_ptr<MapArea> area;
  {
    const Lock lock = memory.context().lock();
    const auto found = std::find_if(memory.mappings.begin(), memory.mappings.end(),
                                    [&](const Mapping& each) { return each.address == address; });
    if (found == memory.mappings.end()) return CL_INVALID_VALUE;
    mapping = *found;
    area = memory.root().map_area();
  }
  const cl_int unmapped = [&] {
    if (!writes(mapping.flags)) return enqueue(queue, place, mark);
    return enqueue(queue, place, [=, use = Use(&memory)](Context& context, cl_event* native) {
      wait_until_read(context, mapping.read);
      const cl_int status = on_range(
          context, {"unmap", mapping.size, HostPart::gives}, *use, Access::write, mapping.offset - use->origin(),
          mapping.size, native,
          [&](cl_command_queue on, cl_mem root, std::size_t to, cl_uint n, const cl_event* list) {
            return down.clEnqueueWriteBuffer(on, root, CL_FALSE, to, mapping.size, mapping.address, n, list, native);
          },
          [&](Core& core, const Tensor& tensor, Bytes to) {
            core.upload(tensor, to, std::span<const std::byte>(mapping.address, mapping.size));
          });
      if (area != nullptr) context.keep_until_done(area);
      return status;
    });
  }();
  if (unmapped != CL_SUCCESS) return unmapped;
  const Lock lock = memory.context().lock();
  const auto found = std::find_if(memory.mappings.begin(), memory.mappings.end(), [&](const Mapping& each) {
    return each.address == address && each.size == mapping.size && each.flags == mapping.flags;
  });
  if (found != memory.mappings.end()) {
    memory.mappings.erase(found);
    memory.root().mapping_ended();
  }
  return CL_SUCCESS;
}

template <class T>
T image_value(Memory& image, cl_image_info what) {
  T value{};
  const Lock lock = image.context().lock();
  (void)down.clGetImageInfo(image.native(), what, sizeof value, &value, nullptr);
  return value;
}

// A map that is on hold: the driver does not say an address yet. The program gets memory of the layer, or its own, into
// which the image is read later, and from which it is written back.
void* map_later(Queue& queue, Memory& image, cl_map_flags flags, const Three& origin, const Three& region,
                std::size_t* row, std::size_t* slice, const Place& place, cl_int* status) {
  const auto element = image_value<std::size_t>(image, CL_IMAGE_ELEMENT_SIZE);
  const cl_mem_object_type type = image.facts().type;
  const bool one_row = type == CL_MEM_OBJECT_IMAGE1D_ARRAY;  // its slices are rows
  auto made = std::make_shared<ImageArea>(ImageArea{origin, region, region[0] * element, 0, nullptr});
  std::byte* address = static_cast<std::byte*>(image.facts().host_pointer);
  if (address != nullptr && (image.facts().flags & CL_MEM_USE_HOST_PTR) != 0) {
    made->row = image_value<std::size_t>(image, CL_IMAGE_ROW_PITCH);
    made->slice = image_value<std::size_t>(image, CL_IMAGE_SLICE_PITCH);
    address +=
        origin[0] * element + (one_row ? origin[1] * made->slice : origin[1] * made->row + origin[2] * made->slice);
  } else {
    made->slice = one_row ? made->row : made->row * region[1];
    made->area = std::make_shared<MapArea>(made->slice * (one_row ? region[1] : region[2]));
    address = made->area->data;
  }
  if (address == nullptr) return result<void*>(nullptr, CL_MAP_FAILURE, status);
  const bool invalidates = (flags & CL_MAP_WRITE_INVALIDATE_REGION) != 0;
  const auto read = invalidates ? nullptr : std::make_shared<PendingRead>();
  const std::size_t slice_given =
      type == CL_MEM_OBJECT_IMAGE1D || type == CL_MEM_OBJECT_IMAGE1D_BUFFER || type == CL_MEM_OBJECT_IMAGE2D
          ? 0
          : made->slice;
  {
    const Lock lock = image.context().lock();
    image.mappings.push_back({address, 0, 0, flags, read, made});
  }
  const cl_int mapped = [&] {
    if (invalidates) return enqueue(queue, place, mark);
    return enqueue(queue, place, [=, use = Use(&image)](Context& context, cl_event* native) {
      const cl_int outcome = context.direct(native, [&](cl_event* command) {
        return down.clEnqueueReadImage(context.queue(), use->native(), CL_FALSE, made->origin.data(),
                                       made->region.data(), made->row, slice_given, address, 0, nullptr, command);
      });
      if (outcome == CL_SUCCESS) read->event = context.keep(*native);
      return outcome;
    });
  }();
  if (mapped != CL_SUCCESS) {
    const Lock lock = image.context().lock();
    std::erase_if(image.mappings, [&](const Mapping& each) { return each.image == made; });
    return result<void*>(nullptr, mapped, status);
  }
  *row = made->row;
  if (slice != nullptr) *slice = slice_given;
  return result<void*>(address, CL_SUCCESS, status);
}

cl_int unmap_image(Queue& queue, Memory& image, void* address, const Place& place) {
  std::shared_ptr<const ImageArea> later;
  std::shared_ptr<PendingRead> read;
  cl_map_flags flags = 0;
  {
    const Lock lock = image.context().lock();
    const auto found = std::find_if(image.mappings.begin(), image.mappings.end(),
                                    [&](const Mapping& each) { return each.address == address; });
    if (found == image.mappings.end()) return CL_INVALID_VALUE;
    later = found->image;
    read = found->read;
    flags = found->flags;
  }
  const cl_int unmapped = [&] {
    if (later == nullptr) {
      return enqueue(queue, place, [=, use = Use(&image)](Context& context, cl_event* native) {
        return context.direct(native, [&](cl_event* made) {
          return down.clEnqueueUnmapMemObject(context.queue(), use->native(), address, 0, nullptr, made);
        });
      });
    }
    if (!writes(flags)) return enqueue(queue, place, mark);
    const cl_mem_object_type type = image.facts().type;
    const bool flat =
        type == CL_MEM_OBJECT_IMAGE1D || type == CL_MEM_OBJECT_IMAGE1D_BUFFER || type == CL_MEM_OBJECT_IMAGE2D;
    return enqueue(queue, place, [=, use = Use(&image)](Context& context, cl_event* native) {
      wait_until_read(context, read);
      const cl_int status = context.direct(native, [&](cl_event* made) {
        return down.clEnqueueWriteImage(context.queue(), use->native(), CL_FALSE, later->origin.data(),
                                        later->region.data(), later->row, flat ? 0 : later->slice, address, 0, nullptr,
                                        made);
      });
      if (later->area != nullptr) context.keep_until_done(later->area);
      return status;
    });
  }();
  if (unmapped != CL_SUCCESS) return unmapped;
  const Lock lock = image.context().lock();
  const auto found = std::find_if(image.mappings.begin(), image.mappings.end(),
                                  [&](const Mapping& each) { return each.address == address; });
  if (found != image.mappings.end()) image.mappings.erase(found);
  return CL_SUCCESS;
}

cl_int CL_API_CALL unmap(cl_command_queue handle, cl_mem object, void* address, cl_uint count, const cl_event* waits,
                         cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) return down.clEnqueueUnmapMemObject(handle, object, address, count, waits, event);
  Memory* memory = nullptr;
  if (const cl_int wrong = check_memory(*queue, object, memory); wrong != CL_SUCCESS) return wrong;
  if (address == nullptr) return CL_INVALID_VALUE;
  const Place place{CL_COMMAND_UNMAP_MEM_OBJECT, count, waits, event};
  if (memory->is_buffer()) return unmap_buffer(*queue, *memory, address, place);
  return unmap_image(*queue, *memory, address, place);
}

// Images are the driver's own, and so is what it maps them to, if it has the command at once.
void* CL_API_CALL map_image(cl_command_queue handle, cl_mem image, cl_bool blocking, cl_map_flags flags,
                            const size_t* origin, const size_t* region, size_t* row, size_t* slice, cl_uint count,
                            const cl_event* waits, cl_event* event, cl_int* status) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) {
    return down.clEnqueueMapImage(handle, image, blocking, flags, origin, region, row, slice, count, waits, event,
                                  status);
  }
  Memory* memory = nullptr;
  if (const cl_int wrong = check_memory(*queue, image, memory); wrong != CL_SUCCESS) {
    return result<void*>(nullptr, wrong, status);
  }
  if (origin == nullptr || region == nullptr || row == nullptr) return result<void*>(nullptr, CL_INVALID_VALUE, status);
  if (const cl_int wrong = check_wait_list(queue->context(), count, waits); wrong != CL_SUCCESS) {
    return result<void*>(nullptr, wrong, status);
  }
  const Three from{origin[0], origin[1], origin[2]};
  const Three part{region[0], region[1], region[2]};
  const Place place{CL_COMMAND_MAP_IMAGE, count, waits, event, blocking != CL_FALSE};
  bool waits_here = false;
  {
    const Lock lock = queue->context().lock();
    waits_here = would_wait(*queue, place);
  }
  if (waits_here) return map_later(*queue, *memory, flags, from, part, row, slice, place, status);
  struct Mapped {
    void* address = nullptr;
    std::size_t row = 0;
    std::size_t slice = 0;
  };
  const auto mapped = std::make_shared<Mapped>();  // another thread may have put the queue on hold meanwhile
  const bool wants_slice = slice != nullptr;
  const cl_int outcome = enqueue(*queue, place, [=, use = Use(memory)](Context& context, cl_event* native) {
    return context.direct(native, [&](cl_event* command) {
      cl_int wrong = CL_SUCCESS;
      mapped->address =
          down.clEnqueueMapImage(context.queue(), use->native(), CL_FALSE, flags, from.data(), part.data(),
                                 &mapped->row, wants_slice ? &mapped->slice : nullptr, 0, nullptr, command, &wrong);
      if (wrong == CL_SUCCESS) use->mappings.push_back({static_cast<std::byte*>(mapped->address), 0, 0, flags});
      return wrong;
    });
  });
  if (outcome == CL_SUCCESS && mapped->address == nullptr) return result<void*>(nullptr, CL_MAP_FAILURE, status);
  if (outcome != CL_SUCCESS) {  // of a command before it, which a blocking map waits for
    const Lock lock = memory->context().lock();
    const auto mine = std::ranges::find(memory->mappings, static_cast<std::byte*>(mapped->address), &Mapping::address);
    if (mapped->address != nullptr && mine != memory->mappings.end()) memory->mappings.erase(mine);
    return result<void*>(nullptr, outcome, status);
  }
  *row = mapped->row;
  if (wants_slice) *slice = mapped->slice;
  return result(mapped->address, outcome, status);
}

}  // namespace

void install_maps(cl_icd_dispatch& table) {
  table.clEnqueueMapBuffer = map_buffer;
  table.clEnqueueMapImage = map_image;
  table.clEnqueueUnmapMemObject = unmap;
}

}  // namespace swapmm::opencl::layer::api
