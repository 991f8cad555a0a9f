// SPDX-License-Identifier: Apache-2.0
#pragma once

// Inside of the backend: not for programs.

#include <string_view>

namespace swapmm::cuda::detail {

/// Begins a range "what name" of the calling thread, in NVTX's domain "swapmm"; `what` may be empty. Where no profiler
/// listens: a load and a branch.
void push_range(std::string_view what, std::string_view name) noexcept;
/// Ends the range begun last.
void pop_range() noexcept;

}  // namespace swapmm::cuda::detail
