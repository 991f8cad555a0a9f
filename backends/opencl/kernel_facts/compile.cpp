// SPDX-License-Identifier: Apache-2.0
#include "compile.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace swapmm::kernel_facts {
namespace {

namespace files = std::filesystem;

/// A folder with the headers, which is the current folder as long as this exists.
class HeaderFolder {
 public:
  HeaderFolder() = default;
  HeaderFolder(const HeaderFolder&) = delete;
  HeaderFolder& operator=(const HeaderFolder&) = delete;
  ~HeaderFolder() {
    if (path_.empty()) return;
    std::error_code ignored;
    files::current_path("/", ignored);
    files::remove_all(path_, ignored);
  }

  bool fill(const std::vector<Request::Header>& headers) {
    const char* const base = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe): one thread
    std::string name = std::string(base == nullptr || *base == 0 ? "/tmp" : base) + "/swapmm-headers-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) return false;
    path_ = name;
    std::error_code error;
    files::current_path(path_, error);
    if (error) return false;
    for (const Request::Header& header : headers) {
      const files::path wanted(header.name);
      if (wanted.is_absolute() || header.name.empty()) return false;
      for (const files::path& part : wanted) {
        if (part == "..") return false;
      }
      files::create_directories(path_ / wanted.parent_path(), error);
      std::ofstream out(path_ / wanted, std::ios::binary);
      out.write(header.text.data(), static_cast<std::streamsize>(header.text.size()));
      if (!out.flush()) return false;
    }
    return true;
  }

 private:
  files::path path_;
};

int file_with(std::string_view text) {
  const int file = memfd_create("source", MFD_CLOEXEC);
  while (file >= 0 && !text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (file >= 0) (void)lseek(file, 0, SEEK_SET);
  return file;
}

// Starts the first of the programs that there is. Its errors go nowhere.
pid_t start(const std::vector<std::string>& arguments, int input, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, 0);
  posix_spawn_file_actions_adddup2(&actions, output, 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  std::vector<char*> list;
  list.push_back(nullptr);
  for (const std::string& argument : arguments) list.push_back(const_cast<char*>(argument.c_str()));
  list.push_back(nullptr);
  pid_t child = -1;
  for (const char* const program : {SWAPMM_CLANG, SWAPMM_CLANG_NAME}) {
    list[0] = const_cast<char*>(program);
    if (posix_spawnp(&child, program, &actions, nullptr, list.data(), environ) == 0) break;
    child = -1;
  }
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

std::string read_all(int file) {
  std::string text;
  std::array<char, 65536> piece{};
  for (;;) {
    const ssize_t got = read(file, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
}

std::vector<std::string> arguments_for(const Request& request, const std::vector<std::string>& options) {
  std::vector<std::string> arguments{"-x",
                                     "cl",
                                     "-target",
                                     request.address_bits == "32" ? "spir-unknown-unknown" : "spir64-unknown-unknown",
                                     "-O2",
                                     "-Xclang",
                                     "-disable-llvm-passes",
                                     "-w",
                                     "-nostdlibinc",
                                     "-emit-llvm",
                                     "-c",
                                     "-o",
                                     "-",
                                     "-D__OPENCL_VERSION__=" + request.version,
                                     "-D__ENDIAN_LITTLE__=1"};
  if (request.images) arguments.emplace_back("-D__IMAGE_SUPPORT__=1");
  // Those that clang does not know are ignored there, so they get a macro by themselves.
  std::string extensions = "-cl-ext=-all";
  // Clang 14 lacks vload_half() without it, which needs no extension.
  constexpr std::string_view half = "cl_khr_fp16";
  if (request.source.find(half) == std::string::npos && request.headers.empty()) extensions.append(",+").append(half);
  std::string_view names = request.extensions;
  while (!names.empty()) {
    const std::size_t blank = names.find(' ');
    const std::string_view name = names.substr(0, blank);
    if (!name.empty()) {
      extensions += ",+" + std::string(name);
      arguments.push_back("-D" + std::string(name) + "=1");
    }
    names.remove_prefix(blank == std::string_view::npos ? names.size() : blank + 1);
  }
  arguments.emplace_back("-Xclang");
  arguments.push_back(extensions);
  arguments.insert(arguments.end(), options.begin(), options.end());
  if (!request.headers.empty()) arguments.emplace_back("-I.");
  arguments.emplace_back("-");
  return arguments;
}

}  // namespace

std::string compile(const Request& request, const std::vector<std::string>& options, std::string& reason) {
  HeaderFolder folder;
  if (!request.headers.empty() && !folder.fill(request.headers)) {
    reason = "its headers cannot be written";
    return {};
  }
  const int source = file_with(request.source);
  std::array<int, 2> ends{-1, -1};
  if (source < 0 || pipe2(ends.data(), O_CLOEXEC) != 0) {
    reason = "no file for its source";
    return {};
  }
  const pid_t child = start(arguments_for(request, options), source, ends[1]);
  close(source);
  close(ends[1]);
  std::string bitcode = child < 0 ? std::string() : read_all(ends[0]);
  close(ends[0]);
  int status = -1;
  while (child >= 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (child < 0) {
    reason = no_compiler;
    return {};
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    reason = "clang does not compile it";
    return {};
  }
  return bitcode;
}

}  // namespace swapmm::kernel_facts
