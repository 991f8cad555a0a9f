// SPDX-License-Identifier: Apache-2.0
// The zero codec on the host: the same cases as on devices, and parts of values.
#include <swapmm/codec/zero_code.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include <swapmm/base/error.hpp>

#include "support/small_program.hpp"
#include "support/zero_codec_cases.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

/// See support/zero_codec_cases.hpp.
struct HostCodec {
  static ByteVector encode(const ByteVector& plain, const ZeroElements& elements, ByteVector encoded, ByteVector&) {
    const Bytes size = zero_encode(elements, plain, encoded);
    ZeroHeader header;
    std::memcpy(&header, encoded.data(), sizeof header);
    CHECK(size == Bytes{header.bytes});
    return encoded;
  }
  static ByteVector decode(const ByteVector& encoded, const ZeroElements& elements, ByteVector plain,
                           ByteVector& scratch) {
    const std::size_t size = elements.count * elements.element_bytes;
    const ZeroStatus status = zero_decode(elements, encoded, Bytes{}, std::span(plain).first(size));
    std::memcpy(scratch.data(), &status, sizeof status);
    return plain;
  }
  static bool slow() { return false; }
};

HostCodec codec;
ZeroCodecCases<HostCodec> host_cases(codec);

ByteVector encoded_on_host(const ByteVector& plain, const ZeroElements& elements) {
  ByteVector encoded(zero_worst_case(elements).value);
  (void)zero_encode(elements, plain, encoded);
  return encoded;
}

}  // namespace

TEST_CASE("on the host, elements of every size and number come back bit for bit") { host_cases.numbers(); }
TEST_CASE("on the host, elements of every density come back bit for bit") { host_cases.densities(); }
TEST_CASE("on the host, a million elements come back bit for bit") { host_cases.large(); }
TEST_CASE("on the host, minus zero, NaN and denormals keep their bits") { host_cases.values(); }
TEST_CASE("on the host, the form is raw from exactly where nothing is gained") { host_cases.threshold(); }
TEST_CASE("on the host, what a damaged value lost is told") { host_cases.damaged(); }
TEST_CASE("on the host, noise and other values are not decoded") { host_cases.foreign(); }

TEST_CASE("any part of an encoded value is decoded as if all of it were") {
  std::mt19937_64 random(3);
  for (const std::size_t size : {std::size_t{1}, std::size_t{4}, std::size_t{8}}) {
    for (const double density : {0.0, 0.3, 1.0}) {
      CAPTURE(size);
      CAPTURE(density);
      const std::size_t count = 3 * 4096 + 77;
      const ByteVector plain = sparse_elements(count, size, density, size);
      const ZeroElements elements{count, static_cast<std::uint32_t>(size)};
      const ByteVector encoded = encoded_on_host(plain, elements);
      for (int i = 0; i < 60; ++i) {
        const std::size_t begin = random() % plain.size();
        const std::size_t most = plain.size() - begin;
        const std::size_t part =
            i % 3 == 0 ? most : random() % std::min<std::size_t>(most + 1, i % 2 == 0 ? 64 : most + 1);
        ByteVector out(part, std::byte{0xa5});
        CHECK(zero_decode(elements, encoded, Bytes{begin}, out) == ZeroStatus::good);
        CHECK(std::equal(out.begin(), out.end(), plain.begin() + static_cast<std::ptrdiff_t>(begin)));
      }
    }
  }
}

TEST_CASE("parts of an encoded value change, and the rest does not") {
  std::mt19937_64 random(4);
  const std::size_t count = 2 * 4096 + 5;
  const ZeroElements elements{count, 4};
  ByteVector plain = sparse_elements(count, 4, 0.4, 9);
  ByteVector encoded = encoded_on_host(plain, elements);
  for (int i = 0; i < 50; ++i) {
    const std::size_t begin = random() % plain.size();
    ByteVector change(random() % (plain.size() - begin + 1));
    for (std::byte& byte : change) byte = static_cast<std::byte>(random() % 3);
    std::copy(change.begin(), change.end(), plain.begin() + static_cast<std::ptrdiff_t>(begin));
    REQUIRE(zero_rewrite(elements, encoded, Bytes{begin}, change) == ZeroStatus::good);
    ByteVector all(plain.size());
    REQUIRE(zero_decode(elements, encoded, Bytes{}, all) == ZeroStatus::good);
    REQUIRE(all == plain);
  }
  // The whole value needs no old one.
  ByteVector noise(encoded.size(), std::byte{0x5a});
  const ByteVector untouched = noise;
  CHECK(zero_rewrite(elements, noise, 4_bytes, std::span(plain).first(8)) == ZeroStatus::other_value);
  CHECK(noise == untouched);
  CHECK(zero_rewrite(elements, noise, Bytes{}, plain) == ZeroStatus::good);
  ByteVector all(plain.size());
  CHECK(zero_decode(elements, noise, Bytes{}, all) == ZeroStatus::good);
  CHECK(all == plain);
}

TEST_CASE("the host's codec refuses memories that are too small, and bytes beyond the value") {
  const ZeroElements elements{100, 4};
  ByteVector plain(400);
  ByteVector encoded(zero_worst_case(elements).value);
  ByteVector small(encoded.size() - 1);
  CHECK(says(text_of<UsageError>([&] { (void)zero_encode(elements, plain, small); }), {"the encoded value", "464"}));
  CHECK(says(text_of<UsageError>([&] { (void)zero_encode(elements, std::span(plain).first(399), encoded); }),
             {"the elements", "399", "400"}));
  (void)zero_encode(elements, plain, encoded);
  ByteVector part(8);
  CHECK(
      says(text_of<UsageError>([&] { (void)zero_decode(elements, encoded, 393_bytes, part); }), {"393", "401", "400"}));
  CHECK_THROWS_AS((void)zero_rewrite(elements, encoded, 393_bytes, part), UsageError);
  CHECK_NOTHROW(detail::require_good(ZeroStatus::good));
  CHECK(says(text_of<BackendError>([] { detail::require_good(ZeroStatus::truncated); }), {"cannot be read", "2"}));
  CHECK_THROWS_AS((void)zero_decode({100, 3}, encoded, 0_bytes, part), UsageError);
  CHECK(zero_decode(elements, {}, 0_bytes, part) == ZeroStatus::truncated);
  CHECK(part == ByteVector(8));
}

TEST_CASE("the memory of an encoder holds the largest value, and no larger one") {
  for (const std::uint64_t bytes : {512U, 767U, 768U, 4096U, 100'000U, 8U << 20U}) {
    CAPTURE(bytes);
    const Bytes largest = largest_encodable(Bytes{bytes});
    CHECK(encoder_bytes(largest).value <= bytes);
    CHECK(encoder_bytes(largest + 1_bytes).value > bytes);
    for (const std::uint32_t size : {1U, 2U, 4U, 8U}) {  // whatever its elements are
      const ZeroElements elements{largest.value / size, size};
      CHECK(zero_worst_case(elements) + zero_scratch(elements) <= encoder_bytes(largest));
    }
  }
  CHECK(largest_encodable(511_bytes) == 0_bytes);
  CHECK(largest_encodable(0_bytes) == 0_bytes);
}
