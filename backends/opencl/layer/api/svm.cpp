// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../memory.hpp"
#include "../process/callbacks.hpp"
#include "../queue.hpp"
#include "checks.hpp"
#include "install.hpp"
#include "native_objects.hpp"

// Shared virtual memory: its addresses are the program's, so it is the driver's own, and counts against the budget.

namespace swapmm::opencl::layer::api {
namespace {

struct Allocation {
  std::vector<DeviceBudget*> devices;
  Bytes size;
};

struct Allocations {
  std::mutex mutex;
  std::unordered_map<void*, Allocation> all;
};

Allocations& allocations() {
  static Allocations& all = *new Allocations;
  return all;
}

Allocation take_out(void* memory) {
  const std::lock_guard lock(allocations().mutex);
  auto found = allocations().all.extract(memory);
  return found.empty() ? Allocation{} : std::move(found.mapped());
}

void* CL_API_CALL allocate(cl_context handle, cl_svm_mem_flags flags, size_t size, cl_uint alignment) {
  Context* const context = Context::of(handle);
  if (context == nullptr) return down.clSVMAlloc(handle, flags, size, alignment);
  std::vector<Reservation> reservations;
  for (DeviceBudget* const device : context->devices()) {
    if (!reservations.emplace_back(*device, Bytes{size})) return nullptr;
  }
  void* const memory = down.clSVMAlloc(handle, flags, size, alignment);
  if (memory == nullptr) return nullptr;
  for (Reservation& each : reservations) each.release();
  note_passed(*context, PassedThrough::shared_memory, Bytes{size});
  const std::lock_guard lock(allocations().mutex);
  allocations().all[memory] = {{context->devices().begin(), context->devices().end()}, Bytes{size}};
  return memory;
}

void CL_API_CALL free_memory(cl_context context, void* memory) {
  const Allocation gone = take_out(memory);  // before: once it is free, another thread may get the same address
  down.clSVMFree(context, memory);
  for (DeviceBudget* const device : gone.devices) device->give_back(gone.size);
}

template <class Submit>
cl_int queue_command(Queue& queue, const Place& place, Submit submit) {
  return enqueue(queue, place, [=](Context& context, cl_event* native) {
    return context.direct(native, [&](cl_event* made) { return submit(context.queue(), made); });
  });
}

using FreeCallback = void(CL_CALLBACK*)(cl_command_queue, cl_uint, void*[], void*);

cl_int CL_API_CALL enqueue_free(cl_command_queue handle, cl_uint number, void* pointers[], FreeCallback callback,
                                void* data, cl_uint count, const cl_event* waits, cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) return down.clEnqueueSVMFree(handle, number, pointers, callback, data, count, waits, event);
  if ((number == 0) != (pointers == nullptr)) return CL_INVALID_VALUE;
  struct Freed {
    Ref<Queue> queue;
    std::vector<void*> pointers;
    FreeCallback callback;
    void* data;
  };
  const std::vector<void*> all(pointers, pointers + number);
  const Ref<Queue> kept(*queue);
  return queue_command(*queue, {CL_COMMAND_SVM_FREE, count, waits, event}, [=](cl_command_queue on, cl_event* made) {
    const cl_int status = down.clEnqueueMarkerWithWaitList(on, 0, nullptr, made);
    if (status != CL_SUCCESS) return status;
    auto* const freed = new Freed{kept, all, callback, data};
    const auto told = [](cl_event, cl_int, void* what) {
      auto* const now = static_cast<Freed*>(what);
      run_later([now] {
        if (now->callback != nullptr) {
          now->callback(now->queue->handle(), static_cast<cl_uint>(now->pointers.size()), now->pointers.data(),
                        now->data);
        } else {
          for (void* const memory : now->pointers) free_memory(now->queue->context().handle(), memory);
        }
        delete now;
      });
    };
    const cl_int refused = down.clSetEventCallback(*made, CL_COMPLETE, told, freed);
    if (refused == CL_SUCCESS) return status;
    delete freed;  // nobody would free the memory
    down.clReleaseEvent(std::exchange(*made, nullptr));
    return refused;
  });
}

cl_int CL_API_CALL copy(cl_command_queue handle, cl_bool blocking, void* to, const void* from, size_t size,
                        cl_uint count, const cl_event* waits, cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) return down.clEnqueueSVMMemcpy(handle, blocking, to, from, size, count, waits, event);
  return queue_command(*queue, {CL_COMMAND_SVM_MEMCPY, count, waits, event, blocking != CL_FALSE},
                       [=](cl_command_queue on, cl_event* made) {
                         return down.clEnqueueSVMMemcpy(on, CL_FALSE, to, from, size, 0, nullptr, made);
                       });
}

cl_int CL_API_CALL fill(cl_command_queue handle, void* to, const void* pattern, size_t pattern_size, size_t size,
                        cl_uint count, const cl_event* waits, cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) {
    return down.clEnqueueSVMMemFill(handle, to, pattern, pattern_size, size, count, waits, event);
  }
  if (pattern == nullptr || pattern_size > 128) return CL_INVALID_VALUE;
  const auto* const bytes = static_cast<const std::byte*>(pattern);
  const std::vector<std::byte> copied(bytes, bytes + pattern_size);
  return queue_command(*queue, {CL_COMMAND_SVM_MEMFILL, count, waits, event}, [=](cl_command_queue on, cl_event* made) {
    return down.clEnqueueSVMMemFill(on, to, copied.data(), copied.size(), size, 0, nullptr, made);
  });
}

cl_int CL_API_CALL map(cl_command_queue handle, cl_bool blocking, cl_map_flags flags, void* memory, size_t size,
                       cl_uint count, const cl_event* waits, cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) return down.clEnqueueSVMMap(handle, blocking, flags, memory, size, count, waits, event);
  return queue_command(*queue, {CL_COMMAND_SVM_MAP, count, waits, event, blocking != CL_FALSE},
                       [=](cl_command_queue on, cl_event* made) {
                         return down.clEnqueueSVMMap(on, CL_FALSE, flags, memory, size, 0, nullptr, made);
                       });
}

cl_int CL_API_CALL unmap(cl_command_queue handle, void* memory, cl_uint count, const cl_event* waits, cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) return down.clEnqueueSVMUnmap(handle, memory, count, waits, event);
  return queue_command(*queue, {CL_COMMAND_SVM_UNMAP, count, waits, event}, [=](cl_command_queue on, cl_event* made) {
    return down.clEnqueueSVMUnmap(on, memory, 0, nullptr, made);
  });
}

cl_int CL_API_CALL migrate(cl_command_queue handle, cl_uint number, const void** pointers, const size_t* sizes,
                           cl_mem_migration_flags flags, cl_uint count, const cl_event* waits, cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) {
    return down.clEnqueueSVMMigrateMem(handle, number, pointers, sizes, flags, count, waits, event);
  }
  if (number == 0 || pointers == nullptr) return CL_INVALID_VALUE;
  return enqueue(*queue, {CL_COMMAND_SVM_MIGRATE_MEM, count, waits, event}, mark);  // a hint
}

}  // namespace

bool is_shared(const void* address) {
  const auto* const byte = static_cast<const std::byte*>(address);
  const std::lock_guard lock(allocations().mutex);
  for (const auto& [begin, allocation] : allocations().all) {
    const auto* const first = static_cast<const std::byte*>(begin);
    if (!std::less<>()(byte, first) && std::less<>()(byte, first + allocation.size.value)) return true;
  }
  return false;
}

void install_svm(cl_icd_dispatch& table) {
  table.clSVMAlloc = allocate;
  table.clSVMFree = free_memory;
  table.clEnqueueSVMFree = enqueue_free;
  table.clEnqueueSVMMemcpy = copy;
  table.clEnqueueSVMMemFill = fill;
  table.clEnqueueSVMMap = map;
  table.clEnqueueSVMUnmap = unmap;
  table.clEnqueueSVMMigrateMem = migrate;
}

}  // namespace swapmm::opencl::layer::api
