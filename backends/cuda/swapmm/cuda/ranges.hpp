// SPDX-License-Identifier: Apache-2.0
#pragma once

// Internal to the backend; not for programs.

#include <string_view>

namespace swapmm::cuda::detail {

/// Begins a range "what name" of the calling thread, in NVTX's domain "swapmm"; `what` may be empty. Without a profiler
/// it costs a load and a branch.
void push_range(std::string_view what, std::string_view name) noexcept;
/// Ends the range that was begun last.
void pop_range() noexcept;

}  // namespace swapmm::cuda::detail
