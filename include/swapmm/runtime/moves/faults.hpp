// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include <swapmm/base/error.hpp>
#include <swapmm/runtime/values/bundle.hpp>
#include <swapmm/runtime/values/messages.hpp>
#include <swapmm/runtime/values/record.hpp>

// The InternalErrors that are thrown if a plan violates what its validator checked.

namespace swapmm::runtime {

/// Adds the tensor to `details.lost` if no copy has its value, and marks the value as lost in its record.
template <Backend B>
void note_loss(Record<B>& record, ErrorDetails& details) {
  if (record.has_value()) return;
  details.lost.push_back(name_of(record));
  record.value.missing_reason = MissingReason::lost;
}

/// Returns whether the tensor is on the device as this access requires.
template <Backend B>
[[nodiscard]] bool is_brought(const BundleItem<B>& item) {
  return item.record->device.resident && (item.access == Access::write || item.record->device.valid);
}

/// The error if tensors of the operation are not on the device.
template <Backend B>
[[nodiscard]] InternalError not_brought(const Request<B>& request) {
  ErrorDetails details{.operation = std::string(request.name)};
  for (const BundleItem<B>& item : request.items) {
    if (is_brought(item)) continue;
    details.tensors.push_back(name_of(*item.record));
    if (item.access != Access::write) note_loss(*item.record, details);
  }
  const std::string fault = "the plan did not bring " + names_text(details.tensors);
  return internal_error(fault, std::move(details));
}

/// The error if a step of the plan cannot run. `record`: null if no tensor is bound to its role. `what`: "swaps in
/// ...".
template <Backend B>
[[nodiscard]] InternalError wrong_step(std::string_view what, Record<B>* record, TensorName tensor) {
  ErrorDetails details;
  if (record != nullptr) note_loss(*record, details);
  const std::string fault = "the plan " + std::string(what) + ": tensor " + in_quotes(tensor.name);
  details.tensors.push_back(std::move(tensor));
  return internal_error(fault, std::move(details));
}

/// The error if a place that the plan starts with is taken.
[[nodiscard]] inline InternalError place_not_free(TensorName tensor) {
  const std::string fault = "the plan starts with tensor " + in_quotes(tensor.name) + " in a place that is not free";
  return internal_error(fault, {.tensors = {std::move(tensor)}});
}

/// Gives up both device copies if two tensors hold the same device bytes, because it is not known which wrote last.
/// Returns the error, which replaces `before`, if there is one.
template <Backend B>
[[nodiscard]] std::exception_ptr give_up_shared_bytes(Record<B>& first, Record<B>& second,
                                                      const std::exception_ptr& before) noexcept {
  std::exception_ptr error;
  try {
    ErrorDetails details;
    try {
      if (before != nullptr) std::rethrow_exception(before);
    } catch (const InternalError& known) {
      details = known.details();
    }
    for (Record<B>* const record : {&first, &second}) {
      details.tensors.push_back(name_of(*record));
      if (record->tensor.alive && record->device.valid && !record->host.valid) details.lost.push_back(name_of(*record));
    }
    const std::string fault = "tensors hold the same device bytes: " + names_text(details.tensors);
    error = std::make_exception_ptr(internal_error(fault, std::move(details)));
  } catch (...) {  // no memory for the text
    error = std::current_exception();
  }
  for (Record<B>* const record : {&first, &second}) {
    if (record->device.valid && !record->host.valid) record->value.missing_reason = MissingReason::lost;
    record->device.valid = false;
  }
  return error;
}

}  // namespace swapmm::runtime
