// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>

#include "fuzz/decoder.hpp"

namespace swapmm::fuzz {

inline constexpr std::size_t most_tensors = 6;
inline constexpr std::size_t most_operations = 8;

/// A small trace; not always one that passes check_trace().
[[nodiscard]] Trace decoded_trace(Decoder& in);

/// A machine whose budget is between the largest bundle of the trace and what all its tensors need, or any other
/// number. Not always one that passes check_machine().
[[nodiscard]] Machine decoded_machine(Decoder& in, const Trace& trace);

/// Whether a thousand iterations in which each operation brings and writes back its whole bundle end before the clock
/// does: times beyond saturate, and say nothing any more.
[[nodiscard]] bool clock_suffices(const Trace& trace, const Machine& machine);

/// The planner that a byte names.
[[nodiscard]] std::string_view decoded_planner(Decoder& in);

}  // namespace swapmm::fuzz
