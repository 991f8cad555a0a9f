// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "../kernel.hpp"
#include "../queue.hpp"
#include "checks.hpp"
#include "install.hpp"
#include "program_options.hpp"

namespace swapmm::opencl::layer::api {
namespace {

Context* context_of(cl_program program) {
  cl_context handle = nullptr;
  if (down.clGetProgramInfo(program, CL_PROGRAM_CONTEXT, sizeof handle, &handle, nullptr) != CL_SUCCESS) return nullptr;
  Context* const context = Context::of(handle);
  return context != nullptr && context->managed() ? context : nullptr;
}

cl_kernel CL_API_CALL create_kernel(cl_program program, const char* name, cl_int* status) {
  const cl_kernel native = down.clCreateKernel(program, name, status);
  if (native == nullptr) return nullptr;
  Context* const context = context_of(program);
  return context == nullptr ? native : (new Kernel(*context, native))->handle();
}

cl_int CL_API_CALL create_kernels(cl_program program, cl_uint count, cl_kernel* kernels, cl_uint* made) {
  const cl_int status = down.clCreateKernelsInProgram(program, count, kernels, made);
  if (status != CL_SUCCESS || kernels == nullptr) return status;
  Context* const context = context_of(program);
  if (context == nullptr) return status;
  cl_uint all = count;
  if (made != nullptr) {
    all = *made;
  } else {
    (void)down.clCreateKernelsInProgram(program, 0, nullptr, &all);
  }
  for (cl_uint i = 0; i < std::min(all, count); ++i) kernels[i] = (new Kernel(*context, kernels[i]))->handle();
  return status;
}

cl_kernel CL_API_CALL clone_kernel(cl_kernel handle, cl_int* status) {
  Kernel* const kernel = Kernel::from(handle);
  if (kernel == nullptr) return down.clCloneKernel(handle, status);
  const Lock lock = kernel->context().lock();
  const cl_kernel native = down.clCloneKernel(kernel->native(), status);
  return native == nullptr ? nullptr : (new Kernel(*kernel, native))->handle();
}

cl_int CL_API_CALL retain_kernel(cl_kernel handle) {
  Kernel* const kernel = Kernel::from(handle);
  if (kernel == nullptr) return down.clRetainKernel(handle);
  return kernel->retain() ? CL_SUCCESS : CL_INVALID_KERNEL;
}

cl_int CL_API_CALL release_kernel(cl_kernel handle) {
  Kernel* const kernel = Kernel::from(handle);
  if (kernel == nullptr) return down.clReleaseKernel(handle);
  return kernel->release() ? CL_SUCCESS : CL_INVALID_KERNEL;
}

cl_int CL_API_CALL set_argument(cl_kernel handle, cl_uint index, size_t size, const void* value) {
  Kernel* const kernel = Kernel::from(handle);
  return kernel == nullptr ? down.clSetKernelArg(handle, index, size, value) : kernel->set(index, size, value);
}

cl_int CL_API_CALL set_svm_argument(cl_kernel handle, cl_uint index, const void* value) {
  Kernel* const kernel = Kernel::from(handle);
  return kernel == nullptr ? down.clSetKernelArgSVMPointer(handle, index, value) : kernel->set_svm(index, value);
}

cl_int CL_API_CALL set_execution_info(cl_kernel handle, cl_kernel_exec_info what, size_t size, const void* value) {
  Kernel* const kernel = Kernel::from(handle);
  return down.clSetKernelExecInfo(kernel == nullptr ? handle : kernel->native(), what, size, value);
}

cl_int CL_API_CALL kernel_info(cl_kernel handle, cl_kernel_info what, size_t size, void* into, size_t* needed) {
  Kernel* const kernel = Kernel::from(handle);
  if (kernel == nullptr) return down.clGetKernelInfo(handle, what, size, into, needed);
  if (what == CL_KERNEL_REFERENCE_COUNT) return answer(kernel->references(), size, into, needed);
  return down.clGetKernelInfo(kernel->native(), what, size, into, needed);
}

cl_int CL_API_CALL argument_info(cl_kernel handle, cl_uint index, cl_kernel_arg_info what, size_t size, void* into,
                                 size_t* needed) {
  Kernel* const kernel = Kernel::from(handle);
  if (kernel == nullptr) return down.clGetKernelArgInfo(handle, index, what, size, into, needed);
  const cl_int status = down.clGetKernelArgInfo(kernel->native(), index, what, size, into, needed);
  if (status != CL_SUCCESS) return status;
  cl_program program = nullptr;
  (void)down.clGetKernelInfo(kernel->native(), CL_KERNEL_PROGRAM, sizeof program, &program, nullptr);
  return tells_argument_info(program) ? status : CL_KERNEL_ARG_INFO_NOT_AVAILABLE;
}

cl_int CL_API_CALL work_group_info(cl_kernel handle, cl_device_id device, cl_kernel_work_group_info what, size_t size,
                                   void* into, size_t* needed) {
  Kernel* const kernel = Kernel::from(handle);
  return down.clGetKernelWorkGroupInfo(kernel == nullptr ? handle : kernel->native(), device, what, size, into, needed);
}

cl_int CL_API_CALL sub_group_info(cl_kernel handle, cl_device_id device, cl_kernel_sub_group_info what, size_t given,
                                  const void* input, size_t size, void* into, size_t* needed) {
  Kernel* const kernel = Kernel::from(handle);
  return down.clGetKernelSubGroupInfo(kernel == nullptr ? handle : kernel->native(), device, what, given, input, size,
                                      into, needed);
}

cl_int CL_API_CALL sub_group_info_khr(cl_kernel handle, cl_device_id device, cl_kernel_sub_group_info what,
                                      size_t given, const void* input, size_t size, void* into, size_t* needed) {
  Kernel* const kernel = Kernel::from(handle);
  return down.clGetKernelSubGroupInfoKHR(kernel == nullptr ? handle : kernel->native(), device, what, given, input,
                                         size, into, needed);
}

// ---- launches

/// The sizes of a launch, as long as the command is on hold.
class Sizes {
 public:
  Sizes(cl_uint dimensions, const std::size_t* values) : given_(values != nullptr) {
    for (cl_uint i = 0; given_ && i < dimensions && i < values_.size(); ++i) values_[i] = values[i];
  }
  [[nodiscard]] const std::size_t* data() const { return given_ ? values_.data() : nullptr; }

 private:
  bool given_;
  std::array<std::size_t, 3> values_{};
};

cl_int launch(Queue& queue, Kernel& kernel, cl_uint dimensions, const size_t* offset, const size_t* global,
              const size_t* local, const Place& place) {
  if (&kernel.context() != &queue.context()) return CL_INVALID_CONTEXT;
  if (dimensions < 1 || dimensions > 3) return CL_INVALID_WORK_DIMENSION;
  return enqueue(
      queue, place,
      [&](Context& context, cl_event* native) {
        return kernel.launch(context, native, nullptr, dimensions, offset, global, local);
      },
      [&] {
        return [kept = Ref<Kernel>(kernel), arguments = kernel.arguments_for_later(), dimensions,
                o = Sizes(dimensions, offset), g = Sizes(dimensions, global),
                l = Sizes(dimensions, local)](Context& context, cl_event* native) {
          return kept->launch(context, native, &arguments, dimensions, o.data(), g.data(), l.data());
        };
      });
}

cl_int CL_API_CALL enqueue_kernel(cl_command_queue handle, cl_kernel kernel_handle, cl_uint dimensions,
                                  const size_t* offset, const size_t* global, const size_t* local, cl_uint count,
                                  const cl_event* waits, cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) {
    return down.clEnqueueNDRangeKernel(handle, kernel_handle, dimensions, offset, global, local, count, waits, event);
  }
  Kernel* const kernel = Kernel::from(kernel_handle);
  if (kernel == nullptr) return CL_INVALID_KERNEL;
  return launch(*queue, *kernel, dimensions, offset, global, local, {CL_COMMAND_NDRANGE_KERNEL, count, waits, event});
}

cl_int CL_API_CALL enqueue_task(cl_command_queue handle, cl_kernel kernel_handle, cl_uint count, const cl_event* waits,
                                cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) return down.clEnqueueTask(handle, kernel_handle, count, waits, event);
  Kernel* const kernel = Kernel::from(kernel_handle);
  if (kernel == nullptr) return CL_INVALID_KERNEL;
  const std::size_t one = 1;
  return launch(*queue, *kernel, 1, nullptr, &one, &one, {CL_COMMAND_TASK, count, waits, event});
}

/// A native kernel's arguments: a block of bytes, and where in it the driver puts addresses of buffers.
struct NativeCall {
  void(CL_CALLBACK* function)(void*);
  std::vector<std::byte> block;
  std::vector<std::size_t> places;  // offsets in the block
  std::vector<Use> buffers;

  [[nodiscard]] cl_int submit(Context& context, cl_event* native) {
    Bundle bundle;
    for (const Use& use : buffers) {
      if (use.get() == nullptr) continue;
      if (const cl_int status = bundle.add(*use, Access::update); status != CL_SUCCESS) return status;
    }
    std::vector<const void*> addresses;
    for (const std::size_t place : places) addresses.push_back(block.data() + place);
    const auto call = [&](cl_command_queue queue, const std::vector<cl_mem>& natives, cl_uint n, const cl_event* list,
                          cl_event* event) {
      return down.clEnqueueNativeKernel(
          queue, function, block.empty() ? nullptr : block.data(), block.size(), static_cast<cl_uint>(natives.size()),
          natives.empty() ? nullptr : natives.data(), natives.empty() ? nullptr : addresses.data(), n, list, event);
    };
    const auto natives_of = [&](auto&& one) {
      std::vector<cl_mem> natives;
      for (const Use& use : buffers) natives.push_back(use.get() == nullptr ? nullptr : one(*use));
      return natives;
    };
    if (bundle.items().empty()) {
      return context.direct(native, [&](cl_event* event) {
        return call(context.queue(), natives_of([](Memory& memory) { return memory.native(); }), 0, nullptr, event);
      });
    }
    return context.operate(
        "native kernel", bundle.items(), native, [&](Running& operation, const WaitList& waits, cl_event* event) {
          const auto natives = natives_of([&](Memory& memory) { return native_of(memory, operation); });
          return call(operation.backend().queue(), natives, waits.size(), waits.data(), event);
        });
  }
};

cl_int CL_API_CALL enqueue_native(cl_command_queue handle, void(CL_CALLBACK* function)(void*), void* block,
                                  size_t block_size, cl_uint objects, const cl_mem* list, const void** places,
                                  cl_uint count, const cl_event* waits, cl_event* event) {
  Queue* const queue = Queue::from(handle);
  if (queue == nullptr) {
    return down.clEnqueueNativeKernel(handle, function, block, block_size, objects, list, places, count, waits, event);
  }
  if (function == nullptr) return CL_INVALID_VALUE;
  if ((block == nullptr) != (block_size == 0)) return CL_INVALID_VALUE;
  if (block == nullptr && objects != 0) return CL_INVALID_VALUE;
  if ((objects == 0) != (list == nullptr) || (objects == 0) != (places == nullptr)) return CL_INVALID_VALUE;
  NativeCall call{function, {}, {}, {}};
  const auto* const bytes = static_cast<const std::byte*>(block);
  call.block.assign(bytes, bytes + block_size);
  for (cl_uint i = 0; i < objects; ++i) {
    Memory* memory = nullptr;
    if (list[i] != nullptr) {
      if (const cl_int wrong = check_memory(*queue, list[i], memory); wrong != CL_SUCCESS) return wrong;
      if (!memory->is_buffer()) return CL_INVALID_MEM_OBJECT;
    }
    call.buffers.emplace_back(memory);
    call.places.push_back(static_cast<std::size_t>(static_cast<const std::byte*>(places[i]) - bytes));
  }
  const Place place{CL_COMMAND_NATIVE_KERNEL, count, waits, event};
  return enqueue(*queue, place, [call = std::move(call)](Context& context, cl_event* native) mutable {
    return call.submit(context, native);
  });
}

}  // namespace

void install_kernels(cl_icd_dispatch& table) {
  table.clCreateKernel = create_kernel;
  table.clCreateKernelsInProgram = create_kernels;
  table.clCloneKernel = clone_kernel;
  table.clRetainKernel = retain_kernel;
  table.clReleaseKernel = release_kernel;
  table.clSetKernelArg = set_argument;
  table.clSetKernelArgSVMPointer = set_svm_argument;
  table.clSetKernelExecInfo = set_execution_info;
  table.clGetKernelInfo = kernel_info;
  table.clGetKernelArgInfo = argument_info;
  table.clGetKernelWorkGroupInfo = work_group_info;
  table.clGetKernelSubGroupInfo = sub_group_info;
  table.clGetKernelSubGroupInfoKHR = sub_group_info_khr;
  table.clEnqueueNDRangeKernel = enqueue_kernel;
  table.clEnqueueTask = enqueue_task;
  table.clEnqueueNativeKernel = enqueue_native;
}

}  // namespace swapmm::opencl::layer::api
