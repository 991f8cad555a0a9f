// SPDX-License-Identifier: Apache-2.0
#include "request.hpp"

#include <charconv>

namespace swapmm::kernel_facts {
namespace {

// Takes one field from the begin of the text.
bool take_field(std::string_view& text, std::string_view& name, std::string_view& value) {
  const std::size_t line = text.find('\n');
  const std::size_t blank = text.find(' ');
  if (line == std::string_view::npos || blank >= line) return false;
  name = text.substr(0, blank);
  std::size_t bytes = 0;
  const char* const end = text.data() + line;
  const auto read = std::from_chars(text.data() + blank + 1, end, bytes);
  if (read.ec != std::errc() || read.ptr != end) return false;
  text.remove_prefix(line + 1);
  if (bytes >= text.size() || text[bytes] != '\n') return false;
  value = text.substr(0, bytes);
  text.remove_prefix(bytes + 1);
  return true;
}

}  // namespace

bool read_request(std::string_view text, Request& request) {
  if (text.substr(0, first_line.size()) != first_line) return false;
  text.remove_prefix(first_line.size());
  bool has_source = false;
  while (!text.empty()) {
    std::string_view name;
    std::string_view value;
    if (!take_field(text, name, value)) return false;
    if (name == "address_bits") {
      request.address_bits = value;
    } else if (name == "version") {
      request.version = value;
    } else if (name == "c_version") {
      request.c_version = value;
    } else if (name == "extensions") {
      request.extensions = value;
    } else if (name == "images") {
      request.images = value == "1";
    } else if (name == "part") {
      request.part = value == "1";
    } else if (name == "options") {
      request.options = value;
    } else if (name == "source") {
      request.source = value;
      has_source = true;
    } else if (name == "header_name") {
      request.headers.push_back({std::string(value), {}});
    } else if (name == "header" && !request.headers.empty()) {
      request.headers.back().text = value;
    } else {
      return false;
    }
  }
  return has_source;
}

}  // namespace swapmm::kernel_facts
