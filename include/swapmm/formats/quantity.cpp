// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/quantity.hpp>

#include <algorithm>
#include <charconv>
#include <limits>

#include <swapmm/ir/limits.hpp>

namespace swapmm::quantity {
namespace {

constexpr std::string_view size_examples = "a size is written 8GB, 512MiB or 65536 (bytes)";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The exponent at `text`, if there is one, and how long it is.
struct Exponent {
  int value = 0;
  std::size_t length = 0;
};

Exponent exponent_at(std::string_view text) {
  if (text.empty() || (text[0] != 'e' && text[0] != 'E')) return {};
  std::size_t at = 1;
  const bool negative = at < text.size() && text[at] == '-';
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  const std::size_t first = at;
  int value = 0;
  constexpr int most = 1000;
  for (; at < text.size() && is_digit(text[at]); ++at) value = std::min(most, value * 10 + (text[at] - '0'));
  if (at == first) return {};
  return {negative ? -value : value, at};
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

bool has_point(std::string_view number) { return number.find('.') != std::string_view::npos; }

Result<Bytes> size_of(std::string_view token, const Figure& figure, std::string_view examples) {
  const std::optional<std::uint64_t> unit = figure.unit.empty() ? 1 : size_unit_of(figure.unit);
  if (!unit) return unknown_unit(token, figure.unit, examples);
  const std::optional<std::uint64_t> bytes = scaled(figure, *unit);
  if (!bytes) return problem(token, "is too large: sizes are below 2^62 bytes", examples);
  return Bytes{*bytes};
}

}  // namespace

Problem problem(std::string_view token, std::string_view why, std::string_view examples) {
  std::string message = "\"" + std::string(token) + "\" ";
  message += why;
  message += "; ";
  message += examples;
  return {message};
}

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

Result<Figure> parse_figure(std::string_view token, std::string_view examples) {
  const std::string_view text = without_spaces(token);
  if (text.starts_with('-')) return problem(token, "is negative", examples);
  Figure figure;
  int digits = 0;
  bool fraction = false;
  std::size_t at = 0;
  for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !fraction)); ++at) {
    if (text[at] == '.') {
      fraction = true;
      continue;
    }
    figure.digits = figure.digits * 10 + static_cast<unsigned>(text[at] - '0');
    if (fraction) --figure.exponent;
    constexpr int most_digits = 24;  // with any unit they fit 128 bits
    if (figure.digits != 0 && ++digits > most_digits) return problem(token, "has too many digits", examples);
  }
  if (at == 0 || (at == 1 && fraction)) return problem(token, "does not begin with a number", examples);
  const Exponent exponent = exponent_at(text.substr(at));
  figure.exponent += exponent.value;
  figure.number = text.substr(0, at + exponent.length);
  figure.unit = without_spaces(text.substr(figure.number.size()));
  return figure;
}

std::optional<std::uint64_t> scaled(const Figure& figure, std::uint64_t unit) {
  Wide value = figure.digits * unit;
  if (value == 0) return 0;
  for (int i = 0; i < figure.exponent; ++i) {
    if (value >= limits::magnitude) return std::nullopt;
    value *= 10;
  }
  Wide divisor = 1;
  for (int i = figure.exponent; i < 0; ++i) {
    if (divisor > 2 * value) return 0;
    divisor *= 10;
  }
  value = (value + divisor / 2) / divisor;
  if (value >= limits::magnitude) return std::nullopt;
  return static_cast<std::uint64_t>(value);
}

double as_double(const Figure& figure) {
  double value = 0;
  const auto [end, error] = std::from_chars(figure.number.data(), figure.number.data() + figure.number.size(), value);
  if (error == std::errc::result_out_of_range) return figure.exponent > 0 ? std::numeric_limits<double>::max() : 0;
  return value;
}

std::optional<std::uint64_t> size_unit_of(std::string_view name) {
  if (name == "kB") return 1'000;
  for (const text::FigureUnit& unit : size_units) {
    if (name == unit.name || name == lower(unit.name)) return unit.size;
  }
  return std::nullopt;
}

Problem unknown_unit(std::string_view token, std::string_view unit, std::string_view examples) {
  std::string why = unit.empty() ? "has no unit" : "has the unit \"" + std::string(unit) + "\", which is unknown";
  if (unit.size() == 2 && unit[1] == 'b') why += " (b would be bits, B is bytes)";
  return problem(token, why, examples);
}

Result<Bytes> parse_size(std::string_view text) {
  const Result<Figure> figure = parse_figure(text, size_examples);
  if (!figure) return figure.problem();
  return size_of(text, *figure, size_examples);
}

Bytes Budget::of(Bytes whole) const {
  if (!share) return bytes;
  const double wanted = static_cast<double>(whole.value) * *share;
  const auto most = static_cast<double>(limits::magnitude - 1);
  return wanted >= most ? Bytes{limits::magnitude - 1} : Bytes{static_cast<std::uint64_t>(wanted)};
}

Result<Budget> parse_budget(std::string_view text, std::string_view examples) {
  const Result<Figure> figure = parse_figure(text, examples);
  if (!figure) return figure.problem();
  const bool is_percentage = figure->unit == "%";
  if (is_percentage || (figure->unit.empty() && has_point(figure->number))) {
    const double share = as_double(*figure) / (is_percentage ? 100 : 1);
    if (!(share > 0)) return problem(text, "is not above 0", examples);
    if (!is_percentage && share >= 2) return problem(text, "may mean a share or a size", examples);
    return Budget{{}, share};
  }
  if (figure->unit.empty() && figure->number == "1") {
    return problem(text, "may mean 100% or 1B", examples);
  }
  const Result<Bytes> bytes = size_of(text, *figure, examples);
  if (!bytes) return bytes.problem();
  if (bytes->value == 0) return problem(text, "is not above 0", examples);
  return Budget{*bytes, std::nullopt};
}

}  // namespace swapmm::quantity
