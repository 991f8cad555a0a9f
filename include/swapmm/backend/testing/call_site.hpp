// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace swapmm {

/// The place that a function was called from. Replaces std::source_location, which clang 14 lacks with this standard
/// library. The texts are literals.
struct CallSite {
  const char* file = "";      ///< as __FILE__
  const char* function = "";  ///< as __func__
  std::uint32_t line = 0;     ///< as __LINE__

  /// The caller's place, if used as a default argument.
  static constexpr CallSite current(const char* file = __builtin_FILE(), const char* function = __builtin_FUNCTION(),
                                    std::uint32_t line = __builtin_LINE()) noexcept {
    return {file, function, line};
  }
};

}  // namespace swapmm
