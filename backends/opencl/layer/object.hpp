// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "loader/table.hpp"

namespace swapmm::opencl::layer {

/// What an object of the layer is.
enum class Kind : std::uint8_t { memory, event, kernel, queue };

/// An object whose address the program holds as a cl_mem, cl_event, cl_kernel or cl_command_queue. It exists as long as
/// the program has a reference, or the layer does (Ref). Drivers and loaders read the first word of an object as a
/// pointer to a table; so it comes first, and there are no virtual functions.
class Object {
 public:
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  /// The program's references, as the API's queries tell them.
  [[nodiscard]] cl_uint references() const { return references_.load(std::memory_order_relaxed); }
  /// Adds a reference of the program. Where it has none any more, it may have got the handle from an object that goes
  /// on: a part of memory tells what it is a part of, and an event its queue. False for memory without parts,
  /// and for events and kernels: nothing tells of those.
  [[nodiscard]] bool retain();
  /// Takes a reference of the program away. False if it had none. With the last one the object may be gone when this
  /// returns.
  [[nodiscard]] bool release();

  /// The layer's own references.
  void hold() { holds_.fetch_add(1, std::memory_order_relaxed); }
  void drop() {
    if (holds_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }

  /// Whether a handle of the program is an object of the layer, of this kind.
  [[nodiscard]] static bool is(const void* handle, Kind kind) {
    if (handle == nullptr) return false;
    const auto* const object = static_cast<const Object*>(handle);
    return object->dispatch_ == &trap_table() && object->kind_ == kind;
  }

 protected:
  /// The program has one reference.
  explicit Object(Kind kind) : kind_(kind) {}
  ~Object() = default;

 private:
  void destroy();
  [[nodiscard]] bool begin_again();
  void end();

  const cl_icd_dispatch* dispatch_ = &trap_table();
  Kind kind_;
  std::atomic<cl_uint> references_{1};
  std::atomic<std::uint32_t> holds_{1};  // the program's references together count as one
};

/// A reference of the layer to an object, or none.
template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T& object) : object_(&object) { object.hold(); }
  Ref(const Ref& other) : object_(other.object_) {
    if (object_ != nullptr) object_->hold();
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) object_->drop();
  }

  [[nodiscard]] T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

}  // namespace swapmm::opencl::layer
