// SPDX-License-Identifier: Apache-2.0
#include <swapmm/runtime/timing/encoding_history.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

using namespace swapmm;
using namespace swapmm::literals;
using namespace std::chrono_literals;
using runtime::EncodingHistory;

namespace {
constexpr Link gigabyte{1'000'000'000, 100ns};  // a byte takes a nanosecond
constexpr Link half_of_it{500'000'000, 0ns};
}  // namespace

TEST_CASE("values are encoded between the least and the largest size") {
  CHECK_FALSE(EncodingHistory(0_bytes).is_on());
  CHECK_FALSE(EncodingHistory(0_bytes).may_encode(1_KiB));
  const EncodingHistory history(10_KiB);
  CHECK(history.is_on());
  CHECK(history.may_encode(EncodingHistory::least));
  CHECK_FALSE(history.may_encode(EncodingHistory::least - 1_bytes));
  CHECK(history.may_encode(10_KiB));
  CHECK_FALSE(history.may_encode(10_KiB + 1_bytes));
}

TEST_CASE("tensors of one name and one size are alike") {
  EncodingHistory history(1_MiB);
  const std::uint32_t first = history.number("h", 1000_bytes);
  CHECK(history.number("h", 1000_bytes) == first);
  CHECK(history.number("h", 1001_bytes) != first);
  CHECK(history.number("x", 1000_bytes) != first);
  CHECK(history.number("h1", 1000_bytes) != history.number("h", 11000_bytes));
  CHECK(history.find("h", 1000_bytes) == first);
  CHECK(history.find("unknown", 1000_bytes) == runtime::not_encoded);
  CHECK(history.find("unknown", 1000_bytes) == runtime::not_encoded);
}

TEST_CASE("what a copy seems to move is what a plain one moves in its time, in the slower direction") {
  EncodingHistory history(1_MiB);
  const std::uint32_t h = history.number("h", 10'000_bytes);
  CHECK_FALSE(history.moved(h, gigabyte, gigabyte).has_value());
  CHECK_FALSE(history.is_in_vain(h, gigabyte, gigabyte));
  history.took(h, false, 4'100ns);
  CHECK(history.moved(h, gigabyte, gigabyte) == 4'000_bytes);
  history.took(h, true, 6'100ns);
  CHECK(history.moved(h, gigabyte, gigabyte) == 6'000_bytes);
  CHECK(history.moved(h, half_of_it, gigabyte) == 4'000_bytes);  // 3,050 in, 4,000 out
  history.took(h, true, 0ns);                                    // the device did not tell
  CHECK(history.moved(h, gigabyte, gigabyte) == 6'000_bytes);
  history.took(h, true, 50ns);  // less than the latency
  history.took(h, false, 50ns);
  CHECK(history.moved(h, gigabyte, gigabyte) == 1_bytes);
}

TEST_CASE("encoding is in vain unless a tenth is gained, in one of two copies at least") {
  EncodingHistory history(1_MiB);
  const std::uint32_t h = history.number("h", 10'000_bytes);
  history.took(h, false, 9'101ns);
  CHECK_FALSE(history.is_in_vain(h, gigabyte, gigabyte));  // the driver may have done something for the first time
  CHECK_FALSE(history.moved(h, gigabyte, gigabyte).has_value());
  history.took(h, false, 9'101ns);
  CHECK(history.is_in_vain(h, gigabyte, gigabyte));
  CHECK_FALSE(history.moved(h, gigabyte, gigabyte).has_value());
  history.took(h, false, 9'100ns);
  CHECK_FALSE(history.is_in_vain(h, gigabyte, gigabyte));
  CHECK(history.moved(h, gigabyte, gigabyte) == 9'000_bytes);
}

TEST_CASE("after a few copies, the old ones do not count any more") {
  EncodingHistory history(1_MiB);
  const std::uint32_t h = history.number("h", 10'000_bytes);
  history.took(h, false, 2'100ns);
  CHECK(history.moved(h, gigabyte, gigabyte) == 2'000_bytes);
  for (int i = 0; i < 3; ++i) history.took(h, false, 8'100ns);
  CHECK(history.moved(h, gigabyte, gigabyte) == 8'000_bytes);
}

TEST_CASE("one direction in which encoding is in vain is enough") {
  EncodingHistory history(1_MiB);
  const std::uint32_t h = history.number("h", 10'000_bytes);
  for (int i = 0; i < 2; ++i) history.took(h, false, 3'100ns);
  history.took(h, true, 10'100ns);
  CHECK_FALSE(history.is_in_vain(h, gigabyte, gigabyte));
  history.took(h, true, 10'100ns);
  CHECK(history.is_in_vain(h, gigabyte, gigabyte));
}

TEST_CASE("tensors of too many names are not told apart") {
  EncodingHistory history(1_MiB);
  const std::uint32_t first = history.number("first", 1000_bytes);
  for (std::size_t i = 1; i < EncodingHistory::most; ++i) (void)history.number(std::to_string(i), 1000_bytes);
  CHECK(history.number("one more", 1000_bytes) == runtime::not_encoded);
  CHECK(history.number("first", 1000_bytes) == first);
}
