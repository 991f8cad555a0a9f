// SPDX-License-Identifier: Apache-2.0
#include <swapmm/base/text/figures.hpp>

#include <algorithm>
#include <array>

namespace swapmm::text {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::array time_units = {FigureUnit{"s", 1'000'000'000}, FigureUnit{"ms", 1'000'000}, FigureUnit{"us", 1'000},
                                   FigureUnit{"ns", 1}};
constexpr std::array size_units = {
    FigureUnit{"TiB", std::uint64_t{1} << 40U}, FigureUnit{"GiB", std::uint64_t{1} << 30U},
    FigureUnit{"MiB", std::uint64_t{1} << 20U}, FigureUnit{"KiB", std::uint64_t{1} << 10U}, FigureUnit{"B", 1}};

std::uint64_t magnitude(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  return value < 0 ? std::uint64_t{0} - bits : bits;
}

std::string digits_of(Wide number) {
  std::string digits;
  do {
    digits += static_cast<char>('0' + static_cast<int>(number % 10));
    number /= 10;
  } while (number != 0);
  std::reverse(digits.begin(), digits.end());
  return digits;
}

std::string fixed_point_of(std::uint64_t value, std::uint64_t unit, unsigned decimals) {
  Wide scaled = value;
  for (unsigned i = 0; i < decimals; ++i) scaled *= 10;
  std::string digits = digits_of((2 * scaled + unit) / (Wide{2} * unit));
  if (decimals == 0) return digits;
  if (digits.size() <= decimals) digits.insert(0, decimals + 1 - digits.size(), '0');
  digits.insert(digits.size() - decimals, 1, '.');
  return digits;
}

}  // namespace

std::string fixed_point(std::int64_t value, std::uint64_t unit, unsigned decimals) {
  const std::string digits = fixed_point_of(magnitude(value), unit, decimals);
  const bool rounds_to_zero = digits.find_first_not_of("0.") == std::string::npos;
  return value < 0 && !rounds_to_zero ? '-' + digits : digits;
}

FigureUnit time_unit(std::chrono::nanoseconds longest) {
  const std::uint64_t length = magnitude(longest.count());
  for (const FigureUnit& unit : time_units) {
    if (length >= unit.size) return unit;
  }
  return time_units.back();
}

std::string time_text(std::chrono::nanoseconds time, FigureUnit unit) {
  return fixed_point(time.count(), unit.size, unit.size == 1 ? 0 : 3) + ' ' + std::string(unit.name);
}

std::string time_text(std::chrono::nanoseconds time) { return time_text(time, time_unit(time)); }

FigureUnit size_unit(Bytes most) {
  for (const FigureUnit& unit : size_units) {
    if (most.value >= unit.size) return unit;
  }
  return size_units.back();
}

std::string size_text(Bytes bytes) { return size_text(bytes, size_unit(bytes)); }

std::string size_text(Bytes bytes, FigureUnit unit) {
  return fixed_point_of(bytes.value, unit.size, unit.size == 1 ? 0 : 2) + ' ' + std::string(unit.name);
}

std::string percent_text(std::chrono::nanoseconds part, std::chrono::nanoseconds whole) {
  if (whole.count() <= 0) return "0.0 %";
  __extension__ using WideTime = __int128;
  const auto permille =
      static_cast<std::int64_t>((WideTime{part.count()} * 2000 + whole.count()) / (WideTime{whole.count()} * 2));
  return fixed_point(permille, 10, 1) + " %";
}

}  // namespace swapmm::text
