// SPDX-License-Identifier: Apache-2.0
// Files on a disk as a memory: swapmm::file::open(), and what can go wrong with a disk.
#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <swapmm/error.hpp>
#include <swapmm/file/file.hpp>

namespace {

using namespace swapmm;
using namespace swapmm::literals;

constexpr std::size_t page = 4096;

/// Memory of whole pages, as transfers past the page cache need it.
class Pages {
 public:
  explicit Pages(std::size_t count, std::uint32_t seed = 0) : bytes_(count * page) {
    data_ = static_cast<std::byte*>(::operator new (bytes_, std::align_val_t{page}));
    for (std::size_t i = 0; i < bytes_; ++i) data_[i] = static_cast<std::byte>(i * 7 + i / 251 + seed);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { ::operator delete (data_, std::align_val_t{page}); }
  [[nodiscard]] std::span<std::byte> all() { return {data_, bytes_}; }
  [[nodiscard]] bool operator==(const Pages& other) const {
    return bytes_ == other.bytes_ && std::equal(data_, data_ + bytes_, other.data_);
  }

 private:
  std::size_t bytes_;
  std::byte* data_;
};

std::shared_ptr<FileMemory> usual(Bytes request = 64_KiB, unsigned depth = 4) {
  return file::open({.capacity = 64_MiB, .request = request, .depth = depth});
}

/// The process's open files that have no name any more, in the folder of usual().
std::vector<int> unnamed_files() {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    const std::string target = std::filesystem::read_symlink(entry, ignored).string();
    if (target.find("(deleted)") != std::string::npos) found.push_back(std::stoi(entry.path().filename().string()));
  }
  return found;
}

template <class Call>
BackendError error_of(Call&& call) {
  try {
    call();
  } catch (const BackendError& error) {
    return error;
  }
  FAIL("nothing was thrown");
  return {BackendError::Kind::failed, 0, ""};
}

}  // namespace

TEST_CASE("what was written is read, in pieces of all sizes, from anywhere") {
  for (const Bytes request : {1_bytes, 4_KiB, 12_KiB, 1_MiB}) {
    for (const unsigned depth : {1U, 3U, 16U}) {
      const auto file = usual(request, depth);
      file->reserve(1_MiB);
      Pages written(100, 1);
      Pages read(100, 2);
      file->write(Bytes{8 * page}, written.all());
      file->read(Bytes{8 * page}, read.all());
      CHECK(read == written);
      Pages part(3, 9);
      file->write(Bytes{50 * page}, part.all());
      file->read(Bytes{8 * page}, read.all());
      std::copy(part.all().begin(), part.all().end(), written.all().begin() + 42 * page);
      CHECK(read == written);
    }
  }
}

TEST_CASE("a file has no name, takes room on the disk, and leaves nothing") {
  const std::size_t before = unnamed_files().size();
  {
    const auto file = usual();
    REQUIRE(unnamed_files().size() == before + 1);
    const int number = unnamed_files().back();
    struct stat facts {};
    file->reserve(1_MiB);
    REQUIRE(fstat(number, &facts) == 0);
    CHECK(facts.st_size == 1 << 20);
    CHECK(facts.st_blocks * 512 >= 1 << 20);  // the room is there before anything is written
    CHECK((facts.st_mode & 077) == 0);
    CHECK(facts.st_nlink == 0);
    CHECK((fcntl(number, F_GETFD) & FD_CLOEXEC) != 0);
    if (file->name().find("page cache") == std::string::npos) CHECK((fcntl(number, F_GETFL) & O_DIRECT) != 0);
  }
  CHECK(unnamed_files().size() == before);
}

TEST_CASE("several threads read and write at once") {
  const auto file = usual(8_KiB, 8);
  file->reserve(16_MiB);
  std::vector<std::thread> threads;
  std::array<bool, 4> right{};
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      right[t] = true;
      for (std::uint32_t round = 0; round < 10; ++round) {
        Pages written(64, 100 * t + round);
        Pages read(64);
        file->write(Bytes{t * 64 * page}, written.all());
        file->read(Bytes{t * 64 * page}, read.all());
        right[t] = right[t] && read == written;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const bool one : right) CHECK(one);
}

TEST_CASE("a folder in memory is used through the page cache, and the name says so") {
  if (access("/dev/shm", W_OK) != 0) {
    MESSAGE("not tested: there is no /dev/shm");
    return;
  }
  const auto file = file::open({.folder = "/dev/shm", .capacity = 1_MiB});
  file->reserve(64_KiB);
  Pages written(4, 1);
  Pages read(4);
  file->write(0_bytes, written.all());
  file->read(0_bytes, read.all());
  CHECK(read == written);
  // Newer kernels can go past the page cache there, too.
  CHECK(file->name().find("a file in /dev/shm") == 0);
}

TEST_CASE("a full disk is told when room is reserved, with the bytes that were asked for") {
  const auto file = usual();
  file->reserve(64_KiB);
  // A limit on the size of files is met as a full disk is, and nobody need ignore SIGXFSZ.
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit little{1 << 20U, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &little) == 0);
  const BackendError error = error_of([&] { file->reserve(8_MiB); });
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK(error.kind == BackendError::Kind::out_of_host_memory);
  CHECK(error.need == 8_MiB);
  CHECK(error.code == EFBIG);
  CHECK(std::string(error.what()).find("reserving 8388608 bytes of a file in ") == 0);
  Pages bytes(4);
  file->write(Bytes{12 * page}, bytes.all());  // what was reserved before is still there
}

TEST_CASE("errors of the disk have names: a write without room, a read that fails, a file that is shorter") {
  const std::size_t before = unnamed_files().size();
  const auto file = usual(16_KiB);
  REQUIRE(unnamed_files().size() == before + 1);
  const int number = unnamed_files().back();
  file->reserve(1_MiB);
  Pages bytes(16);

  SUBCASE("a file that was cut under us") {
    REQUIRE(ftruncate(number, 24 * page) == 0);
    file->read(Bytes{8 * page}, bytes.all());
    const BackendError error = error_of([&] { file->read(Bytes{16 * page}, bytes.all()); });
    CHECK(error.code == EIO);
    CHECK(std::string(error.what()).find("reading 16384 bytes at 98304 of a file in ") == 0);
  }
  SUBCASE("a disk without room for what it promised") {
    const int full = open("/dev/full", O_RDWR | O_CLOEXEC);
    REQUIRE(full >= 0);
    REQUIRE(dup2(full, number) == number);
    close(full);
    const BackendError error = error_of([&] { file->write(0_bytes, bytes.all()); });
    CHECK(error.code == ENOSPC);
    CHECK(error.kind == BackendError::Kind::failed);
    CHECK(std::string(error.what()).find("writing 16384 bytes at ") == 0);
    CHECK(std::string(error.what()).find("No space left on device") != std::string::npos);
  }
  SUBCASE("a disk that cannot read") {
    const int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);  // nothing is mapped at its first pages
    REQUIRE(memory >= 0);
    REQUIRE(dup2(memory, number) == number);
    close(memory);
    const BackendError error = error_of([&] { file->read(0_bytes, bytes.all()); });
    CHECK(error.code == EIO);
    CHECK(std::string(error.what()).find("Input/output error") != std::string::npos);
  }
}

TEST_CASE("options that make no sense are refused") {
  CHECK_THROWS_AS((void)file::open({.capacity = 100_bytes}), UsageError);
  CHECK_THROWS_AS((void)file::open({.capacity = Bytes{~std::uint64_t{0}}}), UsageError);
  CHECK_THROWS_AS((void)file::open({.capacity = 1_MiB, .request = 0_bytes}), UsageError);
  CHECK_THROWS_AS((void)file::open({.capacity = 1_MiB, .request = 2_GiB}), UsageError);
  CHECK_THROWS_AS((void)file::open({.capacity = 1_MiB, .depth = 0}), UsageError);
  CHECK_THROWS_AS((void)file::open({.capacity = 1_MiB, .depth = 257}), UsageError);
  const BackendError error = error_of([] { (void)file::open({.folder = "/no/such/folder", .capacity = 1_MiB}); });
  CHECK(error.code == ENOENT);
  CHECK(std::string(error.what()) == "making a file in /no/such/folder: No such file or directory");
}
