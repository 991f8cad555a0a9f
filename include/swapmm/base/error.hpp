// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>

// All exceptions of the library. what() is a text for a person. Everything in it that a program may act on is also a
// member: numbers are data members, names are functions. Copies of an exception share its names and text, so copying
// one never throws.

namespace swapmm {

/// Identifies a tensor in an exception.
struct TensorName {
  std::uint64_t id = 0;   ///< `Tensor::id()`; 0 if unknown
  std::string name = {};  ///< as given to `MemoryManager::tensor()`
  Bytes bytes = {};       ///< size of the whole tensor, without padding

  friend bool operator==(const TensorName&, const TensorName&) = default;
};

/// The names that an exception contains. Passed to the constructors of exceptions.
struct ErrorDetails {
  std::string operation = {};            ///< see ErrorContext::operation()
  std::vector<TensorName> tensors = {};  ///< see ErrorContext::tensors()
  std::vector<TensorName> lost = {};     ///< see ErrorContext::lost()
};

/// Base of all exceptions: the operation and the tensors that the exception is about.
class SWAPMM_EXPORT ErrorContext {
 public:
  /// Name of the operation, as given to `MemoryManager::run()`; empty if the exception is not about an operation.
  [[nodiscard]] const std::string& operation() const noexcept { return details().operation; }
  /// The tensors that the exception is about; may be empty. Each type says which tensors these are.
  [[nodiscard]] const std::vector<TensorName>& tensors() const noexcept { return details().tensors; }
  /// The tensors whose values are lost: they are undefined until they are written or uploaded again. May be empty.
  [[nodiscard]] const std::vector<TensorName>& lost() const noexcept { return details().lost; }
  /// All of the above, for throwing another exception with the same data.
  [[nodiscard]] const ErrorDetails& details() const noexcept {
    static const ErrorDetails none;
    return details_ == nullptr ? none : *details_;
  }

 protected:
  ErrorContext() noexcept = default;
  /// Throws std::bad_alloc.
  explicit ErrorContext(ErrorDetails&& details) : details_(std::make_shared<const ErrorDetails>(std::move(details))) {}

 private:
  std::shared_ptr<const ErrorDetails> details_;  // null: none
};

/// Base of every exception that swapmm throws itself, except OutOfMemory.
struct SWAPMM_EXPORT Error : std::runtime_error, ErrorContext {
  /// For the library and for backends. Makes an exception without names.
  explicit Error(const std::string& text) : std::runtime_error(text) {}
  /// For the library and for backends. Makes an exception with the names that `text` contains.
  Error(const std::string& text, ErrorDetails details) : std::runtime_error(text), ErrorContext(std::move(details)) {}
};

/// The program breaks a rule of the library. Nothing was queued. tensors(): the tensors that are misused.
struct SWAPMM_EXPORT UsageError : Error {
  using Error::Error;
};

/// The tensors and the scratch of one operation do not fit the device together: they are larger than the budget, or do
/// not pack into the device's largest allocations. tensors(): the tensors of the operation, largest first.
struct SWAPMM_EXPORT BundleTooLarge : UsageError {
  /// Sizes in bytes.
  struct Sizes {
    Bytes need = {};                ///< tensors and scratch, padded to the device's alignment; at most 2^64 - 1
    Bytes budget = {};              ///< the device budget
    Bytes largest_allocation = {};  ///< largest piece of device memory; the budget if the device has no lower limit
    Bytes scratch = {};             ///< the scratch that the operation declares
  };
  Sizes sizes;  ///< the sizes that do not fit

  /// For the library.
  BundleTooLarge(const std::string& text, ErrorDetails details, const Sizes& sizes_)
      : UsageError(text, std::move(details)), sizes(sizes_) {}
};

/// An operation or the host needs a value that was never written. tensors(): the tensor without a value. operation() is
/// empty if the host needs the value.
struct SWAPMM_EXPORT UndefinedValue : UsageError {
  using UsageError::UsageError;
};

/// A thread calls the manager while another thread is inside it. The call changed nothing.
struct SWAPMM_EXPORT ConcurrentUse : UsageError {
  using UsageError::UsageError;
};

/// An operation's callable calls the manager. operation(): the operation that has this callable.
struct SWAPMM_EXPORT NestedOperation : UsageError {
  using UsageError::UsageError;
};

/// An operation or the host needs a value that a followed plan dropped, because no observed iteration read it there.
/// The value is gone. The manager still works, and the next plan keeps the value. `swapmm::kept` prevents this error.
/// tensors() and lost(): the tensor without a value. operation() is empty if the host needs the value.
struct SWAPMM_EXPORT DroppedValue : Error {
  using Error::Error;
};

/// A plan that was passed to `Scheduler::load_plan()` cannot be read, is invalid, or belongs to another program.
/// Nothing has changed.
struct SWAPMM_EXPORT PlanRefused : Error {
  /// For the library.
  explicit PlanRefused(const std::string& reason) : Error(std::string(prefix) + reason) {}
  /// The reason, without the prefix that all these texts have.
  [[nodiscard]] std::string_view reason() const noexcept { return std::string_view(what()).substr(prefix.size()); }

 private:
  static constexpr std::string_view prefix = "plan refused: ";
};

/// An operation accessed a tensor in a way that it does not declare. Thrown only with `Options::check_access`.
/// tensors(): that tensor. The operation has run.
struct SWAPMM_EXPORT AccessViolation : Error {
  /// What the operation did.
  enum class Kind : std::uint8_t {
    changed_read,        ///< it changed a tensor that it declares to read only
    changed_undeclared,  ///< it changed a tensor that is not in its bundle
    left_unwritten,      ///< it did not write all of a tensor that it declares to write
    not_replayable,      ///< it is declared replayable, and wrote other values when it ran again
  };
  Kind kind;        ///< what it did
  Bytes unwritten;  ///< for left_unwritten: number of bytes that were not written

  /// For the library.
  AccessViolation(const std::string& text, ErrorDetails details, Kind kind_, Bytes unwritten_ = {})
      : Error(text, std::move(details)), kind(kind_), unwritten(unwritten_) {}
};

/// A call of the backend's API failed. If a manager throws it, the kind is always `failed`: the other kinds become
/// OutOfMemory and DeviceLost. tensors(): the tensor that is uploaded, downloaded or viewed.
struct SWAPMM_EXPORT BackendError : Error {
  /// What the failure means for the library.
  enum class Kind : std::uint8_t {
    out_of_device_memory,  ///< the API refused device memory
    out_of_host_memory,    ///< the API refused host memory
    device_lost,           ///< permanent: nothing works on this device any more
    failed,                ///< this call failed; other calls may succeed
  };
  Kind kind;   ///< decides what the library does next
  long code;   ///< the API's status code; 0 if the API gave none
  Bytes need;  ///< bytes requested if memory was refused; otherwise 0

  /// For backends. `text` names the call.
  BackendError(Kind kind_, long code_, const std::string& text, Bytes need_ = {})
      : Error(text), kind(kind_), code(code_), need(need_) {}
  /// For the library. Adds the operation or tensor to `cause`.
  BackendError(const BackendError& cause, const std::string& text, ErrorDetails details)
      : Error(text, std::move(details)), kind(cause.kind), code(cause.code), need(cause.need) {}
};

/// The device or the host refused memory. Derives from std::bad_alloc, as allocation failures do. tensors(): the tensor
/// that is uploaded or downloaded.
class SWAPMM_EXPORT OutOfMemory : public std::bad_alloc, public ErrorContext {
 public:
  /// Sizes in bytes; 0 if unknown.
  struct Sizes {
    Bytes need = {};    ///< requested, in one piece
    Bytes in_use = {};  ///< already used by the manager in that memory
    Bytes budget = {};  ///< the manager's limit for that memory; 0 if the budget was not the reason
  };
  Sizes sizes;         ///< the request, and the state of that memory
  const char* memory;  ///< name of the memory: "device" or "host"
  long code;           ///< the API's status code; 0 if the library's own budget refused

  /// For the library. `memory_name` must be a string literal.
  OutOfMemory(const std::string& text, const char* memory_name, const Sizes& sizes_, long code_ = 0,
              ErrorDetails details = {})
      : ErrorContext(std::move(details)), sizes(sizes_), memory(memory_name), code(code_), text_(text) {}
  /// A text for a person: the call that needed the memory, and the reason why it was refused.
  [[nodiscard]] const char* what() const noexcept override { return text_.what(); }

 private:
  std::runtime_error text_;  // a copy of it cannot throw
};

/// The device is gone. Every later call of the manager throws the same error; destructors return. lost(): the tensors
/// whose values were only on the device. operation(): the operation that found the loss.
struct SWAPMM_EXPORT DeviceLost : Error {
  long code = 0;  ///< the API's status code; 0 if the API gave none

  using Error::Error;
  /// For the library.
  DeviceLost(const std::string& text, ErrorDetails details, long code_)
      : Error(text, std::move(details)), code(code_) {}
};

/// Queued work failed after its call had returned, or a value that such a failure left undefined is needed. lost(): the
/// tensors that are undefined from now on.
struct SWAPMM_EXPORT WorkFailed : Error {
  /// What failed.
  enum class Work : std::uint8_t {
    operation,  ///< operation(); at most 39 characters of its name are kept
    swap_in,    ///< the copy of tensors() to the device
    swap_out,   ///< the copy of tensors() to the host
    unknown,    ///< unknown work on the device
    earlier,    ///< work that was reported before: operation() or the host needs the value of tensors(), which is lost.
                ///< (lost() is empty for an asynchronous download, because the tensor may have a new value.)
  };
  Work work;            ///< what failed
  bool certain = true;  ///< false: the API did not report whether the work failed, so it counts as failed

  /// For the library.
  WorkFailed(const std::string& text, ErrorDetails details, Work work_, bool certain_ = true)
      : Error(text, std::move(details)), work(work_), certain(certain_) {}
};

/// The library found a fault of its own. The operation was not queued. The plan that was followed is never followed
/// again, and the program continues without it. tensors(): the tensors concerned. lost(): the tensors whose values are
/// gone. Please report it.
struct SWAPMM_EXPORT InternalError : Error {
  using Error::Error;
};

}  // namespace swapmm
