// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include <swapmm/ir/limits.hpp>
#include <swapmm/ir/trace.hpp>

#include "support/plan_text.hpp"

using namespace swapmm;

namespace {

TensorId t(std::uint32_t id) { return TensorId{id}; }

/// Weights 0, input 1 from operation 1 on, transient 2, over three operations.
Trace small_trace() {
  Trace trace;
  trace.name = "small";
  trace.tensors = {{"weights", Bytes{4096}, TensorKind::persistent, 0},
                   {"images", Bytes{100}, TensorKind::input, 1},
                   {"hidden", Bytes{12}, TensorKind::transient, 0}};
  trace.operations = {{"make", std::chrono::nanoseconds{10}, {t(0)}, {t(2)}, {}},
                      {"use", std::chrono::nanoseconds{0}, {t(1), t(2)}, {}, {t(0)}},
                      {"nothing", std::chrono::nanoseconds{5}, {}, {}, {}}};
  trace.host_reads = {{t(2), OperationId{0}}, {t(0), OperationId{2}}};
  return trace;
}

struct BadTrace {
  std::function<void(Trace&)> spoil;
  std::string message;
};

}  // namespace

TEST_CASE("a well-formed trace passes its check") {
  CHECK(check_trace(small_trace()).has_value());
  Trace trace = small_trace();
  trace.tensors[2].bytes = Bytes{0};
  CHECK(check_trace(trace).has_value());
  trace.tensors[2].bytes = Bytes{limits::magnitude - 1 - 4096 - 100};
  CHECK(check_trace(trace).has_value());
  trace.operations[0].duration = std::chrono::nanoseconds{(std::int64_t{1} << 62) - 1 - 5};
  CHECK(check_trace(trace).has_value());
}

TEST_CASE("a trace without tensors is one of operations alone") {
  Trace trace;
  trace.operations.emplace_back();
  CHECK(check_trace(trace).has_value());
}

TEST_CASE("whatever breaks a rule of traces is refused by field, index and numbers") {
  const std::vector<BadTrace> bad = {
      {[](Trace& x) { x.operations.clear(); }, "operations: a trace has at least one"},
      {[](Trace& x) { x.operations[1].reads[1] = t(4000000000); },
       "operations[1].reads[1]: 4000000000 is not the id of one of the 3 tensors"},
      {[](Trace& x) { x.operations[0].writes[0] = t(3); },
       "operations[0].writes[0]: 3 is not the id of one of the 3 tensors"},
      {[](Trace& x) {
         x.operations[1].updates = {t(0), t(3)};
       },
       "operations[1].updates[1]: 3 is not the id of one of the 3 tensors"},
      {[](Trace& x) { x.operations[1].updates = {t(1)}; },
       "operations[1].updates[0]: tensor 1 stands in the bundle twice"},
      {[](Trace& x) {
         x.operations[1].reads = {t(1), t(1)};
       },
       "operations[1].reads[1]: tensor 1 stands in the bundle twice"},
      {[](Trace& x) {
         x.operations[0].writes = {t(2), t(0)};
       },
       "operations[0].writes[1]: tensor 0 stands in the bundle twice"},
      {[](Trace& x) { x.operations[2].duration = std::chrono::nanoseconds{-1}; },
       "operations[2].duration_ns: -1 is below 0"},
      {[](Trace& x) { x.operations[2].duration = std::chrono::nanoseconds{(std::int64_t{1} << 62) - 10}; },
       "operations[2].duration_ns: with 4611686018427387894 the durations add up to 2^62 or more"},
      {[](Trace& x) { x.operations[0].writes.clear(); },
       "operations[1].reads[1]: transient 2 has no value before it is written"},
      {[](Trace& x) { x.operations[0].writes.clear(), x.operations[0].updates = {t(2)}; },
       "operations[0].updates[0]: transient 2 has no value before it is written"},
      {[](Trace& x) { x.operations[0].reads = {t(1)}; },
       "operations[0].reads[0]: input 1 has no value before operation 1"},
      {[](Trace& x) { x.tensors[0].available_from = 1; },
       "tensors[0].available_from: only an input has it, and this tensor is persistent"},
      {[](Trace& x) { x.tensors[1].available_from = 3; },
       "tensors[1].available_from: 3 is not one of the 3 operations"},
      {[](Trace& x) { x.tensors[2].bytes = Bytes{limits::magnitude - 4096 - 100}; },
       "tensors[2].bytes: with 4611686018427383708 the sizes add up to 2^62 or more"},
      {[](Trace& x) { x.tensors[2].bytes = Bytes{~std::uint64_t{0}}; },
       "tensors[2].bytes: with 18446744073709551615 the sizes add up to 2^62 or more"},
      {[](Trace& x) { x.host_reads[1].tensor = t(3); },
       "host_reads[1].tensor: 3 is not the id of one of the 3 tensors"},
      {[](Trace& x) { x.host_reads[0].after_operation = OperationId{3}; },
       "host_reads[0].after_operation: 3 is not one of the 3 operations"},
      {[](Trace& x) {
         x.operations = {x.operations[2], x.operations[0]}, x.tensors[1].available_from = 0;
       },
       "host_reads[0]: transient 2 has no value after operation 0"},
      {[](Trace& x) { x.host_reads[0].tensor = t(1); }, "host_reads[0]: input 1 has no value after operation 0"},
  };
  for (const BadTrace& one : bad) {
    CAPTURE(one.message);
    Trace trace = small_trace();
    one.spoil(trace);
    const Check check = check_trace(trace);
    REQUIRE_FALSE(check.has_value());
    CHECK(check.problem().message == one.message);
  }
}

TEST_CASE("a trace has at most 2^20 tensors") {
  Trace trace;
  trace.operations.emplace_back();
  trace.tensors.resize(limits::tensors);
  CHECK(check_trace(trace).has_value());
  trace.tensors.emplace_back();
  REQUIRE_FALSE(check_trace(trace).has_value());
  CHECK(check_trace(trace).problem().message == "tensors: 1048577 are more than the 1048576 that a trace may have");
}

TEST_CASE("the digest is SHA-256 over sizes, kinds and sorted bundles") {
  Trace trace;
  trace.tensors = {{"a", Bytes{4096}, TensorKind::persistent, 0},
                   {"b", Bytes{0}, TensorKind::input, 0},
                   {"c", Bytes{12}, TensorKind::transient, 0}};
  trace.operations = {{"x", std::chrono::nanoseconds{1}, {t(1), t(0)}, {t(2)}, {}},
                      {"y", std::chrono::nanoseconds{2}, {}, {}, {t(2), t(0)}}};
  // SHA-256 of "T 4096 persistent\nT 0 input\nT 12 transient\nO r0,1 w2 u\nO r w u0,2\n", by another program.
  const std::string expected = "1018c7a12924c754eb526271d37ef14c3825c3e97a48b09a414da097a112a675";
  CHECK(digest(trace) == expected);

  SUBCASE("names, durations, host reads and the order within a list are not part of it") {
    trace.name = "other";
    trace.tensors[0].name = "other";
    trace.operations[1].name = "other";
    trace.operations[0].duration = std::chrono::nanoseconds{77};
    trace.operations[0].reads = {t(0), t(1)};
    trace.host_reads = {{t(0), OperationId{0}}};
    CHECK(digest(trace) == expected);
  }
  SUBCASE("a size is") {
    trace.tensors[1].bytes = Bytes{1};
    CHECK(digest(trace) != expected);
  }
  SUBCASE("a kind is") {
    trace.tensors[1].kind = TensorKind::persistent;
    CHECK(digest(trace) != expected);
  }
  SUBCASE("how a tensor is accessed is") {
    std::swap(trace.operations[0].writes, trace.operations[0].updates);
    CHECK(digest(trace) != expected);
  }
  SUBCASE("the order of operations is") {
    std::swap(trace.operations[0], trace.operations[1]);
    CHECK(digest(trace) != expected);
  }
}

TEST_CASE("the digest of nothing is SHA-256 of the empty text") {
  CHECK(digest(Trace{}) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST_CASE("a tensor of a trace in memory has no more forms than one in a file may have") {
  Trace trace = test::unused_constants(1);
  for (std::size_t i = 0; i < limits::forms; ++i) {
    trace.forms.push_back({TensorId{0}, "f" + std::to_string(i), Bytes{1}, Bytes{1}, {}, {}});
  }
  CHECK(check_trace(trace));
  trace.forms.push_back({TensorId{0}, "more", Bytes{1}, Bytes{1}, {}, {}});
  CHECK(!check_trace(trace));
}
