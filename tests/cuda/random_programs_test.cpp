// SPDX-License-Identifier: Apache-2.0

#include <doctest/doctest.h>

#include <cstdint>

#include "cuda/program_device.hpp"
#include "support/effort.hpp"
#include "support/program/real.hpp"

using namespace swapmm::test;

namespace {

/// Programs, where SWAPMM_TEST_SEEDS does not say another number.
const std::uint64_t usual_seeds = effort(40, 8);

}  // namespace

TEST_CASE("random programs read what they wrote, within all budgets, on demand and by plan") {
  run_random_programs<CudaProgramDevice>(seeds(usual_seeds), CudaProgramDevice::backend().capabilities().alignment);
}
