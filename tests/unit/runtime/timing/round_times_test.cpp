// SPDX-License-Identifier: Apache-2.0
// Estimates out of the last few times: what disturbs once does no harm, what lasts is seen soon.
#include <doctest/doctest.h>

#include <chrono>

#include <swapmm/runtime/timing/link_estimate.hpp>
#include <swapmm/runtime/timing/round_times.hpp>

using namespace swapmm;
using namespace swapmm::runtime;
using std::chrono::nanoseconds;

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
