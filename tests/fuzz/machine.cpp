// SPDX-License-Identifier: Apache-2.0
// Any text as a machine, of version 1 and of version 2.
#include <swapmm/formats/machine_json.hpp>
#include <swapmm/formats/v2/machine_json.hpp>

#include "fuzz/round_trip.hpp"

using namespace swapmm;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  const auto machine = fuzz::read_both_ways(
      text, [](auto&& source) { return read_machine(source); }, write_machine);
  if (machine) fuzz::expect(check_machine(*machine).has_value(), "what was read passes its check");
  const auto machine_2 = fuzz::read_both_ways(
      text, [](auto&& source) { return v2::read_machine(source); }, v2::write_machine);
  if (machine_2) fuzz::expect(v2::check_machine(*machine_2).has_value(), "what was read passes its check");
  if (machine) {
    fuzz::expect(machine_2.has_value(), "a machine of version 1 is one of version 2", fuzz::message_of(machine_2));
    fuzz::expect(*machine_2 == v2::from_version_1(*machine), "a machine of version 1 is converted");
  }
  return 0;
}
