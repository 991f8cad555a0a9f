// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/v2/relaxation/merged_host.hpp>
#include <swapmm/plan/v2/spread/stores.hpp>
#include <swapmm/plan/v2/stores/stored_plan.hpp>
#include <swapmm/plan/v2/validate.hpp>

using namespace swapmm;

namespace {

/// Operations that each read one weight of 100 bytes, in turn.
Trace weights_in_turn(std::size_t count) {
  Trace trace;
  trace.name = "weights";
  for (std::size_t i = 0; i < count; ++i) {
    trace.tensors.push_back({"weight", Bytes{100}, TensorKind::persistent, 0});
    trace.operations.push_back({"use", std::chrono::nanoseconds{50}, {id_at<TensorId>(i)}, {}, {}});
  }
  return trace;
}

/// A device of 220 bytes, a host of that many, and a disk without limit.
v2::Machine small_host_and_disk(std::uint64_t host_bytes) {
  v2::Machine machine;
  machine.memories = {{"gpu", Bytes{220}, Bytes{1}, std::nullopt},
                      {"host", Bytes{host_bytes}, Bytes{1}, std::nullopt},
                      {"disk", std::nullopt, Bytes{1}, std::nullopt}};
  machine.engines = {{"compute", v2::MemoryId{0}}};
  machine.host = v2::MemoryId{1};
  const auto add = [&](const char* name, std::uint32_t from, std::uint32_t to, std::uint64_t rate) {
    machine.links.push_back(
        {name, v2::MemoryId{from}, v2::MemoryId{to}, rate, std::chrono::nanoseconds{0}, std::nullopt, {}});
  };
  add("host-gpu", 1, 0, 4'000'000'000);
  add("gpu-host", 0, 1, 4'000'000'000);
  add("disk-gpu", 2, 0, 1'000'000'000);
  add("gpu-disk", 0, 2, 1'000'000'000);
  return machine;
}

}  // namespace

TEST_CASE("values that find no place in the wanted store go on to the next one, and the plan is valid") {
  const Trace trace = weights_in_turn(6);
  for (const std::uint64_t host_bytes : {50U, 150U, 350U, 900U}) {
    CAPTURE(host_bytes);
    const v2::Machine machine = small_host_and_disk(host_bytes);
    const auto merged = v2::planning::merged_host(machine, v2::MemoryId{0});
    REQUIRE(merged);
    const auto old = make_plan("belady", trace, *merged);
    REQUIRE(old);
    const auto stores = v2::planning::find_stores(machine, {v2::MemoryId{0}});
    REQUIRE(stores[0].size() == 2);
    const v2::planning::DeviceCase device{
        trace, machine, v2::MemoryId{0}, stores[0], std::vector<bool>(trace.tensors.size(), false), 0};
    const auto fastest = [](TensorId, std::optional<std::uint32_t>) { return std::size_t{0}; };
    const auto plan = v2::planning::stored_plan(device, *old, fastest, {});
    REQUIRE(plan);
    const auto violations = v2::validate(trace, *plan);
    if (!violations.empty()) CAPTURE(violations.front().message);
    CHECK(violations.empty());
    const auto in_host = std::ranges::count(plan->initial, v2::MemoryId{1}, &v2::Place::memory);
    CHECK(static_cast<std::uint64_t>(in_host) == std::min<std::uint64_t>(host_bytes / 100, 5));  // one never leaves
  }
}
