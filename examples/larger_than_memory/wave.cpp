// SPDX-License-Identifier: Apache-2.0
#include "larger_than_memory/wave.hpp"

#include <cmath>
#include <stdexcept>

namespace wave {
namespace {

// As far as waves are swallowed, behind cells that stay zero, since the stencil reads so far.
std::size_t border(const Problem& problem) { return reach + problem.size / 8; }

}  // namespace

void check(const Problem& problem) {
  if (problem.size < 16 || problem.size > 2048) throw std::invalid_argument("the size is not 16 to 2048");
  if (problem.steps == 0 || problem.shots == 0) throw std::invalid_argument("there are no steps or no shots");
  if (problem.every == 0 || problem.every > problem.steps) {
    throw std::invalid_argument("checkpoints are 1 to as many steps apart as there are");
  }
}

std::size_t cells(const Problem& problem) { return problem.size * problem.size * problem.size; }
std::size_t checkpoints(const Problem& problem) { return problem.steps / problem.every; }

swapmm::Bytes working_set(const Problem& problem) {
  const std::size_t floats =
      (4 + 2 + checkpoints(problem)) * cells(problem) + problem.steps * problem.size * problem.size;
  return swapmm::Bytes{floats * sizeof(float)};
}

std::int64_t receiver_depth(const Problem& problem) { return static_cast<std::int64_t>(border(problem)); }

std::vector<float> rock(const Problem& problem) {
  const std::size_t plane = problem.size * problem.size;
  const std::size_t reflector = border(problem) + problem.size / 6;
  std::vector<float> result(cells(problem));
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = i / plane < reflector ? 0.09F : 0.18F;
  return result;
}

std::array<std::int64_t, 3> source(const Problem& problem, std::size_t shot) {
  const std::size_t width = problem.size - 2 * border(problem);
  const std::size_t row = border(problem) + width * (2 * shot + 1) / (2 * problem.shots);
  return {receiver_depth(problem), static_cast<std::int64_t>(row), static_cast<std::int64_t>(problem.size / 2)};
}

float loudness(std::size_t step) {
  constexpr double frequency = 0.05;  // per step
  const double x = std::pow(3.14159265358979 * (frequency * static_cast<double>(step) - 1), 2);
  return static_cast<float>((1 - 2 * x) * std::exp(-x));
}

const std::string_view kernels = R"(
enum { reach = 4 };  // 8th order in space: four neighbours on each side

SWAPMM_KERNEL void silence(SWAPMM_VIEW(float, field)) {
  const swapmm_index x = SWAPMM_ID(0), y = SWAPMM_ID(1), z = SWAPMM_ID(2);
  SWAPMM_AT3(field, z, y, x) = 0;
}

SWAPMM_KERNEL void fire(SWAPMM_VIEW(float, field), const long z, const long y, const long x, const float loudness) {
  SWAPMM_AT3(field, z, y, x) += loudness;
}

// How much of a wave is swallowed in one step: nothing in the middle, more and more towards the six sides.
float damping(const swapmm_index z, const swapmm_index y, const swapmm_index x, const swapmm_index size) {
  const swapmm_index width = size / 8;
  const swapmm_index depth = min(min(min(z, y), x), size - 1 - max(max(z, y), x)) - reach;
  if (depth >= width) return 0.0f;
  const float part = (float)(width - depth) / (float)width;
  return 0.1f * part * part;
}

// The wave equation with damping, 2nd order in time: other is the field one step before now, and becomes the one after.
SWAPMM_KERNEL void advance(SWAPMM_CONST_VIEW(float, now), SWAPMM_CONST_VIEW(float, rock), SWAPMM_VIEW(float, other),
                           const long first, const long first_now, const long size) {
  const swapmm_index x = SWAPMM_ID(0), y = SWAPMM_ID(1), plane = SWAPMM_ID(2);
  const swapmm_index z = first + plane;  // in the block
  const swapmm_index n = z - first_now;  // in now
  if (min(min(z, y), x) < reach || max(max(z, y), x) >= size - reach) return;
  const float weight[reach + 1] = {-205.0f / 72, 8.0f / 5, -1.0f / 5, 8.0f / 315, -1.0f / 560};
  const float here = SWAPMM_AT3(now, n, y, x);
  float laplacian = 3 * weight[0] * here;
  for (int i = 1; i <= reach; ++i) {
    laplacian += weight[i] * (SWAPMM_AT3(now, n - i, y, x) + SWAPMM_AT3(now, n + i, y, x) +
                              SWAPMM_AT3(now, n, y - i, x) + SWAPMM_AT3(now, n, y + i, x) +
                              SWAPMM_AT3(now, n, y, x - i) + SWAPMM_AT3(now, n, y, x + i));
  }
  const float lost = damping(z, y, x, size);
  SWAPMM_AT3(other, plane, y, x) = (2 - lost) * here - (1 - lost) * SWAPMM_AT3(other, plane, y, x) +
                                   SWAPMM_AT3(rock, plane, y, x) * laplacian;
}

SWAPMM_KERNEL void record(SWAPMM_CONST_VIEW(float, field), SWAPMM_VIEW(float, planes), const long depth, const long step) {
  const swapmm_index x = SWAPMM_ID(0), y = SWAPMM_ID(1);
  SWAPMM_AT3(planes, step, y, x) = SWAPMM_AT3(field, depth, y, x);
}

SWAPMM_KERNEL void play(SWAPMM_CONST_VIEW(float, planes), SWAPMM_VIEW(float, field), const long depth, const long step) {
  const swapmm_index x = SWAPMM_ID(0), y = SWAPMM_ID(1);
  SWAPMM_AT3(field, depth, y, x) += SWAPMM_AT3(planes, step, y, x);
}

SWAPMM_KERNEL void keep(SWAPMM_CONST_VIEW(float, field), SWAPMM_VIEW(float, checkpoint)) {
  const swapmm_index x = SWAPMM_ID(0), y = SWAPMM_ID(1), z = SWAPMM_ID(2);
  SWAPMM_AT3(checkpoint, z, y, x) = SWAPMM_AT3(field, z, y, x);
}

SWAPMM_KERNEL void correlate(SWAPMM_CONST_VIEW(float, checkpoint), SWAPMM_CONST_VIEW(float, field),
                             SWAPMM_VIEW(float, image)) {
  const swapmm_index x = SWAPMM_ID(0), y = SWAPMM_ID(1), z = SWAPMM_ID(2);
  SWAPMM_AT3(image, z, y, x) += SWAPMM_AT3(checkpoint, z, y, x) * SWAPMM_AT3(field, z, y, x);
}
)";

}  // namespace wave
