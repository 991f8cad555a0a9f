// SPDX-License-Identifier: Apache-2.0
#include "support/zero_reference.hpp"

#include <array>
#include <cstring>
#include <random>

namespace swapmm::test {

namespace {

template <class T>
void append_all(ByteVector& to, const std::vector<T>& numbers) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(numbers.data());
  to.insert(to.end(), bytes, bytes + numbers.size() * sizeof(T));
}

bool is_zero_element(const ByteVector& plain, std::size_t element, std::size_t size) {
  static const std::array<std::byte, 8> zeros{};
  return std::memcmp(plain.data() + element * size, zeros.data(), size) == 0;
}

}  // namespace

void append(ByteVector& to, const std::vector<std::uint64_t>& numbers) { append_all(to, numbers); }
void append(ByteVector& to, const std::vector<std::uint32_t>& numbers) { append_all(to, numbers); }

ByteVector encoded_by_reference(const ByteVector& plain, std::size_t size) {
  const std::size_t n = plain.size() / size;
  std::vector<std::uint32_t> table((n + 4095) / 4096);
  std::vector<std::uint32_t> bitmap((n + 31) / 32);
  ByteVector values;
  for (std::size_t i = 0; i < n; ++i) {
    if (is_zero_element(plain, i, size)) continue;
    ++table[i / 4096];
    bitmap[i / 32] |= std::uint32_t{1} << (i % 32);
    const auto begin = plain.begin() + static_cast<std::ptrdiff_t>(i * size);
    values.insert(values.end(), begin, begin + static_cast<std::ptrdiff_t>(size));
  }
  ByteVector packed;
  append_all(packed, table);
  append_all(packed, bitmap);
  if (size == 8 && packed.size() % 8 != 0) packed.resize(packed.size() + 4);
  packed.insert(packed.end(), values.begin(), values.end());
  const bool is_packed = packed.size() < plain.size();
  const ByteVector& rest = is_packed ? packed : plain;

  constexpr std::uint64_t magic = 0x31305a4d50415753;
  constexpr std::uint64_t header = 64;
  ByteVector all;
  append(all, std::vector<std::uint64_t>{magic, is_packed ? 1U : 0U, n, size, 4096, values.size() / size,
                                         header + rest.size(), 0});
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

std::size_t count_nonzeros(const ByteVector& plain, std::size_t size) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < plain.size() / size; ++i) count += is_zero_element(plain, i, size) ? 0 : 1;
  return count;
}

ByteVector sparse_elements(std::size_t n, std::size_t size, double density, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto limit = static_cast<std::uint64_t>(density * 4294967296.0);
  ByteVector plain(n * size);
  for (std::size_t i = 0; i < n; ++i) {
    if ((random() >> 32U) >= limit) continue;
    const std::uint64_t bits = random();
    const std::uint64_t one = std::uint64_t{1} << (bits % (8 * size));
    const std::uint64_t sign = std::uint64_t{1} << (8 * size - 1);
    const std::array<std::uint64_t, 4> kinds{one, sign, ~std::uint64_t{0}, random() | 1U};
    std::memcpy(plain.data() + i * size, &kinds[(bits >> 32U) % 4], size);  // the low bytes
  }
  return plain;
}

}  // namespace swapmm::test
