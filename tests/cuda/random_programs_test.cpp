// SPDX-License-Identifier: Apache-2.0

#include <doctest/doctest.h>

#include <cstdint>

#include "cuda/program_device.hpp"
#include "support/program_real.hpp"

using namespace swapmm::test;

namespace {

/// Programs, where SWAPMM_TEST_SEEDS does not say another number.
#ifdef SWAPMM_TEST_IS_SLOW
constexpr std::uint64_t usual_seeds = 60;  // sanitizers are slow
#else
constexpr std::uint64_t usual_seeds = 400;
#endif

}  // namespace

TEST_CASE("random programs read what they wrote, within all budgets, on demand and by plan") {
  run_random_programs<CudaProgramDevice>(seeds(usual_seeds), CudaProgramDevice::backend().capabilities().alignment);
}
