// SPDX-License-Identifier: Apache-2.0
#include "faults.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <tuple>
#include <type_traits>

#include "functions.hpp"

namespace watch {
namespace {

enum Function : std::size_t {
#define WATCH_NUMBER(name) number_of_##name,
  WATCH_FUNCTIONS(WATCH_NUMBER)
#undef WATCH_NUMBER
      function_count
};

constexpr std::array<const char*, function_count> names{
#define WATCH_NAME(name) #name,
    WATCH_FUNCTIONS(WATCH_NAME)
#undef WATCH_NAME
};

std::array<std::atomic<unsigned long>, function_count> counts{};
std::atomic<unsigned long> all_calls{0};
std::atomic<const char*> failed_function{nullptr};

const cl_icd_dispatch* below = nullptr;
std::size_t failing_function = function_count;
bool any_function_fails = false;
unsigned long failing_call = 0;  // 0: none
cl_int failing_code = CL_OUT_OF_RESOURCES;

bool must_fail(std::size_t function) {
  const auto count = ++counts[function];
  const auto all = ++all_calls;
  const bool fails = failing_call != 0 &&
                     (any_function_fails ? all == failing_call : function == failing_function && count == failing_call);
  if (fails) {
    failed_function = names[function];
    std::fprintf(stderr, "watch: %s fails\n", names[function]);
  }
  return fails;
}

template <auto Entry, std::size_t Number>
struct Counted;

template <class Result, class... Arguments, Result (CL_API_CALL* cl_icd_dispatch::*Entry)(Arguments...),
          std::size_t Number>
struct Counted<Entry, Number> {
  static Result CL_API_CALL call(Arguments... arguments) {
    if (must_fail(Number)) {
      if constexpr (std::is_same_v<Result, cl_int>) {
        return failing_code;
      } else {
        const auto all = std::tie(arguments...);
        cl_int* error = std::get<sizeof...(Arguments) - 1>(all);
        if (error != nullptr) *error = failing_code;
        return nullptr;
      }
    }
    return (below->*Entry)(arguments...);
  }
};

bool set_function(const std::string& name) {
  any_function_fails = name == "*";
  for (std::size_t i = 0; i < function_count; ++i)
    if (name == names[i]) failing_function = i;
  return any_function_fails || failing_function != function_count;
}

}  // namespace

bool read_fault() {
  const char* variable = secure_getenv("WATCH_FAIL");
  if (variable == nullptr) return true;
  const std::string text = variable;
  const auto colon = text.find(':');
  if (colon == std::string::npos || !set_function(text.substr(0, colon))) return false;
  char* end = nullptr;
  failing_call = std::strtoul(text.c_str() + colon + 1, &end, 10);
  if (*end == ':') failing_code = static_cast<cl_int>(std::strtol(end + 1, &end, 10));
  return *end == '\0' && failing_call != 0;
}

void count_and_fail(cl_icd_dispatch& table, const cl_icd_dispatch& next) {
  below = &next;
#define WATCH_ENTRY(name) \
  if (next.name != nullptr) table.name = Counted<&cl_icd_dispatch::name, number_of_##name>::call;
  WATCH_FUNCTIONS(WATCH_ENTRY)
#undef WATCH_ENTRY
}

std::map<std::string, unsigned long> calls() {
  std::map<std::string, unsigned long> made;
  for (std::size_t i = 0; i < function_count; ++i)
    if (counts[i] != 0) made[names[i]] = counts[i];
  return made;
}

const char* failed_function_name() { return failed_function; }

}  // namespace watch
