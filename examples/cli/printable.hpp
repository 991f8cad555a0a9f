// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace swapmm::cli {

/// Text from a file as a terminal may be given it: valid UTF-8, with a question mark for each character that
/// controls it, so that a name can neither break a line, nor turn what follows around, nor command the terminal.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace swapmm::cli
