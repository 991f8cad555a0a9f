// SPDX-License-Identifier: Apache-2.0
// Programs of a few operations for which better plans than those of `best` were found by hand.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "support/plain_traces.hpp"

namespace swapmm::test::small_programs_test {

std::int64_t best_time(const Trace& trace, const Machine& machine) {
  const Plan plan = plan_of("best", trace, machine);
  CHECK(plan.predicted.lower_bound <= plan.predicted.iteration);
  return plan.predicted.iteration.count();
}

std::vector<TensorId> tensors(std::initializer_list<std::uint32_t> ids) {
  std::vector<TensorId> list;
  for (const std::uint32_t id : ids) list.push_back(TensorId{id});
  return list;
}

TEST_CASE("weights stream through room for two, whether their number is odd or even: one copy more is not hidden") {
  for (const std::size_t count : {29U, 30U, 31U, 32U, 33U}) {
    CAPTURE(count);
    const Trace trace = weights_in_turn(count, 400, 400);
    // Two places and a rest that is too small for a third one. If the number is odd, the last weight and the first one
    // want the same place.
    CHECK(best_time(trace, machine_of(1000)) <= static_cast<std::int64_t>(count + 1) * 400);
  }
}

TEST_CASE("small and large weights stream in turn, and the link is always busy") {
  Trace trace;
  trace.name = "in turn";
  for (std::uint32_t i = 0; i < 18; ++i) {
    const std::uint64_t size = i % 2 == 0 ? 1000 : 2000;
    trace.tensors.push_back(tensor(size));
    trace.operations.push_back(operation(static_cast<std::int64_t>(size), {TensorId{i}}));
  }
  CHECK(best_time(trace, machine_of(5000)) <= 28'000);
}

TEST_CASE("activations between weights that stream") {
  Trace trace;
  trace.name = "inference";
  for (std::uint32_t i = 0; i < 31; ++i) trace.tensors.push_back(tensor(400));
  trace.tensors.push_back(tensor(20, TensorKind::input));
  for (std::uint32_t i = 0; i < 31; ++i) {
    trace.tensors.push_back(tensor(20, TensorKind::transient));
    trace.operations.push_back(operation(384, tensors({i, 31 + i}), tensors({32 + i})));
  }
  trace.host_reads = {{TensorId{62}, OperationId{30}}};
  CHECK(best_time(trace, machine_of(1000)) <= 13'000);
}

TEST_CASE("what can start at once comes before what waits for room, also before several") {
  Trace trace;
  trace.name = "arrivals";
  trace.tensors = {tensor(1000), tensor(100), tensor(1000), tensor(1000), tensor(2000), tensor(2000)};
  trace.operations = {operation(1000, {}, tensors({3}), tensors({4})), operation(500, tensors({0, 5, 1})),
                      operation(100, tensors({4, 5})), operation(1000, {}, tensors({2}))};
  CHECK(best_time(trace, machine_of(4192)) == 7600);  // the planner ilp proves that it is the shortest

  trace.tensors = {tensor(1000), tensor(2000), tensor(3000, TensorKind::input), tensor(1000, TensorKind::input),
                   tensor(500)};
  trace.operations = {operation(10, tensors({2, 4}), {}, tensors({0})), operation(100, {}, {}, tensors({3, 2, 1}))};
  Machine machine = machine_of(6001);
  machine.d2h.bytes_per_second /= 2;
  CHECK(best_time(trace, machine) <= 9610);
}

}  // namespace swapmm::test::small_programs_test
