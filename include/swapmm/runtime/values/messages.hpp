// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/backend/file_memory.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/base/export.hpp>

// Functions that make the exceptions of the runtime, with their texts and data, out of line.

namespace swapmm::runtime {

/// Identifies a record's tensor in exceptions.
template <class Record>
[[nodiscard]] TensorName name_of(const Record& record) {
  return {record.tensor.serial, record.name, record.bytes};
}

/// The call that an error belongs to. Costs nothing until there is an error. For a call on a tensor, use
/// about_tensor().
struct Who {
  std::string_view what = {};  ///< "operation ", "download of tensor "
  std::string_view name = {};  ///< may be empty
  std::uint64_t id = 0;        ///< of the tensor, if the call is on a tensor
  Bytes bytes = {};            ///< of the tensor, if the call is on a tensor

  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::string text() const;
  /// The name, if `what` ends with "operation ", or "tensor ".
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT ErrorDetails details() const;
  /// Adds the operation or tensor to the `details` of an inner error, if they name none.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT ErrorDetails details(ErrorDetails inner) const;
};

/// Makes a Who for a call on a tensor. `what` ends with "tensor ".
template <class Record>
[[nodiscard]] Who about_tensor(std::string_view what, const Record& record) {
  return {what, record.name, record.tensor.serial, record.bytes};
}

[[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::string in_quotes(std::string_view name);
/// "a" (1024 bytes), "b" (512 bytes) and 3 more.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::string sizes_text(const std::vector<TensorName>& tensors);
/// "a", "b" and 3 more: cut after eight.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::string names_text(const std::vector<TensorName>& tensors);
/// The text of an exception, or a text that says that it has none.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::string what_of(const std::exception_ptr& error);

/// Orders `tensors` by size.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT BundleTooLarge bundle_too_large(std::string_view operation,
                                                                     const BundleTooLarge::Sizes& sizes,
                                                                     std::vector<TensorName> tensors);
/// The error if a bundle fits the budget, but does not pack into the device's largest allocations.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT BundleTooLarge bundle_does_not_pack(std::string_view operation,
                                                                         const BundleTooLarge::Sizes& sizes,
                                                                         std::vector<TensorName> tensors);

[[nodiscard]] SWAPMM_TEMPLATE_EXPORT UndefinedValue undefined_value(const Who& who, TensorName tensor);
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT DroppedValue dropped_value(const Who& who, TensorName tensor);
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT WorkFailed lost_value(const Who& who, TensorName tensor);
/// The error of an asynchronous download whose value was lost before it reached the host.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT WorkFailed lost_download(std::string_view tensor);

/// The error of failed work. `reason`: why the API cannot report whether the work failed; null if it did fail. `cause`:
/// why it failed; null if that is not known.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT WorkFailed work_failed(WorkFailed::Work work, ErrorDetails details,
                                                            const std::exception_ptr& reason,
                                                            const std::exception_ptr& cause);
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT WorkFailed work_failed(WorkFailed::Work work, ErrorDetails details,
                                                            const std::exception_ptr& reason);
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT DeviceLost device_lost(std::string_view text, ErrorDetails details, long code);

/// The error of an operation: `text` follows its name, as in `operation "a" has ...`.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT UsageError operation_misused(std::string_view operation, std::string_view text,
                                                                  std::vector<TensorName> tensors = {});
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT UsageError twice_in_bundle(std::string_view operation, TensorName tensor);
/// Where the value of a constant is to be.
struct ConstantPlace {
  const FileMemory* source = nullptr;
  Bytes offset;
  Bytes bytes;
};
/// Throws UsageError if the value cannot be there, or the manager has no Options::file.
SWAPMM_TEMPLATE_EXPORT void check_constant(std::string_view name, const ConstantPlace& place, bool has_file);
/// `what` writes a constant, as in `operation "a"`.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT UsageError constant_written(std::string_view what, TensorName tensor);
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT UsageError misaligned_view(std::string_view operation, TensorName tensor,
                                                                Bytes offset, Bytes alignment);

/// The error if `tensor` no longer exists. Its name is empty if it is no longer known.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT UsageError view_of_no_tensor(const Who& who, TensorName tensor);
/// The same for the tensor at this position of an operation's bundle.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT UsageError no_tensor_in_bundle(std::string_view operation, std::size_t position,
                                                                    TensorName tensor);

/// The error for a broken invariant of the library. `fault` is a sentence about it, without a full stop.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT InternalError internal_error(std::string_view fault, ErrorDetails details = {});
/// The same, with the call that the error belongs to.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT InternalError internal_error(const Who& who, const InternalError& error);

/// The error if the host's budget refuses a block. `file`: the file that has no room either; empty if there is none.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT OutOfMemory host_budget_exceeded(const OutOfMemory::Sizes& sizes,
                                                                      const std::string& file);
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT OutOfMemory host_budget_exceeded(const OutOfMemory::Sizes& sizes);
/// The error if the host refuses a block within the budget.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT OutOfMemory host_refused(const OutOfMemory::Sizes& sizes);
/// The error if the backend's API refuses memory. `error` has one of the two kinds out_of_..._memory.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT OutOfMemory memory_refused(const std::string& text, const BackendError& error,
                                                                ErrorDetails details);
/// `error`, with the call that it belongs to.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT OutOfMemory out_of_memory(const Who& who, const OutOfMemory& error);

}  // namespace swapmm::runtime
