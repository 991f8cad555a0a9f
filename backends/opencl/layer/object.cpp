// SPDX-License-Identifier: Apache-2.0
#include "object.hpp"

#include "event.hpp"
#include "kernel.hpp"
#include "memory.hpp"
#include "queue.hpp"

namespace swapmm::opencl::layer {

bool Object::retain() {
  cl_uint count = references();
  do {
    if (count == 0) return false;
  } while (!references_.compare_exchange_weak(count, count + 1, std::memory_order_relaxed));
  return true;
}

bool Object::release() {
  cl_uint count = references();
  do {
    if (count == 0) return false;
  } while (!references_.compare_exchange_weak(count, count - 1, std::memory_order_acq_rel));
  if (count > 1) return true;
  if (kind_ == Kind::memory) static_cast<Memory*>(this)->end_use();
  drop();
  return true;
}

void Object::destroy() {
  switch (kind_) {
    case Kind::memory: delete static_cast<Memory*>(this); break;
    case Kind::event: delete static_cast<Event*>(this); break;
    case Kind::kernel: delete static_cast<Kernel*>(this); break;
    case Kind::queue: delete static_cast<Queue*>(this); break;
  }
}

}  // namespace swapmm::opencl::layer
