// SPDX-License-Identifier: Apache-2.0
#include "object.hpp"

#include "event.hpp"
#include "kernel.hpp"
#include "memory.hpp"
#include "queue.hpp"

namespace swapmm::opencl::layer {

bool Object::retain() {
  for (cl_uint count = references();;) {
    const bool again = count == 0;
    if (again && !begin_again()) return false;
    if (references_.compare_exchange_weak(count, count + 1, std::memory_order_acq_rel)) return true;
    if (again) end();
  }
}

bool Object::release() {
  cl_uint count = references();
  do {
    if (count == 0) return false;
  } while (!references_.compare_exchange_weak(count, count - 1, std::memory_order_acq_rel));
  if (count == 1) end();
  return true;
}

bool Object::begin_again() {
  if (kind_ == Kind::event || kind_ == Kind::kernel) return false;
  hold();
  if (kind_ == Kind::queue) return true;
  auto& memory = *static_cast<Memory*>(this);
  if (memory.begin_use()) {
    if (memory.parts() != 0) return true;
    memory.end_use();  // commands use it, and the program cannot reach it
  }
  drop();
  return false;
}

void Object::end() {
  if (kind_ == Kind::memory) static_cast<Memory*>(this)->end_use();
  drop();
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
