// SPDX-License-Identifier: Apache-2.0
#pragma once

// What commands on buffers have in common.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "../memory.hpp"
#include "../queue.hpp"

namespace swapmm::opencl::layer::api {

/// The object of a handle, if it belongs to the queue's context; else the API's error.
[[nodiscard]] inline cl_int check_memory(const Queue& queue, cl_mem handle, Memory*& memory) {
  memory = Memory::from(handle);
  if (memory == nullptr) return CL_INVALID_MEM_OBJECT;
  return &memory->context() == &queue.context() ? CL_SUCCESS : CL_INVALID_CONTEXT;
}

/// The same for a range of a buffer.
[[nodiscard]] inline cl_int check_buffer(const Queue& queue, cl_mem handle, std::size_t offset, std::size_t size,
                                         Memory*& memory) {
  if (const cl_int wrong = check_memory(queue, handle, memory); wrong != CL_SUCCESS) return wrong;
  if (!memory->is_buffer()) return CL_INVALID_MEM_OBJECT;
  const std::size_t whole = memory->facts().size;
  return size == 0 || offset > whole || size > whole - offset ? CL_INVALID_VALUE : CL_SUCCESS;
}

[[nodiscard]] inline bool host_may_read(const Memory& memory) {
  return (memory.facts().flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS)) == 0;
}
[[nodiscard]] inline bool host_may_write(const Memory& memory) {
  return (memory.facts().flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)) == 0;
}

/// Whether a command gets the roots of its buffers, with offsets in them, or the buffers themselves.
enum class Handles : std::uint8_t { roots, themselves };

/// Runs a command on two buffers, whose accesses are in the bundle: run(queue, a, b, waits, list).
template <class Run>
[[nodiscard]] cl_int on_buffers(Context& context, std::string_view name, const Bundle& bundle, Handles handles,
                                Memory& a, Memory& b, cl_event* native, Run&& run) {
  Memory& first = handles == Handles::roots ? a.root() : a;
  Memory& second = handles == Handles::roots ? b.root() : b;
  if (bundle.items().empty()) {
    return context.direct(native,
                          [&](cl_event*) { return run(context.queue(), first.native(), second.native(), 0, nullptr); });
  }
  return context.operate(name, bundle.items(), native, [&](Running& operation, const WaitList& waits, cl_event* event) {
    const cl_int status = run(operation.backend().queue(), native_of(first, operation), native_of(second, operation),
                              waits.size(), waits.data());
    *event = *native;
    return status;
  });
}

/// Runs a command on a range of one buffer: run(queue, root, offset in the root, waits, list).
template <class Run>
[[nodiscard]] cl_int on_range(Context& context, std::string_view name, Memory& memory, Access access,
                              std::size_t offset, std::size_t size, cl_event* native, Run&& run) {
  Bundle bundle;
  if (const cl_int status = bundle.add(memory, access, offset, size); status != CL_SUCCESS) return status;
  const std::size_t at = memory.origin() + offset;
  return on_buffers(context, name, bundle, Handles::roots, memory, memory, native,
                    [&](cl_command_queue queue, cl_mem root, cl_mem, cl_uint waits, const cl_event* list) {
                      return run(queue, root, at, waits, list);
                    });
}

/// A command that does nothing: its event comes after all that was queued before.
[[nodiscard]] inline cl_int mark(Context& context, cl_event* native) {
  return context.direct(
      native, [&](cl_event* event) { return down.clEnqueueMarkerWithWaitList(context.queue(), 0, nullptr, event); });
}

}  // namespace swapmm::opencl::layer::api
