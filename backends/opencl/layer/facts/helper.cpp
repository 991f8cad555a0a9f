// SPDX-License-Identifier: Apache-2.0
#include "helper.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <string_view>
#include <vector>

#include "../process/environment.hpp"
#include "../process/settings.hpp"

namespace swapmm::opencl::layer::facts {
namespace {

/// A file of this process that a program which is started does not get, and whose number is above those of the standard
/// streams: the program may have closed them.
class File {
 public:
  explicit File(int number) : number_(number) {
    if (number_ < 0 || number_ > 2) return;
    const int higher = fcntl(number_, F_DUPFD_CLOEXEC, 3);
    ::close(number_);
    number_ = higher;
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { close(); }
  void close() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

// A file in memory, not a pipe: nobody has to write while the other one starts, and a helper that dies breaks nothing.
int file_with(std::string_view text) {
  const int file = memfd_create("swapmm", MFD_CLOEXEC);
  while (file >= 0 && !text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      close(file);
      return -1;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (file >= 0) (void)lseek(file, 0, SEEK_SET);
  return file;
}

std::string helper_path() {
  if (!settings().helper.empty()) return settings().helper;
  static const char here = 0;
  Dl_info layer{};
  if (dladdr(&here, &layer) == 0 || layer.dli_fname == nullptr) return {};
  const std::string file = layer.dli_fname;
  const std::size_t slash = file.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : file.substr(0, slash);
  for (const char* const place : {"/swapmm-kernel-facts", "/" SWAPMM_HELPER_FROM_LAYER "/swapmm-kernel-facts"}) {
    if (::access((folder + place).c_str(), X_OK) == 0) return folder + place;
  }
  return {};
}

// Its environment has no OPENCL_LAYERS and nothing else of the program's but where files and programs are.
std::vector<std::string> environment() {
  std::vector<std::string> variables;
  for (const char* const name : {"PATH", "TMPDIR"}) {
    if (const char* const value = variable(name)) variables.push_back(std::string(name) + "=" + value);
  }
  return variables;
}

pid_t start(const std::string& path, int input, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, 0);
  posix_spawn_file_actions_adddup2(&actions, output, 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);  // the program's own files
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  std::array<char*, 2> arguments{const_cast<char*>(path.c_str()), nullptr};
  std::vector<std::string> variables = environment();
  std::vector<char*> list;
  list.reserve(variables.size() + 1);
  for (std::string& each : variables) list.push_back(each.data());
  list.push_back(nullptr);
  pid_t child = -1;
  if (posix_spawn(&child, path.c_str(), &actions, &attributes, arguments.data(), list.data()) != 0) child = -1;
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

// Reads until the other side closes. False if that takes too long, or is too much.
bool read_in_time(int file, std::string& text) {
  constexpr std::size_t most_bytes = 16U << 20U;
  const auto end = std::chrono::steady_clock::now() + settings().helper_time;
  std::array<char, 65536> piece{};
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0 || text.size() > most_bytes) return false;
    pollfd wanted{file, POLLIN, 0};
    const int ready = poll(&wanted, 1, static_cast<int>(left.count()) + 1);
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    const ssize_t got = ::read(file, piece.data(), piece.size());
    if (got < 0 && errno != EINTR) return false;
    if (got == 0) return true;
    if (got > 0) text.append(piece.data(), static_cast<std::size_t>(got));
  }
}

// Waits for this one child, and ends it with its compiler if it does not end soon.
pid_t wait_for(pid_t child, int& status) {
  for (int attempt = 0; attempt < 200; ++attempt) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) return ended;
    (void)poll(nullptr, 0, attempt < 20 ? 1 : 10);
  }
  (void)kill(-child, SIGKILL);
  pid_t ended = -1;
  do ended = waitpid(child, &status, 0);
  while (ended < 0 && errno == EINTR);
  return ended;
}

}  // namespace

std::optional<std::string> ask_helper(const std::string& request) {
  const std::string path = helper_path();
  if (path.empty()) return std::nullopt;
  File input(file_with(request));
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  File output(ends[0]);
  File their_end(ends[1]);
  if (input.number() < 0 || output.number() < 0 || their_end.number() < 0) return std::nullopt;
  const pid_t child = start(path, input.number(), their_end.number());
  if (child < 0) return std::nullopt;
  their_end.close();
  std::string text;
  const bool complete = read_in_time(output.number(), text);
  if (!complete) (void)kill(-child, SIGKILL);  // with its compiler
  int status = 0;
  const pid_t ended = wait_for(child, status);
  // A program that ignores SIGCHLD, or waits for all children, has its status. The text says by itself whether it is
  // whole.
  const bool well = ended < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return complete && well ? std::optional(std::move(text)) : std::nullopt;
}

}  // namespace swapmm::opencl::layer::facts
