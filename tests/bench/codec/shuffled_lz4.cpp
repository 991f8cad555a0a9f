// SPDX-License-Identifier: Apache-2.0
// The lossless alternative for files: first all first bytes of the numbers, then all second ones, and so on (Blosc's
// byte shuffle), then LZ4. In pieces that stay in a cache.
#include <lz4.h>

#include <ctime>
#include <stdexcept>

#include "measuring.hpp"

namespace bench {

namespace {

constexpr std::size_t piece = std::size_t{1} << 16U;  // numbers

void shuffle(const std::byte* from, std::byte* to, std::size_t count) {
  for (std::size_t plane = 0; plane < 4; ++plane) {
    for (std::size_t i = 0; i < count; ++i) to[plane * count + i] = from[4 * i + plane];
  }
}
void unshuffle(const std::byte* from, std::byte* to, std::size_t count) {
  for (std::size_t plane = 0; plane < 4; ++plane) {
    for (std::size_t i = 0; i < count; ++i) to[4 * i + plane] = from[plane * count + i];
  }
}

// The processor's time, which other programs on the machine do not change much. Nothing else runs in this one
// meanwhile.
template <class Run>
double processor_milliseconds_of(Run&& run) {
  const std::clock_t start = std::clock();
  run();
  return 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

char* chars(std::byte* bytes) { return reinterpret_cast<char*>(bytes); }

}  // namespace

Shuffled shuffled_lz4(const std::vector<float>& numbers) {
  const auto* const plain = reinterpret_cast<const std::byte*>(numbers.data());
  const std::size_t bytes = numbers.size() * 4;
  const int bound = LZ4_compressBound(4 * piece);
  std::vector<std::byte> planes(4 * piece);
  std::vector<std::byte> back(bytes);
  std::vector<std::vector<std::byte>> packed;
  const auto count_of = [&](std::size_t first) { return std::min(piece, numbers.size() - first); };
  const double encode = processor_milliseconds_of([&] {
    packed.clear();
    for (std::size_t first = 0; first < numbers.size(); first += piece) {
      shuffle(plain + 4 * first, planes.data(), count_of(first));
      packed.emplace_back(static_cast<std::size_t>(bound));
      const int size = LZ4_compress_default(chars(planes.data()), chars(packed.back().data()),
                                            static_cast<int>(4 * count_of(first)), bound);
      packed.back().resize(static_cast<std::size_t>(size));
    }
  });
  const double decode = processor_milliseconds_of([&] {
    std::size_t first = 0;
    for (std::vector<std::byte>& part : packed) {
      LZ4_decompress_safe(chars(part.data()), chars(planes.data()), static_cast<int>(part.size()),
                          static_cast<int>(planes.size()));
      unshuffle(planes.data(), back.data() + 4 * first, count_of(first));
      first += piece;
    }
  });
  if (std::memcmp(back.data(), plain, bytes) != 0) throw std::runtime_error("LZ4 gave other bytes back");
  Shuffled result{0, rate(bytes, encode), rate(bytes, decode)};
  for (const auto& part : packed) result.bytes += part.size();
  return result;
}

}  // namespace bench
