// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace swapmm::text {

/// Length in bytes (1 to 4) of the well-formed UTF-8 sequence that starts at `position`; 0 if there is none.
/// Overlong forms, surrogates and code points above U+10FFFF are not well-formed (Unicode, table 3-7).
[[nodiscard]] std::size_t utf8_sequence_length(std::string_view text, std::size_t position);

/// `text` as valid UTF-8 of at most `most_bytes`. Bytes that are not UTF-8 become U+FFFD, and a text that is too long
/// is cut before the code point that would not fit. Valid text is returned unchanged. Names come from user code and may
/// contain anything, but what swapmm writes must be readable again.
[[nodiscard]] std::string to_valid_utf8(std::string_view text, std::size_t most_bytes);

}  // namespace swapmm::text
