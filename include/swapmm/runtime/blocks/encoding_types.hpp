// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/backend/backend.hpp>

namespace swapmm::runtime {

/// The types of EncodingBackend, for templates that take any backend.
template <class B>
struct EncodingTypes {
  struct Encoder {};  // a backend that cannot encode has neither
  struct Memory {};
};
template <EncodingBackend B>
struct EncodingTypes<B> {
  using Encoder = typename B::Encoder;
  using Memory = typename B::EncodedMemory;
};

}  // namespace swapmm::runtime
