// SPDX-License-Identifier: Apache-2.0
#include <swapmm/file/file.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <swapmm/base/error.hpp>
#include <swapmm/file/descriptor.hpp>
#include <swapmm/file/requests.hpp>

namespace swapmm::file {

using detail::Descriptor;
using detail::error_of;
using detail::Requests;
using detail::Transfer;

namespace {

// A multiple of the sectors and pages of all disks in use.
constexpr Bytes page{4096};

std::string folder_of(const Options& options) {
  if (!options.folder.empty()) return options.folder;
  const char* const temporary = secure_getenv("TMPDIR");  // nothing in a set-uid program
  return temporary != nullptr && *temporary != '\0' ? temporary : "/var/tmp";
}

/// A file without a name. File systems without O_TMPFILE give it a name for a moment.
Descriptor unnamed_file(const std::string& folder, int flags) {
  Descriptor file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | flags, S_IRUSR | S_IWUSR));
  if (file || (errno != EOPNOTSUPP && errno != EISDIR)) return file;
  std::string path = folder + "/swapmm-XXXXXX";
  Descriptor named(::mkostemp(path.data(), O_CLOEXEC | flags));
  if (named) ::unlink(path.c_str());
  return named;
}

class DiskFile final : public FileMemory {
 public:
  explicit DiskFile(const Options& options)
      : capacity_(round_down(options.capacity, page)), name_("a file in " + folder_of(options)) {
    file_ = unnamed_file(folder_of(options), O_DIRECT);
    if (!file_ && errno == EINVAL) {  // memory file systems, for example
      file_ = unnamed_file(folder_of(options), 0);
      name_ += " (through the page cache)";
    }
    if (!file_) throw error_of(errno, "making " + name_);
    const Bytes request = round_up(options.request, page);
    reads_.emplace(file_.get(), request, options.depth);
    writes_.emplace(file_.get(), request, options.depth);
  }

  [[nodiscard]] Bytes capacity() const override { return capacity_; }
  [[nodiscard]] Bytes alignment() const override { return page; }
  [[nodiscard]] std::string name() const override { return name_; }

  void reserve(Bytes size) override {
    const int failed = try_to_reserve(size);
    if (failed == 0) return;
    BackendError error = error_of(failed, "reserving " + std::to_string(size.value) + " bytes of " + name_);
    const bool is_full = failed == ENOSPC || failed == EDQUOT || failed == EFBIG;
    if (is_full) error.kind = BackendError::Kind::out_of_host_memory;
    error.need = size;
    throw error;
  }
  void read(Bytes offset, std::span<std::byte> to) override {
    if (const Transfer done = reads_->read(offset.value, to); done.error != 0) fail("reading", offset, done);
  }
  void write(Bytes offset, std::span<const std::byte> from) override {
    if (const Transfer done = writes_->write(offset.value, from); done.error != 0) fail("writing", offset, done);
  }

 private:
  // Returns the error's number, or 0.
  [[nodiscard]] int try_to_reserve(Bytes size) const {
    // Beyond this limit the kernel would send SIGXFSZ, which ends the process.
    rlimit limit{};
    const bool has_limit = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    if (has_limit && size.value > limit.rlim_cur) return EFBIG;
    int failed = 0;
    do {
      failed = ::fallocate(file_.get(), 0, 0, static_cast<off_t>(size.value)) == 0 ? 0 : errno;
    } while (failed == EINTR);
    // A file system that cannot reserve room reports a full disk only when it writes.
    if (failed == EOPNOTSUPP) failed = ::ftruncate(file_.get(), static_cast<off_t>(size.value)) == 0 ? 0 : errno;
    return failed;
  }
  [[noreturn]] void fail(const char* what, Bytes offset, const Transfer& done) const {
    throw error_of(done.error, std::string(what) + " " + std::to_string(done.size) + " bytes at " +
                                   std::to_string(offset.value + done.at) + " of " + name_);
  }

  Bytes capacity_;
  std::string name_;
  Descriptor file_;
  std::optional<Requests> reads_;
  std::optional<Requests> writes_;
};

}  // namespace

std::shared_ptr<FileMemory> open(const Options& options) {
  if (options.capacity < page) {
    throw UsageError("a file as a memory needs a capacity of at least " + std::to_string(page.value) + " bytes");
  }
  if (options.capacity.value > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) {
    throw UsageError("the capacity of a file is " + std::to_string(options.capacity.value) + " bytes: too many");
  }
  if (options.depth == 0 || options.depth > 256) {
    throw UsageError("a file can have 1 to 256 requests at a time, not " + std::to_string(options.depth));
  }
  if (options.request.value == 0 || options.request > Bytes{std::uint64_t{1} << 30U}) {
    throw UsageError("a request to a file can have 1 byte to 1 GiB, not " + std::to_string(options.request.value));
  }
  return std::make_shared<DiskFile>(options);
}

}  // namespace swapmm::file
