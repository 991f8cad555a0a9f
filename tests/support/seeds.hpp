// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>

namespace swapmm::test {

/// SWAPMM_TEST_SEED=n: the program of that seed alone; SWAPMM_TEST_SEEDS=n: so many of them; SWAPMM_TEST_SECONDS=n:
/// none begins after so many seconds, and each is told of, for tests that look at that.
struct Seeds {
  std::uint64_t first = 1;
  std::uint64_t count = 0;
  double seconds = 0;  ///< 0: no limit
};

/// As the environment says, or so many as usual.
[[nodiscard]] inline Seeds seeds(std::uint64_t usual) {
  Seeds seeds{1, usual};
  const char* const first = std::getenv("SWAPMM_TEST_SEED");
  const char* const count = std::getenv("SWAPMM_TEST_SEEDS");
  if (first != nullptr) seeds = {std::strtoull(first, nullptr, 10), 1};
  if (count != nullptr) seeds.count = std::strtoull(count, nullptr, 10);
  if (const char* const limit = std::getenv("SWAPMM_TEST_SECONDS")) seeds.seconds = std::strtod(limit, nullptr);
  return seeds;
}

}  // namespace swapmm::test
