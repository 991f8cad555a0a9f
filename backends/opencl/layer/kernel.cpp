// SPDX-License-Identifier: Apache-2.0
#include "kernel.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "process/settings.hpp"

namespace swapmm::opencl::layer {

Kernel* Kernel::make(Context& context, cl_kernel native) {
  cl_uint count = 0;
  if (down.clGetKernelInfo(native, CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr) != CL_SUCCESS) {
    down.clReleaseKernel(native);
    return nullptr;
  }
  return new Kernel(context, native, count);
}

Kernel::Kernel(Context& context, cl_kernel native, cl_uint count)
    : Object(Kind::kernel), context_(context), native_(native), arguments_(count) {
  std::size_t size = 0;
  if (down.clGetKernelInfo(native, CL_KERNEL_FUNCTION_NAME, 0, nullptr, &size) == CL_SUCCESS && size > 1) {
    name_.resize(size);
    if (down.clGetKernelInfo(native, CL_KERNEL_FUNCTION_NAME, size, name_.data(), nullptr) == CL_SUCCESS) {
      name_.resize(size - 1);
    }
  }
  for (cl_uint i = 0; i < count; ++i) {
    cl_kernel_arg_address_qualifier qualifier = 0;
    if (down.clGetKernelArgInfo == nullptr ||
        down.clGetKernelArgInfo(native, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof qualifier, &qualifier, nullptr) !=
            CL_SUCCESS) {
      continue;
    }
    using Where = Argument::Where;
    arguments_[i].where = qualifier == CL_KERNEL_ARG_ADDRESS_GLOBAL     ? Where::memory
                          : qualifier == CL_KERNEL_ARG_ADDRESS_CONSTANT ? Where::constant
                                                                        : Where::other;
  }
  cl_program program = nullptr;
  if (down.clGetKernelInfo(native, CL_KERNEL_PROGRAM, sizeof program, &program, nullptr) == CL_SUCCESS) {
    program_ = reinterpret_cast<std::uintptr_t>(program);
    sources_ = facts::parts_of(program);
  }
}

Kernel::Kernel(const Kernel& other, cl_kernel native)
    : Object(Kind::kernel),
      context_(*other.context_),
      native_(native),
      name_(other.name_),
      program_(other.program_),
      arguments_(other.arguments_),
      sources_(other.sources_),
      asked_sources_(other.asked_sources_),
      known_(other.known_),
      largest_group_(other.largest_group_),
      disturbed_(other.disturbed_) {}

Kernel::~Kernel() { down.clReleaseKernel(native_); }

cl_int Kernel::set(cl_uint index, std::size_t size, const void* value) {
  const Lock lock = context_->lock();
  if (index >= arguments_.size()) return down.clSetKernelArg(native_, index, size, value);
  const Argument& argument = arguments_[index];
  using Where = Argument::Where;
  if (size == sizeof(cl_mem) && value != nullptr && argument.where != Where::other) {
    void* handle = nullptr;
    std::memcpy(&handle, value, sizeof handle);
    Memory* const memory = Memory::find(handle);
    if (memory != nullptr && argument.where == Where::unknown && memory->is_buffer()) ask_sources_about_arguments();
    const bool is_number = argument.where == Where::no_buffer && memory != nullptr && memory->is_buffer();
    if (memory != nullptr && !is_number) return set_memory(index, memory);
    if (argument.where == Where::memory || argument.where == Where::constant) {
      return handle == nullptr ? set_memory(index, nullptr) : CL_INVALID_MEM_OBJECT;
    }
  }
  const cl_int status = down.clSetKernelArg(native_, index, size, value);
  if (status != CL_SUCCESS) return status;
  Argument& set = arguments_[index];
  set.set = Argument::Set::value;
  set.memory = {};
  set.svm = false;
  set.size = size;
  set.null = value == nullptr;
  set.value.resize(value == nullptr ? 0 : size);
  if (value != nullptr) std::memcpy(set.value.data(), value, size);
  return CL_SUCCESS;
}

// If the driver does not tell what the arguments are, a number of 8 bytes may look like a buffer. The source tells, if
// there is one. A structure of the program's may be a pointer there, so only what is no buffer is certain.
void Kernel::ask_sources_about_arguments() {
  if (std::exchange(asked_sources_, true)) return;
  for (facts::Program* const source : sources_) {
    const facts::ProgramFacts* const all = source->facts_waited_for();
    if (all == nullptr) continue;
    const auto found = all->find(name_);
    if (found == all->end() || found->second.arguments.size() != arguments_.size()) continue;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      using Where = Argument::Where;
      const bool is_number = found->second.use(i) == facts::ArgumentUse::no_buffer;
      if (is_number && arguments_[i].where == Where::unknown) arguments_[i].where = Where::no_buffer;
    }
    return;
  }
}

// What is a tensor has no driver's object outside launches, so the driver gets a null pointer, and checks the rest.
cl_int Kernel::set_memory(cl_uint index, Memory* memory) {
  if (memory != nullptr && &memory->context() != &*context_) return CL_INVALID_MEM_OBJECT;
  Argument& argument = arguments_[index];
  const cl_mem native = memory == nullptr ? nullptr : memory->native();
  if (!argument.checked || native != nullptr) {
    const cl_int status = down.clSetKernelArg(native_, index, sizeof native, &native);
    if (status != CL_SUCCESS) return status;
    argument.checked = true;
  }
  argument.set = Argument::Set::memory;
  argument.memory = memory == nullptr ? Ref<Memory>() : Ref<Memory>(*memory);
  argument.value.clear();
  return CL_SUCCESS;
}

cl_int Kernel::set_svm(cl_uint index, const void* value) {
  const Lock lock = context_->lock();
  if (down.clSetKernelArgSVMPointer == nullptr) return CL_INVALID_OPERATION;
  const cl_int status = down.clSetKernelArgSVMPointer(native_, index, value);
  if (status != CL_SUCCESS || index >= arguments_.size()) return status;
  Argument& argument = arguments_[index];
  argument.set = Argument::Set::value;
  argument.memory = {};
  argument.svm = true;
  argument.value.resize(sizeof value);
  std::memcpy(argument.value.data(), &value, sizeof value);
  return CL_SUCCESS;
}

std::vector<Kernel::Argument> Kernel::arguments_for_later() const {
  std::vector<Argument> copies = arguments_;
  for (Argument& argument : copies) argument.use = Use(argument.memory.get());
  return copies;
}

cl_int Kernel::give_values(const std::vector<Argument>& arguments) {
  for (cl_uint i = 0; i < arguments.size(); ++i) {
    const Argument& argument = arguments[i];
    if (argument.set != Argument::Set::value) continue;
    cl_int status = CL_SUCCESS;
    if (argument.svm) {
      const void* pointer = nullptr;
      std::memcpy(&pointer, argument.value.data(), sizeof pointer);
      status = down.clSetKernelArgSVMPointer(native_, i, pointer);
    } else {
      status = down.clSetKernelArg(native_, i, argument.size, argument.null ? nullptr : argument.value.data());
    }
    if (status != CL_SUCCESS) return status;
  }
  return CL_SUCCESS;
}

Command Kernel::command(const access::Sizes& sizes, const std::vector<Argument>& arguments) const {
  std::uint64_t detail = mixed(program_, sizes.dimensions);
  for (const std::size_t* const each : {sizes.offset, sizes.global, sizes.local}) {
    for (cl_uint i = 0; i < sizes.dimensions; ++i) detail = mixed(detail, each == nullptr ? 0 : each[i] + 1);
  }
  for (const Argument& argument : arguments) {
    const bool gone = argument.memory && argument.memory->gone();
    detail = mixed(detail, static_cast<std::uint64_t>(argument.set) | argument.size << 3U | (gone ? 4U : 0U));
  }
  return {name_, detail, HostPart::none};
}

void Kernel::add_buffers(Bundle& bundle, const std::vector<Argument>& arguments, const access::Decision& decision) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].set != Argument::Set::memory || !arguments[i].memory) continue;
    Memory& memory = *arguments[i].memory;
    if (memory.is_buffer()) bundle.add(memory, decision.accesses[i]);
  }
}

cl_int Kernel::check_launch(cl_uint dimensions, const std::size_t* local) {
  if (dimensions < 1 || dimensions > 3) return CL_INVALID_WORK_DIMENSION;
  const Lock lock = context_->lock();
  const bool all_set = std::none_of(arguments_.begin(), arguments_.end(),
                                    [](const Argument& argument) { return argument.set == Argument::Set::nothing; });
  if (!all_set) return CL_INVALID_KERNEL_ARGS;
  if (local == nullptr) return CL_SUCCESS;
  if (largest_group_ == 0) {
    largest_group_ = std::numeric_limits<std::size_t>::max();
    (void)down.clGetKernelWorkGroupInfo(native_, context_->device_id(), CL_KERNEL_WORK_GROUP_SIZE,
                                        sizeof largest_group_, &largest_group_, nullptr);
  }
  std::size_t left = largest_group_;
  for (cl_uint i = 0; i < dimensions; ++i) left /= std::max<std::size_t>(local[i], 1);  // drivers differ about 0
  return left == 0 ? CL_INVALID_WORK_GROUP_SIZE : CL_SUCCESS;
}

void Kernel::keep_buffers() {
  const std::vector<std::string>& names = settings().keep;
  if (std::find(names.begin(), names.end(), name_) == names.end()) return;
  const Lock lock = context_->lock();
  std::vector<Use> uses;
  std::vector<Memory*> roots;
  Bytes need;
  uses.reserve(arguments_.size());
  for (const Argument& argument : arguments_) {
    if (argument.set != Argument::Set::memory || !argument.memory || !argument.memory->is_buffer()) continue;
    Memory& root = argument.memory->root();
    if (uses.emplace_back(&*argument.memory).gone()) continue;
    if (std::find(roots.begin(), roots.end(), &root) != roots.end()) continue;
    roots.push_back(&root);
    // Those that stay already count, too: the next launch may be like this one with buffers that do not.
    need += round_up(Bytes{root.facts().size}, context_->alignment());
  }
  std::erase_if(roots, [](Memory* root) { return root->native() != nullptr || root->asked_to_stay(); });
  if (roots.empty()) return;
  submit_held_back(*context_);
  for (Memory* const root : roots) root->keep(need);
}

Intent Kernel::intent(const access::Sizes& sizes) {
  Intent intent{command(sizes, arguments_), {}};
  const access::Decision decision = accesses(arguments_, sizes);
  intent.at_once = decision.to_measure != 0;  // it waits for the device
  add_buffers(intent.bundle, arguments_, decision);
  intent.hidden = reaches_buffers_only();
  return intent;
}

cl_int Kernel::launch(Context& context, cl_event* event, const std::vector<Argument>* held, cl_uint dimensions,
                      const std::size_t* offset, const std::size_t* global, const std::size_t* local) {
  const std::vector<Argument>& arguments = held == nullptr ? arguments_ : *held;
  if (held != nullptr || disturbed_) {
    disturbed_ = true;
    if (const cl_int status = give_values(arguments); status != CL_SUCCESS) return status;
    disturbed_ = held != nullptr;
  }
  const access::Sizes sizes{dimensions, offset, global, local};
  const access::Decision decision = accesses(arguments, sizes);
  Bundle bundle;
  std::vector<Use> uses;
  uses.reserve(arguments.size());
  for (const Argument& argument : arguments) {
    if (argument.set != Argument::Set::memory || !argument.memory) continue;
    Memory& memory = *argument.memory;
    if (uses.emplace_back(&memory).gone()) {
      say_of_command("kernel " + name_ + " has an argument that the program has released");
      return CL_INVALID_KERNEL_ARGS;
    }
  }
  add_buffers(bundle, arguments, decision);
  const auto launch_on = [&](cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* native) {
    return down.clEnqueueNDRangeKernel(queue, native_, dimensions, offset, global, local, waits, list, native);
  };
  const auto natives_of = [&](auto&& native_of_one) {
    for (cl_uint i = 0; i < arguments.size(); ++i) {
      const Argument& argument = arguments[i];
      if (argument.set != Argument::Set::memory) continue;
      const cl_mem native = argument.memory ? native_of_one(*argument.memory) : nullptr;
      if (const cl_int status = down.clSetKernelArg(native_, i, sizeof native, &native); status != CL_SUCCESS) {
        return status;
      }
    }
    return CL_SUCCESS;
  };
  cl_int launched = CL_SUCCESS;
  if (bundle.empty()) {
    launched = context.direct(event, [&](cl_event* native) {
      const cl_int status = natives_of([](Memory& memory) { return memory.native(); });
      return status != CL_SUCCESS ? status : launch_on(context.queue(), 0, nullptr, native);
    });
  } else {
    launched = context.operate(
        command(sizes, arguments), bundle, event, [&](Running& operation, const WaitList& waits, cl_event* native) {
          cl_int status = natives_of([&](Memory& memory) { return native_of(memory, operation); });
          const cl_command_queue queue = operation.backend().queue();
          if (status == CL_SUCCESS && decision.to_measure != 0) {
            status = measure(
                decision, arguments, operation, waits,
                [&](cl_uint count, const cl_event* list, cl_event* one) { return launch_on(queue, count, list, one); });
          }
          return status != CL_SUCCESS ? status : launch_on(queue, waits.size(), waits.data(), native);
        });
  }
  return launched;
}

}  // namespace swapmm::opencl::layer
