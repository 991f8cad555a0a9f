// SPDX-License-Identifier: Apache-2.0
// The same steps in less memory give the same bits, and what the operations declare is what they do.
#include <doctest/doctest.h>

#include <cstdint>
#include <stdexcept>

#include "transformer/run.hpp"

namespace {

using namespace swapmm;
using test::run_stack;
using test::stack_device;

constexpr float rate = 0.3F;
constexpr int steps = 6;

const test::StackRun& resident() {
  static const test::StackRun run = run_stack({.device_budget = Bytes{std::uint64_t{4} << 20U}}, 2, steps, rate,
                                              stack_device(simulated::Order::virtual_time));
  return run;
}
Bytes part_of_peak(double part) {
  return Bytes{static_cast<std::uint64_t>(static_cast<double>(resident().live.peak.value) * part)};
}
void check_same(const test::StackRun& run) {
  CHECK(run.violations == 0);
  CHECK(run.weights == resident().weights);
  CHECK(run.loss == resident().loss);
  CHECK(run.digest == resident().digest);
}

}  // namespace

TEST_CASE("with room for everything nothing moves") {
  CHECK(resident().violations == 0);
  // Where a plan begins, tensors find their places; and the loss begins with 0, given by the host.
  CHECK(resident().report.h2d.value == resident().report.start_h2d.value + sizeof(double));
  CHECK(resident().report.d2h == resident().report.start_d2h);
  CHECK(resident().report.iterations_followed == steps - 2);
  // 3 blocks of 12 * 12 * 12 + 4 * 12 weights.
  CHECK(resident().weights.size() == 3 * (12 * 144 + 48));
}

TEST_CASE("by a plan, in parts of the memory, the weights are the same to the bit") {
  for (const double part : {0.8, 0.5, 0.35}) {
    CAPTURE(part);
    const auto run =
        run_stack({.device_budget = part_of_peak(part)}, 2, steps, rate, stack_device(simulated::Order::virtual_time));
    check_same(run);
    CHECK(run.report.iterations_followed == steps - 2);
    CHECK(run.report.swap_outs > 0);
    CHECK(run.report.device_peak <= part_of_peak(part));
  }
}

TEST_CASE("so they are on demand, and in whatever order the queues move") {
  check_same(
      run_stack({.device_budget = part_of_peak(0.5)}, 0, steps, rate, stack_device(simulated::Order::virtual_time)));
  for (const auto order : {simulated::Order::uniform, simulated::Order::copies_last, simulated::Order::copies_first}) {
    check_same(run_stack({.device_budget = part_of_peak(0.5)}, 2, steps, rate, stack_device(order, 7)));
  }
}

TEST_CASE("and if operations of the forward pass run again instead of copies") {
  simulated::Options device = stack_device(simulated::Order::virtual_time);
  device.h2d.bytes_per_second = device.d2h.bytes_per_second = 10'000'000;  // so slow that it pays
  for (const double part : {0.8, 0.5, 0.35}) {
    CAPTURE(part);
    const auto run = run_stack({.device_budget = part_of_peak(part)}, 2, steps, rate, device, true);
    check_same(run);
    CHECK(run.report.iterations_followed == steps - 2);
    CHECK(run.report.device_peak <= part_of_peak(part));
    CHECK(run.report.plans.front().replays > 0);
  }
}

TEST_CASE("every operation accesses what it declares, and nothing else, and may run again") {
  check_same(run_stack({.device_budget = Bytes{std::uint64_t{4} << 20U}, .check_access = true}, 0, steps, rate,
                       stack_device(simulated::Order::virtual_time), true));
  check_same(run_stack({.device_budget = Bytes{std::uint64_t{4} << 20U}, .check_access = true}, 0, steps, rate,
                       stack_device(simulated::Order::virtual_time)));
}

TEST_CASE("the digest tells one bit") {
  test::HostMath<float> math;
  simulated::Backend backend(stack_device(simulated::Order::virtual_time));
  MemoryManager manager(backend, {.device_budget = Bytes{std::uint64_t{4} << 20U}});
  transformer::Network<test::HostMath<float>> network(math, manager, test::small_stack);
  const std::uint64_t before = network.digest();
  CHECK(network.digest() == before);
  int tensors = 0;
  network.for_each_weight([&](auto& tensor) {
    auto values = tensor.download();
    const auto old = values;
    std::uint32_t bits = 0;
    std::memcpy(&bits, &values.back(), sizeof bits);
    bits ^= 1U;
    std::memcpy(&values.back(), &bits, sizeof bits);
    tensor.upload(values);
    CHECK(network.digest() != before);
    tensor.upload(old);
    ++tensors;
  });
  CHECK(tensors == 3 * 6);
  CHECK(network.digest() == before);
  network.begin();
  CHECK(network.digest() == before);
}
