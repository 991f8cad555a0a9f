// SPDX-License-Identifier: Apache-2.0
#pragma once

// What holds for the zero codec on every device. What the device writes is compared byte for byte with the reference,
// and comes back bit for bit. A `Desk` runs the codec on memories whose first contents it is given, and returns their
// last:
//
//     ByteVector encode(const ByteVector& plain, const ZeroElements&, const ByteVector& encoded, ByteVector& scratch);
//     ByteVector decode(const ByteVector& encoded, const ZeroElements&, const ByteVector& plain, ByteVector& scratch);
//     ByteVector move(const ByteVector& encoded, const ByteVector& target, unsigned groups);
//     bool slow() const;   // the device interprets kernels: fewer sizes

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <random>
#include <vector>

#include <swapmm/codec/zero_format.hpp>

#include "support/zero_reference.hpp"

namespace swapmm::test {

template <class Desk>
class ZeroCodecCases {
 public:
  explicit ZeroCodecCases(Desk& desk) : desk_(&desk) {}

  /// The elements, encoded by the device. Nothing was written behind them, nor behind the scratch memory.
  ByteVector encoded(const ByteVector& plain, std::size_t size) {
    const ZeroElements elements = elements_of(plain, size);
    ByteVector scratch(zero_scratch(elements).value + canaries, canary);
    ByteVector bytes =
        desk_->encode(plain, elements, ByteVector(zero_worst_case(elements).value + canaries, canary), scratch);
    const ZeroHeader header = header_of(bytes);
    REQUIRE(header.bytes <= zero_worst_case(elements).value);
    CHECK(all_canaries(bytes, header.bytes));
    CHECK(all_canaries(scratch, zero_scratch(elements).value));
    bytes.resize(header.bytes);
    return bytes;
  }

  /// What its header says is moved, and nothing else; of a value that says too much, what there is memory for.
  void moves() {
    for (const unsigned groups : {1U, 3U, 16U}) {
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{4099}, std::size_t{100'003}}) {
        CAPTURE(groups);
        CAPTURE(count);
        const ByteVector bytes = encoded(sparse_elements(count, 1, 0.3, 7), 1);
        const ByteVector moved = desk_->move(bytes, ByteVector(bytes.size() + canaries, canary), groups);
        CHECK(std::equal(bytes.begin(), bytes.end(), moved.begin()));
        CHECK(all_canaries(moved, bytes.size()));
      }
    }
    ByteVector damaged = encoded(sparse_elements(5000, 1, 0.3, 7), 1);
    ZeroHeader header = header_of(damaged);
    header.bytes = std::uint64_t{1} << 60U;
    std::memcpy(damaged.data(), &header, sizeof header);
    for (const std::size_t size : {std::size_t{1003}, damaged.size()}) {
      const ByteVector moved = desk_->move(damaged, ByteVector(size, canary), 4);
      CHECK(std::equal(moved.begin(), moved.end(), damaged.begin()));
    }
    header.bytes = 3;
    std::memcpy(damaged.data(), &header, sizeof header);
    const ByteVector moved = desk_->move(damaged, ByteVector(1000, canary), 4);
    CHECK(std::equal(moved.begin(), moved.begin() + sizeof header, damaged.begin()));
    CHECK(all_canaries(moved, sizeof header));
  }

  struct Decoded {
    ByteVector plain;
    ZeroStatus status;
  };
  /// Nothing was written behind the elements, nor behind the scratch memory.
  Decoded decoded(const ByteVector& encoded, const ZeroElements& elements) {
    const std::size_t size = elements.count * elements.element_bytes;
    ByteVector scratch(zero_scratch(elements).value + canaries, canary);
    Decoded result{desk_->decode(encoded, elements, ByteVector(size + canaries, canary), scratch), ZeroStatus::good};
    CHECK(all_canaries(result.plain, size));
    CHECK(all_canaries(scratch, zero_scratch(elements).value));
    result.plain.resize(size);
    std::memcpy(&result.status, scratch.data(), sizeof result.status);
    return result;
  }

  void check_round_trip(const ByteVector& plain, std::size_t size) {
    const ByteVector bytes = encoded(plain, size);
    CHECK(bytes == encoded_by_reference(plain, size));
    const Decoded back = decoded(bytes, elements_of(plain, size));
    CHECK(back.status == ZeroStatus::good);
    CHECK(back.plain == plain);
  }

  /// Sizes of elements, and numbers of them around words, groups and blocks.
  void numbers() {
    std::vector<std::size_t> counts{0, 33, 4097};
    if (!desk_->slow()) {
      counts.insert(counts.end(), {1, 31, 32, 63, 64, 65, 255, 257, 4095, 4096, 8191, 8192, 8193, 12'289});
    }
    for (const std::size_t size : element_sizes) {
      for (const std::size_t n : counts) {
        CAPTURE(size);
        CAPTURE(n);
        check_round_trip(sparse_elements(n, size, 0.3, n), size);
      }
    }
  }

  /// Densities from 0 to 1. The size is exact.
  void densities() {
    if (desk_->slow()) return;
    const std::size_t n = 20'011;
    for (const std::size_t size : element_sizes) {
      for (int percent = 0; percent <= 100; percent += percent < 2 || percent > 94 ? 1 : 10) {
        CAPTURE(size);
        CAPTURE(percent);
        const ByteVector plain = sparse_elements(n, size, percent / 100.0, static_cast<std::uint64_t>(percent));
        check_round_trip(plain, size);
        CHECK(encoded(plain, size).size() ==
              zero_encoded_size(elements_of(plain, size), count_nonzeros(plain, size)).value);
      }
    }
  }

  /// More than a chunk of blocks; all elements, or none, are zero.
  void large() {
    if (desk_->slow()) return;
    for (const std::size_t size : element_sizes) check_round_trip(sparse_elements(1'000'007, size, 0.4, size), size);
    check_round_trip(sparse_elements(std::size_t{4096} * 1024 + 4097, 1, 0.1, 5), 1);
    check_round_trip(ByteVector(400'028), 4);
    check_round_trip(ByteVector(400'028, std::byte{1}), 4);
  }

  /// Minus zero, numbers that are none, denormals.
  void values() {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    check_round_trip(
        bytes_of_values<float>({0.0F, -0.0F, nan, -nan, std::numeric_limits<float>::denorm_min(), 0.0F, 0.0F,
                                -std::numeric_limits<float>::denorm_min(), 0.0F, 0.0F, 0.0F, 0.0F, 0.0F,
                                std::bit_cast<float>(0x7f800001U), std::numeric_limits<float>::infinity()}),
        4);
    check_round_trip(bytes_of_values<double>({0.0, -0.0, std::numeric_limits<double>::signaling_NaN(), 0.0, 0.0, 0.0,
                                              0.0, std::numeric_limits<double>::denorm_min(), -1.0}),
                     8);
    // Half precision: minus zero, the smallest denormal, a NaN.
    check_round_trip(bytes_of_values<std::uint16_t>({0, 0x8000, 0x0001, 0x7e01, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}),
                     2);
    // Minus zeros alone are not zeros: the form is raw.
    CHECK(encoded(bytes_of_values<float>({-0.0F, -0.0F, -0.0F, -0.0F}), 4).size() == 64 + 16);
  }

  /// The form is raw from exactly where nothing is gained.
  void threshold() {
    for (const std::size_t size : element_sizes) {
      if (desk_->slow() && size != 4) continue;
      const std::size_t n = 5000;
      const ZeroElements elements{n, static_cast<std::uint32_t>(size)};
      std::size_t most = 0;  // elements that are not zero, with something gained
      while (zero_encoded_size(elements, most + 1) < zero_worst_case(elements)) ++most;
      CHECK(most > n / 2);
      CHECK(most < n);
      for (const std::size_t nonzeros : {most, most + 1}) {
        CAPTURE(size);
        CAPTURE(nonzeros);
        ByteVector plain(n * size);
        for (std::size_t i = 0; i < nonzeros; ++i) plain[i * size + size - 1] = std::byte{0x80};
        check_round_trip(plain, size);
        const ZeroHeader header = header_of(encoded(plain, size));
        CHECK(header.form == (nonzeros == most ? ZeroForm::packed : ZeroForm::raw));
        CHECK(header.nonzeros == nonzeros);
      }
    }
  }

  /// Of a damaged value nothing is written outside of the elements, and the status says so.
  void damaged() {
    const std::size_t n = desk_->slow() ? 4'100 : 9'000;
    const std::size_t step = desk_->slow() ? 3'000 : 80;
    for (const std::size_t size : {std::size_t{1}, std::size_t{4}, std::size_t{8}}) {
      if (desk_->slow() && size != 4) continue;
      const ByteVector plain = sparse_elements(n, size, 0.4, size);
      const ByteVector good = encoded_by_reference(plain, size);
      const ZeroElements elements = elements_of(plain, size);
      const std::size_t values_at = zero_encoded_size(elements, 0).value;
      std::mt19937_64 random(size);
      for (std::size_t at = 0; at < good.size(); at += at < 80 ? 1 + step / 300 : 1 + random() % step) {
        CAPTURE(size);
        CAPTURE(at);
        ByteVector damaged = good;
        damaged[at] ^= std::byte{1} << (random() % 8);
        const Decoded back = decoded(damaged, elements);
        const bool gap = size == 8 && at >= values_at - 4 && at < values_at;
        CHECK((back.status == ZeroStatus::good) == (at >= values_at || gap));
      }
      for (const std::size_t left : {std::size_t{64}, std::size_t{65}, std::size_t{1000}, good.size() - 1}) {
        CAPTURE(left);
        const Decoded back = decoded({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(left)}, elements);
        CHECK(back.status != ZeroStatus::good);
        CHECK(back.plain == ByteVector(plain.size()));
      }
    }
  }

  /// Noise, and the encoded forms of other tensors.
  void foreign() {
    const ZeroElements elements{6'000, 4};
    std::mt19937_64 random(7);
    ByteVector noise(20'000);
    for (std::byte& byte : noise) byte = static_cast<std::byte>(random());
    CHECK(decoded(noise, elements).status == ZeroStatus::other_value);
    // A good header before noise, of both forms.
    for (const std::uint64_t form : {0U, 1U}) {
      ByteVector value;
      append(value, std::vector<std::uint64_t>{ZeroHeader::magic_number, form, 6'000, 4, 4096, 5'000,
                                               64 + 8 + 752 + 20'000, 0});
      value.insert(value.end(), noise.begin(), noise.end());
      CHECK(decoded(value, elements).status == ZeroStatus::inconsistent);
    }
    // A good header and a good table before a bitmap that names more values than there are.
    ByteVector greedy;
    append(greedy,
           std::vector<std::uint64_t>{ZeroHeader::magic_number, 1, 6'000, 4, 4096, 1'000, 64 + 8 + 752 + 4'000, 0});
    append(greedy, std::vector<std::uint32_t>{900, 100});
    greedy.resize(64 + 8 + 752 + 4'000 + 20'000, std::byte{0xff});
    const Decoded some = decoded(greedy, elements);
    CHECK(some.status == ZeroStatus::inconsistent);
    // Both blocks read from where the table says, and nothing behind the last value.
    ByteVector only_those(24'000);
    std::fill_n(only_those.begin(), 4'000, std::byte{0xff});
    std::fill_n(only_those.begin() + 4 * 4096, 400, std::byte{0xff});
    CHECK(some.plain == only_those);
    // One value, of an element behind the last one.
    ByteVector behind;
    append(behind, std::vector<std::uint64_t>{ZeroHeader::magic_number, 1, 100, 4, 4096, 1, 64 + 4 + 16 + 4, 0});
    append(behind, std::vector<std::uint32_t>{1, 0, 0, 0, 0x80000000U, 7});
    const Decoded none = decoded(behind, {100, 4});
    CHECK(none.status == ZeroStatus::inconsistent);
    CHECK(none.plain == ByteVector(400));
    const ByteVector other = encoded_by_reference(sparse_elements(12'000, 2, 0.3, 1), 2);
    CHECK(decoded(other, elements).status == ZeroStatus::other_value);
  }

 private:
  static constexpr std::byte canary{0xa5};
  static constexpr std::size_t canaries = 64;  // bytes behind what may be written
  static constexpr std::array<std::size_t, 4> element_sizes{1, 2, 4, 8};

  static bool all_canaries(const ByteVector& bytes, std::size_t from) {
    for (std::size_t i = from; i < bytes.size(); ++i) {
      if (bytes[i] != canary) return false;
    }
    return true;
  }
  static ZeroElements elements_of(const ByteVector& plain, std::size_t size) {
    return {plain.size() / size, static_cast<std::uint32_t>(size)};
  }
  static ZeroHeader header_of(const ByteVector& encoded) {
    ZeroHeader header;
    std::memcpy(&header, encoded.data(), sizeof header);
    return header;
  }
  template <class T>
  static ByteVector bytes_of_values(std::initializer_list<T> values) {
    ByteVector bytes(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.begin(), bytes.size());
    return bytes;
  }

  Desk* desk_;
};

}  // namespace swapmm::test
