// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace swapmm {

/// Position of a tensor in Trace::tensors.
enum class TensorId : std::uint32_t {};
/// Position of an operation in Trace::operations. Operations run in this order.
enum class OperationId : std::uint32_t {};
/// Position of a command in Plan::commands.
enum class CommandId : std::uint32_t {};

/// The position that an id represents.
template <class Id>
  requires(sizeof(Id) == sizeof(std::uint32_t))
[[nodiscard]] constexpr std::size_t index(Id id) { return static_cast<std::size_t>(id); }

/// The id of the element at `position`, which must be below 2^32. (The limits of the formats are far below that.)
template <class Id>
[[nodiscard]] constexpr Id id_at(std::size_t position) {
  return static_cast<Id>(static_cast<std::uint32_t>(position));
}

}  // namespace swapmm
