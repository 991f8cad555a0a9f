// SPDX-License-Identifier: Apache-2.0
// Which values are not proven dead at once, from the waits of a program and the ends of its tensors.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <swapmm/runtime/observe/lingering.hpp>

#include "support/plan_text.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::runtime;
using test::operation;
using test::tensor;

/// `early` is last used by operation 1, and `late` by operation 4; operations 0 and 3 overwrite them.
Trace two_values() {
  Trace trace;
  trace.tensors = {tensor("early", 10, TensorKind::transient), tensor("late", 10, TensorKind::transient)};
  trace.operations = {operation("0", 1, {}, {0}), operation("1", 1, {0}), operation("2", 1, {}),
                      operation("3", 1, {}, {1}), operation("4", 1, {1}), operation("5", 1, {})};
  return trace;
}

constexpr Proofs overwritten{.known = true};

std::vector<LingeringValue> found(const std::vector<LogWait>& waits,
                                  const std::vector<Proofs>& proofs = {overwritten, overwritten}) {
  return find_lingering(two_values(), waits, proofs);
}
LingeringValue lingering(std::uint32_t tensor, std::uint32_t last_use, std::uint32_t until) {
  return {TensorId{tensor}, OperationId{last_use}, until};
}
using Values = std::vector<LingeringValue>;

}  // namespace

TEST_CASE("without waits everything is proven in time") { CHECK(found({}).empty()); }

TEST_CASE("what a step leaves is not proven before the wait at its end, unless that lets operations wait on") {
  // All must go at the end: early is overwritten by operation 6, late by operation 9. Operation 6 waits for those of
  // its own step.
  CHECK(found({{6, 0}}) == Values{lingering(0, 1, 6), lingering(1, 4, 6)});
  // Operations 3 to 5 may wait for the next step.
  CHECK(found({{6, 3}}) == Values{lingering(0, 1, 3)});
  // All but operation 0 may.
  CHECK(found({{6, 5}}).empty());
  // Two whole steps may wait.
  CHECK(found({{6, 13}}).empty());
}

TEST_CASE("a value that dies with its iteration is proven dead by the first call of the next one") {
  const std::vector<LogWait> each{{1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {6, 0}};
  const Proofs transient{.known = true, .end = LogWait::moment_of_call(6)};
  CHECK(found(each) == Values{lingering(0, 1, 6), lingering(1, 4, 9)});
  CHECK(found(each, {overwritten, transient}) == Values{lingering(0, 1, 6), lingering(1, 4, 6)});
}

TEST_CASE("each wait within a step lets go what was called before") {
  // Behind operation 1, and at the end: late is overwritten behind the first wait of the next step.
  CHECK(found({{2, 0}, {6, 0}}) == Values{lingering(0, 1, 6), lingering(1, 4, 8)});
  // After every operation: nothing is known of what comes.
  std::vector<LogWait> all;
  for (std::uint32_t calls = 1; calls <= 6; ++calls) all.push_back({calls, 0});
  CHECK(found(all) == Values{lingering(0, 1, 6), lingering(1, 4, 9)});
}

TEST_CASE("the end of a tensor proves it, and the writes of the tensor in its place do not") {
  const auto ends_at = [](std::uint64_t moment) { return Proofs{true, true, moment}; };
  const std::vector<LogWait> at_end = {{6, 0}};
  const std::uint64_t calls = LogWait::moments_per_call;
  CHECK(found(at_end, {ends_at(2 * calls), ends_at(6 * calls)}).empty());
  // Behind the wait at the end.
  CHECK(found(at_end, {ends_at(2 * calls), ends_at(6 * calls + 2)}) == Values{lingering(1, 4, 6)});
  // In the step after the next one; by then its place has been taken.
  CHECK(found(at_end, {ends_at(2 * calls), ends_at(13 * calls)}) == Values{lingering(1, 4, 9)});
  // If no end was seen, nothing is said.
  CHECK(found(at_end, {ends_at(2 * calls), ends_at(Proofs::never)}).empty());
}

TEST_CASE("nothing is said of values on the host, nor of values that are needed") {
  CHECK(found({{6, 0}}, {Proofs{}, overwritten}) == Values{lingering(1, 4, 6)});
  Trace trace = two_values();
  trace.tensors[0].kind = TensorKind::persistent;
  trace.operations[0] = operation("0", 1, {}, {}, {0});
  CHECK(find_lingering(trace, std::vector<LogWait>{{6, 0}}, std::vector<Proofs>{overwritten, overwritten}) ==
        Values{lingering(1, 4, 6)});
}
