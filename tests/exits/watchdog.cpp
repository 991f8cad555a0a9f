// SPDX-License-Identifier: Apache-2.0
#include "exits/watchdog.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

namespace swapmm::test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

const std::string leaving = "leaving\n";

/// How many processes share a core; at least 1.
double crowd() {
  double load = 0;
  if (getloadavg(&load, 1) != 1) return 1;
  return std::max(1.0, load / static_cast<double>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))));
}

/// Reads until nobody has the pipe open any more, or the time is over. True: the former.
class Reader {
 public:
  explicit Reader(int pipe) : pipe_(pipe) {}

  bool read_to_end(std::string& output) {
    deadline_ = Clock::now() + time_to_arrive;
    for (;;) {
      const auto left = std::chrono::duration_cast<milliseconds>(deadline_ - Clock::now());
      if (left.count() <= 0) return false;
      pollfd look{pipe_, POLLIN, 0};
      if (poll(&look, 1, static_cast<int>(left.count())) <= 0) continue;
      std::array<char, 4096> piece{};
      const ssize_t length = read(pipe_, piece.data(), piece.size());
      if (length < 0 && errno == EINTR) continue;
      if (length <= 0) return true;
      output.append(piece.data(), static_cast<std::size_t>(length));
      look_for_the_word(output);
    }
  }
  [[nodiscard]] bool leaves() const { return leaves_; }
  [[nodiscard]] milliseconds since() const { return std::chrono::duration_cast<milliseconds>(Clock::now() - said_); }
  [[nodiscard]] milliseconds left() const { return std::chrono::duration_cast<milliseconds>(deadline_ - Clock::now()); }

 private:
  void look_for_the_word(std::string& output) {
    const std::size_t at = leaves_ ? std::string::npos : output.find(leaving);
    if (at == std::string::npos) return;
    output.erase(at, leaving.size());
    leaves_ = true;
    said_ = Clock::now();
    deadline_ = said_ + std::chrono::duration_cast<milliseconds>(time_to_leave * crowd());
  }

  int pipe_;
  bool leaves_ = false;
  Clock::time_point said_;
  Clock::time_point deadline_;
};

/// Waits for its end until the time is over.
bool reap(pid_t child, int& status, const Reader& reader) {
  for (;;) {
    const pid_t gone = waitpid(child, &status, WNOHANG);
    if (gone == child) return true;
    if (reader.left().count() <= 0) return false;
    usleep(1000);
  }
}

}  // namespace

void say(const std::string& line) {
  const std::string text = line + '\n';
  if (write(STDOUT_FILENO, text.data(), text.size()) != static_cast<ssize_t>(text.size())) _exit(120);
}

void announce_leaving() {
  if (write(STDOUT_FILENO, leaving.data(), leaving.size()) != static_cast<ssize_t>(leaving.size())) _exit(120);
}

Ending watch(const std::vector<std::string>& command) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  std::vector<std::string> words = command;
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process");
  if (child == 0) {
    setpgid(0, 0);  // whatever it starts goes with it
    if (dup2(ends[1], STDOUT_FILENO) < 0) _exit(126);
    execv(pointers[0], pointers.data());
    _exit(127);
  }
  close(ends[1]);
  Ending ending;
  Reader reader(ends[0]);
  int status = 0;
  ending.in_time = reader.read_to_end(ending.output) && reap(child, status, reader);
  ending.took = reader.leaves() ? reader.since() : milliseconds{0};
  if (!ending.in_time) {
    kill(-child, SIGKILL);
    waitpid(child, &status, 0);
  }
  close(ends[0]);
  if (WIFEXITED(status)) ending.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ending.signal = WTERMSIG(status);
  return ending;
}

}  // namespace swapmm::test
