// SPDX-License-Identifier: Apache-2.0
#include "harness.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>

namespace cases {
namespace {
bool failed = false;
}  // namespace

std::vector<Case>& all_cases() {
  static auto& all = *new std::vector<Case>;
  return all;
}

bool any_failed() { return failed; }

void say(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vprintf(format, arguments);
  va_end(arguments);
  std::printf("\n");
}

void say_status(const char* what, cl_int status) { say("%s: %s", what, name_of(status)); }

bool is_native() { return std::getenv("CASES_LAYERED") == nullptr; }

void say_ruled(const char* what, cl_int status, cl_int rule, std::initializer_list<cl_int> natively) {
  const bool deviates = is_native() && std::find(natively.begin(), natively.end(), status) != natively.end();
  if (deviates) std::fprintf(stderr, "%s: this driver returns %s\n", what, name_of(status));
  say_status(what, deviates ? rule : status);
}

void expect(bool holds, const char* what) {
  if (holds) return;
  say("FAIL %s", what);
  failed = true;
}

void require(cl_int status, const char* call, int line) {
  if (status == CL_SUCCESS) return;
  say("FAIL line %d: %s: %s", line, call, name_of(status));
  std::fflush(stdout);
  _exit(1);
}

const char* name_of(cl_int status) {
  static const auto& names = *new std::map<cl_int, const char*>{
#define CASES_STATUS(name) {name, #name}
      CASES_STATUS(CL_SUCCESS),
      CASES_STATUS(CL_DEVICE_NOT_FOUND),
      CASES_STATUS(CL_MEM_OBJECT_ALLOCATION_FAILURE),
      CASES_STATUS(CL_OUT_OF_RESOURCES),
      CASES_STATUS(CL_OUT_OF_HOST_MEMORY),
      CASES_STATUS(CL_PROFILING_INFO_NOT_AVAILABLE),
      CASES_STATUS(CL_MEM_COPY_OVERLAP),
      CASES_STATUS(CL_IMAGE_FORMAT_NOT_SUPPORTED),
      CASES_STATUS(CL_BUILD_PROGRAM_FAILURE),
      CASES_STATUS(CL_MAP_FAILURE),
      CASES_STATUS(CL_MISALIGNED_SUB_BUFFER_OFFSET),
      CASES_STATUS(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
      CASES_STATUS(CL_COMPILE_PROGRAM_FAILURE),
      CASES_STATUS(CL_LINK_PROGRAM_FAILURE),
      CASES_STATUS(CL_KERNEL_ARG_INFO_NOT_AVAILABLE),
      CASES_STATUS(CL_INVALID_VALUE),
      CASES_STATUS(CL_INVALID_DEVICE),
      CASES_STATUS(CL_INVALID_CONTEXT),
      CASES_STATUS(CL_INVALID_QUEUE_PROPERTIES),
      CASES_STATUS(CL_INVALID_COMMAND_QUEUE),
      CASES_STATUS(CL_INVALID_HOST_PTR),
      CASES_STATUS(CL_INVALID_MEM_OBJECT),
      CASES_STATUS(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR),
      CASES_STATUS(CL_INVALID_IMAGE_SIZE),
      CASES_STATUS(CL_INVALID_SAMPLER),
      CASES_STATUS(CL_INVALID_BINARY),
      CASES_STATUS(CL_INVALID_BUILD_OPTIONS),
      CASES_STATUS(CL_INVALID_PROGRAM),
      CASES_STATUS(CL_INVALID_PROGRAM_EXECUTABLE),
      CASES_STATUS(CL_INVALID_KERNEL_NAME),
      CASES_STATUS(CL_INVALID_KERNEL_DEFINITION),
      CASES_STATUS(CL_INVALID_KERNEL),
      CASES_STATUS(CL_INVALID_ARG_INDEX),
      CASES_STATUS(CL_INVALID_ARG_VALUE),
      CASES_STATUS(CL_INVALID_ARG_SIZE),
      CASES_STATUS(CL_INVALID_KERNEL_ARGS),
      CASES_STATUS(CL_INVALID_WORK_DIMENSION),
      CASES_STATUS(CL_INVALID_WORK_GROUP_SIZE),
      CASES_STATUS(CL_INVALID_WORK_ITEM_SIZE),
      CASES_STATUS(CL_INVALID_GLOBAL_OFFSET),
      CASES_STATUS(CL_INVALID_EVENT_WAIT_LIST),
      CASES_STATUS(CL_INVALID_EVENT),
      CASES_STATUS(CL_INVALID_OPERATION),
      CASES_STATUS(CL_INVALID_BUFFER_SIZE),
      CASES_STATUS(CL_INVALID_GLOBAL_WORK_SIZE),
      CASES_STATUS(CL_INVALID_PROPERTY),
      CASES_STATUS(CL_INVALID_IMAGE_DESCRIPTOR),
#undef CASES_STATUS
  };
  const auto found = names.find(status);
  return found == names.end() ? "another status" : found->second;
}

Words numbers(cl_uint seed, std::size_t count) {
  Words made(count);
  cl_uint state = seed * 2654435761u + 12345u;
  for (cl_uint& word : made) {
    state = state * 1664525u + 1013904223u;
    word = state ^ (state >> 15);
  }
  return made;
}

std::uint64_t hash(const void* data, std::size_t bytes) {
  std::uint64_t made = 1469598103934665603u;
  for (std::size_t i = 0; i < bytes; ++i) made = (made ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211u;
  return made;
}
std::uint64_t hash(const Words& words) { return hash(words.data(), words.size() * sizeof(cl_uint)); }

void say_words(const char* what, const Words& words) {
  say("%s: %016llx, %u ... %u", what, static_cast<unsigned long long>(hash(words)), words.front(), words.back());
}

}  // namespace cases

// cases --list | cases THEME.NAME
// CASES_SIGNAL: the number of the signal that ends the program once the case has run.
static void end_by_signal() {
  const char* const number = std::getenv("CASES_SIGNAL");
  if (number != nullptr) (void)std::raise(std::atoi(number));
}

int main(int count, char** arguments) {
  const std::string wanted = count == 2 ? arguments[1] : "";
  for (const auto& one : cases::all_cases()) {
    const std::string name = std::string(one.theme) + "." + one.name;
    if (wanted == "--list") std::printf("%s\n", name.c_str());
    if (wanted != name) continue;
    // Static objects of a case must find its last lines printed.
    std::setvbuf(stdout, nullptr, _IOLBF, 4096);
    one.run();
    end_by_signal();
    return cases::any_failed() ? 1 : 0;
  }
  if (wanted == "--list") return 0;
  std::fprintf(stderr, "usage: cases --list | cases THEME.NAME\n");
  return 2;
}
