// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <cuda_runtime_api.h>

#include <swapmm/cuda/status.hpp>

namespace swapmm::cuda {

/// Owns an event or a stream of the API, or nothing. Destroying one is safe while queued work uses it.
template <class T, cudaError_t (*destroy)(T)>
class Handle {
 public:
  Handle() = default;
  /// Takes it over.
  explicit Handle(T object) : object_(object) {}
  /// The other one holds none then.
  Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  /// Destroys what it held.
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) reset(std::exchange(other.object_, nullptr));
    return *this;
  }
  ~Handle() { reset(); }

  /// The object, or null; it stays this one's.
  [[nodiscard]] T get() const { return object_; }
  /// It holds one.
  explicit operator bool() const { return object_ != nullptr; }
  /// Destroys what it held, and takes this one over.
  void reset(T object = nullptr) noexcept {
    // What fails here is the end of the process, or a device that is lost.
    if (const T old = std::exchange(object_, object)) forget(destroy(old));
  }

 private:
  T object_ = nullptr;
};

using EventHandle = Handle<cudaEvent_t, cudaEventDestroy>;     ///< an event
using StreamHandle = Handle<cudaStream_t, cudaStreamDestroy>;  ///< a stream

}  // namespace swapmm::cuda
