// SPDX-License-Identifier: Apache-2.0
#pragma once

// What commands on buffers have in common.

#include <array>
#include <cstddef>
#include <utility>

#include "../memory.hpp"
#include "../queue.hpp"

namespace swapmm::opencl::layer::api {

/// An origin or a region, as commands on rectangles and images take them.
using Three = std::array<std::size_t, 3>;

[[nodiscard]] inline Three three(const std::size_t* values) { return {values[0], values[1], values[2]}; }

/// The object of a handle, if it belongs to the queue's context; else the API's error.
[[nodiscard]] inline cl_int check_memory(const Queue& queue, cl_mem handle, Memory*& memory) {
  memory = Memory::from(handle);
  if (memory == nullptr) return CL_INVALID_MEM_OBJECT;
  return &memory->context() == &queue.context() ? CL_SUCCESS : CL_INVALID_CONTEXT;
}

/// The same for a range of a buffer. `may_be_empty`: it need not have a byte.
[[nodiscard]] inline cl_int check_buffer(const Queue& queue, cl_mem handle, std::size_t offset, std::size_t size,
                                         Memory*& memory, bool may_be_empty = false) {
  if (const cl_int wrong = check_memory(queue, handle, memory); wrong != CL_SUCCESS) return wrong;
  if (!memory->is_buffer()) return CL_INVALID_MEM_OBJECT;
  const std::size_t whole = memory->facts().size;
  if (size == 0 && !may_be_empty) return CL_INVALID_VALUE;
  return offset > whole || size > whole - offset ? CL_INVALID_VALUE : CL_SUCCESS;
}

[[nodiscard]] inline bool host_may_read(const Memory& memory) {
  return (memory.facts().flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS)) == 0;
}
[[nodiscard]] inline bool host_may_write(const Memory& memory) {
  return (memory.facts().flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)) == 0;
}

/// Runs a command on two buffers, whose accesses are in the bundle: run(queue, a, b, waits, list), where a and b are
/// the driver's allocations and the offsets of the buffers in them. (Several commands of PoCL 3.1 crash with parts of
/// buffers, so commands with offsets get whole allocations.)
template <class Run>
[[nodiscard]] cl_int on_buffers(Context& context, const Command& command, const Bundle& bundle, Memory& a, Memory& b,
                                cl_event* native, Run&& run) {
  if (bundle.empty()) {
    return context.direct(native, [&](cl_event*) {
      return run(context.queue(), place_of_native(a), place_of_native(b), cl_uint{0},
                 static_cast<const cl_event*>(nullptr));
    });
  }
  return context.operate(command, bundle, native, [&](Running& operation, const WaitList& waits, cl_event* event) {
    const cl_int status =
        run(operation.backend().queue(), place_of(a, operation), place_of(b, operation), waits.size(), waits.data());
    *event = *native;
    return status;
  });
}

/// Runs a command on one buffer, whose access is in the bundle: run(queue, allocation, offset in it, waits, list).
template <class Run>
[[nodiscard]] cl_int on_buffer(Context& context, const Command& command, const Bundle& bundle, Memory& memory,
                               cl_event* native, Run&& run) {
  return on_buffers(context, command, bundle, memory, memory, native,
                    [&](cl_command_queue queue, const InAllocation& place, const auto&, cl_uint waits,
                        const cl_event* list) { return run(queue, place.allocation, place.offset, waits, list); });
}

/// What a command on a range of a buffer will do, for enqueue().
[[nodiscard]] inline Intent intent_on_range(const Command& command, Memory& memory, Access access, std::size_t offset,
                                            std::size_t size) {
  Intent intent{command, {}};
  intent.bundle.add(memory, access, offset, size);
  return intent;
}
/// The same for one that copies the range to the program's memory.
[[nodiscard]] inline Intent intent_of_read(const Command& command, Memory& memory, std::size_t offset, std::size_t size,
                                           void* to) {
  Intent intent = intent_on_range(command, memory, Access::read, offset, size);
  // An early copy is one of the whole buffer.
  const std::size_t whole = memory.root().facts().size;
  const bool small = whole / 4 <= size || whole <= std::size_t{1} << 20U;
  if (settings().waits_for_values && !intent.bundle.empty() && small) {
    intent.read = HostRead{command, Use(&memory), offset, size, static_cast<std::byte*>(to)};
  }
  return intent;
}
/// Whether the host sees a buffer's bytes through commands and maps alone. With the lock.
[[nodiscard]] inline bool bytes_are_hidden(Memory& memory) { return memory.root().native() == nullptr; }
/// Of a command without buffers.
[[nodiscard]] inline Intent no_buffers() {
  Intent intent;
  intent.hidden = true;
  return intent;
}

/// A command that does nothing: its event comes after all that was queued before.
[[nodiscard]] inline cl_int mark(Context& context, cl_event* native) {
  return context.direct(
      native, [&](cl_event* event) { return down.clEnqueueMarkerWithWaitList(context.queue(), 0, nullptr, event); });
}

/// The same for a range of the buffer: run() gets the offset of the range. If the buffer has no room beside what cannot
/// be swapped, its value is not on the device: then the host does the command, host(core, tensor, offset in the root
/// buffer), at once, after all that was queued before.
template <class Run, class Host>
[[nodiscard]] cl_int on_range(Context& context, const Command& command, Memory& memory, Access access,
                              std::size_t offset, std::size_t size, cl_event* native, Run&& run, Host&& host) {
  Memory& root = memory.root();
  if (Bytes{root.facts().size} > context.device().swappable() && root.native() == nullptr) {
    submit_held_back(context);
    if (const cl_int status = root.upload_initial(); status != CL_SUCCESS) return status;
    Tensor tensor;
    if (!root.tensor(tensor)) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    const cl_int status = on_host(context, [&](Core& core) {
      (void)down.clFinish(context.queue());
      host(core, tensor, Bytes{memory.origin() + offset});
    });
    return status == CL_SUCCESS ? mark(context, native) : status;
  }
  Bundle bundle;
  bundle.add(memory, access, offset, size);
  return on_buffer(context, command, bundle, memory, native,
                   [&](cl_command_queue queue, cl_mem whole, std::size_t begin, cl_uint waits, const cl_event* list) {
                     return run(queue, whole, begin + offset, waits, list);
                   });
}

}  // namespace swapmm::opencl::layer::api
