// SPDX-License-Identifier: Apache-2.0
#include <swapmm/pages/fault_service.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <string_view>
#include <thread>
#include <utility>

#include <swapmm/pages/page_access.hpp>

#if defined(__linux__)
#include <linux/futex.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): more than C++ has
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace swapmm::pages {

namespace {

#if defined(__linux__)
// A system call and no more, unlike atomic::wait(): a signal handler may make it.
void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void wake_all(std::atomic<std::uint32_t>& word) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1 << 30, nullptr, nullptr, 0);
}

// The thread's signal mask is inherited: no handler of the program runs on the service's thread.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};
#else
// Nothing faults there.
void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value) noexcept { word.wait(value); }
void wake_all(std::atomic<std::uint32_t>& word) noexcept { word.notify_all(); }
struct AllSignalsBlocked {
  AllSignalsBlocked() {}
};
#endif

void tell(FaultRequest& request, std::string_view error) noexcept {
  const std::size_t length = std::min(error.size(), request.error.size() - 1);
  std::memcpy(request.error.data(), error.data(), length);
  request.error[length] = '\0';
}

}  // namespace

FaultService::FaultService(std::function<void()> starts, std::function<void()> ends)
    : starts_(std::move(starts)), ends_(std::move(ends)), process_(process_number()) {
  const AllSignalsBlocked blocked;
  thread_ = std::thread([this] { run(); });
  while (started_.load(std::memory_order_acquire) == 0) sleep_while(started_, 0);
}

FaultService::~FaultService() {
  if (process_number() != process_) {  // a child of fork() does not have the thread
    thread_.detach();
    return;
  }
  stops_.store(true, std::memory_order_release);
  signal_.fetch_add(1, std::memory_order_release);
  wake_all(signal_);
  thread_.join();
}

void FaultService::wait_for(FaultRequest& request) noexcept {
  FaultRequest* first = requests_.load(std::memory_order_relaxed);
  do {
    request.next = first;
  } while (!requests_.compare_exchange_weak(first, &request, std::memory_order_release, std::memory_order_relaxed));
  signal_.fetch_add(1, std::memory_order_release);
  wake_all(signal_);
  constexpr auto waiting = static_cast<std::uint32_t>(FaultRequest::State::waiting);
  while (request.state.load(std::memory_order_acquire) == waiting) sleep_while(request.state, waiting);
}

void FaultService::run() {
  starts_();
  started_.store(1, std::memory_order_release);
  wake_all(started_);
  for (;;) {
    const std::uint32_t seen = signal_.load(std::memory_order_acquire);
    FaultRequest* latest = requests_.exchange(nullptr, std::memory_order_acquire);
    if (latest == nullptr) {
      if (stops_.load(std::memory_order_acquire)) break;
      sleep_while(signal_, seen);
      continue;
    }
    FaultRequest* oldest = nullptr;
    while (latest != nullptr) {
      FaultRequest* const next = std::exchange(latest->next, oldest);
      oldest = std::exchange(latest, next);
    }
    while (oldest != nullptr) serve(*std::exchange(oldest, oldest->next));
  }
  ends_();
}

void FaultService::serve(FaultRequest& request) noexcept {
  auto state = FaultRequest::State::served;
  try {
    request.target->serve(request.offset, request.want);
  } catch (const std::exception& error) {
    state = FaultRequest::State::refused;
    tell(request, error.what());
  } catch (...) {
    state = FaultRequest::State::refused;
    tell(request, "an exception of an unknown type");
  }
  // The request may be gone as soon as its state has changed; to wake an address where nobody waits does no harm.
  std::atomic<std::uint32_t>& word = request.state;
  word.store(static_cast<std::uint32_t>(state), std::memory_order_release);
  wake_all(word);
}

}  // namespace swapmm::pages
