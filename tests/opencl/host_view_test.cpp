// SPDX-License-Identifier: Apache-2.0
// Host views on a real device: random touches between kernels find what an eager program finds.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <span>
#include <vector>

#include "opencl/support.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

constexpr HostViewOptions least_blocks{.block = 64_KiB};
constexpr std::size_t viewed = 100'000;  // no whole number of blocks

}  // namespace

TEST_CASE("random touches between kernels on a device find what an eager program finds, and move their blocks alone") {
  for (const bool own_array : {false, true}) {
    const Form form = own_array ? Form::plain : Form::with_event;
    MemoryManager manager(shared_backend(), {.device_budget = 1_MiB});
    auto by = manager.tensor<Number>({viewed}, "by");
    auto to = manager.tensor<Number>({viewed}, "to");
    auto third = manager.tensor<Number>({viewed}, "third");  // does not fit beside the others
    Numbers by_value(viewed, 3);
    Numbers oracle(viewed, 1);
    by.upload(by_value);
    to.upload(oracle);
    third.upload(by_value);
    Numbers array(viewed + 3);
    const auto view = own_array ? to.host_view(std::span(array).subspan(3), least_blocks) : to.host_view(least_blocks);
    REQUIRE_MESSAGE(view.lazy(), view.why_eager());
    std::mt19937 random(own_array ? 1 : 2);
    std::size_t wrong = 0;
    for (int round = 0; round < 12; ++round) {
      const auto iteration = manager.iteration("round");
      run_grow(manager, form, "grow", by, to);
      grow(by_value, oracle);
      for (int touch = 0; touch < 5; ++touch) {
        const std::size_t at = random() % viewed;
        wrong += view[at] == oracle[at] ? 0U : 1U;
        if (touch % 2 == 0) view[at] = oracle[at] = static_cast<Number>(random());
      }
      if (round % 4 == 3) run_grow(manager, form, "grow third", by, third);
    }
    CHECK(wrong == 0);
    CHECK(to.download() == oracle);
    CHECK(std::equal(view.begin(), view.end(), oracle.begin()));
  }
}

TEST_CASE("a device copies what the host touched") {
  constexpr Form form = Form::plain;
  MemoryManager manager(shared_backend(), {.device_budget = 2_MiB});
  auto by = manager.tensor<Number>({viewed}, "by");
  auto to = manager.tensor<Number>({viewed}, "to");
  by.upload(Numbers(viewed, 3));
  to.upload(Numbers(viewed, 1));
  run_grow(manager, form, "grow", by, to);
  const auto view = to.host_view(least_blocks);
  run_grow(manager, form, "grow", by, to);
  manager.synchronize();
  const Report before = manager.report();
  CHECK(view[20'000] == 7 * 10 + 3);
  CHECK(manager.report().d2h - before.d2h == 64_KiB);
  view[20'000] = 5;
  run_grow(manager, form, "grow", by, to);
  CHECK(manager.report().h2d - before.h2d == 64_KiB);
  CHECK(view[20'000] == 5 * 7 + 3);
  CHECK(manager.report().d2h - before.d2h == 128_KiB);
}
