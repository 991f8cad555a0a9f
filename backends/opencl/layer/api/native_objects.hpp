// SPDX-License-Identifier: Apache-2.0
#pragma once

// Memory objects that the driver makes and keeps: they are not swapped, and count against the budget.

#include <algorithm>
#include <utility>
#include <vector>

#include "../memory.hpp"
#include "install.hpp"

namespace swapmm::opencl::layer::api {

/// What the driver says about an object that it made; the status if it does not answer.
[[nodiscard]] inline cl_int facts_of(cl_mem native, Memory::Facts& facts) {
  cl_int status = CL_SUCCESS;
  const auto ask = [&](cl_mem_info what, auto& value) {
    const cl_int asked = down.clGetMemObjectInfo(native, what, sizeof value, &value, nullptr);
    if (status == CL_SUCCESS) status = asked;
  };
  ask(CL_MEM_TYPE, facts.type);
  ask(CL_MEM_FLAGS, facts.flags);
  ask(CL_MEM_SIZE, facts.size);
  ask(CL_MEM_HOST_PTR, facts.host_pointer);
  std::size_t bytes = 0;
  if (down.clGetMemObjectInfo(native, CL_MEM_PROPERTIES, 0, nullptr, &bytes) == CL_SUCCESS && bytes != 0) {
    facts.properties.resize(bytes / sizeof(cl_mem_properties));
    (void)down.clGetMemObjectInfo(native, CL_MEM_PROPERTIES, bytes, facts.properties.data(), nullptr);
  }
  return status;
}

/// For the report. Without the lock.
inline void note_passed(Context& context, PassedThrough kind, Bytes size) {
  for (DeviceBudget* const device : context.devices()) device->note_passed(kind, size);
}

/// True if the address lies in shared virtual memory that the program has.
[[nodiscard]] bool is_shared(const void* address);

/// Lets the driver make an object, make(status), after room was made for as many bytes as it probably takes. `parent`:
/// the object that has its bytes, or null.
template <class Make>
cl_mem make_native(Context& context, PassedThrough kind, Bytes estimate, Memory* parent, cl_int* status, Make&& make) {
  std::vector<Reservation> reservations;
  for (DeviceBudget* const device : context.devices()) {
    if (parent != nullptr) break;
    if (!reservations.emplace_back(*device, estimate)) {
      return result<cl_mem>(nullptr, CL_MEM_OBJECT_ALLOCATION_FAILURE, status);
    }
  }
  const cl_mem native = allocate(status, make);
  if (native == nullptr) return nullptr;
  Memory::Facts facts;
  if (facts_of(native, facts) != CL_SUCCESS) {
    down.clReleaseMemObject(native);
    return result<cl_mem>(nullptr, CL_OUT_OF_RESOURCES, status);
  }
  if (parent == nullptr) {
    // Drivers pad images. If there is no room for it, the image goes again.
    const Bytes more = Bytes{facts.size} > estimate ? Bytes{facts.size} - estimate : Bytes{};
    std::vector<Reservation> padding;
    for (DeviceBudget* const device : context.devices()) {
      if (padding.emplace_back(*device, more)) continue;
      down.clReleaseMemObject(native);
      return result<cl_mem>(nullptr, CL_MEM_OBJECT_ALLOCATION_FAILURE, status);
    }
    for (Reservation& each : reservations) each.release();
    for (Reservation& each : padding) each.release();
    count_until_gone(native, context.devices(), estimate + more);
    note_passed(context, kind, estimate + more);
  } else {
    note_passed(context, kind, Bytes{});
  }
  if (!context.managed()) return native;
  return (new Memory(context, std::move(facts), native, parent))->handle();
}

/// The driver's handle of an object that the driver made. Takes the lock.
[[nodiscard]] inline cl_mem native_handle(Memory& memory) {
  const Lock lock = memory.context().lock();
  return memory.native();
}

}  // namespace swapmm::opencl::layer::api
