// SPDX-License-Identifier: Apache-2.0
#include <swapmm/answers/quantities.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

using namespace swapmm;
using namespace swapmm::answers;

namespace {

std::uint64_t bytes_in(std::string_view text) {
  const Result<Bytes> bytes = parse_size(text);
  INFO(std::string(text));
  REQUIRE(bytes.has_value());
  return bytes->value;
}

std::int64_t time(std::string_view text) {
  const auto time = parse_time(text);
  INFO(std::string(text));
  REQUIRE(time.has_value());
  return time->count();
}

std::uint64_t bandwidth(std::string_view text) {
  const auto rate = parse_bandwidth(text);
  INFO(std::string(text));
  REQUIRE(rate.has_value());
  return *rate;
}

/// Refused, with the token, the reason and an example.
template <class T>
void check_problem(const Result<T>& result, std::string_view token, std::string_view reason, std::string_view example) {
  INFO(std::string(token));
  REQUIRE(!result.has_value());
  const std::string& message = result.problem().message;
  INFO(message);
  CHECK(message.starts_with('"' + std::string(token) + "\" "));
  CHECK(message.find(reason) != std::string::npos);
  CHECK(message.find(example) != std::string::npos);
}

}  // namespace

TEST_CASE("sizes are read to the byte") {
  CHECK(bytes_in("8GB") == 8'000'000'000);
  CHECK(bytes_in("8 GB") == 8'000'000'000);
  CHECK(bytes_in(" 8GB ") == 8'000'000'000);
  CHECK(bytes_in("8gb") == 8'000'000'000);
  CHECK(bytes_in("8GiB") == 8'589'934'592);
  CHECK(bytes_in("512MiB") == 536'870'912);
  CHECK(bytes_in("1.5KiB") == 1536);
  CHECK(bytes_in("64kB") == 64'000);
  CHECK(bytes_in("64KB") == 64'000);
  CHECK(bytes_in("2TB") == 2'000'000'000'000);
  CHECK(bytes_in("1TiB") == 1'099'511'627'776);
  CHECK(bytes_in("65536") == 65536);
  CHECK(bytes_in("65536B") == 65536);
  CHECK(bytes_in("0") == 0);
  CHECK(bytes_in("1e3") == 1000);
  CHECK(bytes_in("2.5e-1KB") == 250);
  CHECK(bytes_in(".5KB") == 500);
  CHECK(bytes_in("5.KB") == 5000);
  CHECK(bytes_in("0.4B") == 0);
  CHECK(bytes_in("0.5B") == 1);
  CHECK(bytes_in("0.1GiB") == 107'374'182);  // ...182.4
  CHECK(bytes_in("15.754GB") == 15'754'000'000);
  CHECK(bytes_in("0.000000000000000000000000000000001TB") == 0);
  CHECK(bytes_in("4611686018427387903") == 4'611'686'018'427'387'903);
  CHECK(bytes_in("0e999999999999") == 0);
  CHECK(bytes_in("1e-999999999999") == 0);
}

TEST_CASE("what is no size is refused with the token and examples") {
  for (const std::string_view token : {"", " ", "GB", ".", ".GB", "eight GB", "+8GB", "e3", "%"}) {
    check_problem(parse_size(token), token, "does not begin with a number", "8GB, 512MiB");
  }
  for (const std::string_view token : {"8XB", "8GBB", "8G", "8Gb", "8gB", "8 G B", "15,754GB", "1.2.3GB", "8GB/s", "8e",
                                       "8e+", "0x10", "8\xff", "50%", "5s", "8GB 9GB"}) {
    check_problem(parse_size(token), token, "which is unknown", "8GB, 512MiB");
  }
  check_problem(parse_size("8Gb"), "8Gb", "b would be bits", "8GB");
  check_problem(parse_size("-8GB"), "-8GB", "is negative", "8GB");
  check_problem(parse_size("-0"), "-0", "is negative", "8GB");
  for (const std::string_view token :
       {"4611686018427387904", "4.7EB", "99999999999GB", "1e999999999999", "1e19", "999999999999999999999999TiB"}) {
    if (token != "4.7EB") check_problem(parse_size(token), token, "is too large", "8GB");
  }
  check_problem(parse_size("1000000000000000000000000000"), "1000000000000000000000000000", "too many digits", "8GB");
}

TEST_CASE("a budget is a size, or a share where it has a point or a percent sign") {
  const Bytes peak{1000};
  CHECK(parse_budget("8GB")->of(peak) == Bytes{8'000'000'000});
  CHECK(parse_budget("500")->of(peak) == Bytes{500});
  CHECK(parse_budget("1B")->of(peak) == Bytes{1});
  CHECK(parse_budget("0.5")->of(peak) == Bytes{500});
  CHECK(parse_budget("1.0")->of(peak) == Bytes{1000});
  CHECK(parse_budget("1.5")->of(peak) == Bytes{1500});
  check_problem(parse_budget("8.0"), "8.0", "may mean a share or a size", "8GB");
  CHECK(parse_budget("50%")->of(peak) == Bytes{500});
  CHECK(parse_budget("120 %")->of(peak) == Bytes{1200});
  CHECK(parse_budget("12.5%")->of(peak) == Bytes{125});
  CHECK(parse_budget("1e300%")->of(peak).value == (std::uint64_t{1} << 62U) - 1);
  check_problem(parse_budget("1"), "1", "may mean 100% or 1B", "50%");
  check_problem(parse_budget("0"), "0", "is not above 0", "50%");
  check_problem(parse_budget("0.0"), "0.0", "is not above 0", "50%");
  check_problem(parse_budget("0%"), "0%", "is not above 0", "50%");
  check_problem(parse_budget("-50%"), "-50%", "is negative", "50%");
  check_problem(parse_budget("half"), "half", "does not begin with a number", "50%");
  check_problem(parse_budget("50 percent"), "50 percent", "unit \"percent\"", "50%");
}

TEST_CASE("bandwidths are bytes per second") {
  CHECK(bandwidth("15.754GB/s") == 15'754'000'000);
  CHECK(bandwidth("12 GB/s") == 12'000'000'000);
  CHECK(bandwidth("900MiB/s") == 943'718'400);
  CHECK(bandwidth("1000") == 1000);
  check_problem(parse_bandwidth("12GB"), "12GB", "which is unknown", "15.754GB/s");
  check_problem(parse_bandwidth("12Gbit/s"), "12Gbit/s", "which is unknown", "15.754GB/s");
  check_problem(parse_bandwidth("0GB/s"), "0GB/s", "is not above 0", "15.754GB/s");
  check_problem(parse_bandwidth("-1GB/s"), "-1GB/s", "is negative", "15.754GB/s");
  check_problem(parse_bandwidth("1e30GB/s"), "1e30GB/s", "is too large", "15.754GB/s");
}

TEST_CASE("times have a unit") {
  CHECK(time("10s") == 10'000'000'000);
  CHECK(time("500ms") == 500'000'000);
  CHECK(time("20us") == 20'000);
  CHECK(time("20µs") == 20'000);
  CHECK(time("7 ns") == 7);
  CHECK(time("1.5min") == 90'000'000'000);
  CHECK(time("1h") == 3'600'000'000'000);
  check_problem(parse_time("10"), "10", "has no unit", "10s, 500ms");
  check_problem(parse_time("10sec"), "10sec", "unit \"sec\"", "10s");
  check_problem(parse_time("-1s"), "-1s", "is negative", "10s");
  check_problem(parse_time("9e9h"), "9e9h", "is too large", "10s");
}

TEST_CASE("noise, factors, slow links and whole numbers") {
  CHECK(*parse_noise("25%") == 0.25);
  CHECK(*parse_noise("0.25") == 0.25);
  CHECK(*parse_noise("0") == 0);
  check_problem(parse_noise("100%"), "100%", "is too large", "25%");
  check_problem(parse_noise("25"), "25", "is too large", "25%");
  check_problem(parse_noise("-1%"), "-1%", "is negative", "25%");

  CHECK(*parse_factor("0.2") == 0.2);
  CHECK(*parse_factor("1/5") == 0.2);
  CHECK(*parse_factor("20%") == 0.2);
  CHECK(*parse_factor("1") == 1);
  check_problem(parse_factor("1/0"), "1/0", "is not above 0", "1/5");
  check_problem(parse_factor("0"), "0", "is not above 0", "1/5");
  check_problem(parse_factor("1e7"), "1e7", "is not above 0 and at most a million", "1/5");
  CHECK(!parse_factor("1/").has_value());
  CHECK(!parse_factor("1/2/3").has_value());

  const Result<SlowLink> slow = parse_slow_link("50%@20%");
  REQUIRE(slow.has_value());
  CHECK(slow->speed == 0.5);
  CHECK(slow->part == 0.2);
  check_problem(parse_slow_link("50%"), "50%", "has no @", "50%@20%");
  check_problem(parse_slow_link("1e-10@20%"), "1e-10@20%", "below 0.01%", "50%@20%");
  check_problem(parse_slow_link("0%@20%"), "0%@20%", "not above 0", "50%@20%");
  check_problem(parse_slow_link("50%@120%"), "50%@120%", "at most 100%", "50%@20%");

  CHECK(*parse_whole("7", 1, 7) == 7);
  for (const std::string_view token : {"0", "8", "-1", "1.5", "", "7x", "99999999999999999999999"}) {
    check_problem(parse_whole(token, 1, 7), token, "no whole number from 1 to 7", "");
  }
}

TEST_CASE("lists are parted by commas, and each part is told by itself") {
  const auto budgets = parse_each<Budget>("0.9, 70%,8GB", parse_budget);
  REQUIRE(budgets.has_value());
  REQUIRE(budgets->size() == 3);
  CHECK(*(*budgets)[0].share == 0.9);
  CHECK(*(*budgets)[1].share == 0.7);
  CHECK((*budgets)[2].bytes == Bytes{8'000'000'000});
  check_problem(parse_each<Budget>("0.9,nonsense,0.5", parse_budget), "nonsense", "does not begin", "50%");
  for (const std::string_view token : {"", ",", "0.9,", ",0.9", "0.9,,0.5"}) {
    check_problem(parse_each<Budget>(token, parse_budget), token, "has an empty part", "0.9,0.7,0.5");
  }
}

TEST_CASE("sizes are told in the powers of 1000 that budgets are written in") {
  CHECK(decimal_size(Bytes{999}) == "999 B");
  CHECK(decimal_size(Bytes{1000}) == "1.00 KB");
  CHECK(decimal_size(Bytes{8'000'000'000}) == "8.00 GB");
  CHECK(decimal_size(Bytes{1'234'000'000'000}) == "1.23 TB");
  CHECK(bytes_in(decimal_size(Bytes{8'000'000'000})) == 8'000'000'000);
}

TEST_CASE("a slow link may have a ten-thousandth of its speed, and no less") {
  CHECK(parse_slow_link("0.01%@20%"));
  CHECK(!parse_slow_link("0.00999%@20%"));
  CHECK(parse_slow_link("100%@100%"));
}

TEST_CASE("a budget without unit is a share up to below 2, and has 24 digits at most") {
  CHECK(parse_budget("1.999"));
  CHECK(!parse_budget("2.0"));
  CHECK(parse_bandwidth("0.100000000000000000000001GB/s"));    // 24 digits
  CHECK(!parse_bandwidth("0.1000000000000000000000001GB/s"));  // 25
}
