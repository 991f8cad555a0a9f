// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "../memory.hpp"
#include "../process/settings.hpp"
#include "checks.hpp"
#include "install.hpp"
#include "native_objects.hpp"

namespace swapmm::opencl::layer::api {
namespace {

constexpr cl_mem_flags access_flags = CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY;
constexpr cl_mem_flags host_access_flags = CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS;
constexpr cl_mem_flags pointer_flags = CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR;

bool at_most_one(cl_mem_flags flags) { return (flags & (flags - 1)) == 0; }

cl_int check_flags(cl_mem_flags flags, const void* host) {
  if ((flags & ~(access_flags | host_access_flags | pointer_flags)) != 0) return CL_INVALID_VALUE;
  if (!at_most_one(flags & access_flags) || !at_most_one(flags & host_access_flags)) return CL_INVALID_VALUE;
  const bool uses = (flags & CL_MEM_USE_HOST_PTR) != 0;
  const bool copies = (flags & CL_MEM_COPY_HOST_PTR) != 0;
  if (uses && (flags & (CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR)) != 0) return CL_INVALID_VALUE;
  if ((host != nullptr) != (uses || copies)) return CL_INVALID_HOST_PTR;
  return CL_SUCCESS;
}

// Not managed: the driver makes the buffer, and its bytes count.
template <class Make>
cl_mem counted(Context& context, std::size_t size, cl_int* status, Make&& make) {
  const Bytes bytes{size};
  std::vector<Reservation> reservations;
  for (DeviceBudget* const device : context.devices()) {
    if (!reservations.emplace_back(*device, bytes)) {
      return result<cl_mem>(nullptr, CL_MEM_OBJECT_ALLOCATION_FAILURE, status);
    }
  }
  const cl_mem made = allocate(status, make);
  if (made == nullptr) return nullptr;
  for (Reservation& reservation : reservations) reservation.release();
  count_until_gone(made, context.devices(), bytes);
  note_passed(context, PassedThrough::buffer, bytes);
  return made;
}

// A buffer in shared virtual memory is the same bytes: the driver's own. They count again, for drivers may have a copy.
cl_mem buffer_in_shared_memory(Context& context, Memory::Facts facts, cl_int* status) {
  const cl_mem made = counted(context, facts.size, status, [&](cl_int* told) {
    return down.clCreateBuffer(context.handle(), CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, facts.size,
                               facts.host_pointer, told);
  });
  if (made == nullptr) return nullptr;
  const Lock lock = context.lock();
  return result((new Memory(context, std::move(facts), made, nullptr))->handle(), CL_SUCCESS, status);
}

cl_mem managed_buffer(Context& context, std::vector<cl_mem_properties> properties, cl_mem_flags flags, size_t size,
                      void* host, cl_int* status) {
  if (const cl_int wrong = check_flags(flags, host); wrong != CL_SUCCESS) return result<cl_mem>(nullptr, wrong, status);
  if (size == 0 || Bytes{size} > context.largest_buffer()) {
    return result<cl_mem>(nullptr, CL_INVALID_BUFFER_SIZE, status);
  }
  if ((flags & access_flags) == 0) flags |= CL_MEM_READ_WRITE;
  if ((flags & CL_MEM_USE_HOST_PTR) != 0 && is_shared(host)) {
    return buffer_in_shared_memory(context, {CL_MEM_OBJECT_BUFFER, flags, size, host, std::move(properties)}, status);
  }
  const Lock lock = context.lock();
  if (context.core() == nullptr) return result<cl_mem>(nullptr, CL_MEM_OBJECT_ALLOCATION_FAILURE, status);
  std::shared_ptr<MapArea> initial;
  if ((flags & CL_MEM_COPY_HOST_PTR) != 0) {
    for (int attempt = 0; initial == nullptr || initial->data == nullptr; ++attempt) {
      if (attempt == 1 && !context.take_host_memory(Bytes{size})) attempt = 2;
      if (attempt == 2) return result<cl_mem>(nullptr, CL_OUT_OF_HOST_MEMORY, status);
      initial = std::make_shared<MapArea>(size);
    }
    std::memcpy(initial->data, host, size);
  }
  Memory::Facts facts{CL_MEM_OBJECT_BUFFER, flags, size, nullptr, std::move(properties)};
  if ((flags & CL_MEM_USE_HOST_PTR) != 0) facts.host_pointer = host;
  auto* const memory = new Memory(context, std::move(facts), std::move(initial));
  return result(memory->handle(), CL_SUCCESS, status);
}

cl_mem CL_API_CALL create_buffer(cl_context handle, cl_mem_flags flags, size_t size, void* host, cl_int* status) {
  Context* const context = Context::of(handle);
  if (context == nullptr) return down.clCreateBuffer(handle, flags, size, host, status);
  if (!context->managed()) {
    return counted(*context, size, status,
                   [&](cl_int* told) { return down.clCreateBuffer(handle, flags, size, host, told); });
  }
  return managed_buffer(*context, {}, flags, size, host, status);
}

cl_mem CL_API_CALL create_buffer_with_properties(cl_context handle, const cl_mem_properties* properties,
                                                 cl_mem_flags flags, size_t size, void* host, cl_int* status) {
  Context* const context = Context::of(handle);
  const auto native = [&](cl_int* told) {
    return down.clCreateBufferWithProperties(handle, properties, flags, size, host, told);
  };
  if (context == nullptr) return native(status);
  if (!context->managed()) return counted(*context, size, status, native);
  std::vector<cl_mem_properties> copied;
  if (properties != nullptr) {
    if (*properties != 0) return result<cl_mem>(nullptr, CL_INVALID_PROPERTY, status);  // none is known
    copied.push_back(0);
  }
  return managed_buffer(*context, std::move(copied), flags, size, host, status);
}

cl_mem CL_API_CALL create_sub_buffer(cl_mem handle, cl_mem_flags flags, cl_buffer_create_type type, const void* what,
                                     cl_int* status) {
  Memory* const root = Memory::from(handle);
  if (root == nullptr) return down.clCreateSubBuffer(handle, flags, type, what, status);
  const auto refuse = [&](cl_int wrong) { return result<cl_mem>(nullptr, wrong, status); };
  if (!root->is_buffer() || root->parent() != nullptr) return refuse(CL_INVALID_MEM_OBJECT);
  const cl_mem_flags above = root->facts().flags;
  if ((flags & ~(access_flags | host_access_flags)) != 0) return refuse(CL_INVALID_VALUE);
  if (!at_most_one(flags & access_flags) || !at_most_one(flags & host_access_flags)) return refuse(CL_INVALID_VALUE);
  if ((above & CL_MEM_WRITE_ONLY) != 0 && (flags & (CL_MEM_READ_WRITE | CL_MEM_READ_ONLY)) != 0) {
    return refuse(CL_INVALID_VALUE);
  }
  if ((above & CL_MEM_READ_ONLY) != 0 && (flags & (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY)) != 0) {
    return refuse(CL_INVALID_VALUE);
  }
  if ((above & CL_MEM_HOST_WRITE_ONLY) != 0 && (flags & CL_MEM_HOST_READ_ONLY) != 0) return refuse(CL_INVALID_VALUE);
  if ((above & CL_MEM_HOST_READ_ONLY) != 0 && (flags & CL_MEM_HOST_WRITE_ONLY) != 0) return refuse(CL_INVALID_VALUE);
  if ((above & CL_MEM_HOST_NO_ACCESS) != 0 && (flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY)) != 0) {
    return refuse(CL_INVALID_VALUE);
  }
  if (type != CL_BUFFER_CREATE_TYPE_REGION || what == nullptr) return refuse(CL_INVALID_VALUE);
  const auto& region = *static_cast<const cl_buffer_region*>(what);
  const std::size_t whole = root->facts().size;
  if (region.size == 0) return refuse(CL_INVALID_BUFFER_SIZE);
  if (region.origin > whole || region.size > whole - region.origin) return refuse(CL_INVALID_VALUE);
  if (region.origin % root->context().alignment().value != 0) return refuse(CL_MISALIGNED_SUB_BUFFER_OFFSET);
  if ((flags & access_flags) == 0) flags |= above & access_flags;
  if ((flags & host_access_flags) == 0) flags |= above & host_access_flags;
  flags |= above & pointer_flags;
  Memory::Facts facts{CL_MEM_OBJECT_BUFFER, flags, region.size, nullptr, {}};
  if (root->facts().host_pointer != nullptr) {
    facts.host_pointer = static_cast<std::byte*>(root->facts().host_pointer) + region.origin;
  }
  return result((new Memory(*root, std::move(facts), region.origin))->handle(), CL_SUCCESS, status);
}

cl_int CL_API_CALL retain_memory(cl_mem handle) {
  Memory* const memory = Memory::from(handle);
  if (memory == nullptr) return down.clRetainMemObject(handle);
  return memory->retain() ? CL_SUCCESS : CL_INVALID_MEM_OBJECT;
}

cl_int CL_API_CALL release_memory(cl_mem handle) {
  Memory* const memory = Memory::from(handle);
  if (memory == nullptr) return down.clReleaseMemObject(handle);
  return memory->release() ? CL_SUCCESS : CL_INVALID_MEM_OBJECT;
}

cl_int CL_API_CALL set_destructor_callback(cl_mem handle, void(CL_CALLBACK* callback)(cl_mem, void*), void* data) {
  Memory* const memory = Memory::from(handle);
  if (memory == nullptr) return down.clSetMemObjectDestructorCallback(handle, callback, data);
  if (callback == nullptr) return CL_INVALID_VALUE;
  memory->on_destruction(callback, data);
  return CL_SUCCESS;
}

cl_int CL_API_CALL memory_info(cl_mem handle, cl_mem_info what, size_t size, void* into, size_t* needed) {
  Memory* const memory = Memory::from(handle);
  if (memory == nullptr) return down.clGetMemObjectInfo(handle, what, size, into, needed);
  const Memory::Facts& facts = memory->facts();
  switch (what) {
    case CL_MEM_TYPE: return answer(facts.type, size, into, needed);
    case CL_MEM_FLAGS: return answer(facts.flags, size, into, needed);
    case CL_MEM_SIZE: return answer(facts.size, size, into, needed);
    case CL_MEM_HOST_PTR: return answer(facts.host_pointer, size, into, needed);
    case CL_MEM_REFERENCE_COUNT: return answer(memory->references() + memory->parts(), size, into, needed);
    case CL_MEM_CONTEXT: return answer(memory->context().handle(), size, into, needed);
    case CL_MEM_OFFSET: return answer(memory->origin(), size, into, needed);
    case CL_MEM_ASSOCIATED_MEMOBJECT: {
      Memory* const parent = memory->parent();
      return answer(parent == nullptr ? nullptr : parent->handle(), size, into, needed);
    }
    case CL_MEM_MAP_COUNT: {
      const Lock lock = memory->context().lock();
      return answer(static_cast<cl_uint>(memory->mappings.size()), size, into, needed);
    }
    case CL_MEM_USES_SVM_POINTER: {
      const Lock lock = memory->context().lock();
      const cl_mem native = memory->native();
      if (native != nullptr) return down.clGetMemObjectInfo(native, what, size, into, needed);
      return answer(cl_bool{CL_FALSE}, size, into, needed);
    }
    case CL_MEM_PROPERTIES:
      return answer(facts.properties.data(), facts.properties.size() * sizeof(cl_mem_properties), size, into, needed);
    default: break;
  }
  const Lock lock = memory->context().lock();
  const cl_mem native = memory->native();
  return native == nullptr ? CL_INVALID_VALUE : down.clGetMemObjectInfo(native, what, size, into, needed);
}

}  // namespace

void install_memory(cl_icd_dispatch& table) {
  table.clCreateBuffer = create_buffer;
  table.clCreateBufferWithProperties = create_buffer_with_properties;
  table.clCreateSubBuffer = create_sub_buffer;
  table.clRetainMemObject = retain_memory;
  table.clReleaseMemObject = release_memory;
  table.clSetMemObjectDestructorCallback = set_destructor_callback;
  table.clGetMemObjectInfo = memory_info;
}

}  // namespace swapmm::opencl::layer::api
