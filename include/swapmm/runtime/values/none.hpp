// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace swapmm::runtime {

/// An index that refers to nothing.
inline constexpr std::uint32_t none = 0xFFFFFFFFU;

}  // namespace swapmm::runtime
