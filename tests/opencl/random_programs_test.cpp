// SPDX-License-Identifier: Apache-2.0

#include <doctest/doctest.h>

#include <cstdint>

#include "opencl/program_device.hpp"
#include "support/effort.hpp"
#include "support/program/real.hpp"

using namespace swapmm::test;

namespace {

/// Programs, where SWAPMM_TEST_SEEDS does not say another number.
std::uint64_t usual_seeds() { return device_is_slow() ? 60 : effort(150, 8); }

}  // namespace

TEST_CASE("random programs read what they wrote, within all budgets, on demand and by plan") {
  run_random_programs<OpenclProgramDevice>(seeds(usual_seeds()), first_backend().capabilities().alignment);
}
