// SPDX-License-Identifier: Apache-2.0
#include "log_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "../process/environment.hpp"
#include "../process/settings.hpp"

namespace swapmm::opencl::layer::record {
namespace {

constexpr std::size_t most_collected = std::size_t{1} << 18U;

}  // namespace

void LogFile::append(std::string_view records) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::off) return;
  collected_ += records;
  if (write_through_ || collected_.size() >= most_collected) write_all();
}

void LogFile::flush() {
  const std::lock_guard lock(mutex_);
  write_all();
}

void LogFile::write_through() {
  const std::lock_guard lock(mutex_);
  write_through_ = true;
  write_all();
}

void LogFile::abandon() {
  state_ = State::off;
  collected_.clear();
  if (file_ >= 0) close(file_);
  file_ = -1;
}

void LogFile::fail(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::off) return;
  state_ = State::off;
  say("the log " + path_ + " ends here: " + why);
}

// With the mutex. Only the user may read the file: it has sources, and maybe data.
void LogFile::write_all() {
  if (state_ == State::off || collected_.empty()) return;
  const auto failed = [&] {
    say("the log " + path_ + " cannot be written: " + reason_of(errno));
    state_ = State::off;
  };
  if (file_ < 0) {
    file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file_ < 0) return failed();
  }
  std::string_view left = collected_;
  while (!left.empty()) {
    const ssize_t written = write(file_, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return failed();
    left.remove_prefix(static_cast<std::size_t>(written));
  }
  collected_.clear();
}

}  // namespace swapmm::opencl::layer::record
