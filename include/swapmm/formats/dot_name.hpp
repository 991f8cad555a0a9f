// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

// Internal: what the writers of DOT texts share.

namespace swapmm::dot {

/// The name inside a quoted DOT string. A backslash begins an escape there and an ampersand an HTML entity, even
/// in plain labels; DOT has no escape for control characters, so they are shown as \xNN.
[[nodiscard]] std::string escaped(std::string_view name);

}  // namespace swapmm::dot
