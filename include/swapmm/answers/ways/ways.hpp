// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

#include <swapmm/answers/as_json.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/v2/plan.hpp>

// The ways besides copies in which values come back: operations that run again, and encoded forms.

namespace swapmm::answers {

/// Names between commas: swap, which plans cannot do without, and recompute, compress and pieces.
[[nodiscard]] Result<Ways> parse_ways(std::string_view text);

/// The largest bundle: no device works with less. Where pieces may be used and the trace divides tensors, an operation
/// needs only the pieces that it accesses.
[[nodiscard]] Bytes largest_bundle(const Trace& trace, const Ways& ways, Bytes alignment);

/// What a plan does besides copies, per iteration.
struct WaysUsed {
  std::size_t again = 0;                    ///< operations that run again, each time counted
  std::chrono::nanoseconds again_time{0};   ///< their durations
  Bytes again_bytes;                        ///< sizes of the values that they make, which need no copy back
  std::size_t decoded = 0;                  ///< values that are decoded, each time counted
  std::chrono::nanoseconds coding_time{0};  ///< of encodings and decodings
  std::size_t encoded_copies = 0;           ///< copies of encoded values
  Bytes encoded_bytes;                      ///< expected sizes of what these copies move
  Bytes plain_bytes;                        ///< sizes of the plain values
};

/// The plan must be valid for the trace.
[[nodiscard]] WaysUsed ways_used(const Trace& trace, const v2::Plan& plan);

[[nodiscard]] json::object to_json(const WaysUsed& used);

}  // namespace swapmm::answers
