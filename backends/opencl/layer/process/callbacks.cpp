// SPDX-License-Identifier: Apache-2.0
#include "callbacks.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace swapmm::opencl::layer {
namespace {

struct Callbacks {
  std::mutex mutex;
  std::condition_variable posted;
  std::deque<std::function<void()>> waiting;
  bool started = false;
};

// Never destroyed: programs and drivers call back while the process ends.
Callbacks& callbacks() {
  static Callbacks& all = *new Callbacks;
  return all;
}

void run_all(Callbacks& all) {
  std::unique_lock lock(all.mutex);
  for (;;) {
    all.posted.wait(lock, [&] { return !all.waiting.empty(); });
    {
      const std::function<void()> next = std::move(all.waiting.front());
      all.waiting.pop_front();
      lock.unlock();
      next();
    }  // what it holds is released here, without the lock
    lock.lock();
  }
}

}  // namespace

void run_later(std::function<void()> callback) {
  Callbacks& all = callbacks();
  const std::lock_guard lock(all.mutex);
  all.waiting.push_back(std::move(callback));
  if (!std::exchange(all.started, true)) std::thread(run_all, std::ref(all)).detach();
  all.posted.notify_one();
}

}  // namespace swapmm::opencl::layer
