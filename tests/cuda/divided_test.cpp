// SPDX-License-Identifier: Apache-2.0
// Slices of divided tensors on a CUDA device.
#include <doctest/doctest.h>

#include "cuda/support.hpp"
#include "support/divided_loop.hpp"
#include "support/steady_plans.hpp"

using namespace swapmm;
using namespace swapmm::test;

TEST_CASE("operations on slices of tensors that are larger than the budget are right, in both forms") {
  for (const Form form : {Form::plain, Form::with_event}) check_divided_loop(cuda_backend(), form, steady());
}
