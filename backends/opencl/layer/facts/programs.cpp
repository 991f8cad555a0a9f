// SPDX-License-Identifier: Apache-2.0
#include "programs.hpp"

#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "../cache/folder.hpp"
#include "../process/settings.hpp"
#include "device.hpp"
#include "digest.hpp"

namespace swapmm::opencl::layer::facts {
namespace {

struct Made {
  std::string binary;           ///< digest of the binary that it was made from
  std::vector<Program*> parts;  ///< what it was built or linked of
};

struct Registry {
  std::mutex mutex;
  std::unordered_map<cl_program, Made> programs;
  std::unordered_map<std::string, std::string> binaries;  ///< a binary's digest -> that of the program
};

// Never destroyed: programs release objects while the process ends.
Registry& registry() {
  static Registry& one = *new Registry;
  return one;
}

std::string source_of(cl_program program) {
  std::size_t bytes = 0;
  if (down.clGetProgramInfo(program, CL_PROGRAM_SOURCE, 0, nullptr, &bytes) != CL_SUCCESS || bytes < 2) return {};
  std::string text(bytes, '\0');
  if (down.clGetProgramInfo(program, CL_PROGRAM_SOURCE, bytes, text.data(), nullptr) != CL_SUCCESS) return {};
  text.resize(bytes - 1);
  return text;
}

// The device of a program; null if it has several, or the driver does not answer.
cl_device_id device_of(cl_program program) {
  cl_device_id device = nullptr;
  cl_uint count = 0;
  if (down.clGetProgramInfo(program, CL_PROGRAM_NUM_DEVICES, sizeof count, &count, nullptr) != CL_SUCCESS ||
      count != 1 || down.clGetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof device, &device, nullptr) != CL_SUCCESS) {
    return nullptr;
  }
  return device;
}

struct Header {
  std::string name;
  std::string text;
};

// Null if nothing can be known of such a program.
Program* program_of(cl_program program, const std::string& source, const std::string& options, bool part,
                    const std::vector<Header>& headers) {
  if (settings().analysis == Analysis::off || source.empty()) return nullptr;
  const cl_device_id device = device_of(program);
  if (device == nullptr || !device_facts(device).usable) return nullptr;
  std::string request = std::string(first_line) + "\n" + device_facts(device).fields;
  add_field(request, "part", part ? "1" : "0");
  add_field(request, "options", options);
  add_field(request, "source", source);
  for (const Header& header : headers) {
    add_field(request, "header_name", header.name);
    add_field(request, "header", header.text);
  }
  constexpr std::size_t most_bytes = 8U << 20U;
  return request.size() > most_bytes ? nullptr : &Program::of(std::move(request));
}

// The program that a binary was taken from, in this run or another one.
Program* program_of_binary(const std::string& binary) {
  std::string digest;
  {
    const std::lock_guard lock(registry().mutex);
    const auto known = registry().binaries.find(binary);
    if (known != registry().binaries.end()) digest = known->second;
  }
  if (digest.empty()) digest = kernel_cache().text("binary-" + binary).value_or("");
  return digest.empty() ? nullptr : Program::with_digest(digest);
}

void remember(cl_program program, std::vector<Program*> parts) {
  const std::lock_guard lock(registry().mutex);
  registry().programs[program].parts = std::move(parts);
}

}  // namespace

void program_made(cl_program program) {
  const std::lock_guard lock(registry().mutex);
  registry().programs.erase(program);  // another one had the same address
}

void program_gone(cl_program program) { program_made(program); }

void program_made_from(cl_program program, std::span<const unsigned char> binary) {
  if (settings().analysis == Analysis::off) return program_made(program);
  std::string digest = digest_of({reinterpret_cast<const char*>(binary.data()), binary.size()});
  const std::lock_guard lock(registry().mutex);
  registry().programs[program] = {std::move(digest), {}};
}

void program_built(cl_program program, const std::string& options) {
  std::string binary;
  {
    const std::lock_guard lock(registry().mutex);
    const auto made = registry().programs.find(program);
    if (made != registry().programs.end()) binary = made->second.binary;
  }
  Program* const found =
      binary.empty() ? program_of(program, source_of(program), options, false, {}) : program_of_binary(binary);
  remember(program, found == nullptr ? std::vector<Program*>() : std::vector{found});
}

void program_compiled(cl_program program, const std::string& options, std::span<const cl_program> headers,
                      const char* const* names) {
  std::vector<Header> texts;
  for (std::size_t i = 0; i < headers.size(); ++i) texts.push_back({names[i], source_of(headers[i])});
  Program* const found = program_of(program, source_of(program), options, true, texts);
  remember(program, found == nullptr ? std::vector<Program*>() : std::vector{found});
}

void program_linked(cl_program program, std::span<const cl_program> parts) {
  std::vector<Program*> all;
  for (const cl_program part : parts) {
    const std::vector<Program*> more = parts_of(part);
    all.insert(all.end(), more.begin(), more.end());
  }
  program_made(program);
  remember(program, std::move(all));
}

void binaries_told(cl_program program, std::span<unsigned char* const> binaries) {
  const std::vector<Program*> parts = parts_of(program);
  std::size_t bytes = 0;
  if (parts.size() != 1 || binaries.size() != 1 || binaries[0] == nullptr ||
      down.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr) != CL_SUCCESS ||
      bytes == 0) {
    return;
  }
  const std::string digest = digest_of({reinterpret_cast<const char*>(binaries[0]), bytes});
  {
    const std::lock_guard lock(registry().mutex);
    if (!registry().binaries.emplace(digest, parts[0]->digest()).second) return;
  }
  parts[0]->keep_request();
  kernel_cache().keep("binary-" + digest, parts[0]->digest());
}

std::vector<Program*> parts_of(cl_program program) {
  const std::lock_guard lock(registry().mutex);
  const auto made = registry().programs.find(program);
  return made == registry().programs.end() ? std::vector<Program*>() : made->second.parts;
}

}  // namespace swapmm::opencl::layer::facts
