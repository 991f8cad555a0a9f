// SPDX-License-Identifier: Apache-2.0
// A backend that could not learn of fork() is refused: in a child its calls would hang. The next one asks again.

#include <doctest/doctest.h>

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>

#include "opencl/support.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

constexpr const char* fails_once = "SWAPMM_TEST_ATFORK_FAILS_ONCE";

}  // namespace

// glibc's pthread_atfork() is a static function over this one, so a program may define its own.
extern "C" int __register_atfork(void (*before)(), void (*parent)(), void (*child)(), void* library);  // NOLINT

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name)
extern "C" int pthread_atfork(void (*before)(), void (*parent)(), void (*child)()) noexcept {
  static bool fails = std::getenv(fails_once) != nullptr;  // NOLINT(concurrency-mt-unsafe)
  if (std::exchange(fails, false)) return ENOMEM;
  return __register_atfork(before, parent, child, nullptr);
}

// The library asks once in a process, so this one begins anew.
TEST_CASE("a backend that cannot learn of fork() is refused, and the next one is not") {
  std::array<char, 4096> path{};
  REQUIRE(::readlink("/proc/self/exe", path.data(), path.size() - 1) > 0);
  const std::string again = std::string(fails_once) + "=1 '" + path.data() +
                            "' --no-skip --test-case='the first backend of a process cannot learn of fork()'";
  CHECK(std::system(again.c_str()) == 0);  // NOLINT(*-mt-unsafe,cert-env33-c)
}

TEST_CASE("the first backend of a process cannot learn of fork()" * doctest::skip()) {
  REQUIRE(std::getenv(fails_once) != nullptr);  // NOLINT(concurrency-mt-unsafe)
  CHECK_THROWS_AS((void)first_backend(), std::bad_alloc);
  CHECK(first_backend().context() != nullptr);
}
