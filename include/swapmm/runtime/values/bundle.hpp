// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/runtime/values/record.hpp>

namespace swapmm::runtime {

template <Backend B>
struct BundleItem {
  Record<B>* record = nullptr;
  Access access = Access::read;
  std::uint64_t serial = 0;  ///< serial number of the tensor; see TensorKey
};

/// One operation as the program requests it.
template <Backend B>
struct Request {
  std::string_view name;
  std::span<const BundleItem<B>> items;
  Bytes scratch;             ///< 0: none
  bool has_scratch = false;  ///< scratch was declared, possibly with 0 bytes
  bool replayable = false;   ///< see swapmm::replayable
  bool again = false;        ///< the operation runs again: it is no step of the program
};

/// The work area of an operation, and the work that must end before the operation starts.
template <Backend B>
struct Grant {
  const typename B::Address* scratch = nullptr;
  Bytes scratch_offset;  ///< of the work area in the manager's device memory
  Clock needs;
};

}  // namespace swapmm::runtime
