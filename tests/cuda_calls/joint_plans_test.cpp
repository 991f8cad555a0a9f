// SPDX-License-Identifier: Apache-2.0
// Managers on two devices that share the way to the host: what is asked of the API. Nothing is copied here.

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <swapmm/runtime/joint/turn_board.hpp>
#include <swapmm/shared_links.hpp>

#include "cuda_calls/support.hpp"
#include "support/steady_plans.hpp"

using namespace swapmm;
using namespace swapmm::test;

TEST_CASE_FIXTURE(TwoDevicesFixture, "a queue waits for what the manager of another device has published") {
  CheckedBackend first = fake_backend();
  CheckedBackend second = fake_backend(false, 1);
  CHECK(first.can_wait_for(second));
  runtime::TurnBoard<CheckedBackend> board;
  board.add(1, first);
  board.add(2, second);
  CHECK(board.all_can_wait());
  board.start(1, 9, 2, first);
  board.begin_round(1);
  board.publish(1, 1, QueueKind::d2h, first);
  fake_cuda::clear_calls();
  CHECK(!board.wait_for(1, 9, 1, 0, QueueKind::h2d, second));
  CHECK(calls_of("cudaStreamWaitEvent").empty());
  CHECK(board.wait_for(1, 9, 1, 1, QueueKind::h2d, second));
  CHECK(calls_of("cudaStreamWaitEvent").size() == 1);
}

TEST_CASE_FIXTURE(TwoDevicesFixture, "managers on two devices follow one plan, in order, and leave nothing") {
  constexpr std::size_t layers = 4;
  const auto links = std::make_shared<SharedLinks>(LinkCapacities{.both_ways = 1'000'000'000});
  Options options{.device_budget = Bytes{chain_bytes(layers).value / 2}};
  options.shared_links = links;
  MemoryManager<CheckedBackend> first(fake_backend(), options, steady_plans());
  MemoryManager<CheckedBackend> second(fake_backend(false, 1), options, steady_plans());
  Chain<CheckedBackend> one(first, layers);
  Chain<CheckedBackend> other(second, layers);
  for (Number step = 0; step < 12; ++step) {
    one.iterate(step);
    other.iterate(step);
  }
  const std::uint64_t missed = second.report().turns_missed;  // before both followed it
  for (Number step = 0; step < 4; ++step) {
    one.iterate(step);
    other.iterate(step);
  }
  first.synchronize();
  second.synchronize();
  CHECK(second.report().turns_missed == missed);
  CHECK(second.report().turns_taken > 0);
  CHECK(links->joint_plans() == 1);
  for (const auto* const manager : {&first, &second}) {
    const Report report = manager->report();
    REQUIRE(report.plans.size() == 1);
    CHECK(report.plans[0].devices == 2);
    CHECK(report.iterations_followed > 6);
  }
}
