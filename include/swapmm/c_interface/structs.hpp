// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include <swapmm/base/error.hpp>

// Structs of the C interface begin with their size, as the program was compiled with. Later versions add fields at the
// end only, so a program that was compiled for an earlier version has a smaller one.

namespace swapmm::c_interface {

/// Throws UsageError if no version of the struct has that size. `first_size` is the size of its first version.
template <class Struct>
void check_struct_size(std::uint64_t size, std::size_t first_size, const char* name) {
  if (size >= first_size && size <= sizeof(Struct)) return;
  throw UsageError("struct_size of a " + std::string(name) + " is " + std::to_string(size) +
                   ", and this library knows " + std::to_string(first_size) + " to " + std::to_string(sizeof(Struct)));
}

/// Writes as much of `value` as the program's struct has room for. The size in it stays what it is.
template <class Struct>
void write_struct(Struct& to, const Struct& value, std::uint64_t size) {
  const std::size_t bytes = std::min<std::size_t>(static_cast<std::size_t>(size), sizeof(Struct));
  std::memcpy(&to, &value, bytes);
  to.struct_size = size;
}

/// The program's struct, with the defaults of `value` in fields that it does not have.
template <class Struct>
[[nodiscard]] Struct read_struct(const Struct& from, Struct value) {
  std::memcpy(&value, &from, std::min<std::size_t>(static_cast<std::size_t>(from.struct_size), sizeof(Struct)));
  return value;
}

}  // namespace swapmm::c_interface
