// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/backend/backend.hpp>

namespace swapmm {

/// The memory of NeighbourBackend, for templates that wrap any backend.
namespace detail {
template <class B>
struct NeighbourMemoryOf {
  struct Type {};  // B has none
};
template <NeighbourBackend B>
struct NeighbourMemoryOf<B> {
  using Type = typename B::NeighbourMemory;
};
}  // namespace detail

}  // namespace swapmm
