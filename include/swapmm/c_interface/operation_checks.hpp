// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/base/export.hpp>

// Checks that are the same for all backends, out of line.

namespace swapmm::c_interface {

/// Throws UsageError if no tensor can have that size.
SWAPMM_TEMPLATE_EXPORT void check_size(std::string_view name, Bytes bytes);
/// Throws UsageError if the tensor does not have these bytes, or if they are none.
SWAPMM_TEMPLATE_EXPORT void check_range(std::string_view call, const TensorName& tensor, Bytes offset, Bytes bytes);
/// The error of a call that is not allowed between begin and end of an operation.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT NestedOperation operation_has_not_ended(std::string_view operation,
                                                                             std::string_view call);
/// The error of an operation that was to run again, and whose function could not queue its work.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT WorkFailed again_failed(std::string_view operation);

}  // namespace swapmm::c_interface
