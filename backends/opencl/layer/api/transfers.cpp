// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "../facts/device.hpp"
#include "../memory.hpp"
#include "../queue.hpp"
#include "checks.hpp"
#include "install.hpp"

namespace swapmm::opencl::layer::api {
namespace {

// Since OpenCL 2.1, to read or write no bytes is a command that does nothing; before, it was an error.
bool takes_no_bytes(const Queue& queue) {
  cl_device_id device = nullptr;
  (void)down.clGetCommandQueueInfo(queue.native(), CL_QUEUE_DEVICE, sizeof device, &device, nullptr);
  return facts::device_facts(device).version >= "210";
}

cl_int CL_API_CALL read_buffer(cl_command_queue handle, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
                               void* to, cl_uint count, const cl_event* waits, cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) {
    return down.clEnqueueReadBuffer(handle, buffer, blocking, offset, size, to, count, waits, event);
  }
  Memory* memory = nullptr;
  const bool may_be_empty = size == 0 && takes_no_bytes(*queue);
  if (const cl_int wrong = check_buffer(*queue, buffer, offset, size, memory, may_be_empty); wrong != CL_SUCCESS)
    return wrong;
  if (to == nullptr) return CL_INVALID_VALUE;
  if (!host_may_read(*memory)) return CL_INVALID_OPERATION;
  const Place place{CL_COMMAND_READ_BUFFER, count, waits, event, blocking != CL_FALSE};
  if (size == 0) return enqueue(*queue, place, mark, no_buffers);
  const Command command{"read", size, HostPart::reads};
  return enqueue(
      *queue, place,
      [=, use = Use(memory)](Context& context, cl_event* native) {
        return on_range(
            context, command, *use, Access::read, offset, size, native,
            [&](cl_command_queue on, cl_mem real, std::size_t at, cl_uint n, const cl_event* list) {
              return down.clEnqueueReadBuffer(on, real, CL_FALSE, at, size, to, n, list, native);
            },
            [&](Core& core, const Tensor& tensor, Bytes at) {
              core.download(tensor, at, std::span(static_cast<std::byte*>(to), size));
            });
      },
      [=] { return intent_of_read(command, *memory, offset, size, to); });
}

// With SWAPMM_WAIT=values, a write that is held back has a copy of the program's bytes, so that the program need not
// wait for it. Null if it must.
std::shared_ptr<MapArea> room_for_copy(std::size_t size) {
  constexpr std::size_t most = std::size_t{16} << 20U;
  if (!settings().waits_for_values || size > most) return nullptr;
  auto room = std::make_shared<MapArea>(size);
  return room->data == nullptr ? nullptr : room;
}

cl_int CL_API_CALL write_buffer(cl_command_queue handle, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
                                const void* from, cl_uint count, const cl_event* waits, cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) {
    return down.clEnqueueWriteBuffer(handle, buffer, blocking, offset, size, from, count, waits, event);
  }
  Memory* memory = nullptr;
  const bool may_be_empty = size == 0 && takes_no_bytes(*queue);
  if (const cl_int wrong = check_buffer(*queue, buffer, offset, size, memory, may_be_empty); wrong != CL_SUCCESS)
    return wrong;
  if (from == nullptr) return CL_INVALID_VALUE;
  if (!host_may_write(*memory)) return CL_INVALID_OPERATION;
  const Place place{CL_COMMAND_WRITE_BUFFER, count, waits, event, blocking != CL_FALSE};
  if (size == 0) return enqueue(*queue, place, mark, no_buffers);
  const Command command{"write", size, HostPart::gives};
  const auto write = [=, use = Use(memory)](Context& context, cl_event* native, const void* bytes) {
    return on_range(
        context, command, *use, Access::write, offset, size, native,
        [&](cl_command_queue on, cl_mem real, std::size_t at, cl_uint n, const cl_event* list) {
          return down.clEnqueueWriteBuffer(on, real, CL_FALSE, at, size, bytes, n, list, native);
        },
        [&](Core& core, const Tensor& tensor, Bytes at) {
          core.upload(tensor, at, std::span(static_cast<const std::byte*>(bytes), size));
        });
  };
  std::shared_ptr<MapArea> copy;
  return enqueue_call(
      *queue, place, [&](Context& context, cl_event* native) { return write(context, native, from); },
      [&](bool held_back) {
        // A write that waits for a user event takes the bytes that are there when the event is set.
        if (held_back && copy) std::memcpy(copy->data, from, size);
        return [write, from, own = held_back ? copy : nullptr](Context& context, cl_event* native) {
          const cl_int status = write(context, native, own ? own->data : from);
          if (status == CL_SUCCESS && own) context.keep_until_done(own);
          return status;
        };
      },
      [&] {
        Intent intent = intent_on_range(command, *memory, Access::write, offset, size);
        copy = room_for_copy(size);
        intent.hidden = copy != nullptr;
        return intent;
      });
}

cl_int CL_API_CALL fill_buffer(cl_command_queue handle, cl_mem buffer, const void* pattern, size_t pattern_size,
                               size_t offset, size_t size, cl_uint count, const cl_event* waits, cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) {
    return down.clEnqueueFillBuffer(handle, buffer, pattern, pattern_size, offset, size, count, waits, event);
  }
  Memory* memory = nullptr;
  if (const cl_int wrong = check_buffer(*queue, buffer, offset, size, memory, true); wrong != CL_SUCCESS) return wrong;
  const bool known = pattern_size != 0 && pattern_size <= 128 && (pattern_size & (pattern_size - 1)) == 0;
  if (pattern == nullptr || !known || offset % pattern_size != 0 || size % pattern_size != 0) return CL_INVALID_VALUE;
  const auto* const first = static_cast<const std::byte*>(pattern);
  const Place place{CL_COMMAND_FILL_BUFFER, count, waits, event};
  if (size == 0) return enqueue(*queue, place, mark, no_buffers);
  const Command command{"fill", mixed(size, pattern_size)};
  return enqueue(
      *queue, place,
      [=, use = Use(memory), bytes = std::vector(first, first + pattern_size)](Context& context, cl_event* native) {
        return on_range(
            context, command, *use, Access::write, offset, size, native,
            [&](cl_command_queue on, cl_mem real, std::size_t at, cl_uint n, const cl_event* list) {
              return down.clEnqueueFillBuffer(on, real, bytes.data(), bytes.size(), at, size, n, list, native);
            },
            [&](Core& core, const Tensor& tensor, Bytes at) {
              // Sizes of patterns are powers of two, so a piece holds a whole number of them.
              std::vector<std::byte> piece(std::min<std::size_t>(size, std::size_t{1} << 20U));
              for (std::size_t i = 0; i < piece.size(); ++i) piece[i] = bytes[i % bytes.size()];
              for (std::size_t done = 0; done < size; done += piece.size()) {
                const std::size_t now = std::min(piece.size(), size - done);
                core.upload(tensor, at + Bytes{done}, std::span(piece).first(now));
              }
            });
      },
      [=] {
        Intent intent = intent_on_range(command, *memory, Access::write, offset, size);
        intent.hidden = bytes_are_hidden(*memory);
        return intent;
      });
}

cl_int CL_API_CALL copy_buffer(cl_command_queue handle, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset,
                               size_t size, cl_uint count, const cl_event* waits, cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) {
    return down.clEnqueueCopyBuffer(handle, from, to, from_offset, to_offset, size, count, waits, event);
  }
  Memory* source = nullptr;
  Memory* target = nullptr;
  if (const cl_int wrong = check_buffer(*queue, from, from_offset, size, source); wrong != CL_SUCCESS) return wrong;
  if (const cl_int wrong = check_buffer(*queue, to, to_offset, size, target); wrong != CL_SUCCESS) return wrong;
  const std::size_t begin = source->origin() + from_offset;
  const std::size_t into = target->origin() + to_offset;
  if (&source->root() == &target->root() && begin < into + size && into < begin + size) return CL_MEM_COPY_OVERLAP;
  const Place place{CL_COMMAND_COPY_BUFFER, count, waits, event};
  const auto make_intent = [=] {
    Intent intent{{"copy", size}, {}};
    intent.bundle.add(*source, Access::read, from_offset, size);
    intent.bundle.add(*target, Access::write, to_offset, size);
    intent.hidden = bytes_are_hidden(*source) && bytes_are_hidden(*target);
    return intent;
  };
  return enqueue(
      *queue, place,
      [=, a = Use(source), b = Use(target)](Context& context, cl_event* native) {
        const Intent intent = make_intent();
        return on_buffers(context, intent.command, intent.bundle, *a, *b, native,
                          [&](cl_command_queue on, auto x, auto y, cl_uint n, const cl_event* list) {
                            return down.clEnqueueCopyBuffer(on, x.allocation, y.allocation, x.offset + from_offset,
                                                            y.offset + to_offset, size, n, list, native);
                          });
      },
      make_intent);
}

cl_int CL_API_CALL migrate(cl_command_queue handle, cl_uint objects, const cl_mem* list, cl_mem_migration_flags flags,
                           cl_uint count, const cl_event* waits, cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) return down.clEnqueueMigrateMemObjects(handle, objects, list, flags, count, waits, event);
  if (objects == 0 || list == nullptr) return CL_INVALID_VALUE;
  constexpr cl_mem_migration_flags known = CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED;
  if ((flags & ~known) != 0) return CL_INVALID_VALUE;
  for (cl_uint i = 0; i < objects; ++i) {
    const Memory* const memory = Memory::from(list[i]);
    if (memory == nullptr) return CL_INVALID_MEM_OBJECT;
    if (&memory->context() != &queue->context()) return CL_INVALID_CONTEXT;
  }
  // A hint: where bytes are is the layer's affair.
  return enqueue(*queue, {CL_COMMAND_MIGRATE_MEM_OBJECTS, count, waits, event}, mark, no_buffers);
}

}  // namespace

void install_transfers(cl_icd_dispatch& table) {
  table.clEnqueueReadBuffer = read_buffer;
  table.clEnqueueWriteBuffer = write_buffer;
  table.clEnqueueFillBuffer = fill_buffer;
  table.clEnqueueCopyBuffer = copy_buffer;
  table.clEnqueueMigrateMemObjects = migrate;
}

}  // namespace swapmm::opencl::layer::api
