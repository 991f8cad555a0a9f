// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the runner of programs asks of a device: the simulated one, or a real one of some API.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/report.hpp>

#include "support/program/kernel.hpp"
#include "support/test_program.hpp"

namespace swapmm::test {

/// A place on the device, for comparing.
struct ProgramPlace {
  const void* memory = nullptr;  ///< nothing where `offset` is an address
  std::uint64_t offset = 0;
  friend bool operator==(const ProgramPlace&, const ProgramPlace&) = default;
};

/// Made for one program; it lives longer than everything of the run.
template <class D>
concept ProgramDevice = Backend<typename D::Backend> && std::constructible_from<D, const TestProgram&> &&
    requires(D device, typename D::Backend::Queue& queue, std::string_view name, Kernel& kernel, const LaunchForm& form,
             std::span<const typename D::Backend::template View<std::byte>> places,
             const typename D::Backend::template View<std::byte>& place, const typename D::Backend::WaitList& waits,
             const Report& report, const Options& options) {
  { device.backend() } -> std::convertible_to<typename D::Backend>;
  // Queues the kernel, in both forms of an operation: its operands are at these places, and its work area is at the
  // last one where it has any.
  {device.launch(queue, name, kernel, form, places)};
  { device.launch(queue, name, kernel, form, places, waits) } -> std::same_as<typename D::Backend::NativeEvent>;
  // Where that begins.
  { device.place(place) } -> std::same_as<ProgramPlace>;
  // What the device has found wrong so far; how it differs from the report, or exceeds a budget; what is left on it
  // when all is gone. Empty: nothing.
  { device.violation() } -> std::same_as<std::string>;
  { device.excess(report, options) } -> std::same_as<std::string>;
  { device.left_over() } -> std::same_as<std::string>;
  // Of all its steps; 0 where a run cannot be repeated step by step.
  { device.trace_hash() } -> std::same_as<std::uint64_t>;
};

}  // namespace swapmm::test
