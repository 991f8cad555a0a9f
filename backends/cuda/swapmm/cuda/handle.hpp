// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <cuda_runtime_api.h>

#include <swapmm/cuda/status.hpp>

namespace swapmm::cuda {

/// Owns an event or a stream of the API, or nothing. May be destroyed while queued work uses it.
template <class T, cudaError_t (*destroy)(T)>
class Handle {
 public:
  Handle() = default;
  /// Takes over the object.
  explicit Handle(T object) : object_(object) {}
  /// Takes over the object. The moved-from handle is empty.
  Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  /// Takes over the object, and destroys the one that this handle had.
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) reset(std::exchange(other.object_, nullptr));
    return *this;
  }
  ~Handle() { reset(); }

  /// The object, or null. The handle keeps owning it.
  [[nodiscard]] T get() const { return object_; }
  /// True if the handle is not empty.
  explicit operator bool() const { return object_ != nullptr; }
  /// Destroys the object that this handle had, and takes over the given one.
  void reset(T object = nullptr) noexcept {
    // A failure here means that the process is ending or that the device is lost.
    if (const T old = std::exchange(object_, object)) forget(destroy(old));
  }

 private:
  T object_ = nullptr;
};

using EventHandle = Handle<cudaEvent_t, cudaEventDestroy>;     ///< owns an event
using StreamHandle = Handle<cudaStream_t, cudaStreamDestroy>;  ///< owns a stream

}  // namespace swapmm::cuda
