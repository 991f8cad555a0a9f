// SPDX-License-Identifier: Apache-2.0
#include "buffers.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <optional>

#include <swapmm/ir/limits.hpp>

#include "csv.hpp"

namespace swapmm::cli {
namespace {

constexpr std::array<std::string_view, 4> columns = {"id", "lower", "upper", "size"};
using Positions = std::array<std::size_t, columns.size()>;

Problem at_line(std::size_t line, const std::string& message) {
  return {"line " + std::to_string(line) + ": " + message};
}

Result<Positions> find_columns(std::string_view header) {
  const std::vector<std::string_view> names = csv_fields(header);
  Positions positions{};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto found = std::find(names.begin(), names.end(), columns[i]);
    if (found == names.end()) {
      return at_line(1, "no column is called \"" + std::string(columns[i]) + "\"; there must be id,lower,upper,size");
    }
    positions[i] = static_cast<std::size_t>(found - names.begin());
  }
  return positions;
}

/// Whole numbers below 2^62.
std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value >= limits::magnitude) return std::nullopt;
  return value;
}

Result<Buffer> read_buffer(std::string_view text, std::size_t line, const Positions& positions) {
  const std::vector<std::string_view> fields = csv_fields(text);
  std::array<std::uint64_t, columns.size()> numbers{};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string column(columns[i]);
    if (positions[i] >= fields.size()) return at_line(line, column + " is missing");
    if (i == 0) continue;  // an id may be any text
    const std::string_view field = fields[positions[i]];
    const std::optional<std::uint64_t> number = whole_number(field);
    if (!number) return at_line(line, column + ": \"" + std::string(field) + "\" is not a whole number below 2^62");
    numbers[i] = *number;
  }
  if (numbers[1] >= numbers[2]) {
    return at_line(line, "upper: " + std::to_string(numbers[2]) + " is not above lower, " + std::to_string(numbers[1]));
  }
  return Buffer{std::string(fields[positions[0]]), numbers[1], numbers[2], Bytes{numbers[3]}};
}

/// Without its end; takes it off `rest`.
std::string_view next_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return line;
}

}  // namespace

Result<std::vector<Buffer>> read_buffers(std::string_view text) {
  const Result<Positions> positions = find_columns(next_line(text));
  if (!positions) return positions.problem();
  std::vector<Buffer> buffers;
  for (std::size_t line = 2; !text.empty(); ++line) {
    const std::string_view content = next_line(text);
    if (content.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    Result<Buffer> buffer = read_buffer(content, line, *positions);
    if (!buffer) return buffer.problem();
    if (buffers.size() == limits::tensors) return at_line(line, "more than 2^20 buffers");
    buffers.push_back(*std::move(buffer));
  }
  if (buffers.empty()) return Problem{"line 2: there is no buffer"};
  return buffers;
}

Result<PackingProblem> packing_problem_of(const std::vector<Buffer>& buffers, Bytes alignment) {
  std::vector<std::uint64_t> times;
  Bytes sum;
  for (const Buffer& buffer : buffers) {
    times.push_back(buffer.lower);
    times.push_back(buffer.upper);
    const std::optional<Bytes> size = checked_round_up(buffer.size, alignment);
    const std::optional<Bytes> more = size ? checked_add(sum, *size) : std::nullopt;
    if (!more || more->value >= limits::magnitude) return Problem{"the sizes of all buffers are not below 2^62 bytes"};
    sum = *more;
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const auto slot = [&](std::uint64_t time) {
    return static_cast<std::uint32_t>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
  };
  PackingProblem problem;
  problem.slots = static_cast<std::uint32_t>(times.size() - 1);
  problem.alignment = alignment;
  problem.capacity = std::max(sum, Bytes{1});
  for (const Buffer& buffer : buffers) {
    problem.items.push_back({buffer.size, slot(buffer.lower), slot(buffer.upper) - slot(buffer.lower)});
  }
  return problem;
}

std::string buffers_with_offsets(const std::vector<Buffer>& buffers, const std::vector<Bytes>& offsets) {
  std::string text = "id,lower,upper,size,offset\n";
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = buffers[i];
    const std::array<std::string, 5> fields = {buffer.id, std::to_string(buffer.lower), std::to_string(buffer.upper),
                                               std::to_string(buffer.size.value), std::to_string(offsets[i].value)};
    text += csv_line(fields);
  }
  return text;
}

}  // namespace swapmm::cli
