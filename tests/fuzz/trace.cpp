// SPDX-License-Identifier: Apache-2.0
// Any text as a trace, of version 1 or 2.
#include <swapmm/formats/trace_json.hpp>
#include <swapmm/ir/graph.hpp>

#include "fuzz/round_trip.hpp"

using namespace swapmm;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto trace = fuzz::read_both_ways(
      fuzz::text_of(data, size), [](auto&& source) { return read_trace(source); }, write_trace);
  if (!trace) return 0;
  fuzz::expect(check_trace(*trace).has_value(), "what was read passes its check");
  fuzz::expect(digest(*trace).size() == 64, "a digest has 64 digits");
  return 0;
}
