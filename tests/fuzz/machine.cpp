// SPDX-License-Identifier: Apache-2.0
// Any text as a machine.
#include <swapmm/formats/machine_json.hpp>

#include "fuzz/round_trip.hpp"

using namespace swapmm;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto machine = fuzz::read_both_ways(
      fuzz::text_of(data, size), [](auto&& source) { return read_machine(source); }, write_machine);
  if (machine) fuzz::expect(check_machine(*machine).has_value(), "what was read passes its check");
  return 0;
}
