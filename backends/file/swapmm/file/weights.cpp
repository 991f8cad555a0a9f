// SPDX-License-Identifier: Apache-2.0
#include <swapmm/file/weights.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <swapmm/base/error.hpp>
#include <swapmm/file/descriptor.hpp>

namespace swapmm::file {

namespace {

using detail::Descriptor;
using detail::error_of;

/// Reads by pread, not by a map of the file: what is missing from a file that became shorter is an error then, and no
/// signal. A pread may be called by several threads.
class WeightsFile final : public FileMemory {
 public:
  WeightsFile(Descriptor file, Bytes size, std::string name)
      : file_(std::move(file)), size_(size), name_(std::move(name)) {}

  [[nodiscard]] Bytes capacity() const override { return Bytes{}; }
  [[nodiscard]] Bytes size() const override { return size_; }
  [[nodiscard]] Bytes alignment() const override { return Bytes{1}; }
  [[nodiscard]] std::string name() const override { return name_; }

  void reserve(Bytes size) override {
    if (size.value == 0) return;
    throw BackendError(BackendError::Kind::out_of_host_memory, EROFS, name_ + " is only read", size);
  }
  void read(Bytes offset, std::span<std::byte> to) override {
    std::size_t done = 0;
    while (done < to.size()) {
      const auto at = static_cast<off_t>(offset.value + done);
      const ssize_t got = ::pread(file_.get(), to.data() + done, to.size() - done, at);
      if (got < 0 && errno == EINTR) continue;
      const std::string what =
          "reading " + std::to_string(to.size()) + " bytes at " + std::to_string(offset.value) + " of " + name_;
      if (got < 0) throw error_of(errno, what);
      if (got == 0) {
        throw BackendError(BackendError::Kind::failed, 0,
                           what + ": it ends at byte " + std::to_string(at) + ", and had " +
                               std::to_string(size_.value) + " bytes when it was opened");
      }
      done += static_cast<std::size_t>(got);
    }
  }
  void write(Bytes /*offset*/, std::span<const std::byte> /*from*/) override {
    throw error_of(EROFS, "writing to " + name_);
  }

 private:
  Descriptor file_;
  Bytes size_;
  std::string name_;
};

}  // namespace

std::shared_ptr<FileMemory> open_weights(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) throw error_of(errno, "opening " + path);
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0) throw error_of(errno, "opening " + path);
  if (!S_ISREG(facts.st_mode)) throw error_of(S_ISDIR(facts.st_mode) ? EISDIR : EINVAL, "opening " + path);
  const Bytes size{static_cast<std::uint64_t>(facts.st_size)};
  return std::make_shared<WeightsFile>(std::move(file), size, path);
}

}  // namespace swapmm::file
