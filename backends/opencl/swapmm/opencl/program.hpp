// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compiles kernels from source, for programs that have no wrapper of their own. This header is optional: kernels of
// Boost.Compute or CL/opencl.hpp and raw kernels work as well.

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <swapmm/kernel.h>
#include <swapmm/base/export.hpp>
#include <swapmm/layout.hpp>
#include <swapmm/opencl/backend.hpp>
#include <swapmm/opencl/status.hpp>
#include <swapmm/tensor.hpp>

namespace swapmm::opencl {

/// The text of <swapmm/kernel.h>, for programs that compile kernels themselves. Use it as the first of several sources,
/// or as a header for clCompileProgram if the driver supports headers.
extern SWAPMM_EXPORT const std::string_view kernel_header;

/// The two kernel arguments for a SWAPMM_VIEW of <swapmm/kernel.h>.
struct ViewArgument {
  cl_mem buffer;         ///< the data; holds no reference
  swapmm_layout layout;  ///< the shape
};
/// The arguments for `op[tensor]` with the shape of `tensor`, which may also be a view.
template <class T, class Shaped>
[[nodiscard]] ViewArgument argument(const View<T>& on_device, const Shaped& tensor) {
  return {on_device.buffer(), layout_of(tensor)};
}

/// Numbers of work items in 1 to 3 dimensions, fastest dimension first.
class Range {
 public:
  Range() = default;
  /// Throws UsageError if there are more than 3 sizes.
  SWAPMM_EXPORT Range(std::initializer_list<std::size_t> sizes);  // NOLINT(*-explicit-*)
  /// Makes a range with one work item per element of a tensor of that shape. get_global_id(0) counts along the last
  /// extent, which is contiguous, and get_global_id(1) along the extent before it. Throws UsageError if there are more
  /// than 3 extents.
  [[nodiscard]] SWAPMM_EXPORT static Range of(const Shape& shape);
  /// The number of dimensions; 0 for an empty range.
  [[nodiscard]] cl_uint dimensions() const { return dimensions_; }
  /// The sizes as the API takes them; null for an empty range.
  [[nodiscard]] const std::size_t* data() const { return dimensions_ == 0 ? nullptr : sizes_.data(); }

 private:
  std::array<std::size_t, 3> sizes_{};
  cl_uint dimensions_ = 0;
};

/// One kernel of a Program. It keeps the arguments of the last set(). Must not be used by two threads at the same time.
class SWAPMM_EXPORT Kernel {
 public:
  /// Sets all arguments in order: op[tensor] (its cl_mem), argument(op[tensor], tensor) (a view with its layout), or
  /// plain values of the kernel's own type (std::int64_t for long). Throws BackendError if the number of arguments does
  /// not match the kernel, or if the driver reports a wrong size or kind. Not every driver checks this.
  template <class... Arguments>
  Kernel& set(const Arguments&... arguments) {
    cl_uint index = 0;
    (set_one(index, arguments), ...);
    if (index != arguments_) {
      refuse(CL_INVALID_KERNEL_ARGS, "it takes " + std::to_string(arguments_) +
                                         " arguments (a view with its layout is " + "two), and got " +
                                         std::to_string(index));
    }
    return *this;
  }

  /// Queues the kernel. If `local` is empty, the driver chooses the work-group size.
  void enqueue(cl_command_queue queue, const Range& global, const Range& local = {}) const;
  /// For operations of the second form: queues the kernel after the wait list, and returns its event.
  [[nodiscard]] NativeEvent enqueue(cl_command_queue queue, const Range& global, const Range& local,
                                    const WaitList& waits) const;

  /// The kernel. The caller gets no reference.
  [[nodiscard]] cl_kernel get() const { return kernel_.get(); }

 private:
  friend class Program;
  Kernel(Handle<cl_kernel> kernel, std::string name, cl_uint arguments)
      : kernel_(std::move(kernel)), name_(std::move(name)), arguments_(arguments) {}

  template <class T>
  void set_one(cl_uint& index, const View<T>& view) {
    set_raw(index, view.buffer());
  }
  void set_one(cl_uint& index, const Argument& argument) { set_bytes(index, argument.size(), argument.data()); }
  void set_one(cl_uint& index, const ViewArgument& view) {
    set_raw(index, view.buffer);
    set_raw(index, view.layout);
  }
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void set_one(cl_uint& index, const T& value) { set_raw(index, value); }
  template <class T>
  void set_raw(cl_uint& index, const T& value) {
    set_bytes(index, sizeof value, &value);
  }
  void set_bytes(cl_uint& index, std::size_t size, const void* value) {
    const cl_int status = clSetKernelArg(kernel_.get(), index, size, value);
    if (status != CL_SUCCESS) refuse(status, "clSetKernelArg, argument " + std::to_string(index));
    ++index;
  }
  [[noreturn]] void refuse(cl_int status, const std::string& what) const;

  Handle<cl_kernel> kernel_;
  std::string name_;
  cl_uint arguments_;
};

/// A program compiled for a backend's device.
class SWAPMM_EXPORT Program {
 public:
  /// Compiles the source, which may include <swapmm/kernel.h>. Slow: up to seconds. Throws BackendError with the
  /// compiler's log if it fails.
  Program(const Backend& backend, std::string_view source, const std::string& options = {});

  /// The kernel of that name. Throws BackendError if the program has no such kernel.
  [[nodiscard]] Kernel kernel(const std::string& name) const;
  /// The program. The caller gets no reference.
  [[nodiscard]] cl_program get() const { return program_.get(); }

 private:
  Handle<cl_program> program_;
};

}  // namespace swapmm::opencl
