// SPDX-License-Identifier: Apache-2.0
#include <swapmm/opencl/released_memory.hpp>

namespace swapmm::opencl::detail {
namespace {

constexpr std::chrono::milliseconds longest_wait{200};
constexpr std::chrono::milliseconds short_time{1000};

}  // namespace

ReleasedMemory& ReleasedMemory::of_process() {
  static ReleasedMemory& memory = *new ReleasedMemory;
  return memory;
}

void CL_CALLBACK ReleasedMemory::tell(cl_mem, void* data) {
  auto& memory = *static_cast<ReleasedMemory*>(data);
  const std::lock_guard lock(memory.mutex_);
  if (memory.waited_for_ != 0) {
    --memory.waited_for_;
  } else if (memory.given_up_ != 0) {
    --memory.given_up_;
  }
  memory.last_ = std::chrono::steady_clock::now();
  memory.gone_.notify_all();
}

bool ReleasedMemory::follow(cl_mem buffer) noexcept {
  return clSetMemObjectDestructorCallback(buffer, tell, this) == CL_SUCCESS;
}

void ReleasedMemory::leaving() {
  const std::lock_guard lock(mutex_);
  ++waited_for_;
  last_ = std::chrono::steady_clock::now();
}

void ReleasedMemory::left() {
  const std::lock_guard lock(mutex_);
  last_ = std::chrono::steady_clock::now();
}

void ReleasedMemory::wait() {
  std::unique_lock lock(mutex_);
  if (gone_.wait_for(lock, longest_wait, [&] { return waited_for_ == 0; })) return;
  given_up_ += waited_for_;
  waited_for_ = 0;
}

bool ReleasedMemory::recent() {
  const std::lock_guard lock(mutex_);
  return std::chrono::steady_clock::now() - last_ < short_time;
}

}  // namespace swapmm::opencl::detail
