// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace swapmm::opencl::layer::facts {

/// SHA-256 as 64 hexadecimal digits. If libcrypto refuses, and while the process ends: a shorter text that never comes
/// again.
[[nodiscard]] std::string digest_of(std::string_view text);

}  // namespace swapmm::opencl::layer::facts
