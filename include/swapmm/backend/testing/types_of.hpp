// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/backend/backend.hpp>

namespace swapmm {

/// The types that only some backends have, for templates that wrap any backend.
namespace detail {
template <class B>
struct NeighbourMemoryOf {
  struct Type {};  // B has none
};
template <NeighbourBackend B>
struct NeighbourMemoryOf<B> {
  using Type = typename B::NeighbourMemory;
};
template <class B>
struct EncodingOf {
  struct Encoder {};  // B cannot encode
  struct Memory {};
};
template <EncodingBackend B>
struct EncodingOf<B> {
  using Encoder = typename B::Encoder;
  using Memory = typename B::EncodedMemory;
};
}  // namespace detail

}  // namespace swapmm
