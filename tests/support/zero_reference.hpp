// SPDX-License-Identifier: Apache-2.0
#pragma once

// The encoded form of docs/compression.md, written down once more in the plainest way, to compare with what devices do.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace swapmm::test {

using ByteVector = std::vector<std::byte>;

namespace detail {

template <class T>
void append(ByteVector& to, T value) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
  to.insert(to.end(), bytes, bytes + sizeof value);
}

inline bool is_zero(const ByteVector& plain, std::size_t element, std::size_t size) {
  const auto begin = plain.begin() + static_cast<std::ptrdiff_t>(element * size);
  return std::all_of(begin, begin + static_cast<std::ptrdiff_t>(size), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace detail

/// The elements in the encoded form.
inline ByteVector encoded_by_reference(const ByteVector& plain, std::size_t size) {
  const std::size_t n = plain.size() / size;
  std::vector<std::uint32_t> table((n + 4095) / 4096);
  std::vector<std::uint32_t> bitmap((n + 31) / 32);
  ByteVector values;
  for (std::size_t i = 0; i < n; ++i) {
    if (detail::is_zero(plain, i, size)) continue;
    ++table[i / 4096];
    bitmap[i / 32] |= std::uint32_t{1} << (i % 32);
    const auto begin = plain.begin() + static_cast<std::ptrdiff_t>(i * size);
    values.insert(values.end(), begin, begin + static_cast<std::ptrdiff_t>(size));
  }
  ByteVector packed;
  for (const std::uint32_t count : table) detail::append(packed, count);
  for (const std::uint32_t word : bitmap) detail::append(packed, word);
  if (size == 8 && packed.size() % 8 != 0) detail::append(packed, std::uint32_t{0});
  packed.insert(packed.end(), values.begin(), values.end());
  const bool is_packed = packed.size() < plain.size();
  const ByteVector& rest = is_packed ? packed : plain;

  ByteVector all;
  constexpr std::uint64_t header = 64;
  for (const std::uint64_t number :
       {std::uint64_t{0x31305a4d50415753}, std::uint64_t{is_packed}, std::uint64_t{n}, std::uint64_t{size},
        std::uint64_t{4096}, std::uint64_t{values.size() / size}, header + rest.size(), std::uint64_t{0}}) {
    detail::append(all, number);
  }
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

/// Random elements of which about that part is not zero. Those that are not have bits that are easily taken for zero:
/// one bit set alone, the sign alone, or all bits, among others.
inline ByteVector sparse_elements(std::size_t n, std::size_t size, double density, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto limit = static_cast<std::uint64_t>(density * 4294967296.0);
  ByteVector plain(n * size);
  for (std::size_t i = 0; i < n; ++i) {
    if ((random() >> 32U) >= limit) continue;
    const std::uint64_t bits = random();
    const std::uint64_t one = std::uint64_t{1} << (bits % (8 * size));
    const std::uint64_t sign = std::uint64_t{1} << (8 * size - 1);
    const std::uint64_t kinds[] = {one, sign, ~std::uint64_t{0}, random() | 1U};
    std::memcpy(plain.data() + i * size, &kinds[(bits >> 32U) % 4], size);  // the low bytes
  }
  return plain;
}

}  // namespace swapmm::test
