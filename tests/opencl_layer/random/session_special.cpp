// SPDX-License-Identifier: Apache-2.0
// The part of the session for shared virtual memory and native kernels.

#include "kernels.hpp"
#include "random_numbers.hpp"
#include "session.hpp"

namespace random_opencl {
namespace {

struct Task {
  const cl_uint* from;
  cl_uint* to;  // null: the same
  cl_uint begin;
  cl_uint end;
  cl_uint a;
};

void CL_CALLBACK run_task(void* arguments) {
  const Task& task = *static_cast<const Task*>(arguments);
  cl_uint* const to = task.to == nullptr ? const_cast<cl_uint*>(task.from) : task.to;
  for (cl_uint i = task.begin; i != task.end; ++i) to[i] = native_element(task.from[i], task.a);
}

}  // namespace

void Session::run_native(const Step& step, int number) {
  const Action& what = step.what;
  Task task{nullptr, nullptr, what.launch.begin, what.launch.end, what.launch.a};
  // PoCL 3.1 sorts the buffers by when they were made, and not the places of their addresses.
  std::vector<cl_mem> memories{memory(what.objects[0])};
  std::vector<const void*> places{&task.from};
  if (what.objects[0] != what.objects[1]) {
    const bool first = what.objects[1] < what.objects[0];
    memories.insert(first ? memories.begin() : memories.end(), memory(what.objects[1]));
    places.insert(first ? places.begin() : places.end(), &task.to);
  }
  const std::vector<cl_event> waits = waits_of(step);
  ok(clEnqueueNativeKernel(queue(step), run_task, &task, sizeof(task), static_cast<cl_uint>(memories.size()),
                           memories.data(), places.data(), static_cast<cl_uint>(waits.size()),
                           waits.empty() ? nullptr : waits.data(), event_of(step, number)),
     "clEnqueueNativeKernel");
  task = {nullptr, nullptr, 0, UINT32_MAX, 0};  // it was copied
}

/// Whether it is a command on shared virtual memory, which other functions do.
bool Session::shared_command(const Step& step, int number) {
  const Action& what = step.what;
  if (what.objects.empty() || what.kind == Kind::launch || what.kind == Kind::touch_map) return false;
  const int id = what.objects[0];
  if (!object(id).shared) return false;
  const std::vector<cl_event> waits = waits_of(step);
  const auto count = static_cast<cl_uint>(waits.size());
  const cl_event* const list = waits.empty() ? nullptr : waits.data();
  cl_event* const event = event_of(step, number);
  const cl_bool blocking = what.blocking ? CL_TRUE : CL_FALSE;
  const Rect& at = what.at[0];
  std::uint8_t*& memory = shared_[index(id)];
  std::uint8_t* const begin = memory + at.origin[0];
  const std::size_t size = at.region[0];
  switch (what.kind) {
    case Kind::create:
      memory = static_cast<std::uint8_t*>(
          clSVMAlloc(contexts_[index(object(id).context)], object(id).given_flags, object(id).size, 0));
      if (memory == nullptr) throw Failure("clSVMAlloc returned null");
      break;
    case Kind::release: {
      void* pointers[] = {memory};
      ok(clEnqueueSVMFree(queue(step), 1, pointers, nullptr, nullptr, count, list, event), "clEnqueueSVMFree");
      memory = nullptr;
      break;
    }
    case Kind::write:
    case Kind::read: {
      Bytes& host = host_memory_[index(number)];
      host = random_bytes(data_seed(what), end_of(what.host));
      const bool write = what.kind == Kind::write;
      ok(clEnqueueSVMMemcpy(queue(step), blocking, write ? begin : host.data(), write ? host.data() : begin, size,
                            count, list, event),
         "clEnqueueSVMMemcpy");
      if (!what.blocking) break;
      if (write) {
        host.assign(host.size(), 0xee);  // the call has read it
      } else {
        check_read(step, number);
      }
      break;
    }
    case Kind::copy:
      ok(clEnqueueSVMMemcpy(queue(step), CL_FALSE, shared_[index(what.objects[1])] + what.at[1].origin[0], begin, size,
                            count, list, event),
         "clEnqueueSVMMemcpy");
      break;
    case Kind::fill: {
      const Bytes pattern = random_bytes(data_seed(what), what.pattern);
      ok(clEnqueueSVMMemFill(queue(step), begin, pattern.data(), pattern.size(), size, count, list, event),
         "clEnqueueSVMMemFill");
      break;
    }
    case Kind::map:
      ok(clEnqueueSVMMap(queue(step), blocking, what.map_flags, begin, size, count, list, event), "clEnqueueSVMMap");
      mapped_[index(number)] = {begin, size};
      break;
    case Kind::unmap:
      ok(clEnqueueSVMUnmap(queue(step), mapped_[index(step.target)].pointer, count, list, event), "clEnqueueSVMUnmap");
      break;
    default: throw Failure("a command that shared memory has not");
  }
  return true;
}

}  // namespace random_opencl
