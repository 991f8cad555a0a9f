// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "../../kernel.hpp"
#include "../../queue.hpp"
#include "accesses.hpp"
#include "themes.hpp"

namespace swapmm::opencl::layer::record {
namespace {

using calls::Argument;
using calls::CallKind;
using calls::ObjectKind;

KnownKernel ask(cl_kernel kernel) {
  KnownKernel known;
  std::size_t size = 0;
  if (next.clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, 0, nullptr, &size) == CL_SUCCESS && size > 0) {
    known.name.resize(size);
    if (next.clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, size, known.name.data(), nullptr) != CL_SUCCESS) size = 1;
    known.name.resize(size - 1);
  }
  cl_uint count = 0;
  if (next.clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr) != CL_SUCCESS) count = 0;
  known.arguments.resize(count);
  for (cl_uint i = 0; i < count && next.clGetKernelArgInfo != nullptr; ++i) {
    cl_kernel_arg_address_qualifier where = 0;
    if (next.clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof where, &where, nullptr) ==
        CL_SUCCESS) {
      known.arguments[i].where = where;
    }
  }
  return known;
}

struct CreateKernel {
  static void after(Hook& hook, cl_kernel made, cl_program program, const char* name, cl_int*) {
    hook.call.parent = recorder().find(program);
    hook.call.name = name == nullptr ? "" : name;
    const calls::Object object = hook.made(made, ObjectKind::kernel);
    if (object != 0) recorder().add_kernel(object, ask(made));
  }
};

// The kernels stand in `objects`, and their names, with commas between them, in `name`.
struct CreateKernels {
  static void after(Hook& hook, cl_int, cl_program program, cl_uint, cl_kernel* kernels, cl_uint* made) {
    hook.call.kind = CallKind::create;
    hook.call.parent = recorder().find(program);
    hook.call.object_kind = ObjectKind::kernel;
    hook.call.object = 0;
    if (!hook.succeeded() || kernels == nullptr) return;
    cl_uint count = made == nullptr ? 0 : *made;
    if (made == nullptr) {
      std::size_t all = 0;
      if (next.clGetProgramInfo(program, CL_PROGRAM_NUM_KERNELS, sizeof all, &all, nullptr) == CL_SUCCESS) {
        count = static_cast<cl_uint>(all);
      }
    }
    for (cl_uint i = 0; i < count; ++i) {
      const calls::Object object = recorder().add(kernels[i], ObjectKind::kernel);
      KnownKernel known = ask(kernels[i]);
      hook.call.objects.push_back(object);
      hook.call.name += (hook.call.name.empty() ? "" : ",") + known.name;
      recorder().add_kernel(object, std::move(known));
    }
  }
};

struct CloneKernel {
  static void after(Hook& hook, cl_kernel made, cl_kernel model, cl_int*) {
    const calls::Object parent = recorder().find(model);
    hook.call.parent = parent;
    KnownKernel known = recorder().kernel(parent);
    hook.call.name = known.name;
    const calls::Object object = hook.made(made, ObjectKind::kernel);
    if (object != 0) recorder().add_kernel(object, std::move(known));
  }
};

// The value of a memory object, by the argument's address space; without that, if it is the address of one.
bool is_memory(const KnownKernel& kernel, cl_uint index, std::size_t size, const void* value, calls::Object& object) {
  if (value == nullptr || size != sizeof(cl_mem)) return false;
  void* handle = nullptr;
  std::memcpy(&handle, value, sizeof handle);
  const auto kind = recorder().kind_of(handle);
  const bool known = handle != nullptr && (kind == ObjectKind::buffer || kind == ObjectKind::part ||
                                           kind == ObjectKind::image || kind == ObjectKind::other);
  const auto where = index < kernel.arguments.size() ? kernel.arguments[index].where : 0;
  if (known) object = recorder().find(handle);
  if (where == 0) return known;
  return where == CL_KERNEL_ARG_ADDRESS_GLOBAL || where == CL_KERNEL_ARG_ADDRESS_CONSTANT;
}

bool is_sampler(std::size_t size, const void* value) {
  if (size != sizeof(cl_sampler)) return false;
  void* handle = nullptr;
  std::memcpy(&handle, value, sizeof handle);
  return recorder().kind_of(handle) == ObjectKind::sampler;
}

struct SetArgument {
  static void before(Hook& hook, cl_kernel& kernel, cl_uint& index, size_t& size, const void*& value) {
    hook.call.kind = CallKind::set_argument;
    const calls::Object object = recorder().find(kernel);
    const KnownKernel known = recorder().kernel(object);
    Argument argument;
    argument.index = index;
    argument.bytes = size;
    if (is_memory(known, index, size, value, argument.object)) {
      argument.type = Argument::Type::object;
    } else if (value == nullptr) {
      argument.type = Argument::Type::local;
    } else if (is_sampler(size, value)) {
      argument.type = Argument::Type::opaque;
    } else {
      argument.value.assign(static_cast<const char*>(value), std::min<std::size_t>(size, 65536));
      argument.bytes = argument.value.size();
    }
    hook.call.argument = std::move(argument);
  }
  static void after(Hook& hook, cl_int, cl_kernel kernel, cl_uint index, size_t, const void*) {
    if (!hook.succeeded() || !hook.call.argument) return;
    recorder().set_argument(recorder().find(kernel), index, hook.call.argument->object);
  }
};

struct SetOpaque {
  static void before(Hook& hook, cl_kernel&, cl_uint& index, const void*&) {
    hook.call.kind = CallKind::set_argument;
    hook.call.argument.emplace();
    hook.call.argument->index = index;
    hook.call.argument->type = Argument::Type::opaque;
  }
};

void note_launch(Hook& hook, cl_kernel handle) {
  hook.call.kind = CallKind::launch;
  hook.call.object = recorder().find(handle);
  hook.call.object_kind = ObjectKind::kernel;
  const KnownKernel kernel = recorder().kernel(hook.call.object);
  hook.call.name = kernel.name;
  for (std::uint32_t i = 0; i < kernel.arguments.size(); ++i) {
    const KnownKernel::Argument& argument = kernel.arguments[i];
    if (argument.memory == 0) continue;
    const KnownMemory memory = recorder().memory(argument.memory);
    calls::Operand operand;
    operand.object = argument.memory;
    operand.access = access_of(argument, memory);
    operand.bytes = memory.bytes;
    operand.argument = i;
    hook.call.operands.push_back(operand);
  }
}

struct Launch {
  static constexpr bool timed = true;
  static void before(Hook& hook, cl_command_queue&, cl_kernel& kernel, cl_uint& dimensions, const size_t*& offset,
                     const size_t*& global, const size_t*& local, cl_uint&, const cl_event*&, cl_event*&) {
    note_launch(hook, kernel);
    if (dimensions > 3) return;
    if (offset != nullptr) hook.call.offsets.assign(offset, offset + dimensions);
    if (global != nullptr) hook.call.global.assign(global, global + dimensions);
    if (local != nullptr) hook.call.local.assign(local, local + dimensions);
  }
};

struct LaunchOne {
  static constexpr bool timed = true;
  static void before(Hook& hook, cl_command_queue&, cl_kernel& kernel, cl_uint&, const cl_event*&, cl_event*&) {
    note_launch(hook, kernel);
    hook.call.global.assign(1, 1);
    hook.call.local.assign(1, 1);
  }
};

}  // namespace

void wrap_kernels(cl_icd_dispatch& table) {
  SWAPMM_WRAP(clCreateKernel, CreateKernel);
  SWAPMM_WRAP(clCreateKernelsInProgram, CreateKernels);
  SWAPMM_WRAP(clCloneKernel, CloneKernel);
  SWAPMM_WRAP(clSetKernelArg, SetArgument);
  SWAPMM_WRAP(clSetKernelArgSVMPointer, SetOpaque);
  SWAPMM_WRAP(clEnqueueNDRangeKernel, Launch);
  SWAPMM_WRAP(clEnqueueTask, LaunchOne);
}

}  // namespace swapmm::opencl::layer::record
