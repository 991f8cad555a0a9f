// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>

#include <swapmm/answers/quantities.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/step_times.hpp>

// What happens to a plan when things take other times than it was made for.

namespace swapmm::answers {

/// Multiplies each duration of an operation and of a copy by a factor of its own, evenly between 1 - noise and
/// 1 + noise. The same generator gives the same times on every machine.
void add_noise(StepTimes& times, double noise, std::mt19937_64& random);

/// The link is slow in one part of the iteration, which begins at `start` (a share of it, from 0 to 1) and may reach
/// into the next one. `calm` is the plan undisturbed: what of a copy ran in that part there takes 1 / speed times as
/// long.
void slow_down(StepTimes& times, const SlowLink& link, double start, const Plan& plan, const Simulation& calm);

}  // namespace swapmm::answers
