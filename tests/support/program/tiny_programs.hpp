// SPDX-License-Identifier: Apache-2.0
#pragma once

// Programs so small that all of them can be run, each under every interleaving of the device's queues.

#include <cstddef>
#include <cstdint>
#include <string>

#include "support/test_program.hpp"

namespace swapmm::test {

/// Uploaded tensors of 16 bytes, `room` of which fit the budget, on a device that a search drives.
[[nodiscard]] TestProgram tiny_program(std::uint8_t tensors, std::uint64_t room);

/// A program was run once for each interleaving.
struct Interleavings {
  std::uint64_t runs = 0;
  std::uint64_t followed = 0;  ///< iterations by plan, in all of them
  std::string failure;         ///< of the first run that did not hold; then no other is tried
};
[[nodiscard]] Interleavings run_interleavings(TestProgram program);

/// How the programs of an enumeration are run.
enum class TinyCourse : std::uint8_t {
  on_demand,  ///< once
  followed,   ///< as an iteration that comes four times, observed once and followed from then on
};

/// All programs of `length` steps that use two tensors, with room for two of their size: a step is an operation that
/// reads, writes or updates one or both, with a work area of that size or without it, or an upload or a download of
/// one. Of two that differ by the tensors' names alone, one is left out.
struct TinyEnumeration {
  std::uint64_t programs = 0;
  std::uint64_t runs = 0;
  std::uint64_t followed = 0;
  std::uint64_t most_runs = 0;  ///< of one program
  std::string failure;          ///< with the program; then the enumeration ended there
};
/// As many steps as a run of seconds allows; one more takes minutes.
inline constexpr std::size_t tiny_steps_on_demand = 3;
inline constexpr std::size_t tiny_steps_followed = 2;

[[nodiscard]] TinyEnumeration run_tiny_programs(std::size_t length, TinyCourse course);

}  // namespace swapmm::test
