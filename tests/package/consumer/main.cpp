// SPDX-License-Identifier: Apache-2.0
// Links what the library itself links: its parser and its SHA-256.
#include <swapmm/formats/trace_json.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/version.hpp>

int main() {
  static_assert(SWAPMM_VERSION_MAJOR == 0);
  const auto trace = swapmm::read_trace(R"({"format": "swapmm-trace", "version": 1, "name": "one operation",
      "tensors": [{"name": "t", "bytes": 4, "kind": "persistent"}],
      "operations": [{"name": "o", "duration_ns": 1, "reads": [], "writes": [], "updates": [0]}]})");
  return trace.has_value() && swapmm::digest(*trace).size() == 64 ? 0 : 1;
}
