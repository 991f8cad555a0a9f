// SPDX-License-Identifier: Apache-2.0
#include "output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "../process/environment.hpp"

namespace swapmm::opencl::layer {
namespace {

std::string write_to(int file, std::string_view text) {
  struct stat facts {};
  if (fstat(file, &facts) != 0) return reason_of(errno);
  if (!S_ISREG(facts.st_mode)) return "it is not an ordinary file";
  if (const std::uint64_t most = file_size_limit(); most < text.size()) {
    return "it has " + std::to_string(text.size()) + " bytes, and the process may write " + std::to_string(most);
  }
  if (ftruncate(file, 0) != 0) return reason_of(errno);
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return reason_of(errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return "";
}

}  // namespace

std::string write_file(const std::string& name, std::string_view text) {
  const int file = open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
  if (file < 0) return reason_of(errno);
  std::string problem = write_to(file, text);
  if (close(file) != 0 && problem.empty()) problem = reason_of(errno);
  return problem;
}

}  // namespace swapmm::opencl::layer
