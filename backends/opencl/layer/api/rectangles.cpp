// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "../memory.hpp"
#include "../queue.hpp"
#include "checks.hpp"
#include "install.hpp"

namespace swapmm::opencl::layer::api {
namespace {

/// A region of rows and slices in memory.
struct Rectangle {
  Three origin;
  std::size_t row;    ///< bytes from row to row
  std::size_t slice;  ///< bytes from slice to slice

  [[nodiscard]] std::size_t begin() const { return origin[2] * slice + origin[1] * row + origin[0]; }
  [[nodiscard]] std::size_t end(const Three& region) const {
    return begin() + (region[2] - 1) * slice + (region[1] - 1) * row + region[0];
  }
};

// Whether the offset of the last byte is above 64 bits. Those of all others are below it.
bool wraps(const Rectangle& rectangle, const Three& region) {
  std::size_t slices = 0;
  std::size_t rows = 0;
  std::size_t bytes = 0;
  return __builtin_add_overflow(rectangle.origin[2], region[2] - 1, &slices) ||
         __builtin_mul_overflow(slices, rectangle.slice, &slices) ||
         __builtin_add_overflow(rectangle.origin[1], region[1] - 1, &rows) ||
         __builtin_mul_overflow(rows, rectangle.row, &rows) ||
         __builtin_add_overflow(rectangle.origin[0], region[0], &bytes) ||
         __builtin_add_overflow(bytes, rows, &bytes) || __builtin_add_overflow(bytes, slices, &bytes);
}

// With the pitches that 0 stands for. False: the API does not allow these pitches, or the origin.
bool complete(Rectangle& rectangle, const Three& region) {
  if (rectangle.row == 0) rectangle.row = region[0];
  if (rectangle.row < region[0]) return false;
  std::size_t rows = 0;
  if (__builtin_mul_overflow(region[1], rectangle.row, &rows)) return false;
  if (rectangle.slice == 0) rectangle.slice = rows;
  return rectangle.slice >= rows && rectangle.slice % rectangle.row == 0 && !wraps(rectangle, region);
}

cl_int check(const Queue& queue, cl_mem handle, Rectangle& rectangle, const Three& region, Memory*& memory) {
  if (const cl_int wrong = check_memory(queue, handle, memory); wrong != CL_SUCCESS) return wrong;
  if (!memory->is_buffer()) return CL_INVALID_MEM_OBJECT;
  if (region[0] == 0 || region[1] == 0 || region[2] == 0) return CL_INVALID_VALUE;
  if (!complete(rectangle, region)) return CL_INVALID_VALUE;
  return rectangle.end(region) > memory->facts().size ? CL_INVALID_VALUE : CL_SUCCESS;
}

// A rectangle of a buffer that begins at an offset in the driver's allocation. The offset goes into the first
// coordinate, which is in bytes and may be larger than a row.
Three in_allocation(const Three& origin, std::size_t begin) { return {origin[0] + begin, origin[1], origin[2]}; }

struct Transfer {
  Rectangle device;
  Rectangle host;
  Three region;

  /// See Command::detail. Where in the buffers it is does not count: programs collect results at one place after
  /// another.
  [[nodiscard]] std::uint64_t detail() const { return mixed(mixed(region[0], region[1]), region[2]); }
};

bool wrong_pointers(const size_t* a, const size_t* b, const size_t* region) {
  return a == nullptr || b == nullptr || region == nullptr;
}

cl_int CL_API_CALL read_rectangle(cl_command_queue handle, cl_mem buffer, cl_bool blocking, const size_t* origin,
                                  const size_t* host_origin, const size_t* region, size_t row, size_t slice,
                                  size_t host_row, size_t host_slice, void* to, cl_uint count, const cl_event* waits,
                                  cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) {
    return down.clEnqueueReadBufferRect(handle, buffer, blocking, origin, host_origin, region, row, slice, host_row,
                                        host_slice, to, count, waits, event);
  }
  if (wrong_pointers(origin, host_origin, region) || to == nullptr) return CL_INVALID_VALUE;
  Transfer what{{three(origin), row, slice}, {three(host_origin), host_row, host_slice}, three(region)};
  Memory* memory = nullptr;
  if (const cl_int wrong = check(*queue, buffer, what.device, what.region, memory); wrong != CL_SUCCESS) return wrong;
  if (!complete(what.host, what.region)) return CL_INVALID_VALUE;
  if (!host_may_read(*memory)) return CL_INVALID_OPERATION;
  const Place place{CL_COMMAND_READ_BUFFER_RECT, count, waits, event, blocking != CL_FALSE};
  const auto make_intent = [=] {
    return intent_on_range({"read rectangle", what.detail(), HostPart::reads}, *memory, Access::read, 0,
                           memory->facts().size);
  };
  return enqueue(
      *queue, place,
      [=, use = Use(memory)](Context& context, cl_event* native) {
        const Intent intent = make_intent();
        return on_buffer(context, intent.command, intent.bundle, *use, native,
                         [&](cl_command_queue on, cl_mem real, std::size_t at, cl_uint n, const cl_event* list) {
                           return down.clEnqueueReadBufferRect(
                               on, real, CL_FALSE, in_allocation(what.device.origin, at).data(),
                               what.host.origin.data(), what.region.data(), what.device.row, what.device.slice,
                               what.host.row, what.host.slice, to, n, list, native);
                         });
      },
      make_intent);
}

cl_int CL_API_CALL write_rectangle(cl_command_queue handle, cl_mem buffer, cl_bool blocking, const size_t* origin,
                                   const size_t* host_origin, const size_t* region, size_t row, size_t slice,
                                   size_t host_row, size_t host_slice, const void* from, cl_uint count,
                                   const cl_event* waits, cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) {
    return down.clEnqueueWriteBufferRect(handle, buffer, blocking, origin, host_origin, region, row, slice, host_row,
                                         host_slice, from, count, waits, event);
  }
  if (wrong_pointers(origin, host_origin, region) || from == nullptr) return CL_INVALID_VALUE;
  Transfer what{{three(origin), row, slice}, {three(host_origin), host_row, host_slice}, three(region)};
  Memory* memory = nullptr;
  if (const cl_int wrong = check(*queue, buffer, what.device, what.region, memory); wrong != CL_SUCCESS) return wrong;
  if (!complete(what.host, what.region)) return CL_INVALID_VALUE;
  if (!host_may_write(*memory)) return CL_INVALID_OPERATION;
  const Place place{CL_COMMAND_WRITE_BUFFER_RECT, count, waits, event, blocking != CL_FALSE};
  const auto make_intent = [=] {
    const bool packed = what.device.row == what.region[0] && what.device.slice == what.region[0] * what.region[1];
    // Rows that lie side by side are one range, perhaps the whole buffer.
    const std::size_t begin = packed ? what.device.begin() : 0;
    const std::size_t size = packed ? what.device.end(what.region) - begin : 1;
    return intent_on_range({"write rectangle", what.detail(), HostPart::gives}, *memory,
                           packed ? Access::write : Access::update, begin, size);
  };
  return enqueue(
      *queue, place,
      [=, use = Use(memory)](Context& context, cl_event* native) {
        const Intent intent = make_intent();
        return on_buffer(context, intent.command, intent.bundle, *use, native,
                         [&](cl_command_queue on, cl_mem real, std::size_t at, cl_uint n, const cl_event* list) {
                           return down.clEnqueueWriteBufferRect(
                               on, real, CL_FALSE, in_allocation(what.device.origin, at).data(),
                               what.host.origin.data(), what.region.data(), what.device.row, what.device.slice,
                               what.host.row, what.host.slice, from, n, list, native);
                         });
      },
      make_intent);
}

bool have_common_bytes(std::size_t a, std::size_t b, std::size_t size) { return (a < b ? b - a : a - b) < size; }

// Both buffers lie in one allocation, in which the API allows only equal pitches. The queue runs the copies in order,
// so the last one's event stands for all. If a row overlaps its copy, nothing is queued.
cl_int copy_rows(cl_command_queue queue, const InAllocation& from, const InAllocation& to, const Transfer& what,
                 cl_uint count, const cl_event* waits, cl_event* native) {
  const auto begin = [](const InAllocation& where, const Rectangle& rectangle, std::size_t z, std::size_t y) {
    return where.offset + rectangle.begin() + z * rectangle.slice + y * rectangle.row;
  };
  for (std::size_t z = 0; z < what.region[2] && from.allocation == to.allocation; ++z) {
    for (std::size_t y = 0; y < what.region[1]; ++y) {
      if (have_common_bytes(begin(from, what.device, z, y), begin(to, what.host, z, y), what.region[0])) {
        return CL_MEM_COPY_OVERLAP;
      }
    }
  }
  for (std::size_t z = 0; z < what.region[2]; ++z) {
    for (std::size_t y = 0; y < what.region[1]; ++y) {
      const bool first = z == 0 && y == 0;
      const bool last = z + 1 == what.region[2] && y + 1 == what.region[1];
      const cl_int status = down.clEnqueueCopyBuffer(
          queue, from.allocation, to.allocation, begin(from, what.device, z, y), begin(to, what.host, z, y),
          what.region[0], first ? count : 0, first ? waits : nullptr, last ? native : nullptr);
      if (status == CL_SUCCESS) continue;
      if (!first) (void)down.clFinish(queue);  // the rows before it use places that are given back
      return status;
    }
  }
  return CL_SUCCESS;
}

bool overlap(const Rectangle& a, const Rectangle& b, const Three& region, std::size_t size) {
  if (a.row != b.row || a.slice != b.slice || size == 0) return false;
  // Row by row: exact, and as long as the region has rows.
  const std::size_t from = a.begin();
  const std::size_t to = b.begin();
  const std::size_t first = from < to ? from : to;
  const std::size_t distance = (from < to ? to : from) - first;
  for (std::size_t z = 0; z < region[2]; ++z) {
    for (std::size_t y = 0; y < region[1]; ++y) {
      const std::size_t row = z * a.slice + y * a.row;
      if (row >= distance + region[0]) return false;
      if (row + region[0] > distance) return true;
    }
  }
  return false;
}

cl_int CL_API_CALL copy_rectangle(cl_command_queue handle, cl_mem from, cl_mem to, const size_t* from_origin,
                                  const size_t* to_origin, const size_t* region, size_t from_row, size_t from_slice,
                                  size_t to_row, size_t to_slice, cl_uint count, const cl_event* waits,
                                  cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) {
    return down.clEnqueueCopyBufferRect(handle, from, to, from_origin, to_origin, region, from_row, from_slice, to_row,
                                        to_slice, count, waits, event);
  }
  if (wrong_pointers(from_origin, to_origin, region)) return CL_INVALID_VALUE;
  Transfer what{{three(from_origin), from_row, from_slice}, {three(to_origin), to_row, to_slice}, three(region)};
  Memory* source = nullptr;
  Memory* target = nullptr;
  if (const cl_int wrong = check(*queue, from, what.device, what.region, source); wrong != CL_SUCCESS) return wrong;
  if (const cl_int wrong = check(*queue, to, what.host, what.region, target); wrong != CL_SUCCESS) return wrong;
  if (&source->root() == &target->root()) {
    if (source == target && (what.device.row != what.host.row || what.device.slice != what.host.slice)) {
      return CL_INVALID_VALUE;
    }
    Rectangle a = what.device;
    Rectangle b = what.host;
    a.origin[0] += source->origin();
    b.origin[0] += target->origin();
    if (overlap(a, b, what.region, 1)) return CL_MEM_COPY_OVERLAP;
  }
  const Place place{CL_COMMAND_COPY_BUFFER_RECT, count, waits, event};
  const auto make_intent = [=] {
    Intent intent{{"copy rectangle", what.detail()}, {}};
    intent.bundle.add(*source, Access::read);
    intent.bundle.add(*target, Access::update);
    intent.hidden = bytes_are_hidden(*source) && bytes_are_hidden(*target);
    return intent;
  };
  return enqueue(
      *queue, place,
      [=, a = Use(source), b = Use(target)](Context& context, cl_event* native) {
        const Intent intent = make_intent();
        return on_buffers(context, intent.command, intent.bundle, *a, *b, native,
                          [&](cl_command_queue on, auto x, auto y, cl_uint n, const cl_event* list) {
                            if (x.allocation == y.allocation &&
                                (what.device.row != what.host.row || what.device.slice != what.host.slice)) {
                              return copy_rows(on, x, y, what, n, list, native);
                            }
                            const cl_int status = down.clEnqueueCopyBufferRect(
                                on, x.allocation, y.allocation, in_allocation(what.device.origin, x.offset).data(),
                                in_allocation(what.host.origin, y.offset).data(), what.region.data(), what.device.row,
                                what.device.slice, what.host.row, what.host.slice, n, list, native);
                            // Drivers take boxes that lie close together in one allocation for overlapping.
                            if (status != CL_MEM_COPY_OVERLAP || &a->root() == &b->root()) return status;
                            return copy_rows(on, x, y, what, n, list, native);
                          });
      },
      make_intent);
}

}  // namespace

void install_rectangles(cl_icd_dispatch& table) {
  table.clEnqueueReadBufferRect = read_rectangle;
  table.clEnqueueWriteBufferRect = write_rectangle;
  table.clEnqueueCopyBufferRect = copy_rectangle;
}

}  // namespace swapmm::opencl::layer::api
