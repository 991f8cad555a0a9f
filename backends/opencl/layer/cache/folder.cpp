// SPDX-License-Identifier: Apache-2.0
#include "folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <memory>
#include <string_view>
#include <vector>

#include "../facts/digest.hpp"
#include "../process/environment.hpp"
#include "../process/settings.hpp"

namespace swapmm::opencl::layer {
namespace {

constexpr std::string_view first_word = "swapmm-cache-1 ";
constexpr std::string_view partial_word = "partial-";
constexpr off_t most_bytes = 64 << 20;
constexpr unsigned trim_every = 64;          // files that a process keeps
constexpr std::time_t partial_lives = 3600;  // seconds; then its process has ended long ago

std::string base_folder() {
  if (!settings().cache_folder.empty()) return settings().cache_folder;
  const char* const cache = variable("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return cache;
  const char* const home = variable("HOME");
  return home != nullptr && home[0] == '/' ? std::string(home) + "/.cache" : std::string();
}

// Opens a folder that belongs to the user and that nobody else can write to; makes it if need be. -1 with a reason.
int open_folder(int parent, const char* name, std::string& reason) {
  if (mkdirat(parent, name, 0700) != 0 && errno != EEXIST) {
    reason = reason_of(errno);
    return -1;
  }
  const int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat facts {};
  if (folder < 0 || fstat(folder, &facts) != 0) {
    reason = reason_of(errno);
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

int open_cache(const char* name) {
  if (!settings().cache) return -1;
  const std::string base = base_folder();
  if (base.empty()) return -1;
  std::string reason;
  (void)mkdir(base.c_str(), 0700);
  const int outer = open(base.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int middle = outer < 0 ? -1 : open_folder(outer, "swapmm", reason);
  if (outer < 0) reason = reason_of(errno);
  if (outer >= 0) close(outer);
  const int inner = middle < 0 ? -1 : open_folder(middle, name, reason);
  if (middle >= 0) close(middle);
  // Each folder is tried, but one line is enough.
  static std::atomic<bool> said{false};
  if (inner < 0 && !said.exchange(true)) remark("the cache in " + base + "/swapmm is not used: " + reason);
  return inner;
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

struct KeptFile {
  std::string name;
  std::uint64_t bytes = 0;
  timespec used{};
};

bool used_before(const KeptFile& a, const KeptFile& b) {
  return a.used.tv_sec != b.used.tv_sec ? a.used.tv_sec < b.used.tv_sec : a.used.tv_nsec < b.used.tv_nsec;
}

// The files of the folder. Removes what processes left behind that ended while they wrote.
std::vector<KeptFile> files_of(int folder) {
  std::vector<KeptFile> files;
  const int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) return files;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(fdopendir(own), closedir);
  if (listing == nullptr) {
    close(own);
    return files;
  }
  while (const dirent* const entry = readdir(listing.get())) {  // NOLINT(concurrency-mt-unsafe): a stream of its own
    KeptFile file{std::string(static_cast<const char*>(entry->d_name)), 0, {}};
    struct stat facts {};
    if (fstatat(folder, file.name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(facts.st_mode)) continue;
    file.bytes = static_cast<std::uint64_t>(facts.st_size);
    file.used = facts.st_mtim;
    if (file.name.compare(0, partial_word.size(), partial_word) != 0) {
      files.push_back(std::move(file));
    } else if (facts.st_mtim.tv_sec + partial_lives < std::time(nullptr)) {
      (void)unlinkat(folder, file.name.c_str(), 0);
    }
  }
  return files;
}

}  // namespace

// It stays open: the program may change its directory and its environment.
int CacheFolder::folder() {
  std::call_once(opened_, [this] { folder_ = open_cache(name_); });
  return folder_;
}

std::optional<std::string> CacheFolder::text(const std::string& name) {
  if (folder() < 0) return std::nullopt;
  const int file = openat(folder(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return std::nullopt;
  struct stat facts {};
  const bool ours = fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == geteuid() &&
                    (facts.st_mode & 022U) == 0 && facts.st_size <= most_bytes;
  std::string text(ours ? static_cast<std::size_t>(facts.st_size) : 0, '\0');
  const bool is_read = ours && read_all(file, text);
  if (is_read) (void)futimens(file, nullptr);  // it was used now
  close(file);
  const std::size_t begin = first_word.size() + 65;  // the digest, and the end of the line
  if (is_read && text.size() >= begin && text.compare(0, first_word.size(), first_word) == 0) {
    std::string rest = text.substr(begin);
    if (text.compare(first_word.size(), 64, facts::digest_of(rest)) == 0) return rest;
  }
  if (!damage_said_.exchange(true)) {
    remark("a file of the cache is damaged or is not the user's, and is ignored: " + name);
  }
  return std::nullopt;
}

void CacheFolder::keep(const std::string& name, const std::string& text) {
  if (folder() < 0 || failed_.load(std::memory_order_relaxed)) return;
  const std::string digest = facts::digest_of(text);
  if (digest.size() != 64) return;  // the process ends
  const unsigned count = kept_.fetch_add(1);
  const std::string partial = std::string(partial_word) + std::to_string(getpid()) + "-" + std::to_string(count);
  const int file = openat(folder(), partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  bool kept = file >= 0 && write_all(file, std::string(first_word) + digest + "\n") && write_all(file, text);
  int reason = errno;
  if (file >= 0) kept = close(file) == 0 && kept;
  if (kept && renameat(folder(), partial.c_str(), folder(), name.c_str()) == 0) {
    if (count % trim_every == 0) trim();
    return;
  }
  if (kept) reason = errno;
  if (file >= 0) (void)unlinkat(folder(), partial.c_str(), 0);
  if (!failed_.exchange(true)) remark("nothing is kept in the cache: " + reason_of(reason));
}

// Leaves room, so that not every file that comes needs a look at all of them.
void CacheFolder::trim() const {
  std::vector<KeptFile> files = files_of(folder_);
  std::uint64_t bytes = 0;
  for (const KeptFile& file : files) bytes += file.bytes;
  std::size_t count = files.size();
  if (count <= limits_.files && bytes <= limits_.bytes) return;
  std::sort(files.begin(), files.end(), used_before);
  for (const KeptFile& file : files) {
    if (count <= limits_.files / 4 * 3 && bytes <= limits_.bytes / 4 * 3) return;
    (void)unlinkat(folder_, file.name.c_str(), 0);  // another process may have done so
    --count;
    bytes -= file.bytes;
  }
}

CacheFolder& kernel_cache() {
  static CacheFolder& cache = *new CacheFolder("kernels", {.files = 8192, .bytes = 256U << 20U});
  return cache;
}

CacheFolder& plan_cache() {
  static CacheFolder& cache = *new CacheFolder("plans", {.files = 256, .bytes = 64U << 20U});
  return cache;
}

}  // namespace swapmm::opencl::layer
