// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <swapmm/ir/trace.hpp>

#include "../loader/table.hpp"

namespace swapmm::opencl::layer::access {

/// An argument of a launch, as far as it matters for what the launch reads and writes.
struct Bound {
  enum class Kind : std::uint8_t {
    value,   ///< a scalar or a structure
    local,   ///< local memory
    null,    ///< no buffer
    buffer,  ///< a buffer, or a part of one
    other,   ///< an image, shared virtual memory, or anything else
  } kind = Kind::other;
  std::span<const std::byte> bytes = {};  ///< of a value
  const void* root = nullptr;             ///< the buffer, or the one that it is a part of
  bool decides_no_place = false;          ///< of a value: it does not matter for where the launch writes
  std::size_t size = 0;                   ///< of the buffer or the local memory
  bool is_root = false;                   ///< it is a whole buffer
  bool read_only = false;                 ///< the program says that kernels only read it
};

/// The sizes of a launch.
struct Sizes {
  cl_uint dimensions = 0;
  const std::size_t* offset = nullptr;
  const std::size_t* global = nullptr;
  const std::size_t* local = nullptr;
};

/// Identifies launches of one kernel that are alike in sizes, kinds of arguments, and the values that matter for where
/// they write: which bytes they write is the same for them, unless it depends on the contents of memory. 128 bits, so
/// that two different launches never meet by chance.
struct Key {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  friend bool operator==(const Key&, const Key&) = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const { return static_cast<std::size_t>(key.first); }
};

[[nodiscard]] Key key_of(std::span<const Bound> arguments, const Sizes& sizes);

}  // namespace swapmm::opencl::layer::access
