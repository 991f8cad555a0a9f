// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace swapmm::cli {

/// Fields as one line with a newline, quoted as RFC 4180 asks where they hold a comma, a quote or a line's end.
[[nodiscard]] std::string csv_line(std::span<const std::string> fields);

/// The fields of one line without its end, one by one. Spaces around fields do not count; nothing is quoted in the
/// files read here.
class CsvFields {
 public:
  explicit CsvFields(std::string_view line) : rest_(line) {}
  /// Nothing behind the last one.
  [[nodiscard]] std::optional<std::string_view> next();

 private:
  std::optional<std::string_view> rest_;
};

/// All of them.
[[nodiscard]] std::vector<std::string_view> csv_fields(std::string_view line);

}  // namespace swapmm::cli
