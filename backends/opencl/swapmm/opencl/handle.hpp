// SPDX-License-Identifier: Apache-2.0
#pragma once

// RAII handles for OpenCL's reference counted objects. Includes the API's own header, with version 1.2 unless the
// program chose another one; swapmm needs nothing later.

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>

#include <utility>

#include <swapmm/base/export.hpp>

namespace swapmm::opencl {

/// @{
/// Adds or releases one reference. Errors of a release are ignored, because nothing can be done about them.
/// retain_object() returns false if the driver refuses.
inline void release_object(cl_context object) noexcept { clReleaseContext(object); }
inline void release_object(cl_command_queue object) noexcept { clReleaseCommandQueue(object); }
inline void release_object(cl_mem object) noexcept { clReleaseMemObject(object); }
inline void release_object(cl_event object) noexcept { clReleaseEvent(object); }
inline void release_object(cl_program object) noexcept { clReleaseProgram(object); }
inline void release_object(cl_kernel object) noexcept { clReleaseKernel(object); }
inline bool retain_object(cl_context object) noexcept { return clRetainContext(object) == CL_SUCCESS; }
inline bool retain_object(cl_command_queue object) noexcept { return clRetainCommandQueue(object) == CL_SUCCESS; }
inline bool retain_object(cl_mem object) noexcept { return clRetainMemObject(object) == CL_SUCCESS; }
inline bool retain_object(cl_event object) noexcept { return clRetainEvent(object) == CL_SUCCESS; }
/// @}

/// True in a child of fork() if the parent had made a backend. The driver's threads exist only in the parent, so a call
/// of the API in the child may wait for ever. The child therefore releases no object, and calls that need the device
/// throw.
[[nodiscard]] SWAPMM_EXPORT bool in_forked_child() noexcept;

/// Owns one reference to an OpenCL object, or none.
template <class T>
class Handle {
 public:
  Handle() = default;
  /// Takes over the reference.
  explicit Handle(T object) : object_(object) {}
  /// Takes over the reference. The moved-from handle is empty.
  Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  /// Takes over the reference, and releases the one that this handle had.
  Handle& operator=(Handle&& other) noexcept {
    reset(std::exchange(other.object_, nullptr));
    return *this;
  }
  ~Handle() { reset(); }

  /// Adds a reference to the object, and owns it. Empty if the driver refuses, and for a null object.
  [[nodiscard]] static Handle retain(T object) noexcept {
    return Handle(object != nullptr && retain_object(object) ? object : nullptr);
  }

  /// The object, or null. The caller gets no reference.
  [[nodiscard]] T get() const { return object_; }
  /// The place where get() is stored, for clSetKernelArg.
  [[nodiscard]] const T& object() const { return object_; }
  /// True if the handle is not empty.
  explicit operator bool() const { return object_ != nullptr; }
  /// Gives the reference to the caller. The handle is empty afterwards.
  [[nodiscard]] T release() noexcept { return std::exchange(object_, nullptr); }
  /// Releases the reference that this handle had, and takes over the given one.
  void reset(T object = nullptr) noexcept {
    const T old = std::exchange(object_, object);
    if (old != nullptr && !in_forked_child()) release_object(old);
  }

 private:
  T object_ = nullptr;
};

}  // namespace swapmm::opencl
