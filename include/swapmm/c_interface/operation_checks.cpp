// SPDX-License-Identifier: Apache-2.0
#include <swapmm/c_interface/operation_checks.hpp>

#include <string>

#include <swapmm/ir/limits.hpp>
#include <swapmm/runtime/values/messages.hpp>

namespace swapmm::c_interface {

void check_size(std::string_view name, Bytes bytes) {
  if (bytes.value != 0 && bytes.value < limits::magnitude) return;
  throw UsageError("tensor " + runtime::in_quotes(name) + " of " + std::to_string(bytes.value) +
                       " bytes: a tensor has at least 1 byte and fewer than 2^62",
                   {.tensors = {TensorName{.name = std::string(name), .bytes = bytes}}});
}

void check_range(std::string_view call, const TensorName& tensor, Bytes offset, Bytes bytes) {
  if (bytes.value != 0 && offset <= tensor.bytes && bytes <= tensor.bytes - offset) return;
  throw UsageError(std::string(call) + ": " + std::to_string(bytes.value) + " bytes from " +
                       std::to_string(offset.value) + " of tensor " + runtime::in_quotes(tensor.name) + ", which has " +
                       std::to_string(tensor.bytes.value),
                   {.tensors = {tensor}});
}

NestedOperation operation_has_not_ended(std::string_view operation, std::string_view call) {
  return {std::string(call) + ": operation " + runtime::in_quotes(operation) + " has begun and not ended",
          {.operation = std::string(operation)}};
}

WorkFailed again_failed(std::string_view operation) {
  return {"operation " + runtime::in_quotes(operation) + " was to run again, and its function could not queue the work",
          {.operation = std::string(operation)},
          WorkFailed::Work::operation};
}

}  // namespace swapmm::c_interface
