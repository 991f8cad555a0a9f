// SPDX-License-Identifier: Apache-2.0
#pragma once

// How much a test does.
//
// SWAPMM_TEST_ALL=1    all that it is made for, as in `./dev test --all`; else a part of it, so that what runs before
//                      each change ends soon

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace swapmm::test {

/// True if the library is compiled for a sanitizer, which is slow.
#ifdef SWAPMM_TEST_IS_SLOW
inline constexpr bool is_slow = true;
#else
inline constexpr bool is_slow = false;
#endif

/// True if tests do all that they are made for.
inline bool is_thorough() {
  static const bool is = [] {
    const char* const text = std::getenv("SWAPMM_TEST_ALL");
    return text != nullptr && std::string_view(text) == "1";
  }();
  return !is_slow && is;
}

/// So many rounds, seeds or cases if all of them run; usually an eighth of them, and one of `part` if they are slow,
/// but at least one.
inline int effort(int all, int part) {
  if (is_thorough()) return all;
  return std::max(1, all / (is_slow ? part : std::min(part, 8)));
}

}  // namespace swapmm::test
