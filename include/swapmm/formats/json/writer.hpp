// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <ostream>
#include <string>
#include <string_view>

// What the writers of the text formats share; not part of the public interface.

namespace swapmm::json {

/// Appends `text` as a JSON string. Names may hold any bytes, files may not: what is not UTF-8 becomes U+FFFD, and
/// what is longer than a name may be is cut, so that what was written can always be read.
void append_text(std::string& out, std::string_view text);

/// Appends `value` in digits; never by a locale.
template <std::integral Integer>
void append_number(std::string& out, Integer value) {
  out += std::to_string(value);
}

/// Writes `, "name": [` and `]` around the elements, each on a line of its own. `append(std::string&, element)` gives
/// the text of one; what is in memory at a time is one line.
template <class Elements, class Append>
void write_list(std::ostream& out, std::string_view name, const Elements& elements, Append append) {
  out << ",\n \"" << name << "\": [";
  std::string line;
  for (const auto& element : elements) {
    line = line.empty() ? "\n  " : ",\n  ";
    append(line, element);
    out << line;
  }
  out << ']';
}

}  // namespace swapmm::json
