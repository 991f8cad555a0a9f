// SPDX-License-Identifier: Apache-2.0
#pragma once

// What can go wrong: the classes of calls, the ways in which they fail, and why some pairs of them do not exist.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/backend/testing/fault_plan.hpp>

namespace swapmm::test {

/// Calls that fail alike: those of a backend, under the same numbers, and what else can fail under the library.
enum class CallClass : std::uint8_t {
  first_backend_class = 0,
  operator_new = fault_class_count,
  file_read,
  file_write,
  file_flush,
};
inline constexpr std::size_t call_class_count = fault_class_count + 4;

[[nodiscard]] constexpr CallClass call_class(FaultClass of_backend) { return static_cast<CallClass>(of_backend); }
[[nodiscard]] constexpr bool is_of_backend(CallClass call) { return call < CallClass::operator_new; }
[[nodiscard]] constexpr FaultClass fault_class(CallClass of_backend) { return static_cast<FaultClass>(of_backend); }

/// The modes of a backend, under the same numbers, and others.
enum class Way : std::uint8_t {
  once,
  for_ever,
  device_lost,
  late,
  blind,
  lazy,
  slow,
  thrown,
  late_and_lost,  ///< late, on a device whose failures stick: it is lost when the work fails
  part,           ///< a file: a short count, as after EINTR
  cut,            ///< a file: it ends early
  full,           ///< a file: ENOSPC
};
inline constexpr std::size_t way_count = fault_mode_count + 4;
static_assert(static_cast<std::size_t>(Way::late_and_lost) == fault_mode_count);
static_assert(static_cast<FaultMode>(Way::thrown) == FaultMode::thrown);

[[nodiscard]] constexpr FaultMode fault_mode(Way way) {
  return way == Way::late_and_lost ? FaultMode::late : static_cast<FaultMode>(way);
}

[[nodiscard]] std::string_view to_string(CallClass call);
[[nodiscard]] std::string_view to_string(Way way);

/// Why calls of the class do not fail in that way; empty where they do.
[[nodiscard]] std::string_view why_not(CallClass call, Way way);

struct FaultKind {
  CallClass call = CallClass::first_backend_class;
  Way way = Way::once;
  friend bool operator==(const FaultKind&, const FaultKind&) = default;
  friend auto operator<=>(const FaultKind&, const FaultKind&) = default;

  [[nodiscard]] bool repeats() const { return way == Way::for_ever || way == Way::full; }
  [[nodiscard]] bool loses_device() const { return way == Way::device_lost || way == Way::late_and_lost; }
  [[nodiscard]] bool late() const { return way == Way::late || way == Way::late_and_lost; }
  [[nodiscard]] bool of_file() const { return call > CallClass::operator_new; }
  [[nodiscard]] std::string text() const;
};

/// All that there are.
[[nodiscard]] const std::vector<FaultKind>& fault_kinds();

/// The n-th call of its class, counted from 1, goes wrong.
struct Fault {
  FaultKind kind;
  std::uint64_t n = 0;

  [[nodiscard]] std::string text() const { return kind.text() + " " + std::to_string(n); }
};

/// What goes wrong in one run. Each counts its calls from where the one before has gone wrong.
using Faults = std::vector<Fault>;
[[nodiscard]] std::string text_of(const Faults& faults);
/// The faults that such a text begins with.
[[nodiscard]] Faults faults_of(std::string_view text);

}  // namespace swapmm::test
