// SPDX-License-Identifier: Apache-2.0
#include "child.hpp"

#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <iostream>

#include "failure.hpp"

namespace swapmm::cli {
namespace {

// What can be passed on. SIGTSTP and its like stop this process and the program, as they should.
constexpr std::array passed_on = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH};

sigset_t awaited() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  for (const int signal : passed_on) sigaddset(&signals, signal);
  return signals;
}

std::vector<std::string> environment(const Variables& more) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (more.count(text.substr(0, text.find('='))) == 0) all.push_back(text);
  }
  for (const auto& [name, value] : more) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

// The program gets the signal mask that this process had.
pid_t start(const std::string& file, std::vector<std::string> words, const Variables& more, const sigset_t& mask) {
  std::vector<std::string> variables = environment(more);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &mask);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t child = 0;
  const int error =
      posix_spawn(&child, file.c_str(), nullptr, &attributes, pointers(words).data(), pointers(variables).data());
  posix_spawnattr_destroy(&attributes);
  if (error == 0) return child;
  throw Failure(ExitCode::usage, file + ": cannot be started: " + std::strerror(error));
}

}  // namespace

HeldSignals::HeldSignals() {
  const sigset_t signals = awaited();
  pthread_sigmask(SIG_BLOCK, &signals, &before_);
}

HeldSignals::~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

int run_child(const std::string& file, const std::vector<std::string>& words, const Variables& more,
              const HeldSignals& held) {
  std::cout.flush();
  // Without this, a caller that ignores SIGCHLD makes the system throw the exit code away.
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &usual, nullptr);
  const pid_t child = start(file, words, more, held.before());
  const sigset_t signals = awaited();
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) return status;
    siginfo_t info{};
    const timespec second{1, 0};  // a thread of a driver may have taken the signal
    const int signal = sigtimedwait(&signals, &info, &second);
    // Those of a process; the terminal sends its signals to the program, too.
    if (signal > 0 && signal != SIGCHLD && info.si_code <= 0) kill(child, signal);
  }
}

int end_like(int wait_status) {
  if (WIFEXITED(wait_status)) return WEXITSTATUS(wait_status);
  const int signal = WTERMSIG(wait_status);
  const rlimit no_core{};
  setrlimit(RLIMIT_CORE, &no_core);  // the program has left its own
  std::cout.flush();
  std::cerr.flush();
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  sigaction(signal, &usual, nullptr);
  sigset_t this_one;
  sigemptyset(&this_one);
  sigaddset(&this_one, signal);
  sigprocmask(SIG_UNBLOCK, &this_one, nullptr);
  raise(signal);
  return 128 + signal;
}

}  // namespace swapmm::cli
