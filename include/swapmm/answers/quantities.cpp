// SPDX-License-Identifier: Apache-2.0
#include <swapmm/answers/quantities.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <span>

#include <swapmm/base/text/figures.hpp>
#include <swapmm/ir/limits.hpp>

namespace swapmm::answers {

using quantity::as_double;
using quantity::Figure;
using quantity::parse_figure;
using quantity::problem;
using quantity::scaled;
using quantity::size_unit_of;
using quantity::size_units;
using quantity::unknown_unit;
using quantity::without_spaces;

namespace {

constexpr std::string_view budget_examples =
    "a budget is written 8GB, 512MiB, or as a share of the peak of live bytes 50% or 0.5";

constexpr std::string_view bandwidth_examples = "a bandwidth is written 15.754GB/s, 900MiB/s or 12000000000 (bytes/s)";
constexpr std::string_view time_examples = "a time is written 10s, 500ms, 20us or 5min";
constexpr std::string_view noise_examples = "it is written 25% or 0.25, and is below 100%";
constexpr std::string_view factor_examples = "a factor is written 0.2, 1/5 or 20%";
constexpr std::string_view slow_link_examples = "a slow link is written 50%@20%: half its speed, a fifth of the time";

constexpr std::array time_units = {
    text::FigureUnit{"ns", 1},
    text::FigureUnit{"us", 1'000},
    text::FigureUnit{"µs", 1'000},
    text::FigureUnit{"ms", 1'000'000},
    text::FigureUnit{"s", 1'000'000'000},
    text::FigureUnit{"min", 60'000'000'000},
    text::FigureUnit{"h", 3'600'000'000'000},
};

/// 25% or 0.25
Result<double> share_of(std::string_view token, std::string_view part, std::string_view examples) {
  const Result<Figure> figure = parse_figure(part, examples);
  if (!figure) return figure.problem();
  if (!figure->unit.empty() && figure->unit != "%") return unknown_unit(token, figure->unit, examples);
  return figure->unit == "%" ? as_double(*figure) / 100 : as_double(*figure);
}

}  // namespace

Result<Budget> parse_budget(std::string_view text) { return quantity::parse_budget(text, budget_examples); }

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

Result<std::chrono::nanoseconds> parse_time_limit(std::string_view text) {
  Result<std::chrono::nanoseconds> limit = parse_time(text);
  if (!limit || limit->count() > 0) return limit;
  return Problem{"a time limit must be above 0, and \"" + std::string(text) +
                 "\" is not; without one, a search takes a set number of steps"};
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

}  // namespace swapmm::answers
