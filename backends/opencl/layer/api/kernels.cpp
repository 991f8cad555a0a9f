// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "../kernel.hpp"
#include "../process/settings.hpp"
#include "../queue.hpp"
#include "checks.hpp"
#include "install.hpp"
#include "program_options.hpp"

namespace swapmm::opencl::layer::api {
namespace {

// False: the driver does not answer. `context` is null if the program's context is not managed.
bool find_context(cl_program program, Context*& context) {
  cl_context handle = nullptr;
  if (down.clGetProgramInfo(program, CL_PROGRAM_CONTEXT, sizeof handle, &handle, nullptr) != CL_SUCCESS) return false;
  context = Context::of(handle);
  if (context == nullptr) return false;
  if (!context->managed()) context = nullptr;
  return true;
}

cl_kernel CL_API_CALL create_kernel(cl_program program, const char* name, cl_int* status) {
  const cl_kernel native = down.clCreateKernel(program, name, status);
  if (native == nullptr) return nullptr;
  Context* context = nullptr;
  if (!find_context(program, context)) {
    down.clReleaseKernel(native);
    return result<cl_kernel>(nullptr, CL_OUT_OF_RESOURCES, status);
  }
  if (context == nullptr) return native;
  Kernel* const kernel = Kernel::make(*context, native);
  return kernel == nullptr ? result<cl_kernel>(nullptr, CL_OUT_OF_RESOURCES, status) : kernel->handle();
}

cl_int CL_API_CALL create_kernels(cl_program program, cl_uint count, cl_kernel* kernels, cl_uint* made) {
  if (kernels == nullptr) return down.clCreateKernelsInProgram(program, count, kernels, made);
  cl_uint all = 0;
  const cl_int status = down.clCreateKernelsInProgram(program, count, kernels, &all);
  if (status != CL_SUCCESS) return status;
  if (made != nullptr) *made = all;
  Context* context = nullptr;
  bool known = find_context(program, context);
  if (known && context == nullptr) return status;
  std::vector<cl_kernel> ours;
  for (cl_uint i = 0; i < all; ++i) {
    Kernel* const kernel = known ? Kernel::make(*context, kernels[i]) : nullptr;
    if (!known) down.clReleaseKernel(kernels[i]);
    known = known && kernel != nullptr;
    if (kernel != nullptr) ours.push_back(kernel->handle());
  }
  if (known) {
    std::copy(ours.begin(), ours.end(), kernels);
    return status;
  }
  for (const cl_kernel kernel : ours) (void)Kernel::from(kernel)->release();
  return CL_OUT_OF_RESOURCES;
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
  cl_program program = nullptr;
  (void)down.clGetKernelInfo(kernel->native(), CL_KERNEL_PROGRAM, sizeof program, &program, nullptr);
  if (tells_argument_info(program)) return down.clGetKernelArgInfo(kernel->native(), index, what, size, into, needed);
  // The driver tells what is wrong with the question, and what the program must not see stays here.
  alignas(std::max_align_t) std::array<std::byte, 4096> unseen;
  const cl_int status = down.clGetKernelArgInfo(kernel->native(), index, what, unseen.size(), unseen.data(), nullptr);
  return status == CL_SUCCESS ? CL_KERNEL_ARG_INFO_NOT_AVAILABLE : status;
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
  if (const cl_int wrong = kernel.check_launch(dimensions, local); wrong != CL_SUCCESS) return wrong;
  if (!settings().keep.empty()) kernel.keep_buffers();
  return enqueue_call(
      queue, place,
      [&](Context& context, cl_event* native) {
        return kernel.launch(context, native, nullptr, dimensions, offset, global, local);
      },
      [&](bool) {
        return [kept = Ref<Kernel>(kernel), arguments = kernel.arguments_for_later(), dimensions,
                o = Sizes(dimensions, offset), g = Sizes(dimensions, global),
                l = Sizes(dimensions, local)](Context& context, cl_event* native) {
          return kept->launch(context, native, &arguments, dimensions, o.data(), g.data(), l.data());
        };
      },
      [&] {
        return kernel.intent({dimensions, offset, global, local});
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

/// What a native kernel finds at the begin of its arguments. Behind it are the addresses of allocations, which the
/// driver puts there, then the NativePlaces, then the program's own arguments. PoCL 3.1 passes wrong addresses for
/// parts of buffers, and for an allocation that is named twice.
struct NativeHeader {
  void(CL_CALLBACK* function)(void*);
  std::size_t allocations;
  std::size_t places;
  std::size_t begin;  ///< offset of the program's arguments
  bool has_arguments;
};

/// Where in the arguments the address of a buffer belongs.
struct NativePlace {
  std::size_t at;          ///< offset in all of the arguments
  std::size_t allocation;  ///< number of the allocation that the buffer is in
  std::size_t offset;      ///< of the buffer in the allocation
};

void CL_CALLBACK call_native(void* arguments) {
  auto* const bytes = static_cast<std::byte*>(arguments);
  NativeHeader header{};
  std::memcpy(&header, bytes, sizeof header);
  const std::byte* const addresses = bytes + sizeof header;
  const std::byte* const places = addresses + header.allocations * sizeof(void*);
  for (std::size_t i = 0; i < header.places; ++i) {
    NativePlace place{};
    std::memcpy(&place, places + i * sizeof place, sizeof place);
    std::byte* address = nullptr;
    std::memcpy(&address, addresses + place.allocation * sizeof address, sizeof address);
    address += place.offset;
    std::memcpy(bytes + place.at, &address, sizeof address);
  }
  header.function(header.has_arguments ? bytes + header.begin : nullptr);
}

/// A native kernel with its arguments: a block of bytes, and where in it the driver puts addresses of buffers.
struct NativeCall {
  void(CL_CALLBACK* function)(void*);
  std::vector<std::byte> block;
  std::vector<std::size_t> places;  // offsets in the block
  std::vector<Use> buffers;

  [[nodiscard]] cl_int submit(Context& context, cl_event* native) {
    Bundle bundle;
    for (const Use& use : buffers) {
      if (use.get() == nullptr) continue;
      bundle.add(*use, Access::update);
    }
    if (bundle.empty()) {
      return context.direct(native,
                            [&](cl_event* event) { return give(context.queue(), 0, nullptr, event, place_of_native); });
    }
    return context.operate({"native kernel"}, bundle, native,
                           [&](Running& operation, const WaitList& waits, cl_event* event) {
                             return give(operation.backend().queue(), waits.size(), waits.data(), event,
                                         [&](Memory& memory) { return place_of(memory, operation); });
                           });
  }

 private:
  // `place(memory)` is the InAllocation of a buffer. PoCL 3.1 mixes up the addresses of allocations that are not named
  // in the order in which they were made.
  template <class Place>
  cl_int give(cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event, Place&& place) const {
    std::map<Made, cl_mem> made;
    std::vector<std::pair<std::size_t, InAllocation>> all;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      if (buffers[i].get() == nullptr) continue;  // the block has what the program put there
      all.emplace_back(places[i], place(*buffers[i]));
      made.emplace(all.back().second.made, all.back().second.allocation);
    }
    std::vector<cl_mem> allocations;
    allocations.reserve(made.size());
    for (const auto& [moment, allocation] : made) allocations.push_back(allocation);
    std::vector<NativePlace> wanted;
    for (const auto& [at, in] : all) {
      const auto number = std::distance(made.begin(), made.find(in.made));
      wanted.push_back({at, static_cast<std::size_t>(number), in.offset});
    }
    constexpr std::size_t alignment = 64;
    const std::size_t places_begin = sizeof(NativeHeader) + allocations.size() * sizeof(void*);
    const std::size_t places_end = places_begin + wanted.size() * sizeof(NativePlace);
    const std::size_t begin = (places_end + alignment - 1) / alignment * alignment;
    const NativeHeader header{function, allocations.size(), wanted.size(), begin, !block.empty()};
    std::vector<std::byte> whole(begin + block.size());
    std::vector<const void*> addresses;
    for (std::size_t i = 0; i < allocations.size(); ++i) {
      addresses.push_back(whole.data() + sizeof header + i * sizeof(void*));
    }
    for (NativePlace& each : wanted) each.at += begin;
    std::memcpy(whole.data(), &header, sizeof header);
    if (!wanted.empty()) std::memcpy(whole.data() + places_begin, wanted.data(), wanted.size() * sizeof(NativePlace));
    if (!block.empty()) std::memcpy(whole.data() + begin, block.data(), block.size());
    return down.clEnqueueNativeKernel(queue, call_native, whole.data(), whole.size(),
                                      static_cast<cl_uint>(allocations.size()),
                                      allocations.empty() ? nullptr : allocations.data(),
                                      allocations.empty() ? nullptr : addresses.data(), waits, list, event);
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
