// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace swapmm::opencl::layer::facts {

/// The first line of what the helper is asked, and of what it says. Its number is the version of the analysis
/// (kernel_facts/request.hpp).
inline constexpr std::string_view first_line = "swapmm-kernel-facts 2";

/// What a kernel does with an argument, as the analysis writes it (backends/opencl/kernel_facts/analysis.hpp).
enum class ArgumentUse : char {
  no_buffer = 's',  // or 'v', see KernelFacts::decides_no_place()
  nothing = '-',
  read = 'r',
  both = 'u',
  written = 'w',                 ///< never read; where may depend on data
  written_at_fixed = 'W',        ///< never read; where depends on sizes and scalars alone
  written_at_fixed_local = 'L',  ///< the same, for launches that say how large a work group is
};

struct KernelFacts {
  std::string arguments;  ///< a ArgumentUse for each
  bool effects = true;    ///< it changes something beside its arguments
  [[nodiscard]] ArgumentUse use(std::size_t argument) const {
    return decides_no_place(argument) ? ArgumentUse::no_buffer : static_cast<ArgumentUse>(arguments[argument]);
  }
  /// A scalar whose value changes no place where arguments of the last two kinds are written.
  [[nodiscard]] bool decides_no_place(std::size_t argument) const { return arguments[argument] == 'v'; }
};

using ProgramFacts = std::map<std::string, KernelFacts, std::less<>>;

/// Reads what the analysis wrote. None if it is not whole.
[[nodiscard]] std::optional<ProgramFacts> read_facts(std::string_view text);

}  // namespace swapmm::opencl::layer::facts
