// SPDX-License-Identifier: Apache-2.0
// Estimates out of the last few times: what disturbs once does no harm, what lasts is seen soon.
#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <swapmm/runtime/timing/link_estimate.hpp>
#include <swapmm/runtime/timing/round_times.hpp>

using namespace swapmm;
using namespace swapmm::runtime;
using std::chrono::nanoseconds;

namespace {

using Copies = std::vector<std::pair<std::uint64_t, std::int64_t>>;  // bytes and nanoseconds

Link link_of(const Copies& copies) {
  LinkEstimate estimate;
  CHECK(estimate.empty());
  CHECK(!estimate.link());
  for (const auto& [bytes, time] : copies) estimate.add(Bytes{bytes}, nanoseconds{time});
  CHECK(!estimate.empty());
  const std::optional<Link> link = estimate.link();
  REQUIRE(link);
  return *link;
}

/// The link after some samples, oldest first.
Link link_after(const std::vector<Copies>& samples) {
  LinkHistory history;
  for (const Copies& copies : samples) {
    for (const auto& [bytes, time] : copies) history.add(Bytes{bytes}, nanoseconds{time});
    history.end_sample();
  }
  const std::optional<Link> link = history.link();
  REQUIRE(link);
  return *link;
}

constexpr Link speed(std::uint64_t bytes_per_second, std::int64_t latency = 0) {
  return {bytes_per_second, nanoseconds{latency}};
}

}  // namespace

TEST_CASE("the median of a few times leaves out what disturbs, and forgets what is old") {
  RoundTimes times;
  CHECK(!times.median());
  times.add(nanoseconds{10});
  CHECK(times.median() == nanoseconds{10});
  times.add(nanoseconds{90});
  CHECK(times.median() == nanoseconds{10});  // the lower one of two
  times.add(nanoseconds{12});
  CHECK(times.median() == nanoseconds{12});
  for (int i = 0; i < 3; ++i) times.add(nanoseconds{50});
  CHECK(times.count() == 5);
  CHECK(times.median() == nanoseconds{50});  // 90, 12, 50, 50, 50
  times.clear();
  CHECK(times.count() == 0);
  CHECK(!times.median());
}

TEST_CASE("an operation takes the least of its last three samples") {
  DurationSamples samples;
  CHECK(samples.estimate() == nanoseconds{0});
  samples.add(nanoseconds{900});  // with its compilation
  samples.add(nanoseconds{100});
  CHECK(samples.estimate() == nanoseconds{100});
  samples.add(nanoseconds{0});  // not known
  samples.add(nanoseconds{300});
  samples.add(nanoseconds{310});
  CHECK(samples.estimate() == nanoseconds{100});
  samples.add(nanoseconds{320});  // it lasts
  CHECK(samples.estimate() == nanoseconds{300});
}

TEST_CASE("a link is as quick as in the quickest of its last three samples") {
  LinkHistory link;
  CHECK(!link.link());
  const auto sample = [&](std::int64_t time) {
    link.add(Bytes{1000}, nanoseconds{time});
    link.add(Bytes{3000}, nanoseconds{3 * time});
  };
  sample(100);
  CHECK(link.link()->bytes_per_second == 10'000'000'000U);  // the sample goes on
  link.end_sample();
  link.end_sample();  // without copies it is none
  sample(1000);       // others use it
  link.end_sample();
  CHECK(link.link()->bytes_per_second == 10'000'000'000U);
  for (int i = 0; i < 2; ++i) {
    sample(500);
    link.end_sample();
  }
  CHECK(link.link()->bytes_per_second == 2'000'000'000U);
  sample(50);
  link.end_sample();
  CHECK(link.link()->bytes_per_second == 20'000'000'000U);
  CHECK(link.link()->latency == nanoseconds{0});
}

TEST_CASE("the samples of one operation are none of the operation beside it") {
  std::array<DurationSamples, 3> operations;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    for (const std::int64_t more : {2, 1, 3}) operations[i].add(nanoseconds{100 * static_cast<std::int64_t>(i) + more});
  }
  for (int i = 0; i < 4; ++i) operations[1].add(nanoseconds{50});
  CHECK(operations[0].estimate() == nanoseconds{1});
  CHECK(operations[1].estimate() == nanoseconds{50});
  CHECK(operations[2].estimate() == nanoseconds{201});
}

TEST_CASE("a link has the latency and the bandwidth that explain copies of different sizes") {
  CHECK(link_of({{1000, 1500}, {3000, 3500}}) == speed(1'000'000'000, 500));
  CHECK(link_of({{1000, 1500}, {3000, 3500}, {5000, 5500}, {1000, 1500}}) == speed(1'000'000'000, 500));
  CHECK(link_of({{1000, 2100}, {1000, 1900}, {2000, 3000}}) == speed(1'000'000'000, 1000));  // least squares
  CHECK(link_of({{1000, 250}, {3000, 750}}) == speed(4'000'000'000));
}

TEST_CASE("of copies of one size, or of about one, all of the time counts as bandwidth") {
  CHECK(link_of({{1000, 2000}}) == speed(500'000'000));
  CHECK(link_of({{1000, 1400}, {1000, 2600}}) == speed(500'000'000));
  CHECK(link_of({{999'999, 1'999'999}, {1'000'001, 2'000'001}}) == speed(500'000'000));
  // A standard deviation of 0.1 % of the size is not enough, to the byte.
  Copies copies(693, {83'213, 83'213 + 100'000});
  copies.insert(copies.end(), 1443, {83'391, 83'391 + 100'000});
  CHECK(link_of(copies).latency == nanoseconds{0});
  copies.back().first += 1;
  copies.back().second += 1;
  CHECK(link_of(copies) == speed(1'000'000'000, 100'000));
  CHECK(link_of({{0, 5}}) == speed(200'000'000));
}

TEST_CASE(
    "where larger copies take no longer, or so much longer that small ones would take less than nothing, their mean "
    "counts") {
  CHECK(link_of({{1000, 3000}, {3000, 1000}}) == speed(1'000'000'000));
  CHECK(link_of({{1000, 2000}, {3000, 2000}}) == speed(1'000'000'000));
  CHECK(link_of({{1000, 500}, {3000, 7500}}) == speed(500'000'000));
}

TEST_CASE("a link is never so quick or so slow that its speed is no number") {
  CHECK(link_of({{1U << 30U, 0}}) == speed(1'000'000'000'000'000));
  CHECK(link_of({{1, std::int64_t{1} << 60}}) == speed(1));
}

TEST_CASE("samples of a link are compared at the mean size of their copies") {
  const auto at_once = [](std::uint64_t bytes) { return static_cast<std::int64_t>(2 * bytes); };     // 2 ns a byte
  const auto delayed = [](std::uint64_t bytes) { return static_cast<std::int64_t>(1000 + bytes); };  // 1 ns a byte
  const auto sample = [](std::uint64_t mean, const auto& time) {
    return Copies{{mean / 2, time(mean / 2)}, {mean + mean / 2, time(mean + mean / 2)}};
  };
  const auto quickest = [&](std::uint64_t mean) { return link_after({sample(mean, delayed), sample(mean, at_once)}); };
  CHECK(quickest(600) == speed(500'000'000));
  CHECK(quickest(3000) == speed(1'000'000'000, 1000));
  CHECK(quickest(1000) == speed(1'000'000'000, 1000));  // they are equally quick: the older one
  // Of different sizes: 200 and 2200 make 1200.
  CHECK(link_after({sample(200, at_once), sample(2200, delayed)}) == speed(1'000'000'000, 1000));
  CHECK(link_after({sample(2200, at_once), sample(200, delayed)}) == speed(1'000'000'000, 1000));
  CHECK(link_after({sample(200, delayed), sample(1600, at_once)}) == speed(500'000'000));
}

TEST_CASE("samples without copies are none, however many there are") {
  const Copies quick{{1000, 1000}};
  const Copies slow{{1000, 2000}};
  CHECK(link_after({quick, slow, slow, {}, {}, {}}) == speed(1'000'000'000));
  CHECK(link_after({quick, {}, slow, {}, slow, {}}) == speed(1'000'000'000));
  CHECK(link_after({quick, slow, slow, {}, {}, {}, slow}) == speed(500'000'000));
}
