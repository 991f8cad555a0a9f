// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/validate.hpp>

namespace swapmm::test {

[[nodiscard]] inline TraceTensor tensor(std::uint64_t bytes, TensorKind kind = TensorKind::persistent,
                                        std::uint32_t available_from = 0) {
  return {"t" + std::to_string(bytes), Bytes{bytes}, kind, available_from};
}

[[nodiscard]] inline TraceOperation operation(std::int64_t duration, std::vector<TensorId> reads,
                                              std::vector<TensorId> writes = {}, std::vector<TensorId> updates = {}) {
  return {"step", std::chrono::nanoseconds{duration}, std::move(reads), std::move(writes), std::move(updates)};
}

/// Operations that each read one weight, in turn.
[[nodiscard]] inline Trace weights_in_turn(std::size_t count, std::uint64_t bytes, std::int64_t duration) {
  Trace trace;
  trace.name = "weights";
  for (std::size_t t = 0; t < count; ++t) {
    trace.tensors.push_back(tensor(bytes));
    trace.operations.push_back(operation(duration, {id_at<TensorId>(t)}));
  }
  return trace;
}

/// A byte a nanosecond each way, so that bytes are times.
[[nodiscard]] inline Machine machine_of(std::uint64_t budget) {
  Machine machine;
  machine.device_budget = Bytes{budget};
  machine.h2d.bytes_per_second = 1'000'000'000;
  machine.d2h.bytes_per_second = 1'000'000'000;
  return machine;
}

/// The planner's plan, checked by the validator.
[[nodiscard]] inline Plan plan_of(std::string_view planner, const Trace& trace, const Machine& machine) {
  REQUIRE(check_trace(trace));
  Result<Plan> plan = make_plan(planner, trace, machine);
  REQUIRE_MESSAGE(plan, planner);
  const auto violations = validate(trace, *plan);
  CHECK_MESSAGE(violations.empty(), (violations.empty() ? std::string{} : violations.front().message));
  return *std::move(plan);
}

}  // namespace swapmm::test
