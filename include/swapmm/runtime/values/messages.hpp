// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>

// The exceptions of the runtime, made out of line: texts, and the data in them.

namespace swapmm::runtime {

/// A tensor's record, as exceptions name it.
template <class Record>
[[nodiscard]] TensorName name_of(const Record& record) {
  return {record.serial, record.name, record.bytes};
}

/// The call that an error belongs to. Costs nothing until there is an error. Where a tensor is meant, about_tensor()
/// makes it.
struct Who {
  std::string_view what = {};  ///< "operation ", "download of tensor "
  std::string_view name = {};  ///< may be empty
  std::uint64_t id = 0;        ///< of the tensor, if it is one
  Bytes bytes = {};            ///< of the tensor, if it is one

  [[nodiscard]] std::string text() const;
  /// The name, if `what` ends with "operation ", or "tensor ".
  [[nodiscard]] ErrorDetails details() const;
  /// `details` of an error that was found further inside, with the operation or tensor filled in if it names none.
  [[nodiscard]] ErrorDetails details(ErrorDetails inner) const;
};

/// Who for a call on a tensor: `what` ends with "tensor ".
template <class Record>
[[nodiscard]] Who about_tensor(std::string_view what, const Record& record) {
  return {what, record.name, record.serial, record.bytes};
}

[[nodiscard]] std::string in_quotes(std::string_view name);
/// "a" (1024 bytes), "b" (512 bytes) and 3 more.
[[nodiscard]] std::string sizes_text(const std::vector<TensorName>& tensors);
/// "a", "b" and 3 more: cut after eight.
[[nodiscard]] std::string names_text(const std::vector<TensorName>& tensors);
/// The text of an exception; for one that says nothing, that.
[[nodiscard]] std::string what_of(const std::exception_ptr& error);

/// Orders `tensors` by size.
[[nodiscard]] BundleTooLarge bundle_too_large(std::string_view operation, const BundleTooLarge::Sizes& sizes,
                                              std::vector<TensorName> tensors);
/// It fits the budget, but not into the device's largest allocations.
[[nodiscard]] BundleTooLarge bundle_does_not_pack(std::string_view operation, const BundleTooLarge::Sizes& sizes,
                                                  std::vector<TensorName> tensors);

[[nodiscard]] UndefinedValue undefined_value(const Who& who, TensorName tensor);
[[nodiscard]] DroppedValue dropped_value(const Who& who, TensorName tensor);
[[nodiscard]] WorkFailed lost_value(const Who& who, TensorName tensor);
/// An asynchronous download whose value was lost before it reached the host.
[[nodiscard]] WorkFailed lost_download(std::string_view tensor);

/// What failed, and how it is known. `reason`: why the API cannot tell whether it failed; null: it did.
[[nodiscard]] WorkFailed work_failed(WorkFailed::Work work, ErrorDetails details, const std::exception_ptr& reason);
[[nodiscard]] DeviceLost device_lost(std::string_view text, ErrorDetails details, long code);

/// The error of an operation: `text` follows its name, as in `operation "a" has ...`.
[[nodiscard]] UsageError operation_misused(std::string_view operation, std::string_view text,
                                           std::vector<TensorName> tensors = {});
[[nodiscard]] UsageError twice_in_bundle(std::string_view operation, TensorName tensor);
[[nodiscard]] UsageError misaligned_view(std::string_view operation, TensorName tensor, Bytes offset, Bytes alignment);

/// A broken invariant of the library. `fault` is a sentence about it, without a full stop.
[[nodiscard]] InternalError internal_error(std::string_view fault, ErrorDetails details = {});
/// The same, once it is known whose call it is.
[[nodiscard]] InternalError internal_error(const Who& who, const InternalError& error);

/// The host's budget refuses a block.
[[nodiscard]] OutOfMemory host_budget_exceeded(const OutOfMemory::Sizes& sizes);
/// The host refuses a block within the budget.
[[nodiscard]] OutOfMemory host_refused(const OutOfMemory::Sizes& sizes);
/// The backend's API refuses memory; `error` is of one of the two kinds of that.
[[nodiscard]] OutOfMemory memory_refused(const std::string& text, const BackendError& error, ErrorDetails details);
/// `error`, once it is known whose call it is.
[[nodiscard]] OutOfMemory out_of_memory(const Who& who, const OutOfMemory& error);

}  // namespace swapmm::runtime
