// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "access/known_kernel.hpp"
#include "access/measure.hpp"
#include "context.hpp"
#include "facts/programs.hpp"
#include "memory.hpp"
#include "object.hpp"
#include "queue.hpp"

namespace swapmm::opencl::layer {

/// A cl_kernel of the program: the driver's kernel, and the arguments that the program has set. The driver's kernel
/// gets its memory arguments at each launch.
class Kernel : public Object {
 public:
  /// As the API has it, an argument does not keep the bytes of a buffer; a launch on hold does.
  struct Argument {
    /// `no_buffer`: a number, an image or a sampler, by the source.
    enum class Where : std::uint8_t { unknown, memory, constant, other, no_buffer } where = Where::unknown;
    enum class Set : std::uint8_t { nothing, memory, value } set = Set::nothing;
    Ref<Memory> memory;            ///< none: a null pointer
    Use use;                       ///< of a launch on hold
    bool checked = false;          ///< the driver accepts a memory object here
    std::vector<std::byte> value;  ///< for commands on hold
    std::size_t size = 0;
    bool null = false;  ///< the value is a null pointer: local memory
    bool svm = false;   ///< the value is an SVM pointer
  };

  /// Takes over the driver's kernel. Asks the driver about the arguments. Null if the driver does not answer; the
  /// driver's kernel is released then.
  [[nodiscard]] static Kernel* make(Context& context, cl_kernel native);
  /// A clone: takes over the driver's clone; the arguments are the other's.
  Kernel(const Kernel& other, cl_kernel native);
  ~Kernel();

  [[nodiscard]] static Kernel* from(cl_kernel handle) {
    return is(handle, Kind::kernel) ? reinterpret_cast<Kernel*>(handle) : nullptr;
  }
  [[nodiscard]] cl_kernel handle() { return reinterpret_cast<cl_kernel>(this); }
  [[nodiscard]] Context& context() const { return *context_; }
  [[nodiscard]] cl_kernel native() const { return native_; }
  [[nodiscard]] const std::string& name() const { return name_; }

  [[nodiscard]] cl_int set(cl_uint index, std::size_t size, const void* value);
  [[nodiscard]] cl_int set_svm(cl_uint index, const void* value);

  /// The arguments as they are now, for a launch on hold. They keep the bytes of their buffers.
  [[nodiscard]] std::vector<Argument> arguments_for_later() const;

  /// What a launch with these arguments does with them: by the program's flags and by what is known of the kernel; what
  /// is not known counts as read and written. Cheap once the kernel and the launch are known. With the lock.
  [[nodiscard]] access::Decision accesses(const std::vector<Argument>& arguments, const access::Sizes& sizes);

  /// The API's error for a launch that no driver would take: the driver itself may get the launch later, when the
  /// program cannot be told any more. Takes the lock.
  [[nodiscard]] cl_int check_launch(cl_uint dimensions, const std::size_t* local);

  /// For a kernel of SWAPMM_KEEP: lets the buffers that are set as arguments stay on the device. Takes the lock.
  void keep_buffers();

  /// What a launch with the arguments that are set will do. With the lock.
  [[nodiscard]] Intent intent(const access::Sizes& sizes);

  /// Launches the kernel with the arguments that are set, or with those of `held`. With the lock.
  [[nodiscard]] cl_int launch(Context& context, cl_event* event, const std::vector<Argument>* held, cl_uint dimensions,
                              const std::size_t* offset, const std::size_t* global, const std::size_t* local);

 private:
  Kernel(Context& context, cl_kernel native, cl_uint count);
  cl_int set_memory(cl_uint index, Memory* memory);
  void ask_sources_about_arguments();
  [[nodiscard]] Command command(const access::Sizes& sizes, const std::vector<Argument>& arguments) const;
  static void add_buffers(Bundle& bundle, const std::vector<Argument>& arguments, const access::Decision& decision);
  cl_int give_values(const std::vector<Argument>& arguments);
  [[nodiscard]] bool know(bool matters);
  [[nodiscard]] bool reaches_buffers_only() const;
  [[nodiscard]] cl_int measure(const access::Decision& decision, const std::vector<Argument>& arguments,
                               Running& operation, const WaitList& waits, const access::LaunchOnce& launch);

  ContextRef context_;
  cl_kernel native_;
  std::string name_;
  std::uint64_t program_ = 0;  // tells kernels of the same name apart
  std::vector<Argument> arguments_;
  std::vector<facts::Program*> sources_;  // it is in one of these
  bool asked_sources_ = false;            // what the arguments are
  access::KnownKernel* known_ = nullptr;  // what is known of it, once it is
  std::vector<access::Bound> bound_;      // of the launch that accesses() looks at
  std::size_t largest_group_ = 0;         // of work-items; 0: the driver was not asked
  bool disturbed_ = false;                // the driver's kernel has values of a launch that was on hold
};

}  // namespace swapmm::opencl::layer
