// SPDX-License-Identifier: Apache-2.0
#include "cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>

#include "../process/settings.hpp"
#include "digest.hpp"

namespace swapmm::opencl::layer::facts {
namespace {

constexpr std::string_view first_word = "swapmm-cache-1 ";
constexpr off_t most_bytes = 64 << 20;

void remark_once(std::atomic<bool>& said, const std::string& line) {
  if (!said.exchange(true)) remark(line);
}

std::string base_folder() {
  if (!settings().cache_folder.empty()) return settings().cache_folder;
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return cache;
  const char* const home = std::getenv("HOME");
  return home != nullptr && home[0] == '/' ? std::string(home) + "/.cache" : std::string();
}

// Opens a folder that belongs to the user and that nobody else can write to; makes it if need be. -1 with a reason.
int open_folder(int parent, const char* name, std::string& reason) {
  if (mkdirat(parent, name, 0700) != 0 && errno != EEXIST) {
    reason = std::strerror(errno);
    return -1;
  }
  const int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat facts {};
  if (folder < 0 || fstat(folder, &facts) != 0) {
    reason = std::strerror(errno);
  } else if (facts.st_uid != geteuid()) {
    reason = "it belongs to another user";
  } else if ((facts.st_mode & 022U) != 0) {
    reason = "other users can write to it";
  } else {
    return folder;
  }
  if (folder >= 0) close(folder);
  return -1;
}

// The folder, or -1 if there is none. It stays open: the program may change its directory and its environment.
int folder() {
  static const int opened = [] {
    if (!settings().cache) return -1;
    const std::string base = base_folder();
    if (base.empty()) return -1;
    std::string reason;
    (void)mkdir(base.c_str(), 0700);
    const int outer = open(base.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int middle = outer < 0 ? -1 : open_folder(outer, "swapmm", reason);
    if (outer < 0) reason = std::strerror(errno);
    if (outer >= 0) close(outer);
    const int inner = middle < 0 ? -1 : open_folder(middle, "kernels", reason);
    if (middle >= 0) close(middle);
    if (inner < 0) remark("the cache in " + base + "/swapmm is not used: " + reason);
    return inner;
  }();
  return opened;
}

std::atomic<bool>& failed() {
  static std::atomic<bool> any{false};
  return any;
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

bool read_all(int file, std::string& text) {
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = read(file, text.data() + have, text.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    have += static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

std::optional<std::string> cached(const std::string& name) {
  if (folder() < 0) return std::nullopt;
  const int file = openat(folder(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return std::nullopt;
  struct stat facts {};
  const bool ours = fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == geteuid() &&
                    (facts.st_mode & 022U) == 0 && facts.st_size <= most_bytes;
  std::string text(ours ? static_cast<std::size_t>(facts.st_size) : 0, '\0');
  const bool is_read = ours && read_all(file, text);
  close(file);
  const std::size_t begin = first_word.size() + 65;  // the digest, and the end of the line
  if (is_read && text.size() >= begin && text.compare(0, first_word.size(), first_word) == 0) {
    std::string rest = text.substr(begin);
    if (text.compare(first_word.size(), 64, digest_of(rest)) == 0) return rest;
  }
  static std::atomic<bool> said{false};
  remark_once(said, "a file of the cache is damaged or is not the user's, and is ignored: " + name);
  return std::nullopt;
}

void keep_in_cache(const std::string& name, const std::string& text) {
  if (folder() < 0 || failed().load(std::memory_order_relaxed)) return;
  const std::string digest = digest_of(text);
  if (digest.size() != 64) return;  // the process ends
  static std::atomic<unsigned> count{0};
  const std::string partial = "partial-" + std::to_string(getpid()) + "-" + std::to_string(count.fetch_add(1));
  const int file = openat(folder(), partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  bool kept = file >= 0 && write_all(file, std::string(first_word) + digest + "\n") && write_all(file, text);
  int reason = errno;
  if (file >= 0) kept = close(file) == 0 && kept;
  if (kept && renameat(folder(), partial.c_str(), folder(), name.c_str()) == 0) return;
  if (kept) reason = errno;
  if (file >= 0) (void)unlinkat(folder(), partial.c_str(), 0);
  if (!failed().exchange(true)) remark(std::string("nothing is kept in the cache: ") + std::strerror(reason));
}

}  // namespace swapmm::opencl::layer::facts
