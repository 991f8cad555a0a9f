// SPDX-License-Identifier: Apache-2.0
#include <swapmm/answers/disturbances.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>

namespace swapmm::answers {
namespace {

using std::chrono::nanoseconds;

nanoseconds scaled(nanoseconds time, double factor) {
  return nanoseconds{std::llround(static_cast<double>(time.count()) * factor)};
}

/// Of the time from `start` to `end`, what lies in the windows [first, first + length) of each iteration.
double time_in_windows(double start, double end, double first, double length, double iteration) {
  double sum = 0;
  for (double turn = std::floor((start - first - length) / iteration); first + turn * iteration < end; turn += 1) {
    const double from = first + turn * iteration;
    sum += std::max(0.0, std::min(end, from + length) - std::max(start, from));
  }
  return sum;
}

}  // namespace

void add_noise(StepTimes& times, double noise, std::mt19937_64& random) {
  const auto factor = [&] {
    constexpr double range = 9007199254740992.0;  // 2^53: what a double holds without rounding
    const double even = static_cast<double>(random() >> 11U) / range;
    return 1 - noise + 2 * noise * even;
  };
  for (nanoseconds& time : times.operations) time = scaled(time, factor());
  for (nanoseconds& time : times.commands) {
    if (time.count() > 0) time = scaled(time, factor());
  }
}

void slow_down(StepTimes& times, const SlowLink& link, double start, const Plan& plan, const Simulation& calm) {
  const auto iteration = static_cast<double>(calm.iteration.count());
  if (!(iteration > 0)) return;
  for (std::size_t j = 0; j < plan.commands.size(); ++j) {
    if (times.commands[j].count() == 0) continue;
    const Span& span = calm.commands[j];
    const auto from = static_cast<double>(span.start.count());
    const auto to = static_cast<double>(span.end.count());
    if (!(to > from)) continue;
    const double slow = time_in_windows(from, to, start * iteration, link.part * iteration, iteration) / (to - from);
    times.commands[j] = scaled(times.commands[j], 1 + slow * (1 / link.speed - 1));
  }
}

}  // namespace swapmm::answers
