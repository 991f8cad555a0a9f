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
#include <swapmm/base/export.hpp>

// The exceptions of the runtime, made out of line: texts, and the data in them.

namespace swapmm::runtime {

/// A tensor's record, as exceptions name it.
template <class Record>
[[nodiscard]] TensorName name_of(const Record& record) {
  return {record.tensor.serial, record.name, record.bytes};
}

/// The call that an error belongs to. Costs nothing until there is an error. Where a tensor is meant, about_tensor()
/// makes it.
struct Who {
  std::string_view what = {};  ///< "operation ", "download of tensor "
  std::string_view name = {};  ///< may be empty
  std::uint64_t id = 0;        ///< of the tensor, if it is one
  Bytes bytes = {};            ///< of the tensor, if it is one

  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::string text() const;
  /// The name, if `what` ends with "operation ", or "tensor ".
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT ErrorDetails details() const;
  /// `details` of an error that was found further inside, with the operation or tensor filled in if it names none.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT ErrorDetails details(ErrorDetails inner) const;
};

/// Who for a call on a tensor: `what` ends with "tensor ".
template <class Record>
[[nodiscard]] Who about_tensor(std::string_view what, const Record& record) {
  return {what, record.name, record.tensor.serial, record.bytes};
}

[[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::string in_quotes(std::string_view name);
/// "a" (1024 bytes), "b" (512 bytes) and 3 more.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::string sizes_text(const std::vector<TensorName>& tensors);
/// "a", "b" and 3 more: cut after eight.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::string names_text(const std::vector<TensorName>& tensors);
/// The text of an exception; for one that says nothing, that.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::string what_of(const std::exception_ptr& error);

/// Orders `tensors` by size.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT BundleTooLarge bundle_too_large(std::string_view operation,
                                                                     const BundleTooLarge::Sizes& sizes,
                                                                     std::vector<TensorName> tensors);
/// It fits the budget, but not into the device's largest allocations.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT BundleTooLarge bundle_does_not_pack(std::string_view operation,
                                                                         const BundleTooLarge::Sizes& sizes,
                                                                         std::vector<TensorName> tensors);

[[nodiscard]] SWAPMM_TEMPLATE_EXPORT UndefinedValue undefined_value(const Who& who, TensorName tensor);
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT DroppedValue dropped_value(const Who& who, TensorName tensor);
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT WorkFailed lost_value(const Who& who, TensorName tensor);
/// An asynchronous download whose value was lost before it reached the host.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT WorkFailed lost_download(std::string_view tensor);

/// What failed, and how it is known. `reason`: why the API cannot tell whether it failed; null: it did.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT WorkFailed work_failed(WorkFailed::Work work, ErrorDetails details,
                                                            const std::exception_ptr& reason);
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT DeviceLost device_lost(std::string_view text, ErrorDetails details, long code);

/// The error of an operation: `text` follows its name, as in `operation "a" has ...`.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT UsageError operation_misused(std::string_view operation, std::string_view text,
                                                                  std::vector<TensorName> tensors = {});
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT UsageError twice_in_bundle(std::string_view operation, TensorName tensor);
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT UsageError misaligned_view(std::string_view operation, TensorName tensor,
                                                                Bytes offset, Bytes alignment);

/// `tensor` no longer exists; its name is empty if it is no longer known.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT UsageError view_of_no_tensor(const Who& who, TensorName tensor);
/// The same of the tensor at that position of an operation's bundle.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT UsageError no_tensor_in_bundle(std::string_view operation, std::size_t position,
                                                                    TensorName tensor);

/// A broken invariant of the library. `fault` is a sentence about it, without a full stop.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT InternalError internal_error(std::string_view fault, ErrorDetails details = {});
/// The same, once it is known whose call it is.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT InternalError internal_error(const Who& who, const InternalError& error);

/// The host's budget refuses a block.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT OutOfMemory host_budget_exceeded(const OutOfMemory::Sizes& sizes);
/// The host refuses a block within the budget.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT OutOfMemory host_refused(const OutOfMemory::Sizes& sizes);
/// The backend's API refuses memory; `error` is of one of the two kinds of that.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT OutOfMemory memory_refused(const std::string& text, const BackendError& error,
                                                                ErrorDetails details);
/// `error`, once it is known whose call it is.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT OutOfMemory out_of_memory(const Who& who, const OutOfMemory& error);

}  // namespace swapmm::runtime
