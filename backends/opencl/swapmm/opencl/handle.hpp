// SPDX-License-Identifier: Apache-2.0
#pragma once

// OpenCL's reference counted objects as values that end by themselves. The API's own header, at version 1.2 unless
// the program chose one: what swapmm needs of OpenCL is in that version.

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>

#include <utility>

#include <swapmm/base/export.hpp>

namespace swapmm::opencl {

/// @{
/// One reference more or less. An overload per kind of object; what a release returns nobody can act on.
inline void release_object(cl_context object) noexcept { clReleaseContext(object); }
inline void release_object(cl_command_queue object) noexcept { clReleaseCommandQueue(object); }
inline void release_object(cl_mem object) noexcept { clReleaseMemObject(object); }
inline void release_object(cl_event object) noexcept { clReleaseEvent(object); }
inline void release_object(cl_program object) noexcept { clReleaseProgram(object); }
inline void release_object(cl_kernel object) noexcept { clReleaseKernel(object); }
inline void retain_object(cl_context object) noexcept { clRetainContext(object); }
inline void retain_object(cl_command_queue object) noexcept { clRetainCommandQueue(object); }
inline void retain_object(cl_mem object) noexcept { clRetainMemObject(object); }
inline void retain_object(cl_event object) noexcept { clRetainEvent(object); }
/// @}

/// True in a child of fork(), where the parent had made a backend: the driver's threads and locks are the parent's, and
/// a call of the API may wait for ever. There no object is released, and whatever needs the device throws.
[[nodiscard]] SWAPMM_EXPORT bool in_forked_child() noexcept;

/// One reference to an OpenCL object, or none.
template <class T>
class Handle {
 public:
  Handle() = default;
  /// Takes the reference over.
  explicit Handle(T object) : object_(object) {}
  /// The other one holds none then.
  Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  /// Gives back what it held.
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) reset(std::exchange(other.object_, nullptr));
    return *this;
  }
  ~Handle() { reset(); }

  /// A reference of its own.
  [[nodiscard]] static Handle retain(T object) noexcept {
    if (object != nullptr) retain_object(object);
    return Handle(object);
  }

  /// The object, or null; no reference of the caller's own.
  [[nodiscard]] T get() const { return object_; }
  /// Where get() is stored: for clSetKernelArg.
  [[nodiscard]] const T& object() const { return object_; }
  /// It holds one.
  explicit operator bool() const { return object_ != nullptr; }
  /// Hands the reference to the caller.
  [[nodiscard]] T release() noexcept { return std::exchange(object_, nullptr); }
  /// Gives back what it held, and takes this reference over.
  void reset(T object = nullptr) noexcept {
    const T old = std::exchange(object_, object);
    if (old != nullptr && !in_forked_child()) release_object(old);
  }

 private:
  T object_ = nullptr;
};

}  // namespace swapmm::opencl
