// SPDX-License-Identifier: Apache-2.0
#include "program_file.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>
#include <type_traits>
#include <vector>

#include "failure.hpp"

namespace swapmm::cli {
namespace {

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw Failure(ExitCode::usage, file + ": " + why);
}

bool is_file(const std::string& path) {
  struct stat facts {};
  return stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode);
}

bool can_run(const std::string& path) { return is_file(path) && access(path.c_str(), X_OK) == 0; }

// ---- ELF

constexpr unsigned char own_class = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
constexpr unsigned char own_order = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
using Header = std::conditional_t<sizeof(void*) == 8, Elf64_Ehdr, Elf32_Ehdr>;
using Segment = std::conditional_t<sizeof(void*) == 8, Elf64_Phdr, Elf32_Phdr>;

Header own_header() {
  Header header{};
  std::ifstream in("/proc/self/exe", std::ios::binary);
  in.read(reinterpret_cast<char*>(&header), sizeof header);
  return header;
}

void check_elf(const std::string& file, std::ifstream& in) {
  Header header{};
  in.seekg(0);
  in.read(reinterpret_cast<char*>(&header), sizeof header);
  const auto length = static_cast<std::size_t>(in.gcount());
  if (length > EI_CLASS && header.e_ident[EI_CLASS] != own_class) {
    refuse(file, own_class == ELFCLASS64 ? "a 32-bit program; the layer has 64 bits"
                                         : "a 64-bit program; the layer has 32 bits");
  }
  if (length < sizeof header) refuse(file, "not a whole program");
  static const Header own = own_header();
  if (header.e_ident[EI_DATA] != own_order || header.e_machine != own.e_machine) {
    refuse(file, "a program for another processor than the layer");
  }
  bool has_loader = false;
  for (unsigned i = 0; i < header.e_phnum && !has_loader; ++i) {
    Segment segment{};
    in.clear();
    in.seekg(static_cast<std::streamoff>(header.e_phoff + std::uint64_t{i} * header.e_phentsize));
    if (!in.read(reinterpret_cast<char*>(&segment), sizeof segment)) refuse(file, "not a whole program");
    has_loader = segment.p_type == PT_INTERP;
  }
  if (!has_loader) refuse(file, "statically linked; the OpenCL loader cannot put a layer into it");
}

// ---- rights

// The kernel then tells the program to ignore its environment.
bool gains_rights(const std::string& file) {
  struct stat facts {};
  if (stat(file.c_str(), &facts) != 0) return false;
  const bool user = (facts.st_mode & S_ISUID) != 0 && facts.st_uid != getuid();
  const bool group = (facts.st_mode & S_ISGID) != 0 && (facts.st_mode & S_IXGRP) != 0 && facts.st_gid != getgid();
  const bool capabilities = getuid() != 0 && getxattr(file.c_str(), "security.capability", nullptr, 0) > 0;
  return user || group || capabilities;
}

// ---- scripts

// The words behind "#!". The kernel passes all but the first as one.
std::vector<std::string> interpreter_of(std::ifstream& in) {
  std::string line;
  in.clear();
  in.seekg(2);
  std::getline(in, line);
  std::istringstream words(line);
  std::vector<std::string> found;
  for (std::string word; words >> word;) found.push_back(word);
  return found;
}

// What `env` runs: its first word that is neither an option nor a setting.
std::string run_by_env(const std::vector<std::string>& words) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i].front() != '-' && words[i].find('=') == std::string::npos) return words[i];
  }
  return {};
}

void check(const std::string& file, int depth) {
  if (gains_rights(file)) refuse(file, "runs with more rights than its caller (set-uid), and ignores its environment");
  std::ifstream in(file, std::ios::binary);
  std::array<char, 4> magic{};
  in.read(magic.data(), magic.size());
  if (!in && in.gcount() == 0) refuse(file, access(file.c_str(), R_OK) == 0 ? "is empty" : "cannot be read");
  if (std::memcmp(magic.data(), ELFMAG, SELFMAG) == 0) return check_elf(file, in);
  if (magic[0] != '#' || magic[1] != '!') refuse(file, "neither a program nor a script that names its interpreter");
  constexpr int most = 5;  // as the kernel does
  const std::vector<std::string> words = interpreter_of(in);
  if (words.empty() || depth == most) refuse(file, "a script without an interpreter");
  if (!can_run(words.front())) refuse(file, "its interpreter " + words.front() + " cannot be run");
  check(words.front(), depth + 1);
  const std::string_view name = std::string_view(words.front()).substr(words.front().rfind('/') + 1);
  if (name != "env") return;
  if (const std::string real = run_by_env(words); !real.empty()) check(find_program(real), depth + 1);
}

}  // namespace

std::string find_program(const std::string& word) {
  if (word.find('/') != std::string::npos) {
    if (can_run(word)) return word;
    refuse(word, is_file(word) ? "is not executable" : "there is no such program");
  }
  const char* const set = std::getenv("PATH");
  std::istringstream path(set == nullptr ? "/usr/local/bin:/usr/bin:/bin" : set);
  for (std::string folder; std::getline(path, folder, ':');) {
    const std::string file = (folder.empty() ? "." : folder) + "/" + word;
    if (!word.empty() && can_run(file)) return file;
  }
  refuse(word, "there is no such program in PATH");
}

void check_program(const std::string& file) { check(file, 0); }

void check_layer(const std::string& file) {
  if (!is_file(file)) throw Failure(ExitCode::usage, "the layer " + file + ": there is no such file");
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    throw Failure(ExitCode::usage, "the layer cannot be loaded: " + std::string(why == nullptr ? file : why));
  }
  const bool is_layer = dlsym(library, "clGetLayerInfo") != nullptr && dlsym(library, "clInitLayer") != nullptr;
  dlclose(library);
  if (!is_layer) throw Failure(ExitCode::usage, file + ": not a layer of the OpenCL loader");
}

}  // namespace swapmm::cli
