// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/formats/svg/profile_boxes.hpp>
#include <swapmm/formats/svg/profile_scale.hpp>

#include "support/profile_examples.hpp"

using namespace swapmm;
using namespace swapmm::svg;
using std::chrono::nanoseconds;
using swapmm::test::copy_span;
using swapmm::test::level;
using swapmm::test::operation_span;

namespace {

struct Times {
  std::int64_t start;
  std::int64_t end;
};

Profile operations(const std::vector<Times>& times) {
  Profile profile;
  for (const Times& time : times) profile.spans.push_back(operation_span("o", time.start, time.end));
  return profile;
}

std::vector<Box> row_boxes(const Profile& profile, Lane lane, nanoseconds fine) {
  std::vector<chart::Span> spans = chart::chart_of(profile).spans;
  std::erase_if(spans, [&](const chart::Span& span) { return span.row != static_cast<std::uint32_t>(lane); });
  return boxes_of(spans, fine);
}

/// "start-end(busy)xspans" of each box.
std::string text_of(const std::vector<Box>& boxes) {
  std::string text;
  for (const Box& box : boxes) {
    if (!text.empty()) text += ' ';
    text += std::to_string(box.start.count()) + '-' + std::to_string(box.end.count()) + '(' +
            std::to_string(box.busy.count()) + ")x" + std::to_string(box.spans);
  }
  return text;
}

std::vector<std::pair<std::int64_t, std::int64_t>> gaps(const Profile& profile, std::int64_t fine, std::int64_t end) {
  std::vector<std::pair<std::int64_t, std::int64_t>> result;
  for (const Gap& gap : gaps_between(row_boxes(profile, Lane::compute, nanoseconds{fine}), nanoseconds{end})) {
    result.emplace_back(gap.start.count(), gap.end.count());
  }
  return result;
}

std::string labels(const std::vector<Tick>& ticks) {
  std::string text;
  for (const Tick& tick : ticks) text += (text.empty() ? "" : ", ") + tick.label;
  return text;
}

std::string time_labels(std::int64_t length) { return labels(ticks(TimeScale{0, 1000, nanoseconds{length}}, 5)); }
std::string byte_labels(std::uint64_t top) { return labels(ticks(ByteScale{0, 1000, Bytes{top}}, 5)); }

}  // namespace

TEST_CASE("short spans in a row share a box, long ones and distant ones do not") {
  const auto boxes = [](const std::vector<Times>& times) {
    return text_of(row_boxes(operations(times), Lane::compute, nanoseconds{10}));
  };
  CHECK(boxes({}).empty());
  CHECK(boxes({{0, 10}, {10, 20}}) == "0-10(10)x1 10-20(10)x1");
  CHECK(boxes({{0, 9}, {9, 18}}) == "0-18(18)x2");
  CHECK(boxes({{0, 9}, {18, 27}}) == "0-27(18)x2");
  CHECK(boxes({{0, 9}, {19, 28}}) == "0-9(9)x1 19-28(9)x1");
  CHECK(boxes({{0, 5}, {5, 30}, {30, 35}, {35, 40}}) == "0-5(5)x1 5-30(25)x1 30-40(10)x2");
  CHECK(boxes({{0, 0}, {5, 5}}) == "0-5(0)x2");
  // Four times ten is the longest.
  CHECK(boxes({{0, 8}, {8, 16}, {16, 24}, {24, 32}, {32, 40}, {40, 48}}) == "0-40(40)x5 40-48(8)x1");
  // Where all can be seen, each is on its own.
  CHECK(text_of(row_boxes(operations({{0, 1}, {1, 1}}), Lane::compute, nanoseconds{0})) == "0-1(1)x1 1-1(0)x1");
}

TEST_CASE("a box has the spans of its own lane, their positions and their bytes") {
  Profile profile;
  profile.spans = {copy_span(Lane::h2d, "a", 10, 0, 1), copy_span(Lane::d2h, "b", 20, 0, 1), operation_span("c", 0, 1),
                   copy_span(Lane::h2d, "d", 40, 1, 2)};
  const std::vector<Box> boxes = row_boxes(profile, Lane::h2d, nanoseconds{10});
  REQUIRE(boxes.size() == 1);
  CHECK(boxes[0].first == 0);
  CHECK(boxes[0].last == 1);  // of the lane
  CHECK(boxes[0].bytes == Bytes{50});
}

TEST_CASE("gaps are what the boxes leave, and as long as what was idle") {
  using Gaps = std::vector<std::pair<std::int64_t, std::int64_t>>;
  CHECK(gaps({}, 10, 100) == Gaps{{0, 100}});
  CHECK(gaps({}, 10, 0) == Gaps{});
  CHECK(gaps(operations({{0, 50}, {50, 100}}), 10, 100) == Gaps{});
  CHECK(gaps(operations({{20, 50}, {60, 90}}), 10, 100) == Gaps{{0, 20}, {50, 60}, {90, 100}});
  CHECK(gaps(operations({{-20, 50}, {120, 150}}), 10, 100) == Gaps{{50, 100}});
  // 0-27 with 18 busy is drawn as 0-18.
  CHECK(gaps(operations({{0, 9}, {18, 27}}), 10, 27) == Gaps{{18, 27}});
}

TEST_CASE("levels made coarser keep every peak and the last of each") {
  const nanoseconds ten{10};
  CHECK(coarser({}, ten).empty());
  CHECK(coarser(std::vector{level(0, 5)}, ten) == std::vector{level(0, 5)});
  CHECK(coarser(std::vector{level(0, 5), level(10, 6)}, ten) == std::vector{level(0, 5), level(10, 6)});
  CHECK(coarser(std::vector{level(0, 5), level(3, 9), level(9, 2), level(10, 6)}, ten) ==
        std::vector{level(0, 9), level(9, 2), level(10, 6)});
  CHECK(coarser(std::vector{level(0, 5), level(3, 1), level(9, 7)}, ten) == std::vector{level(0, 7)});
  CHECK(coarser(std::vector{level(0, 5), level(1, 6)}, nanoseconds{0}) == std::vector{level(0, 5), level(1, 6)});
}

TEST_CASE("a time scale puts times between its edges, and what is outside at them") {
  const TimeScale scale{100, 1000, nanoseconds{10}};
  CHECK(scale.at(nanoseconds{0}) == 100);
  CHECK(scale.at(nanoseconds{5}) == 600);
  CHECK(scale.at(nanoseconds{10}) == 1100);
  CHECK(scale.at(nanoseconds{-1}) == 100);
  CHECK(scale.at(nanoseconds{11}) == 1100);
  CHECK(scale.time_of(500) == nanoseconds{5});
  CHECK(TimeScale{100, 1000, nanoseconds{0}}.at(nanoseconds{3}) == 100);
}

TEST_CASE("ticks of time are round, in one unit, and not too many") {
  CHECK(time_labels(0) == "0 ns");
  CHECK(time_labels(3) == "0 ns, 1 ns, 2 ns, 3 ns");
  CHECK(time_labels(59) == "0 ns, 10 ns, 20 ns, 30 ns, 40 ns, 50 ns");
  CHECK(time_labels(60) == "0 ns, 20 ns, 40 ns, 60 ns");
  CHECK(time_labels(1500) == "0 ns, 500 ns, 1000 ns, 1500 ns");
  CHECK(time_labels(2400) == "0 us, 0.5 us, 1.0 us, 1.5 us, 2.0 us");
  CHECK(time_labels(12'000'000) == "0 ms, 5 ms, 10 ms");
  CHECK(time_labels(7'552'635'732) == "0 s, 2 s, 4 s, 6 s");
  CHECK(time_labels(std::int64_t{1} << 62U) == "0 s, 1000000000 s, 2000000000 s, 3000000000 s, 4000000000 s");
}

TEST_CASE("ticks of bytes are powers of two, in one unit, and not too many") {
  CHECK(byte_labels(1) == "0 B, 1 B");
  CHECK(byte_labels(1500) == "0 KiB, 0.25 KiB, 0.50 KiB, 0.75 KiB, 1.00 KiB, 1.25 KiB");
  CHECK(byte_labels(std::uint64_t{100} << 20U) == "0 MiB, 32 MiB, 64 MiB, 96 MiB");
  CHECK(byte_labels(std::uint64_t{27} << 30U) == "0 GiB, 8 GiB, 16 GiB, 24 GiB");
  CHECK(byte_labels(std::uint64_t{3} << 30U) == "0 GiB, 1 GiB, 2 GiB, 3 GiB");
}
