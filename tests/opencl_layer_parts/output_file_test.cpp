// SPDX-License-Identifier: Apache-2.0
// Files that are written while a process ends.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "profile/output_file.hpp"

namespace {

using swapmm::opencl::layer::write_file;
namespace fs = std::filesystem;

/// A new folder that is gone at the end.
struct Folder {
  Folder() {
    std::string pattern = fs::temp_directory_path() / "swapmm-output-XXXXXX";
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return path / name; }
  fs::path path;
};

std::string text_of(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("a file is made with the process's mask, and replaced as a whole") {
  const Folder folder;
  const std::string file = folder.file("made");
  const mode_t mask = umask(027);
  CHECK(write_file(file, std::string(100000, 'x')).empty());
  umask(mask);
  struct stat facts {};
  REQUIRE(stat(file.c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777U) == 0640U);
  CHECK(text_of(file) == std::string(100000, 'x'));
  CHECK(write_file(file, "short").empty());
  CHECK(text_of(file) == "short");
}

TEST_CASE("what is no ordinary file is not written, and nobody waits for a reader") {
  const Folder folder;
  CHECK(write_file(folder.file("no/such"), "x") == "No such file or directory");
  CHECK(write_file(folder.path, "x") == "Is a directory");
  CHECK(write_file("/dev/null", "x") == "it is not an ordinary file");
  const std::string pipe = folder.file("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(write_file(pipe, "x") == "No such device or address");
}

TEST_CASE("a text beyond the process's limit is not written, and leaves the file as it was") {
  const Folder folder;
  const std::string file = folder.file("limited");
  REQUIRE(write_file(file, "before").empty());
  rlimit old{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
  const rlimit small{1000, old.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string fits = write_file(folder.file("fits"), std::string(1000, 'x'));
  const std::string too_long = write_file(file, std::string(1001, 'x'));
  REQUIRE(setrlimit(RLIMIT_FSIZE, &old) == 0);
  CHECK(fits.empty());
  CHECK(too_long == "it has 1001 bytes, and the process may write 1000");
  CHECK(text_of(file) == "before");
}
