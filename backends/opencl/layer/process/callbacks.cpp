// SPDX-License-Identifier: Apache-2.0
#include "callbacks.hpp"

#include <condition_variable>
#include <deque>
#include <map>
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

struct Alarms {
  std::mutex mutex;
  std::condition_variable changed;
  std::multimap<std::chrono::steady_clock::time_point, std::function<void()>> set;
  bool started = false;
};

// Never destroyed, like the callbacks.
Alarms& alarms() {
  static Alarms& all = *new Alarms;
  return all;
}

void run_alarms(Alarms& all) {
  std::unique_lock lock(all.mutex);
  for (;;) {
    if (all.set.empty()) {
      all.changed.wait(lock);
      continue;
    }
    const auto first = all.set.begin();
    if (first->first > std::chrono::steady_clock::now()) {
      all.changed.wait_until(lock, std::chrono::steady_clock::time_point(first->first));
      continue;
    }
    {
      const std::function<void()> next = std::move(first->second);
      all.set.erase(first);
      lock.unlock();
      next();
    }  // what it holds is released here, without the lock
    lock.lock();
  }
}

}  // namespace

void run_after(std::chrono::milliseconds time, std::function<void()> callback) {
  Alarms& all = alarms();
  const std::lock_guard lock(all.mutex);
  all.set.emplace(std::chrono::steady_clock::now() + time, std::move(callback));
  if (!std::exchange(all.started, true)) std::thread(run_alarms, std::ref(all)).detach();
  all.changed.notify_one();
}

void run_later(std::function<void()> callback) {
  Callbacks& all = callbacks();
  const std::lock_guard lock(all.mutex);
  all.waiting.push_back(std::move(callback));
  if (!std::exchange(all.started, true)) std::thread(run_all, std::ref(all)).detach();
  all.posted.notify_one();
}

}  // namespace swapmm::opencl::layer
