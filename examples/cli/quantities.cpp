// SPDX-License-Identifier: Apache-2.0
#include "quantities.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <span>

#include <swapmm/base/text/figures.hpp>
#include <swapmm/ir/limits.hpp>

namespace swapmm::cli {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::string_view size_examples = "a size is written 8GB, 512MiB or 65536 (bytes)";
constexpr std::string_view budget_examples =
    "a budget is written 8GB, 512MiB, or as a share of the peak of live bytes 50% or 0.5";
constexpr std::string_view bandwidth_examples = "a bandwidth is written 15.754GB/s, 900MiB/s or 12000000000 (bytes/s)";
constexpr std::string_view time_examples = "a time is written 10s, 500ms, 20us or 5min";
constexpr std::string_view noise_examples = "it is written 25% or 0.25, and is below 100%";
constexpr std::string_view factor_examples = "a factor is written 0.2, 1/5 or 20%";
constexpr std::string_view slow_link_examples = "a slow link is written 50%@20%: half its speed, a fifth of the time";

Problem problem(std::string_view token, std::string_view why, std::string_view examples) {
  std::string message = "\"" + std::string(token) + "\" ";
  message += why;
  message += "; ";
  message += examples;
  return {message};
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// A number and what stands behind it.
struct Figure {
  Wide digits = 0;
  int exponent = 0;  ///< the number is digits * 10^exponent
  std::string_view number;
  std::string_view unit;
};

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

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

/// number * unit, rounded, halves up; nothing from 2^62 on.
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

constexpr std::array size_units = {
    text::FigureUnit{"B", 1},
    text::FigureUnit{"KB", 1'000},
    text::FigureUnit{"MB", 1'000'000},
    text::FigureUnit{"GB", 1'000'000'000},
    text::FigureUnit{"TB", 1'000'000'000'000},
    text::FigureUnit{"KiB", std::uint64_t{1} << 10U},
    text::FigureUnit{"MiB", std::uint64_t{1} << 20U},
    text::FigureUnit{"GiB", std::uint64_t{1} << 30U},
    text::FigureUnit{"TiB", std::uint64_t{1} << 40U},
};
constexpr std::array time_units = {
    text::FigureUnit{"ns", 1},
    text::FigureUnit{"us", 1'000},
    text::FigureUnit{"µs", 1'000},
    text::FigureUnit{"ms", 1'000'000},
    text::FigureUnit{"s", 1'000'000'000},
    text::FigureUnit{"min", 60'000'000'000},
    text::FigureUnit{"h", 3'600'000'000'000},
};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

/// As it stands, or all in small letters ("gb"). A small b behind a capital is a bit: no unit of ours.
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

Result<Bytes> size_of(std::string_view token, const Figure& figure, std::string_view examples) {
  const std::optional<std::uint64_t> unit = figure.unit.empty() ? 1 : size_unit_of(figure.unit);
  if (!unit) return unknown_unit(token, figure.unit, examples);
  const std::optional<std::uint64_t> bytes = scaled(figure, *unit);
  if (!bytes) return problem(token, "is too large: sizes are below 2^62 bytes", examples);
  return Bytes{*bytes};
}

bool has_point(std::string_view number) { return number.find('.') != std::string_view::npos; }

/// 25% or 0.25
Result<double> share_of(std::string_view token, std::string_view part, std::string_view examples) {
  const Result<Figure> figure = parse_figure(part, examples);
  if (!figure) return figure.problem();
  if (!figure->unit.empty() && figure->unit != "%") return unknown_unit(token, figure->unit, examples);
  return figure->unit == "%" ? as_double(*figure) / 100 : as_double(*figure);
}

}  // namespace

Result<Bytes> parse_size(std::string_view text) {
  const Result<Figure> figure = parse_figure(text, size_examples);
  if (!figure) return figure.problem();
  return size_of(text, *figure, size_examples);
}

Bytes Budget::of(Bytes peak) const {
  if (!share) return bytes;
  const double wanted = static_cast<double>(peak.value) * *share;
  const auto most = static_cast<double>(limits::magnitude - 1);
  return wanted >= most ? Bytes{limits::magnitude - 1} : Bytes{static_cast<std::uint64_t>(wanted)};
}

Result<Budget> parse_budget(std::string_view text) {
  const Result<Figure> figure = parse_figure(text, budget_examples);
  if (!figure) return figure.problem();
  const bool is_percentage = figure->unit == "%";
  if (is_percentage || (figure->unit.empty() && has_point(figure->number))) {
    const double share = as_double(*figure) / (is_percentage ? 100 : 1);
    if (!(share > 0)) return problem(text, "is not above 0", budget_examples);
    if (!is_percentage && share >= 2) return problem(text, "may mean a share of the peak or a size", budget_examples);
    return Budget{{}, share};
  }
  if (figure->unit.empty() && figure->number == "1") {
    return problem(text, "may mean 100% or 1B", budget_examples);
  }
  const Result<Bytes> bytes = size_of(text, *figure, budget_examples);
  if (!bytes) return bytes.problem();
  if (bytes->value == 0) return problem(text, "is not above 0", budget_examples);
  return Budget{*bytes, std::nullopt};
}

Result<std::uint64_t> parse_bandwidth(std::string_view text) {
  const Result<Figure> figure = parse_figure(text, bandwidth_examples);
  if (!figure) return figure.problem();
  std::optional<std::uint64_t> unit;
  if (figure->unit.empty()) unit = 1;
  if (figure->unit.ends_with("/s")) unit = size_unit_of(figure->unit.substr(0, figure->unit.size() - 2));
  if (!unit) return unknown_unit(text, figure->unit, bandwidth_examples);
  const std::optional<std::uint64_t> rate = scaled(*figure, *unit);
  if (!rate) return problem(text, "is too large: bandwidths are below 2^62 bytes/s", bandwidth_examples);
  if (*rate == 0) return problem(text, "is not above 0", bandwidth_examples);
  return *rate;
}

Result<std::chrono::nanoseconds> parse_time(std::string_view text) {
  const Result<Figure> figure = parse_figure(text, time_examples);
  if (!figure) return figure.problem();
  if (figure->unit.empty() && figure->number == "0") return std::chrono::nanoseconds{0};
  for (const text::FigureUnit& unit : time_units) {
    if (figure->unit != unit.name) continue;
    const std::optional<std::uint64_t> time = scaled(*figure, unit.size);
    if (!time) return problem(text, "is too large: times are below 2^62 ns", time_examples);
    return std::chrono::nanoseconds{static_cast<std::int64_t>(*time)};
  }
  return unknown_unit(text, figure->unit, time_examples);
}

Result<double> parse_noise(std::string_view text) {
  Result<double> share = share_of(text, text, noise_examples);
  if (!share) return share;
  if (*share >= 1) return problem(text, "is too large", noise_examples);
  return share;
}

Result<double> parse_factor(std::string_view text) {
  const std::size_t slash = text.find('/');
  Result<double> above = share_of(text, text.substr(0, slash), factor_examples);
  if (!above) return above;
  double factor = *above;
  if (slash != std::string_view::npos) {
    Result<double> below = share_of(text, text.substr(slash + 1), factor_examples);
    if (!below) return below;
    factor = *below > 0 ? factor / *below : 0;
  }
  constexpr double most = 1e6;
  if (!(factor > 0) || factor > most) return problem(text, "is not above 0 and at most a million", factor_examples);
  return factor;
}

Result<SlowLink> parse_slow_link(std::string_view text) {
  const std::size_t at = text.find('@');
  if (at == std::string_view::npos) return problem(text, "has no @", slow_link_examples);
  const Result<double> speed = share_of(text, text.substr(0, at), slow_link_examples);
  if (!speed) return speed.problem();
  const Result<double> part = share_of(text, text.substr(at + 1), slow_link_examples);
  if (!part) return part.problem();
  if (!(*speed > 0) || *speed > 1 || !(*part > 0) || *part > 1) {
    return problem(text, "has a share that is not above 0 and at most 100%", slow_link_examples);
  }
  constexpr double slowest = 1e-4;
  if (*speed < slowest) return problem(text, "has a speed below 0.01%", slow_link_examples);
  return SlowLink{*speed, *part};
}

Result<std::uint64_t> parse_whole(std::string_view text, std::uint64_t least, std::uint64_t most) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= least && value <= most) return value;
  return Problem{"\"" + std::string(text) + "\" is no whole number from " + std::to_string(least) + " to " +
                 std::to_string(most)};
}

Result<std::vector<std::string_view>> parse_list(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = without_spaces(rest.substr(0, comma));
    if (part.empty()) return Problem{"\"" + std::string(text) + "\" has an empty part; a list is written 0.9,0.7,0.5"};
    parts.push_back(part);
    if (comma == std::string_view::npos) return parts;
    rest.remove_prefix(comma + 1);
  }
}

std::string decimal_size(Bytes bytes) {
  text::FigureUnit best = size_units[0];
  for (const text::FigureUnit& unit : std::span(size_units).first(5)) {
    if (bytes.value >= unit.size) best = unit;
  }
  return text::size_text(bytes, best);
}

}  // namespace swapmm::cli
