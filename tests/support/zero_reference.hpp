// SPDX-License-Identifier: Apache-2.0
#pragma once

// The encoded form of docs/compression.md, written down once more in the plainest way, to compare with what devices do.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace swapmm::test {

using ByteVector = std::vector<std::byte>;

/// Adds the bytes of these numbers at the end.
void append(ByteVector& to, const std::vector<std::uint64_t>& numbers);
void append(ByteVector& to, const std::vector<std::uint32_t>& numbers);

/// The elements in the encoded form.
[[nodiscard]] ByteVector encoded_by_reference(const ByteVector& plain, std::size_t size);

/// How many elements are not zero.
[[nodiscard]] std::size_t count_nonzeros(const ByteVector& plain, std::size_t size);

/// Random elements of which about that part is not zero. Those that are not have bits that are easily taken for zero:
/// one bit set alone, the sign alone, or all bits, among others.
[[nodiscard]] ByteVector sparse_elements(std::size_t n, std::size_t size, double density, std::uint64_t seed);

}  // namespace swapmm::test
