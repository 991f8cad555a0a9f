// SPDX-License-Identifier: Apache-2.0
#pragma once

// The faults that the adaptor of backend/testing/faulty.hpp injects.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include <swapmm/backend/testing/call_site.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/base/export.hpp>

namespace swapmm {

/// A class of calls of a backend that fail in the same ways. Each call passes the gate of its class once.
enum class FaultClass : std::uint8_t {
  device_allocation,
  pinned_allocation,
  pageable_allocation,
  address_creation,
  event_creation,
  copy_to_device,
  copy_to_host,
  read_file,
  write_file,
  record,
  barrier_wait,  ///< wait(queue, events)
  host_wait,     ///< wait(event)
  status_query,
  finish,
  flush,
  queue_access,  ///< queue() and wait_list()
  adopt,
  timing,         ///< set_timing() and elapsed()
  launch,         ///< Faulty::launch(), which wraps the work that the test's own operations queue
  user_callback,  ///< Faulty::fault_point(), which the test's own operations call
};
inline constexpr std::size_t fault_class_count = 20;  ///< number of fault classes

/// How a call fails.
enum class FaultMode : std::uint8_t {
  once,         ///< the n-th call throws and does nothing
  for_ever,     ///< the n-th call and every later one of its class throws and does nothing
  device_lost,  ///< every call of any class fails from the n-th call on; events report failed
  late,         ///< accepted but not done; its event reports the failure. If failures stick, the device is lost
  blind,        ///< the work is done, and then the call throws
  lazy,         ///< the object is made, and its first use throws
  slow,         ///< done after everything else that is queued
  thrown,       ///< the user's callback throws CallbackFault
};
inline constexpr std::size_t fault_mode_count = 8;  ///< number of fault modes

/// Returns the name of the enumerator.
[[nodiscard]] constexpr std::string_view to_string(FaultClass fault_class) {
  constexpr std::array<std::string_view, fault_class_count> names{"device_allocation",
                                                                  "pinned_allocation",
                                                                  "pageable_allocation",
                                                                  "address_creation",
                                                                  "event_creation",
                                                                  "copy_to_device",
                                                                  "copy_to_host",
                                                                  "read_file",
                                                                  "write_file",
                                                                  "record",
                                                                  "barrier_wait",
                                                                  "host_wait",
                                                                  "status_query",
                                                                  "finish",
                                                                  "flush",
                                                                  "queue_access",
                                                                  "adopt",
                                                                  "timing",
                                                                  "launch",
                                                                  "user_callback"};
  return names[static_cast<std::size_t>(fault_class)];
}

/// Returns the name of the enumerator.
[[nodiscard]] constexpr std::string_view to_string(FaultMode mode) {
  constexpr std::array<std::string_view, fault_mode_count> names{"once",  "for_ever", "device_lost", "late",
                                                                 "blind", "lazy",     "slow",        "thrown"};
  return names[static_cast<std::size_t>(mode)];
}

/// The reason why a class cannot fail in a mode; empty if it can.
[[nodiscard]] constexpr std::string_view why_not(FaultClass fault_class, FaultMode mode) {
  using enum FaultClass;
  const bool makes_object = fault_class <= event_creation;
  const bool queues_copy = fault_class >= copy_to_device && fault_class <= write_file;
  if (fault_class == user_callback) {
    return mode == FaultMode::thrown ? "" : "a callable of the user has one way to fail: it throws";
  }
  switch (mode) {
    case FaultMode::once:
    case FaultMode::for_ever:
    case FaultMode::blind: return fault_class != finish ? "" : "it throws only when the device is lost";
    case FaultMode::device_lost: return {};
    case FaultMode::late:
      if (queues_copy || fault_class == record || fault_class == adopt || fault_class == launch) return {};
      return makes_object ? "see lazy: what is made late fails at its first use" : "it has no event that could tell";
    case FaultMode::lazy: return makes_object ? "" : "it makes no object";
    case FaultMode::slow:
      if (queues_copy || fault_class == record || fault_class == barrier_wait) return {};
      if (fault_class == queue_access || fault_class == launch) return {};
      if (fault_class == adopt) return "it queues nothing: the work that the event stands for is slow (launch)";
      return "the host waits for it: nothing can overtake";
    case FaultMode::thrown: break;
  }
  return "only the user's callable throws what the library does not know";
}
/// Returns whether a class can fail in a mode. A fault that is not applicable never happens.
[[nodiscard]] constexpr bool applicable(FaultClass fault_class, FaultMode mode) {
  return why_not(fault_class, mode).empty();
}

/// A fault to inject: the n-th call of the class, counted from 1, fails in that mode. n = 0: no fault.
struct FaultPlan {
  FaultClass fault_class = FaultClass::device_allocation;  ///< which calls are counted
  FaultMode mode = FaultMode::once;                        ///< how it fails
  std::uint64_t n = 0;                                     ///< which of the calls
};

/// The exception of FaultMode::thrown. The library does not know it.
struct SWAPMM_EXPORT CallbackFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The code of every injected BackendError.
inline constexpr long injected_code = -7700;

/// The error that a fault plan injects.
[[nodiscard]] inline BackendError injected_error(const FaultPlan& plan) {
  auto kind = BackendError::Kind::failed;
  if (plan.mode == FaultMode::device_lost) {
    kind = BackendError::Kind::device_lost;
  } else if (plan.fault_class == FaultClass::device_allocation) {
    kind = BackendError::Kind::out_of_device_memory;
  } else if (plan.fault_class == FaultClass::pinned_allocation || plan.fault_class == FaultClass::pageable_allocation) {
    kind = BackendError::Kind::out_of_host_memory;
  }
  return {kind, injected_code,
          "injected fault: " + std::string(to_string(plan.fault_class)) + " " + std::to_string(plan.n) + ", " +
              std::string(to_string(plan.mode))};
}

/// Decides for each call of a class whether it fails, and by which fault plan. Replaces a single plan. The second
/// argument is the place that the call was made from.
using FaultChooser = std::function<std::optional<FaultPlan>(FaultClass, const CallSite&)>;

}  // namespace swapmm
