// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace swapmm::cli {

/// A machine that --machine knows by its name.
struct NamedMachine {
  std::string name;
  std::string summary;  ///< one line
  std::string sources;  ///< where its figures come from
  std::string text;     ///< of format swapmm-machine, version 2
};

[[nodiscard]] const std::vector<NamedMachine>& named_machines();

/// The machine file of that name; none if there is none.
[[nodiscard]] std::optional<std::string> named_machine(std::string_view name);

/// "a, b, c"
[[nodiscard]] std::string machine_names();

}  // namespace swapmm::cli
