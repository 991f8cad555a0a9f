// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/calls/call.hpp>

// Internal: a record of the format `swapmm-log` as a Call.

namespace swapmm::call_log {

/// The call in the text of a record of type `call`.
[[nodiscard]] Result<calls::Call> decode_call(std::string_view record);

}  // namespace swapmm::call_log
