// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace swapmm::cli {

/// Fields as one line with a newline, quoted as RFC 4180 asks where they hold a comma, a quote or a line's end.
[[nodiscard]] std::string csv_line(std::span<const std::string> fields);

/// The fields of one line without its end. Spaces around fields do not count; nothing is quoted in the files read here.
[[nodiscard]] std::vector<std::string_view> csv_fields(std::string_view line);

}  // namespace swapmm::cli
