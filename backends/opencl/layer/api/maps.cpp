// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <memory>

#include "../memory.hpp"
#include "../queue.hpp"
#include "checks.hpp"
#include "install.hpp"

namespace swapmm::opencl::layer::api {
namespace {

constexpr cl_map_flags map_flags = CL_MAP_READ | CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION;

bool writes(cl_map_flags flags) { return (flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION)) != 0; }

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
  std::byte* address = nullptr;
  {
    const Lock lock = memory->context().lock();
    address = memory->root().map_address(at);
    if (address == nullptr) return refuse(CL_MAP_FAILURE);
    memory->mappings.push_back({address, at, size, flags});
  }
  const Place place{CL_COMMAND_MAP_BUFFER, count, waits, event, blocking != CL_FALSE};
  const cl_int mapped = [&] {
    if (invalidates) return enqueue(*queue, place, mark);
    return enqueue(*queue, place, [=, use = Use(memory)](Context& context, cl_event* native) {
      return on_range(context, "map", *use, Access::read, offset, size, native,
                      [&](cl_command_queue on, cl_mem root, std::size_t from, cl_uint n, const cl_event* list) {
                        return down.clEnqueueReadBuffer(on, root, CL_FALSE, from, size, address, n, list, native);
                      });
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
      const cl_int status = on_range(
          context, "unmap", *use, Access::write, mapping.offset - use->origin(), mapping.size, native,
          [&](cl_command_queue on, cl_mem root, std::size_t to, cl_uint n, const cl_event* list) {
            return down.clEnqueueWriteBuffer(on, root, CL_FALSE, to, mapping.size, mapping.address, n, list, native);
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

cl_int CL_API_CALL unmap(cl_command_queue handle, cl_mem object, void* address, cl_uint count, const cl_event* waits,
                         cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) return down.clEnqueueUnmapMemObject(handle, object, address, count, waits, event);
  Memory* memory = nullptr;
  if (const cl_int wrong = check_memory(*queue, object, memory); wrong != CL_SUCCESS) return wrong;
  if (address == nullptr) return CL_INVALID_VALUE;
  const Place place{CL_COMMAND_UNMAP_MEM_OBJECT, count, waits, event};
  if (memory->is_buffer()) return unmap_buffer(*queue, *memory, address, place);
  const cl_int unmapped = enqueue(*queue, place, [=, use = Use(memory)](Context& context, cl_event* native) {
    return context.direct(native, [&](cl_event* made) {
      return down.clEnqueueUnmapMemObject(context.queue(), use->native(), address, 0, nullptr, made);
    });
  });
  if (unmapped != CL_SUCCESS) return unmapped;
  const Lock lock = memory->context().lock();
  const auto found = std::find_if(memory->mappings.begin(), memory->mappings.end(),
                                  [&](const Mapping& each) { return each.address == address; });
  if (found != memory->mappings.end()) memory->mappings.erase(found);
  return CL_SUCCESS;
}

// Images are the driver's own, and so is what it maps them to.
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
  struct Mapped {
    void* address = nullptr;
    std::size_t row = 0;
    std::size_t slice = 0;
  };
  if (origin == nullptr || region == nullptr || row == nullptr) return result<void*>(nullptr, CL_INVALID_VALUE, status);
  const auto mapped = std::make_shared<Mapped>();
  cl_event made = nullptr;
  const Place place{CL_COMMAND_MAP_IMAGE, count, waits, &made, blocking != CL_FALSE};
  const std::array<std::size_t, 3> from{origin[0], origin[1], origin[2]};
  const std::array<std::size_t, 3> part{region[0], region[1], region[2]};
  const bool wants_slice = slice != nullptr;
  cl_int outcome = enqueue(*queue, place, [=, use = Use(memory)](Context& context, cl_event* native) {
    return context.direct(native, [&](cl_event* command) {
      cl_int wrong = CL_SUCCESS;
      mapped->address =
          down.clEnqueueMapImage(context.queue(), use->native(), CL_FALSE, flags, from.data(), part.data(),
                                 &mapped->row, wants_slice ? &mapped->slice : nullptr, 0, nullptr, command, &wrong);
      if (wrong == CL_SUCCESS) use->mappings.push_back({static_cast<std::byte*>(mapped->address), 0, 0, flags});
      return wrong;
    });
  });
  if (made != nullptr) {
    // Only the driver knows the address, so a map that is on hold waits here until the driver has it.
    Event& command = *Event::from(made);
    Lock lock = queue->context().lock();
    queue->context().changed.wait(lock, [&] { return command.settled(); });
    if (command.failed()) outcome = command.status();
    lock.unlock();
    if (event != nullptr && outcome == CL_SUCCESS) {
      *event = made;
    } else {
      (void)command.release();
    }
  }
  if (outcome != CL_SUCCESS) return result<void*>(nullptr, outcome, status);
  *row = mapped->row;
  if (wants_slice) *slice = mapped->slice;
  return result(mapped->address, CL_SUCCESS, status);
}

}  // namespace

void install_maps(cl_icd_dispatch& table) {
  table.clEnqueueMapBuffer = map_buffer;
  table.clEnqueueMapImage = map_image;
  table.clEnqueueUnmapMemObject = unmap;
}

}  // namespace swapmm::opencl::layer::api
