// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include <swapmm/ir/liveness.hpp>

using namespace swapmm;

namespace {

TensorId t(std::uint32_t id) { return TensorId{id}; }

/// n operations that use nothing yet.
Trace idle_trace(std::size_t n) {
  Trace trace;
  trace.operations.resize(n);
  return trace;
}

TensorId add_tensor(Trace& trace, std::uint64_t bytes, TensorKind kind) {
  trace.tensors.push_back({"", Bytes{bytes}, kind, 0});
  return id_at<TensorId>(trace.tensors.size() - 1);
}

std::vector<std::uint64_t> live_bytes(const Trace& trace, std::uint64_t alignment = 1) {
  REQUIRE_MESSAGE(check_trace(trace).has_value(), check_trace(trace).problem().message);
  std::vector<std::uint64_t> bytes;
  for (const Bytes live : analyze_liveness(trace, Bytes{alignment}).live) bytes.push_back(live.value);
  return bytes;
}

using Profile = std::vector<std::uint64_t>;

/// Whether operation `i` has the tensor in its bundle, and how.
const TensorId* find(const std::vector<TensorId>& ids, TensorId id) {
  const auto found = std::find(ids.begin(), ids.end(), id);
  return found == ids.end() ? nullptr : &*found;
}

/// The definition, word for word: walk forward from operation `i` and see what comes first, somebody who wants the
/// value that is there or somebody who overwrites it.
bool lives_at(const Trace& trace, TensorId id, std::size_t i) {
  const TensorKind kind = trace.tensors[index(id)].kind;
  const std::size_t n = trace.operations.size();
  const auto in_bundle = [&](const TraceOperation& o) {
    return find(o.reads, id) != nullptr || find(o.writes, id) != nullptr || find(o.updates, id) != nullptr;
  };
  if (in_bundle(trace.operations[i])) return true;
  bool used_before = false;
  bool used = false;
  for (std::size_t j = 0; j < n; ++j) {
    used = used || in_bundle(trace.operations[j]);
    used_before = used_before || (j < i && in_bundle(trace.operations[j]));
  }
  if (kind != TensorKind::persistent && !used_before) return false;
  const std::size_t end = kind == TensorKind::persistent ? i + n : n;
  for (std::size_t j = i; j < end; ++j) {
    if (j > i) {
      const TraceOperation& o = trace.operations[j % n];
      if (find(o.writes, id) != nullptr) return false;
      if (in_bundle(o)) return true;
    }
    for (const HostRead& read : trace.host_reads) {
      if (read.tensor == id && index(read.after_operation) == j % n) return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("a transient lives from its first write to its last use") {
  Trace trace = idle_trace(5);
  const TensorId a = add_tensor(trace, 7, TensorKind::transient);
  trace.operations[1].writes = {a};
  trace.operations[3].reads = {a};
  CHECK(live_bytes(trace) == Profile{0, 7, 7, 7, 0});
}

TEST_CASE("a value is dead from its last use to the write that replaces it") {
  Trace trace = idle_trace(5);
  const TensorId a = add_tensor(trace, 7, TensorKind::transient);
  trace.operations[0].writes = {a};
  trace.operations[1].reads = {a};
  trace.operations[4].writes = {a};
  CHECK(live_bytes(trace) == Profile{7, 7, 0, 0, 7});
}

TEST_CASE("a host read keeps a value until after its operation") {
  Trace trace = idle_trace(5);
  const TensorId a = add_tensor(trace, 7, TensorKind::transient);
  trace.operations[0].writes = {a};
  trace.operations[4].writes = {a};
  trace.host_reads = {{a, OperationId{2}}, {a, OperationId{1}}};
  CHECK(live_bytes(trace) == Profile{7, 7, 7, 0, 7});
}

TEST_CASE("a persistent value lives all around where somebody reads it") {
  Trace trace = idle_trace(4);
  const TensorId a = add_tensor(trace, 7, TensorKind::persistent);
  trace.operations[2].reads = {a};
  CHECK(live_bytes(trace) == Profile{7, 7, 7, 7});
}

TEST_CASE("a persistent tensor that each iteration overwrites is dead before the write") {
  Trace trace = idle_trace(5);
  const TensorId a = add_tensor(trace, 7, TensorKind::persistent);
  trace.operations[2].writes = {a};
  trace.operations[3].reads = {a};
  CHECK(live_bytes(trace) == Profile{0, 0, 7, 7, 0});
  SUBCASE("unless the host reads it in the next iteration") {
    trace.host_reads = {{a, OperationId{0}}};
    CHECK(live_bytes(trace) == Profile{7, 0, 7, 7, 7});
  }
}

TEST_CASE("an input counts from its first use to its last") {
  Trace trace = idle_trace(5);
  const TensorId a = add_tensor(trace, 7, TensorKind::input);
  trace.operations[1].reads = {a};
  trace.operations[3].reads = {a};
  CHECK(live_bytes(trace) == Profile{0, 7, 7, 7, 0});
}

TEST_CASE("a tensor that nothing uses never counts") {
  Trace trace = idle_trace(2);
  add_tensor(trace, 7, TensorKind::persistent);
  add_tensor(trace, 7, TensorKind::input);
  add_tensor(trace, 7, TensorKind::transient);
  CHECK(live_bytes(trace) == Profile{0, 0});
}

TEST_CASE("sizes are rounded up to the alignment, in the profile, the peak and the largest bundle") {
  Trace trace = idle_trace(3);
  const TensorId a = add_tensor(trace, 1, TensorKind::persistent);
  const TensorId b = add_tensor(trace, 257, TensorKind::transient);
  trace.operations[0].reads = {a};
  trace.operations[1].reads = {a};
  trace.operations[1].writes = {b};
  trace.operations[2].updates = {b};
  CHECK(live_bytes(trace, 256) == Profile{256, 768, 768});
  const Liveness liveness = analyze_liveness(trace, Bytes{256});
  CHECK(liveness.peak == Bytes{768});
  CHECK(liveness.largest_bundle == Bytes{768});
  CHECK(liveness.largest_bundle_operation == OperationId{1});
}

TEST_CASE("uses stand in the order of the operations, each with its access") {
  Trace trace = idle_trace(3);
  const TensorId a = add_tensor(trace, 1, TensorKind::transient);
  const TensorId unused = add_tensor(trace, 1, TensorKind::transient);
  trace.operations[0].writes = {a};
  trace.operations[1].updates = {a};
  trace.operations[2].reads = {a};
  const Liveness liveness = analyze_liveness(trace, Bytes{1});
  const auto& uses = liveness.uses[index(a)];
  REQUIRE(uses.size() == 3);
  CHECK(uses[0].operation == OperationId{0});
  CHECK(uses[0].access == Access::write);
  CHECK(uses[1].operation == OperationId{1});
  CHECK(uses[1].access == Access::update);
  CHECK(uses[2].operation == OperationId{2});
  CHECK(uses[2].access == Access::read);
  CHECK(liveness.uses[index(unused)].empty());
}

TEST_CASE("for any trace the profile is what walking forward from each operation finds") {
  std::mt19937_64 random(1);  // the same traces in every run
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  std::size_t checked = 0;
  for (int round = 0; round < 5000; ++round) {
    Trace trace = idle_trace(1 + below(7));
    for (std::size_t tensors = 1 + below(3); tensors > 0; --tensors) {
      add_tensor(trace, 1 + below(100), static_cast<TensorKind>(below(3)));
    }
    for (TraceOperation& operation : trace.operations) {
      for (std::uint32_t id = 0; id < trace.tensors.size(); ++id) {
        switch (below(5)) {
          case 0: operation.reads.push_back(t(id)); break;
          case 1: operation.writes.push_back(t(id)); break;
          case 2: operation.updates.push_back(t(id)); break;
          default: break;
        }
      }
    }
    for (std::size_t reads = below(3); reads > 0; --reads) {
      trace.host_reads.push_back(
          {id_at<TensorId>(below(trace.tensors.size())), id_at<OperationId>(below(trace.operations.size()))});
    }
    if (!check_trace(trace)) continue;
    ++checked;
    const Liveness liveness = analyze_liveness(trace, Bytes{1});
    Profile expected(trace.operations.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      std::vector<TensorId> live;
      for (std::uint32_t id = 0; id < trace.tensors.size(); ++id) {
        if (!lives_at(trace, t(id), i)) continue;
        expected[i] += trace.tensors[id].bytes.value;
        live.push_back(t(id));
      }
      CHECK(tensors_live_at(trace, liveness, id_at<OperationId>(i)) == live);
    }
    CHECK(live_bytes(trace) == expected);
    CHECK(liveness.peak.value == *std::max_element(expected.begin(), expected.end()));
  }
  CHECK(checked > 1000);
}
