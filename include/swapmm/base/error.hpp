// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>

#include <swapmm/base/export.hpp>

namespace swapmm {

/// Base of every exception that swapmm throws itself, but for OutOfMemory. what() names operation, tensor, need,
/// have, and what to do.
struct SWAPMM_EXPORT Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The program uses the library against its rules; nothing was queued.
struct SWAPMM_EXPORT UsageError : Error {
  using Error::Error;
};

/// A bundle that can never be on the device at once: larger than the budget, or not packable into the arenas.
struct SWAPMM_EXPORT BundleTooLarge : UsageError {
  using UsageError::UsageError;
};

/// A read or update of a value that nobody wrote.
struct SWAPMM_EXPORT UndefinedValue : UsageError {
  using UsageError::UsageError;
};

/// A read of a value that a followed plan took for dead and dropped: the program reads it at a place where it did
/// not read it while it was observed. Lifetime::kept prevents it. The value is gone; the manager works on.
struct SWAPMM_EXPORT DroppedValue : Error {
  using Error::Error;
};

/// A thread calls the manager while another one is inside it.
struct SWAPMM_EXPORT ConcurrentUse : UsageError {
  using UsageError::UsageError;
};

/// An operation's callable calls the manager: operations, uploads and downloads cannot nest.
struct SWAPMM_EXPORT NestedOperation : UsageError {
  using UsageError::UsageError;
};

/// A plan that Scheduler::load_plan() was given cannot be read, breaks a rule of its format, or is another program's.
/// Nothing has changed.
struct SWAPMM_EXPORT PlanRefused : Error {
  using Error::Error;
};

/// Declared and real accesses of an operation differ (found with check_access on).
struct SWAPMM_EXPORT AccessViolation : Error {
  using Error::Error;
};

/// What a backend reports of its API: the kind decides what the library does next, code and text are the API's.
struct SWAPMM_EXPORT BackendError : Error {
  /// What the failure means to the library.
  enum class Kind : std::uint8_t {
    out_of_device_memory,
    out_of_host_memory,
    device_lost,  ///< sticky: nothing works on this device any more
    failed,       ///< this call did not do what it should; others may
  };
  Kind kind;  ///< of failure
  long code;  ///< the API's own status code

  /// For backends; `text` names the call.
  BackendError(Kind kind_, long code_, const std::string& text) : Error(text), kind(kind_), code(code_) {}
};

/// The host or the device refused memory within the budgets. Derives from std::bad_alloc, as callers expect of
/// allocation failures; what() carries the whole text.
class SWAPMM_EXPORT OutOfMemory : public std::bad_alloc {
 public:
  /// `text` is what what() gives.
  explicit OutOfMemory(const std::string& text) : text_(text) {}
  /// Who asked for the memory, and what refused it.
  [[nodiscard]] const char* what() const noexcept override { return text_.what(); }

 private:
  std::runtime_error text_;  // a copy of it cannot throw
};

/// The device is gone. Sticky: every later call of the manager throws it again; destructors return.
struct SWAPMM_EXPORT DeviceLost : Error {
  using Error::Error;
};

/// Queued work failed, and values that depended on it are undefined from now on; what() names them.
struct SWAPMM_EXPORT WorkFailed : Error {
  using Error::Error;
};

}  // namespace swapmm
