// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <swapmm/backend/simulated.hpp>

#include "program_model.hpp"
#include "test_program.hpp"

namespace swapmm::test {

/// What one operation of a program does on the device, whenever the device comes to it.
struct Kernel {
  struct Operand {
    std::byte* data = nullptr;  ///< where its first slice begins
    SlicedBytes layout;
    SliceRange range;
    Access access = Access::read;
    SliceVersions versions{};  ///< before the operation
  };
  std::size_t number = 0;
  std::string* failure = nullptr;  ///< takes the first thing that is wrong
  std::array<Operand, most_parts> parts;
  std::size_t part_count = 0;
  std::byte* scratch = nullptr;
  std::uint32_t scratch_bytes = 0;
  std::array<simulated::Touch, most_parts + 1> touches;
  std::size_t touch_count = 0;

  /// Checks what it needs, and puts a pattern into its work area.
  void read() const;
  /// Checks that inputs and work area are still the same, and writes the next versions.
  void write() const;
};

[[nodiscard]] std::string text_of(const SlicedBytes& tensor, const simulated::Finding& finding);

/// Queues it in the order of the queue, as one or two launches of one or two phases.
void launch_kernel(simulated::Queue& queue, std::string_view name, const Kernel& kernel, const Form& form);
/// The same behind a wait list.
[[nodiscard]] simulated::NativeEvent launch_kernel(simulated::Queue& queue, std::string_view name, const Kernel& kernel,
                                                   const Form& form, const simulated::WaitList& waits);

}  // namespace swapmm::test
