// SPDX-License-Identifier: Apache-2.0
#pragma once

// How much a test does.

namespace swapmm::test {

/// So many rounds, seeds or cases; where the library is compiled for a sanitizer, which is slow, one of `part`.
constexpr int fewer_if_slow(int usual, [[maybe_unused]] int part) {
#ifdef SWAPMM_TEST_IS_SLOW
  return usual / part;
#else
  return usual;
#endif
}

}  // namespace swapmm::test
