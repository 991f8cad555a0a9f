// SPDX-License-Identifier: Apache-2.0
#pragma once

// How much a test does.

namespace swapmm::test {

/// True if the library is compiled for a sanitizer, which is slow.
#ifdef SWAPMM_TEST_IS_SLOW
inline constexpr bool is_slow = true;
#else
inline constexpr bool is_slow = false;
#endif

/// True unless tests that take minutes are wanted, too (SWAPMM_LONG_TESTS).
#ifdef SWAPMM_TEST_IS_LONG
inline constexpr bool is_short = false;
#else
inline constexpr bool is_short = true;
#endif

/// So many rounds, seeds or cases; one of `part` if they are slow, else half of them unless the long tests are wanted.
constexpr int fewer_if_slow(int usual, int part) {
  if (is_slow) return usual / part;
  return is_short ? usual / 2 : usual;
}

}  // namespace swapmm::test
