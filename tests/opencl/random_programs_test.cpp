// SPDX-License-Identifier: Apache-2.0

#include <doctest/doctest.h>

#include <cstdint>

#include "opencl/program_device.hpp"
#include "support/program_real.hpp"

using namespace swapmm::test;

namespace {

/// Programs, where SWAPMM_TEST_SEEDS does not say another number.
std::uint64_t usual_seeds() {
#ifdef SWAPMM_TEST_IS_SLOW
  return 60;  // sanitizers are slow
#else
  return device_is_slow() ? 60 : 300;
#endif
}

}  // namespace

TEST_CASE("random programs read what they wrote, within all budgets, on demand and by plan") {
  run_random_programs<OpenclProgramDevice>(seeds(usual_seeds()), first_backend().capabilities().alignment);
}
