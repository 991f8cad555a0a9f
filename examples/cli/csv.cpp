// SPDX-License-Identifier: Apache-2.0
#include "csv.hpp"

namespace swapmm::cli {
namespace {

std::string quoted(const std::string& field) {
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string text = "\"";
  for (const char c : field) {
    if (c == '"') text += '"';
    text += c;
  }
  return text + '"';
}

}  // namespace

std::string csv_line(std::span<const std::string> fields) {
  std::string line;
  for (const std::string& field : fields) {
    if (&field != fields.data()) line += ',';
    line += quoted(field);
  }
  return line + '\n';
}

std::optional<std::string_view> CsvFields::next() {
  if (!rest_) return std::nullopt;
  const std::size_t comma = rest_->find(',');
  std::string_view field = rest_->substr(0, comma);
  while (!field.empty() && (field.front() == ' ' || field.front() == '\t')) field.remove_prefix(1);
  while (!field.empty() && (field.back() == ' ' || field.back() == '\t' || field.back() == '\r')) {
    field.remove_suffix(1);
  }
  if (comma == std::string_view::npos) {
    rest_.reset();
  } else {
    rest_->remove_prefix(comma + 1);
  }
  return field;
}

std::vector<std::string_view> csv_fields(std::string_view line) {
  std::vector<std::string_view> fields;
  CsvFields rest(line);
  while (const auto field = rest.next()) fields.push_back(*field);
  return fields;
}

}  // namespace swapmm::cli
