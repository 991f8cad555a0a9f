// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <ostream>
#include <string>
#include <string_view>

// Internal: functions that the writers of the text formats share.

namespace swapmm::json {

/// Appends `text` as a JSON string. Names may contain any bytes, but files may not: bytes that are not UTF-8 become
/// U+FFFD, and names that are too long are cut, so that the result can always be read.
void append_text(std::string& out, std::string_view text);

/// Appends `value` as digits, independent of the locale.
template <std::integral Integer>
void append_number(std::string& out, Integer value) {
  out += std::to_string(value);
}

/// Appends the name of a field to the text of an object that has begun, with a comma in front unless it is the first
/// one.
inline void append_key(std::string& object, std::string_view name) {
  object += object.ends_with('{') ? "\"" : ", \"";
  object += name;
  object += "\": ";
}

/// @{
/// Appends a field to the text of an object that has begun.
template <std::integral Integer>
void append_field(std::string& object, std::string_view name, Integer value) {
  append_key(object, name);
  append_number(object, value);
}
inline void append_field(std::string& object, std::string_view name, std::string_view text) {
  append_key(object, name);
  append_text(object, text);
}
/// @}

/// Writes `, "name": [` and `]` around the elements, each on a line of its own. `append(std::string&, element)` appends
/// the text of an element. Only one line is in memory at a time.
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
