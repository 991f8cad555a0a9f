// SPDX-License-Identifier: Apache-2.0
#pragma once

// Internal to the backend and to the layer; not for programs.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include <swapmm/opencl/handle.hpp>

namespace swapmm::opencl::detail {

/// Device memory of this process that was released, and that its driver may still have: some drivers destroy a buffer
/// only when a thread of theirs has put the last command away that used it. A budget that several backends share is
/// kept only if the next one waits until the bytes are gone. For any thread.
class ReleasedMemory {
 public:
  /// For the whole process; never destroyed, because drivers call back while the process ends.
  [[nodiscard]] static ReleasedMemory& of_process();

  /// Makes the driver tell when it destroys the buffer. False if it does not tell.
  [[nodiscard]] bool follow(cl_mem buffer) noexcept;
  /// To be called before the last reference of a followed buffer is released.
  void leaving();
  /// To be called when a driver told of memory that is not followed here.
  void left();
  /// Waits until the driver has destroyed all that was released, but at most as long as a driver may need: a buffer of
  /// which the program has a reference stays.
  void wait();
  /// True if something was released so short a time ago that a driver may still have it, although it told.
  [[nodiscard]] bool recent();

  /// Calls create(), which returns a status, once what was released is gone; and again for some milliseconds, as long
  /// as it returns that there is no memory and something was released just before.
  template <class Create>
  [[nodiscard]] cl_int allocate(Create&& create) {
    wait();
    // Others who count the driver's memory may be told after this: give them the time.
    if (recent()) std::this_thread::sleep_for(std::chrono::microseconds(200));
    cl_int status = create();
    for (int pause = 1; pause <= longest_pause && is_refusal(status) && recent(); pause *= 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(pause));
      status = create();
    }
    return status;
  }

 private:
  static constexpr int longest_pause = 32;  // milliseconds
  [[nodiscard]] static bool is_refusal(cl_int status) {
    return status == CL_MEM_OBJECT_ALLOCATION_FAILURE || status == CL_OUT_OF_RESOURCES;
  }
  static void CL_CALLBACK tell(cl_mem buffer, void* data);

  std::mutex mutex_;
  std::condition_variable gone_;
  std::uint64_t waited_for_ = 0;  // released, and neither gone nor given up
  std::uint64_t given_up_ = 0;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace swapmm::opencl::detail
