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

/// So many rounds, seeds or cases; one of `part` if they are slow.
constexpr int fewer_if_slow(int usual, int part) { return is_slow ? usual / part : usual; }

}  // namespace swapmm::test
