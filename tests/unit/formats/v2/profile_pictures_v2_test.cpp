// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/parse.hpp>
#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>

#include <swapmm/formats/trace_json.hpp>
#include <swapmm/formats/v2/plan_json.hpp>
#include <swapmm/formats/v2/profile_events.hpp>
#include <swapmm/formats/v2/profile_svg.hpp>
#include <swapmm/plan/v2/predicted_profile.hpp>

#include "support/golden.hpp"
#include "support/v2/rich_plan.hpp"

namespace swapmm::v2::pictures_test {

using std::chrono::nanoseconds;

Profile rich_profile() {
  const Trace trace = read_trace(test::general::rich_trace).value();
  return v2::predicted_profile(trace, read_plan(test::general::rich_plan(digest(trace))).value());
}

std::string svg_of(const Profile& profile) {
  std::ostringstream out;
  v2::write_svg(out, profile);
  return out.str();
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

TEST_CASE("v2: the picture has a curve for each memory, a row for each engine and link, and colours for each kind") {
  const std::string svg = svg_of(rich_profile());
  test::check_golden("profile/many_memories.svg", svg);
  std::istringstream in(svg);
  boost::property_tree::ptree tree;
  boost::property_tree::read_xml(in, tree);
  CHECK(count(svg, "<path ") == 2);
  for (const std::string name : {"gpu0", "gpu1"}) CHECK(count(svg, '>' + name + "</text>") == 2);  // memory and engine
  for (const std::string name : {"host-gpu0", "host-gpu1"}) CHECK(count(svg, '>' + name + "</text>") == 1);
  CHECK(svg.find("gpu0-host") == std::string::npos);
  CHECK(svg.find("size 100 B") != std::string::npos);
  CHECK(svg.find("size 50 B") != std::string::npos);
  CHECK(count(svg, "stroke-dasharray") == 2);
  CHECK(svg.find("first (run again): at 75 ns for 10 ns</title>") != std::string::npos);
  CHECK(svg.find("y to zeros (coding): at 52 ns for 3 ns</title>") != std::string::npos);
  CHECK(svg.find("w1[1] (copy): at 162 ns for 24 ns, 20 B</title>") != std::string::npos);
  for (const std::string text : {"run again", "encode, decode", "copies in"}) {
    CHECK(count(svg, '>' + text + "</text>") == 1);
  }
  CHECK(svg.find("other copies") == std::string::npos);  // the legend has what there is
}

TEST_CASE("v2: a machine with many rows makes a taller picture, and long names are cut") {
  Profile profile = rich_profile();
  const std::string small = svg_of(profile);
  for (int i = 0; i < 30; ++i) profile.rows.push_back({std::string(100, 'x'), ProfileRow::Kind::link_out});
  const std::string large = svg_of(profile);
  CHECK(large.find(std::string(100, 'x')) == std::string::npos);
  CHECK(count(large, "xxx\xE2\x80\xA6</text>") == 30);
  const auto height = [](const std::string& svg) {
    const std::string field = "height=\"";
    return std::stoi(svg.substr(svg.find(field) + field.size()));
  };
  CHECK(height(large) == height(small) + 30 * 44);
}

TEST_CASE("v2: many short spans share boxes, and a box has the colour of its longest span") {
  Profile profile;
  profile.rows = {{"gpu0", ProfileRow::Kind::engine}};
  constexpr int spans = 100'000;
  for (int i = 0; i < spans; ++i) {
    const nanoseconds start{10 * i};
    const bool again = i % 2 == 1;
    profile.spans.push_back(
        {0, again ? SpanKind::again : SpanKind::operation, "o", Bytes{0}, start, start + nanoseconds{again ? 6 : 2}});
  }
  profile.iteration_ends = {nanoseconds{10 * spans}};
  const std::string svg = svg_of(profile);
  CHECK(svg.size() < 500'000);
  CHECK(svg.find("elements, o to o") != std::string::npos);
  CHECK(count(svg, "#9900ff") + count(svg, "#b040ff") > 500);
  CHECK(count(svg, "#1a3a5c") + count(svg, "#2f5f91") == 2);  // the legend's
}

TEST_CASE("v2: trace events have a thread for each row, counters for each memory, and categories for each kind") {
  const std::array profiles{rich_profile()};
  std::ostringstream out;
  v2::write_trace_events(out, profiles);
  test::check_golden("profile/many_memories.json", out.str());
  const auto events = boost::json::parse(out.str()).at("traceEvents").as_array();
  std::vector<std::string> threads;
  std::vector<std::string> counters;
  std::size_t again = 0;
  std::size_t coding = 0;
  std::size_t copies = 0;
  std::size_t operations = 0;
  for (const boost::json::value& event : events) {
    const std::string name(event.at("name").as_string());
    const auto phase = event.at("ph").as_string();
    if (name == "thread_name") threads.emplace_back(event.at("args").at("name").as_string());
    if (phase == "C" && std::ranges::find(counters, name) == counters.end()) counters.push_back(name);
    if (phase != "X") continue;
    const auto* category = event.as_object().if_contains("cat");
    if (category == nullptr) {
      ++operations;
      continue;
    }
    again += *category == "run again" ? 1U : 0U;
    coding += *category == "coding" ? 1U : 0U;
    copies += *category == "copy" ? 1U : 0U;
  }
  CHECK(threads == std::vector<std::string>{"gpu0", "gpu1", "host-gpu0", "host-gpu1"});
  CHECK(counters == std::vector<std::string>{"gpu0: bytes taken", "gpu0: size", "gpu1: bytes taken", "gpu1: size"});
  CHECK(operations == 10);
  CHECK(again == 2);
  CHECK(coding == 4);
  CHECK(copies == 7);  // one is in two parts
}

}  // namespace swapmm::v2::pictures_test
