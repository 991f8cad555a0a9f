// SPDX-License-Identifier: Apache-2.0
#include <swapmm/opencl/file_thread.hpp>

#include <pthread.h>

#include <csignal>
#include <utility>

#include <swapmm/opencl/info.hpp>

namespace swapmm::opencl::detail {

namespace {

/// Signals of the program are for the program's own threads.
std::thread without_signals(auto&& body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread thread(std::forward<decltype(body)>(body));
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
}

/// Returns whether all of them ended without a failure.
bool wait_for(const std::vector<Handle<cl_event>>& events) {
  bool succeeded = true;
  for (const Handle<cl_event>& event : events) {
    const cl_event native = event.get();
    const cl_int waited = clWaitForEvents(1, &native);
    if (waited != CL_SUCCESS || execution_status(native) < 0) succeeded = false;
  }
  return succeeded;
}

}  // namespace

FileThread::~FileThread() {
  if (!thread_.joinable()) return;
  if (in_forked_child()) {  // it exists only in the parent
    thread_.detach();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void FileThread::add(std::shared_ptr<FileJob> job) {
  {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) thread_ = without_signals([this] { run(); });
    jobs_.push_back(std::move(job));
  }
  changed_.notify_all();
}

void FileThread::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return jobs_.empty(); });
}

void FileThread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const std::shared_ptr<FileJob> job = jobs_.front();
    lock.unlock();
    job->transfer.run([&] { return wait_for(job->waits); });
    job->waits.clear();
    clSetUserEventStatus(job->done.get(), CL_COMPLETE);
    lock.lock();
    jobs_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace swapmm::opencl::detail
