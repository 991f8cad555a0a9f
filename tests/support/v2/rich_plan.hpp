// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace swapmm::test::general {

/// Four operations on gpu0 and one on gpu1. Both devices get their weights from the host in each iteration, over links
/// that share a capacity; those of gpu1 come in two pieces. Before the fourth operation, the first one runs again, and
/// what the second one has written is encoded in between.
inline const std::string rich_trace = R"({"format": "swapmm-trace", "version": 2, "name": "rich",
  "tensors": [{"name": "w0", "bytes": 40, "kind": "persistent"}, {"name": "w1", "bytes": 40, "kind": "persistent"},
    {"name": "x", "bytes": 20, "kind": "transient"},
    {"name": "y", "bytes": 20, "kind": "transient",
     "forms": [{"name": "zeros", "bytes": 20, "expected_bytes": 5, "encode_ns": 3, "decode_ns": 2}]}],
  "operations": [
    {"name": "first", "duration_ns": 10, "engine": "gpu0", "replayable": true, "reads": [0], "writes": [2]},
    {"name": "second", "duration_ns": 10, "engine": "gpu0", "reads": [2], "writes": [3]},
    {"name": "third", "duration_ns": 20, "engine": "gpu0", "reads": [0]},
    {"name": "fourth", "duration_ns": 10, "engine": "gpu0", "reads": [2, 3]},
    {"name": "other", "duration_ns": 45, "engine": "gpu1", "reads": [1]}]})";

/// A plan for rich_trace; the digest is a parameter.
inline std::string rich_plan(const std::string& digest) {
  return R"({"format": "swapmm-plan", "version": 2, "trace": ")" + digest + R"(", "planner": "by hand",
  "machine": {"name": "pair",
    "memories": [{"name": "gpu0", "bytes": 100}, {"name": "gpu1", "bytes": 50}, {"name": "host", "bytes": null}],
    "engines": [{"name": "gpu0", "memory": "gpu0"}, {"name": "gpu1", "memory": "gpu1"}],
    "capacities": [{"name": "root", "bytes_per_second": 1000000000}],
    "links": [
      {"name": "host-gpu0", "from": "host", "to": "gpu0", "bytes_per_second": 1000000000, "latency_ns": 0,
       "capacities": ["root"]},
      {"name": "gpu0-host", "from": "gpu0", "to": "host", "bytes_per_second": 1000000000, "latency_ns": 0},
      {"name": "host-gpu1", "from": "host", "to": "gpu1", "bytes_per_second": 1000000000, "latency_ns": 0,
       "capacities": ["root"]}],
    "host": "host"},
  "pieces": [{"tensor": 1, "at": [20]}],
  "initial": [],
  "commands": [
    {"kind": "copy", "tensor": 0, "link": "host-gpu0", "offset": 0, "after": [{"command": 11, "iteration": -1}],
     "before_operation": 0},
    {"kind": "copy", "tensor": 1, "piece": 0, "link": "host-gpu1", "offset": 0,
     "after": [{"command": 12, "iteration": -1}], "before_operation": 4},
    {"kind": "copy", "tensor": 1, "piece": 1, "link": "host-gpu1", "offset": 20,
     "after": [{"command": 13, "iteration": -1}], "before_operation": 4},
    {"kind": "allocate", "tensor": 2, "memory": "gpu0", "offset": 40, "after": [{"command": 14, "iteration": -1}],
     "before_operation": 0},
    {"kind": "allocate", "tensor": 3, "memory": "gpu0", "offset": 60, "after": [{"command": 15, "iteration": -1}],
     "before_operation": 1},
    {"kind": "release", "tensor": 2, "memory": "gpu0", "after": [{"operation": 1}]},
    {"kind": "encode", "tensor": 3, "form": "zeros", "engine": "gpu0", "position": 2, "offset": 80,
     "after": [{"operation": 1}, {"command": 16, "iteration": -1}]},
    {"kind": "release", "tensor": 3, "memory": "gpu0", "after": [{"command": 6}]},
    {"kind": "allocate", "tensor": 2, "memory": "gpu0", "offset": 40, "after": [{"command": 5}]},
    {"kind": "run", "operation": 0, "position": 3, "after": [{"command": 8}]},
    {"kind": "decode", "tensor": 3, "form": "zeros", "engine": "gpu0", "position": 3, "offset": 60,
     "after": [{"command": 7}]},
    {"kind": "release", "tensor": 0, "memory": "gpu0", "after": [{"command": 9}]},
    {"kind": "release", "tensor": 1, "piece": 0, "memory": "gpu1", "after": [{"operation": 4}]},
    {"kind": "release", "tensor": 1, "piece": 1, "memory": "gpu1", "after": [{"operation": 4}]},
    {"kind": "release", "tensor": 2, "memory": "gpu0", "after": [{"operation": 3}]},
    {"kind": "release", "tensor": 3, "memory": "gpu0", "after": [{"operation": 3}]},
    {"kind": "release", "tensor": 3, "form": "zeros", "memory": "gpu0", "after": [{"command": 10}]}]})";
}

}  // namespace swapmm::test::general
