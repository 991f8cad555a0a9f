// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <deque>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <unordered_map>

#include "../cache/folder.hpp"
#include "../process/settings.hpp"
#include "digest.hpp"
#include "helper.hpp"

namespace swapmm::opencl::layer::facts {
namespace {

// All of it is never destroyed: programs go on while the process ends.

struct Programs {
  std::mutex mutex;
  std::unordered_map<std::string, Program*> all;
};

Programs& programs() {
  static Programs& all = *new Programs;
  return all;
}

/// The thread that analyses one program after the other.
struct Analyst {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> waiting;
  pid_t process = 0;  // that has the thread: a child of fork() has none
};

Analyst& analyst() {
  static Analyst& one = *new Analyst;
  return one;
}

void work() {
  Analyst& all = analyst();
  std::unique_lock lock(all.mutex);
  for (;;) {
    all.changed.wait(lock, [&] { return !all.waiting.empty(); });
    const std::function<void()> next = std::move(all.waiting.front());
    all.waiting.pop_front();
    lock.unlock();
    next();
    lock.lock();
    all.changed.notify_all();
  }
}

// The program's handlers of signals run on its own threads.
bool start_thread() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return false;
  bool started = true;
  try {
    std::thread(work).detach();
  } catch (const std::system_error&) {
    started = false;
  }
  (void)pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

std::string facts_name(const std::string& digest) { return "facts-" + digest; }
std::string request_name(const std::string& digest) { return "program-" + digest; }

}  // namespace

Program& Program::of(std::string request) {
  const std::string digest = digest_of(request);
  const std::lock_guard lock(programs().mutex);
  Program*& program = programs().all[digest];
  if (program == nullptr) program = new Program(digest, std::move(request));
  return *program;
}

Program* Program::with_digest(const std::string& digest) {
  {
    const std::lock_guard lock(programs().mutex);
    const auto known = programs().all.find(digest);
    if (known != programs().all.end()) return known->second;
  }
  std::optional<std::string> request = kernel_cache().text(request_name(digest));
  if (!request || digest_of(*request) != digest) return nullptr;
  Program& program = of(std::move(*request));
  program.kept_ = true;
  return &program;
}

void Program::keep_request() {
  if (!kept_.exchange(true)) kernel_cache().keep(request_name(digest_), request_);
}

const ProgramFacts* Program::facts() {
  if (settings().analysis == Analysis::wait) return facts_waited_for();
  if (state_.load(std::memory_order_acquire) == State::not_asked) ask();
  return state_.load(std::memory_order_acquire) == State::known ? facts_ : nullptr;
}

const ProgramFacts* Program::facts_waited_for() {
  if (state_.load(std::memory_order_acquire) == State::not_asked) ask();
  std::unique_lock lock(analyst().mutex);
  (void)analyst().changed.wait_for(lock, settings().helper_time,
                                   [&] { return state_.load(std::memory_order_acquire) != State::asked; });
  return state_.load(std::memory_order_acquire) == State::known ? facts_ : nullptr;
}

void Program::settle(const ProgramFacts* facts) {
  facts_ = facts;
  state_.store(facts == nullptr ? State::hopeless : State::known, std::memory_order_release);
}

void Program::ask() {
  State expected = State::not_asked;
  if (!state_.compare_exchange_strong(expected, State::asked)) return;
  if (const auto text = kernel_cache().text(facts_name(digest_))) {
    if (auto facts = read_facts(*text)) return settle(new ProgramFacts(std::move(*facts)));
  }
  Analyst& all = analyst();
  const std::lock_guard lock(all.mutex);
  if (all.process == 0 && start_thread()) all.process = getpid();
  if (all.process != getpid()) {
    settle(nullptr);
    return all.changed.notify_all();
  }
  all.waiting.emplace_back([this] { analyse(); });
  all.changed.notify_all();
}

void Program::analyse() {
  const std::optional<std::string> text = ask_helper(request_);
  std::optional<ProgramFacts> facts = text ? read_facts(*text) : std::nullopt;
  if (facts) kernel_cache().keep(facts_name(digest_), *text);
  const std::lock_guard lock(analyst().mutex);
  settle(facts ? new ProgramFacts(std::move(*facts)) : nullptr);
}

}  // namespace swapmm::opencl::layer::facts
