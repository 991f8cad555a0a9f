// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/svg/profile_scale.hpp>

#include <algorithm>

#include <swapmm/base/text/figures.hpp>

namespace swapmm::svg {
namespace {

using std::chrono::nanoseconds;
__extension__ using Wide = __int128;

/// The number of decimals of multiples of `step` in that unit, without trailing zeros.
unsigned decimal_places(std::uint64_t step, std::uint64_t unit) {
  unsigned places = 0;
  Wide scaled = step;
  for (; scaled % unit != 0 && places < 9; ++places) scaled *= 10;
  return places;
}

std::string label(std::int64_t value, text::FigureUnit unit, unsigned places) {
  return text::fixed_point(value, unit.size, value == 0 ? 0 : places) + ' ' + std::string(unit.name);
}

std::int64_t round_time_step(std::int64_t length, std::int64_t count) {
  std::int64_t power = 1;
  for (;;) {
    for (const std::int64_t factor : {1, 2, 5}) {
      if (length / (factor * power) <= count) return factor * power;
    }
    power *= 10;
  }
}

}  // namespace

Length TimeScale::at(nanoseconds time) const {
  if (length.count() <= 0) return left;
  const nanoseconds inside = std::clamp(time, nanoseconds{0}, length);
  return left + static_cast<Length>(Wide{inside.count()} * width / length.count());
}

nanoseconds TimeScale::time_of(Length pixels) const {
  return nanoseconds{static_cast<std::int64_t>(Wide{length.count()} * pixels / width)};
}

Length ByteScale::at(Bytes bytes) const {
  return bottom - static_cast<Length>(static_cast<Wide>(bytes.value) * height / static_cast<Wide>(top.value));
}

std::vector<Tick> ticks(const TimeScale& scale, std::int64_t count) {
  const std::int64_t length = std::max<std::int64_t>(scale.length.count(), 0);
  const std::int64_t step = round_time_step(length, count);
  // Uses a unit of which the axis shows at least two: 1500 ms is easier to read than 1.5 s.
  const text::FigureUnit unit = text::time_unit(nanoseconds{length / 2});
  const unsigned places = decimal_places(static_cast<std::uint64_t>(step), unit.size);
  std::vector<Tick> ticks;
  for (std::int64_t i = 0; i <= length / step; ++i) {
    ticks.push_back({scale.at(nanoseconds{i * step}), label(i * step, unit, places)});
  }
  return ticks;
}

std::vector<Tick> ticks(const ByteScale& scale, std::uint64_t count) {
  std::uint64_t step = 1;
  while (scale.top.value / step > count) step *= 2;
  const std::uint64_t steps = scale.top.value / step;
  const text::FigureUnit unit = text::size_unit(Bytes{steps * step});
  const unsigned places = decimal_places(step, unit.size);
  std::vector<Tick> ticks;
  for (std::uint64_t i = 0; i <= steps; ++i) {
    ticks.push_back({scale.at(Bytes{i * step}), label(static_cast<std::int64_t>(i * step), unit, places)});
  }
  return ticks;
}

}  // namespace swapmm::svg
