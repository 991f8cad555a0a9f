// SPDX-License-Identifier: Apache-2.0
// Values on a second device: a program as people write them, against itself without swapmm.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <swapmm/opencl/backend.hpp>
#include <swapmm/opencl/neighbour.hpp>

#include "larger_than_memory/raw_opencl.hpp"
#include "larger_than_memory/wave.hpp"
#include "larger_than_memory/with_swapmm.hpp"
#include "opencl/support.hpp"
#include "opencl/two_devices.hpp"
#include "support/steady_plans.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::literals;

bool equal_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("neighbours: wave propagation with a second device's memory is right bit for bit, by a plan") {
  const wave::Problem problem{.size = 20, .steps = 16, .every = 1, .shots = 8};
  const opencl::Backend backend = test::backend_with_neighbour();
  const Bytes all = wave::working_set(problem);
  const auto neighbour = opencl::neighbour(test::second_device(), Bytes{all.value / 2}, 64_KiB);
  Options options{.device_budget = Bytes{all.value / 4}};
  options.neighbours = {neighbour};
  const auto outcome = wave::run_with_swapmm(
      backend, problem, options, [](const wave::ShotReport&) {}, test::steady());
  const auto& swapped = outcome.result;
  const auto& report = outcome.report;
  INFO(report);
  CHECK(report.iterations_followed > 0);
  CHECK(report.divergences == 0);
  CHECK(report.device_peak <= options.device_budget);
  CHECK(report.neighbours_peak > 0_bytes);
  CHECK(report.neighbours_peak <= report.neighbours_budget);
  CHECK(report.neighbours_budget <= Bytes{all.value / 2});
  CHECK(report.neighbours_read > all);
  CHECK(report.neighbours_written > all);
  REQUIRE(report.plans.size() == 1);
  CHECK(report.plans[0].tells_neighbours);

  const wave::Result raw = wave::run_raw_opencl(backend.context(), backend.device(), problem);
  CHECK(equal_bits(swapped.image, raw.image));
  CHECK(equal_bits(swapped.record, raw.record));
  CHECK(equal_bits(swapped.forward, raw.forward));
  CHECK(equal_bits(swapped.backward, raw.backward));
}

TEST_CASE("neighbours: the memory for copies is a part of the host's budget, and all objects go again") {
  const opencl::Backend backend = test::backend_with_neighbour();
  Options options{.device_budget = 64_KiB, .host_budget = 100_KiB};
  options.neighbours = {opencl::neighbour(test::second_device(), 256_KiB, 64_KiB)};
  (void)MemoryManager<opencl::Backend>(backend, options);  // the backend keeps its queues
  const auto before = test::objects_at_rest();
  {
    options.neighbours = {opencl::neighbour(test::second_device(), 256_KiB, 64_KiB)};
    const MemoryManager<opencl::Backend> manager(backend, options);
    CHECK(manager.report().host_used == 64_KiB);
    CHECK(manager.report().neighbours_budget == 256_KiB);
    Options poor = options;
    poor.host_budget = 60_KiB;
    poor.neighbours = {opencl::neighbour(test::second_device(), 256_KiB, 64_KiB)};
    CHECK_THROWS_AS(MemoryManager<opencl::Backend>(backend, poor), OutOfMemory);
  }
  CHECK(test::objects_at_rest() == before);
}

TEST_CASE("neighbours: what cannot be one is refused") {
  CHECK_THROWS_AS((void)opencl::neighbour(nullptr, 1_MiB), UsageError);
  CHECK_THROWS_AS((void)opencl::neighbour(test::second_device(), 1_MiB, 100_bytes), UsageError);
  if (test::second_device() == test::first_backend().device()) return;
  opencl::Backend alone = test::shared_backend();  // its context has one device
  std::string text;
  try {
    (void)alone.allocate_at(*opencl::neighbour(test::second_device(), 1_MiB), 1_MiB, 0);
  } catch (const BackendError& error) {
    text = error.what();
  }
  CHECK(text.find("does not contain the neighbour a part of ") != std::string::npos);
}
