// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#include <cstdio>
#include <cstdlib>
#include <ostream>
#include <string_view>

namespace swapmm::bench {
namespace {

void print_cells(std::ostream& out, const std::vector<std::string>& cells) {
  for (const std::string& cell : cells) out << "| " << cell << ' ';
  out << "|\n";
}

void print_table(std::ostream& out, const Table& table) {
  if (!table.title.empty()) out << table.title << "\n\n";
  print_cells(out, table.columns);
  print_cells(out, std::vector<std::string>(table.columns.size(), "---"));
  for (const auto& row : table.rows) print_cells(out, row);
  out << '\n';
}

/// With the outer quotes; every special character as \u00xx.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || code < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(code));
      result += escape;
    } else {
      result += c;
    }
  }
  return result + '"';
}

/// A number as JSON knows it: digits, with a sign and a point.
bool is_number(const std::string& text) {
  if (text.empty() || text.find_first_not_of("-.0123456789") != std::string::npos) return false;
  char* end = nullptr;
  (void)std::strtod(text.c_str(), &end);
  return *end == '\0' && text.back() != '.' && text.front() != '.';
}

void print_json_table(std::ostream& out, const Table& table) {
  out << "{\"title\": " << quoted(table.title) << ", \"rows\": [";
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    out << (r == 0 ? "\n" : ",\n") << "  {";
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      const std::string& cell = table.rows[r][c];
      out << (c == 0 ? "" : ", ") << quoted(table.columns[c]) << ": " << (is_number(cell) ? cell : quoted(cell));
    }
    out << '}';
  }
  out << "]}";
}

}  // namespace

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

void print(std::ostream& out, const Report& report) {
  if (report.summaries.empty()) print_table(out, report.rows);
  for (const Table& table : report.summaries) print_table(out, table);
  for (const std::string& line : report.lines) out << line << '\n';
  if (!report.lines.empty()) out << '\n';
}

void print_json(std::ostream& out, const std::string& part, const Report& report) {
  out << "{\"part\": " << quoted(part) << ", \"is_sound\": " << (report.is_sound ? "true" : "false") << ",\n\"rows\": ";
  print_json_table(out, report.rows);
  out << ",\n\"summaries\": [";
  for (std::size_t i = 0; i < report.summaries.size(); ++i) {
    if (i > 0) out << ",\n";
    print_json_table(out, report.summaries[i]);
  }
  out << "],\n\"lines\": [";
  for (std::size_t i = 0; i < report.lines.size(); ++i) out << (i > 0 ? ",\n" : "") << quoted(report.lines[i]);
  out << "]}\n";
}

void write_csv(std::ostream& out, const Table& table) {
  const auto write_line = [&](const std::vector<std::string>& cells) {
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const bool is_plain = cells[c].find_first_of(",\"\n") == std::string::npos;
      std::string doubled;
      for (const char letter : cells[c]) doubled += letter == '"' ? "\"\"" : std::string(1, letter);
      out << (c == 0 ? "" : ",") << (is_plain ? cells[c] : '"' + doubled + '"');
    }
    out << '\n';
  };
  write_line(table.columns);
  for (const auto& row : table.rows) write_line(row);
}

}  // namespace swapmm::bench
