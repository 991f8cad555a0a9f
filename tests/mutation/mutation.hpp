// SPDX-License-Identifier: Apache-2.0
#pragma once

// The switch of ./dev mutate: what a file's mutants call. Every source of a mutated copy of the tree includes this
// first. SWAPMM_MUTANT=17 in the environment switches mutant 17 on; they are counted from 1.

#if __cplusplus >= 202002L  // CMake's own trials are older

#include <algorithm>
#include <cstdlib>
#include <type_traits>

namespace swapmm_mutation {

inline constexpr unsigned most = 65536;
inline const unsigned active = [] {
  const char* const text = std::getenv("SWAPMM_MUTANT");
  return text == nullptr ? most : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}();
/// Which mutants were come by, whether on or not.
inline volatile bool reached[most];

/// What the compiler computes is never changed.
[[gnu::always_inline]] constexpr bool on(unsigned number) noexcept {
  if (std::is_constant_evaluated()) return false;
  reached[number] = true;
  return number == active;
}

template <class A, class B>
[[gnu::always_inline]] constexpr bool less(unsigned boundary, unsigned turned, const A& a, const B& b) {
  if (on(boundary)) return a <= b;
  return on(turned) != static_cast<bool>(a < b);
}
template <class A, class B>
[[gnu::always_inline]] constexpr bool less_equal(unsigned boundary, unsigned turned, const A& a, const B& b) {
  if (on(boundary)) return a < b;
  return on(turned) != static_cast<bool>(a <= b);
}
template <class A, class B>
[[gnu::always_inline]] constexpr bool greater(unsigned boundary, unsigned turned, const A& a, const B& b) {
  if (on(boundary)) return a >= b;
  return on(turned) != static_cast<bool>(a > b);
}
template <class A, class B>
[[gnu::always_inline]] constexpr bool greater_equal(unsigned boundary, unsigned turned, const A& a, const B& b) {
  if (on(boundary)) return a > b;
  return on(turned) != static_cast<bool>(a >= b);
}
template <class A, class B>
[[gnu::always_inline]] constexpr bool equal(unsigned turned, const A& a, const B& b) {
  return on(turned) != static_cast<bool>(a == b);
}
template <class A, class B>
[[gnu::always_inline]] constexpr bool not_equal(unsigned turned, const A& a, const B& b) {
  return on(turned) != static_cast<bool>(a != b);
}

template <class A, class B>
[[gnu::always_inline]] constexpr auto plus(unsigned number, const A& a, const B& b) -> decltype(a + b) {
  return on(number) ? a - b : a + b;
}
template <class A, class B>
[[gnu::always_inline]] constexpr auto minus(unsigned number, const A& a, const B& b) -> decltype(a - b) {
  return on(number) ? a + b : a - b;
}
template <class A, class B>
[[gnu::always_inline]] constexpr A& add(unsigned number, A& a, const B& b) {
  if (on(number)) {
    a -= b;
  } else {
    a += b;
  }
  return a;
}
template <class A, class B>
[[gnu::always_inline]] constexpr A& take(unsigned number, A& a, const B& b) {
  if (on(number)) {
    a += b;
  } else {
    a -= b;
  }
  return a;
}

// std::max becomes std::min, and the other way.
template <class T, class... Less>
[[gnu::always_inline]] constexpr const T& either_min(unsigned number, const T& a, const T& b, Less... less) {
  return on(number) ? std::min(a, b, less...) : std::max(a, b, less...);
}
template <class T, class... Less>
[[gnu::always_inline]] constexpr const T& either_max(unsigned number, const T& a, const T& b, Less... less) {
  return on(number) ? std::max(a, b, less...) : std::min(a, b, less...);
}

}  // namespace swapmm_mutation

#endif
