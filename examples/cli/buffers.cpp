// SPDX-License-Identifier: Apache-2.0
#include "buffers.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

#include <swapmm/ir/limits.hpp>

#include "csv.hpp"

namespace swapmm::cli {
namespace {

constexpr std::array<std::string_view, 4> names = {"id", "lower", "upper", "size"};
using Columns = Buffers::Columns;

Problem at_line(std::size_t line, const std::string& message) {
  return {"line " + std::to_string(line) + ": " + message};
}

Result<Columns> find_columns(std::string_view header) {
  constexpr std::size_t nowhere = std::string_view::npos;
  Columns columns{nowhere, nowhere, nowhere, nowhere};
  CsvFields fields(header);
  for (std::size_t column = 0; const auto field = fields.next(); ++column) {
    const auto name = static_cast<std::size_t>(std::find(names.begin(), names.end(), *field) - names.begin());
    if (name == names.size()) continue;
    if (columns[name] != nowhere) return at_line(1, "two columns are called \"" + std::string(names[name]) + "\"");
    columns[name] = column;
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (columns[i] != nowhere) continue;
    return at_line(1, "no column is called \"" + std::string(names[i]) + "\"; there must be id,lower,upper,size");
  }
  return columns;
}

/// The fields of those columns, as far as the line has them.
std::array<std::optional<std::string_view>, names.size()> fields_of(std::string_view line, const Columns& columns) {
  std::array<std::optional<std::string_view>, names.size()> found;
  const std::size_t last = *std::max_element(columns.begin(), columns.end());
  CsvFields fields(line);
  for (std::size_t column = 0; column <= last; ++column) {
    const auto field = fields.next();
    if (!field) break;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (columns[i] == column) found[i] = field;
    }
  }
  return found;
}

/// Whole numbers below 2^62.
std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value >= limits::magnitude) return std::nullopt;
  return value;
}

Result<Buffer> read_buffer(std::string_view text, std::size_t line, const Columns& columns) {
  const auto fields = fields_of(text, columns);
  std::array<std::uint64_t, names.size()> numbers{};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string column(names[i]);
    if (!fields[i]) return at_line(line, column + " is missing");
    if (i == 0) continue;  // an id may be any text
    const std::optional<std::uint64_t> number = whole_number(*fields[i]);
    if (!number) {
      return at_line(line, column + ": \"" + std::string(*fields[i]) + "\" is not a whole number below 2^62");
    }
    numbers[i] = *number;
  }
  if (numbers[1] >= numbers[2]) {
    return at_line(line, "upper: " + std::to_string(numbers[2]) + " is not above lower, " + std::to_string(numbers[1]));
  }
  return Buffer{*fields[0], numbers[1], numbers[2], Bytes{numbers[3]}};
}

/// The id in a line that read_buffer() found good.
std::string_view id_of(std::string_view line, const Columns& columns) {
  CsvFields fields(line);
  for (std::size_t column = 0; column < columns[0]; ++column) (void)fields.next();
  return fields.next().value_or(std::string_view{});
}

/// Without its end; takes it off `rest`.
std::string_view next_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return line;
}

/// The first line whose id stands in an earlier line, too. `begins` says where in the text each buffer's line begins.
std::optional<Problem> find_repeated_id(std::string_view text, const Columns& columns,
                                        const std::vector<std::uint32_t>& begins) {
  const auto id = [&](std::size_t i) {
    std::string_view rest = text.substr(begins[i]);
    return id_of(next_line(rest), columns);
  };
  // A part of the hash before the buffer's number: most pairs are put in order without a look at their ids, and a
  // buffer takes 8 bytes.
  constexpr std::uint64_t number_bits = 0xFFFFFFFFU;
  std::vector<std::uint64_t> keys(begins.size());
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = (std::hash<std::string_view>{}(id(i)) & ~number_bits) | i;
  const auto number = [](std::uint64_t key) { return static_cast<std::size_t>(key & number_bits); };
  std::sort(keys.begin(), keys.end(), [&](std::uint64_t a, std::uint64_t b) {
    if ((a & ~number_bits) != (b & ~number_bits)) return a < b;
    const int order = id(number(a)).compare(id(number(b)));
    return order != 0 ? order < 0 : a < b;
  });
  std::optional<std::pair<std::size_t, std::size_t>> first;  // the repetition, and the buffer before it with that id
  for (std::size_t i = 1; i < keys.size(); ++i) {
    const std::size_t earlier = number(keys[i - 1]);
    const std::size_t later = number(keys[i]);
    if ((!first || later < first->first) && id(earlier) == id(later)) first = {later, earlier};
  }
  if (!first) return std::nullopt;
  const auto line = [&](std::size_t i) {
    return static_cast<std::size_t>(std::count(text.begin(), text.begin() + begins[i], '\n')) + 1;
  };
  return at_line(line(first->first), "id: \"" + std::string(id(first->first)) + "\" stands in line " +
                                         std::to_string(line(first->second)) + " already");
}

}  // namespace

Buffer Buffers::operator[](std::size_t i) const {
  std::string_view rest = text_.substr(lines_[i]);
  return *read_buffer(next_line(rest), 0, columns_);  // found good by read_buffers()
}

Result<Buffers> read_buffers(std::string_view text) {
  std::string_view rest = text;
  const Result<Columns> columns = find_columns(next_line(rest));
  if (!columns) return columns.problem();
  std::vector<std::uint32_t> lines;
  for (std::size_t line = 2; !rest.empty(); ++line) {
    const std::size_t begin = text.size() - rest.size();
    const std::string_view content = next_line(rest);
    if (content.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (content.find('"') != std::string_view::npos) return at_line(line, "has a quote: fields are plain text");
    if (const Result<Buffer> buffer = read_buffer(content, line, *columns); !buffer) return buffer.problem();
    if (lines.size() == limits::tensors) return at_line(line, "more than 2^20 buffers");
    lines.push_back(static_cast<std::uint32_t>(begin));
  }
  if (lines.empty()) return Problem{"line 2: there is no buffer"};
  if (auto repeated = find_repeated_id(text, *columns, lines)) return *std::move(repeated);
  return Buffers(text, *columns, std::move(lines));
}

Result<PackingProblem> packing_problem_of(const Buffers& buffers, Bytes alignment) {
  std::vector<std::uint64_t> times;
  times.reserve(2 * buffers.size());
  Bytes sum;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Buffer buffer = buffers[i];
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
  problem.items.reserve(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Buffer buffer = buffers[i];
    problem.items.push_back({buffer.size, slot(buffer.lower), slot(buffer.upper) - slot(buffer.lower)});
  }
  return problem;
}

std::string buffers_with_offsets(const Buffers& buffers, const std::vector<Bytes>& offsets) {
  std::string text = "id,lower,upper,size,offset\n";
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Buffer buffer = buffers[i];
    const std::array<std::string, 5> fields = {std::string(buffer.id), std::to_string(buffer.lower),
                                               std::to_string(buffer.upper), std::to_string(buffer.size.value),
                                               std::to_string(offsets[i].value)};
    text += csv_line(fields);
  }
  return text;
}

}  // namespace swapmm::cli
