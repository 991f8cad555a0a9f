// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace swapmm::opencl::layer::facts {

/// SHA-256 as hexadecimal digits; empty if libcrypto refuses.
/// While the process ends: a text that is no digest and never comes again.
[[nodiscard]] std::string digest_of(std::string_view text);

}  // namespace swapmm::opencl::layer::facts
