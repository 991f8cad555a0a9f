// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>

#include <swapmm/base/text/utf8.hpp>
#include <swapmm/formats/profile_svg.hpp>

#include "support/effort.hpp"
#include "support/golden.hpp"
#include "support/profile_examples.hpp"

using namespace swapmm;
using namespace swapmm::test;
using std::chrono::nanoseconds;
using namespace std::string_literals;

namespace {

constexpr std::string_view idle_colour = "#c0392b";
/// With it the time axis is 1200 pixels long.
constexpr int width_1200 = 1328;

std::string svg_of(const Profile& profile, const SvgOptions& options = {}) {
  std::ostringstream out;
  write_svg(out, profile, options);
  return out.str();
}

/// A rectangle or a text of the document.
struct Element {
  std::string kind;
  std::string fill;
  double x = 0;
  double width = 0;
  std::string text;  // of a rectangle: its title
};

void collect(const boost::property_tree::ptree& tree, std::vector<Element>& elements) {
  for (const auto& [kind, child] : tree) {
    if (kind == "rect" || kind == "text") {
      const auto text = child.get_optional<std::string>(kind == "rect" ? "title" : "");
      elements.push_back({kind, child.get<std::string>("<xmlattr>.fill", ""), child.get<double>("<xmlattr>.x"),
                          child.get<double>("<xmlattr>.width", 0), text.value_or("")});
    }
    collect(child, elements);
  }
}

/// The parser takes what XML does not allow: that is checked beside it.
std::vector<Element> parsed(const std::string& document) {
  CHECK(text::to_valid_utf8(document, document.size()) == document);
  CHECK(std::none_of(document.begin(), document.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n') || byte == 0x7F;
  }));
  CHECK(document.find("\xEF\xBF\xBE") == std::string::npos);
  CHECK(document.find("\xEF\xBF\xBF") == std::string::npos);
  boost::property_tree::ptree tree;
  std::istringstream in(document);
  boost::property_tree::read_xml(in, tree);
  REQUIRE(tree.size() == 1);
  REQUIRE(tree.front().first == "svg");
  std::vector<Element> elements;
  collect(tree, elements);
  return elements;
}

std::vector<Element> titled(const std::vector<Element>& elements) {
  std::vector<Element> found;
  for (const Element& element : elements) {
    if (element.kind == "rect" && !element.text.empty()) found.push_back(element);
  }
  return found;
}

bool has_text(const std::vector<Element>& elements, std::string_view text) {
  return std::any_of(elements.begin(), elements.end(),
                     [&](const Element& element) { return element.text.find(text) != std::string::npos; });
}

/// Operations back to back, of `length` each, and after every `stride`-th a gap of half that length.
Profile many_operations(std::size_t count, std::int64_t length, std::size_t stride) {
  Profile profile;
  std::int64_t time = 0;
  for (std::size_t i = 0; i < count; ++i) {
    profile.spans.push_back(operation_span("operation " + std::to_string(i), time, time + length));
    time += i % stride == 0 ? length + length / 2 : length;
  }
  profile.iteration_ends = {profile.spans.back().end};
  return profile;
}

/// The spans that a title is for.
std::size_t spans_of(const std::string& title) {
  for (const std::string_view what : {" operations, ", " copies, "}) {
    const std::size_t position = title.find(what);
    if (position != std::string::npos) return std::stoul(title.substr(0, position));
  }
  return title.starts_with("idle") ? 0 : 1;
}

}  // namespace

TEST_CASE("pictures are, byte for byte, those that were looked at") {
  check_golden("profile/one_layer.svg", svg_of(one_layer_swapped(), {.width = width_1200, .title = ""}));
  check_golden("profile/two_iterations.svg", svg_of(two_iterations(), {.width = width_1200, .title = ""}));
}

TEST_CASE("each span is a rectangle where and as long as it ran, with a title that says what it is") {
  const auto rectangles = titled(parsed(svg_of(one_layer_swapped(), {.width = width_1200, .title = ""})));
  std::vector<std::string> titles;
  for (const Element& rectangle : rectangles) titles.push_back(rectangle.text);
  std::sort(titles.begin(), titles.end());
  CHECK(titles ==
        std::vector<std::string>{"a1: at 2.000 ms for 2.000 ms, 32.00 MiB", "a1: at 7.000 ms for 2.000 ms, 32.00 MiB",
                                 "conv1.backward: at 9.000 ms for 3.000 ms", "conv1: at 0.000 ms for 2.000 ms",
                                 "conv2.backward: at 5.000 ms for 3.000 ms", "conv2: at 2.000 ms for 3.000 ms",
                                 "idle: at 8.000 ms for 1.000 ms"});
  for (const Element& rectangle : rectangles) {
    if (!rectangle.text.starts_with("conv2.backward")) continue;
    CHECK(rectangle.x == 92 + 500);
    CHECK(rectangle.width == 300);
  }
}

TEST_CASE("the head says title, device, times, bytes and peak") {
  const auto one = parsed(svg_of(one_layer_swapped()));
  CHECK(has_text(one, "forward & backward"));
  CHECK(has_text(one, "a <small> device"));
  CHECK(has_text(one, "iteration 12.000 ms"));
  CHECK(has_text(one, "idle 1.000 ms (8.3 %)"));
  CHECK(has_text(one, "32.00 MiB in, 32.00 MiB out"));
  CHECK(has_text(one, "peak 96.00 MiB of a budget of 96.00 MiB"));
  CHECK(has_text(one, "budget 96.00 MiB"));

  const auto two = parsed(svg_of(two_iterations(), {.width = 1200, .title = "another title"}));
  CHECK(has_text(two, "another title"));
  CHECK(!has_text(two, "two iterations"));
  CHECK(has_text(two, "2 iterations of 500 ns on average"));
  CHECK(has_text(two, "idle 150 ns (15.0 %)"));
  CHECK(has_text(two, "peak 1.46 KiB"));
  CHECK(!has_text(two, "budget"));
}

TEST_CASE("a budget far above what was taken does not press the picture flat") {
  Profile profile = one_layer_swapped();
  profile.device_budget = Bytes{std::uint64_t{40} << 30U};
  const auto elements = parsed(svg_of(profile));
  CHECK(has_text(elements, "budget 40.00 GiB, above this picture"));
  CHECK(has_text(elements, "96 MiB"));  // a tick
}

TEST_CASE("what is idle is drawn as wide as it is long, whatever spans share a rectangle") {
  for (const std::size_t count : {10U, 100U, 1000U, 5000U, 50'000U}) {
    CAPTURE(count);
    const Profile profile = many_operations(count, 1000, 3);
    double idle = 0;
    double busy = 0;
    for (const Element& element : parsed(svg_of(profile, {.width = width_1200, .title = ""}))) {
      if (element.kind != "rect" || element.x < 92 || (element.text.empty() && element.width > 1)) continue;
      (element.fill == idle_colour ? idle : busy) += element.width;
    }
    const double share =
        static_cast<double>(idle_time(profile).count()) / static_cast<double>(profile.iteration_ends.back().count());
    // Each edge is rounded to a hundredth of a pixel.
    CHECK(idle == doctest::Approx(1200 * share).epsilon(0.01));
    CHECK(busy == doctest::Approx(1200 * (1 - share)).epsilon(0.01));
  }
}

TEST_CASE("a document stays small, and its titles count every span, however many there are") {
  for (const int count : {1, 5, 5000, test::effort(200'000, 10)}) {
    CAPTURE(count);
    Profile profile = many_operations(static_cast<std::size_t>(count), 1000, 7);
    const std::size_t operations = profile.spans.size();
    for (std::size_t i = 0; i < operations; ++i) {
      const std::int64_t start = profile.spans[i].start.count();
      profile.spans.push_back(copy_span(Lane::h2d, "in " + std::string(1000, 'x'), 10, start, start + 900));
      profile.spans.push_back(copy_span(Lane::d2h, "out " + std::string(1000, 'x'), 10, start, start + 100));
      profile.levels.push_back(level(start, 1000 + i % 17));
    }
    std::stable_sort(profile.spans.begin(), profile.spans.end(),
                     [](const ProfileSpan& a, const ProfileSpan& b) { return a.start < b.start; });
    const std::string document = svg_of(profile);
    CHECK(document.size() < 1'000'000);
    std::size_t spans = 0;
    for (const Element& rectangle : titled(parsed(document))) spans += spans_of(rectangle.text);
    CHECK(spans == 3 * count);
  }
}

TEST_CASE("a short span alone can be seen") {
  Profile profile = one_layer_swapped();
  profile.spans.push_back(copy_span(Lane::d2h, "tiny", 1, 11'000'000, 11'000'001));
  profile.spans.push_back(copy_span(Lane::d2h, "at once", 1, 11'900'000, 11'900'000));
  std::size_t found = 0;
  for (const Element& rectangle : titled(parsed(svg_of(profile)))) {
    if (!rectangle.text.starts_with("tiny: ") && !rectangle.text.starts_with("at once: ")) continue;
    ++found;
    CHECK(rectangle.width == 0.5);
  }
  CHECK(found == 2);
}

TEST_CASE("what ended before the picture begins is not in it") {
  Profile profile = two_iterations();
  profile.spans.insert(profile.spans.begin(), copy_span(Lane::h2d, "long ago", 7, -500, -100));
  profile.spans.insert(profile.spans.begin() + 1, copy_span(Lane::h2d, "just before", 7, -100, 0));
  const auto elements = parsed(svg_of(profile));
  CHECK(!has_text(elements, "long ago"));
  CHECK(!has_text(elements, "just before"));
  CHECK(has_text(elements, "weights: at -100 ns for 200 ns, 1000 B"));
}

TEST_CASE("any name gives a valid document, and is shown") {
  Profile profile = one_layer_swapped();
  profile.title = "<title> & \"title\" 'title' ]]>";
  profile.device = "nul \0 escape \x1B delete \x7F"s;
  profile.spans[0].name = "\xFF\xC3(\xED\xA0\x80 not UTF-8";
  profile.spans[1].name = "\xEF\xBF\xBE \xEF\xBF\xBF no characters";
  profile.spans[3].name = "tab\tand\nnewline";
  profile.spans[4].name = "gr\xC3\xB6\xC3\x9F\x65 \xE5\xA4\xA7\xE5\xB0\x8F \xF0\x9F\x98\x80";
  profile.spans[5].name = std::string(100'000, '&');
  const auto elements = parsed(svg_of(profile));
  const std::string replaced = "\xEF\xBF\xBD";
  CHECK(has_text(elements, profile.title));
  CHECK(has_text(elements, "nul \\x00 escape \\x1B delete \\x7F"));
  CHECK(has_text(elements, replaced + replaced + "(" + replaced + replaced + replaced + " not UTF-8: at"));
  CHECK(has_text(elements, replaced + " " + replaced + " no characters: at"));
  CHECK(has_text(elements, "tab\\x09and\\x0Anewline: at"));
  CHECK(has_text(elements, profile.spans[4].name + ": at"));
  CHECK(has_text(elements, std::string(199, '&') + "\xE2\x80\xA6: at"));
}

TEST_CASE("a name is drawn inside where there is room, and cut where there is some") {
  const auto names_in = [](std::int64_t pixels) {
    Profile profile;
    profile.spans = {operation_span("a_long_name", 0, pixels), operation_span("z", pixels, 1200)};
    profile.iteration_ends = {nanoseconds{1200}};
    std::vector<std::string> names;
    for (const Element& element : parsed(svg_of(profile, {.width = width_1200, .title = ""}))) {
      if (element.kind == "text" && element.text.starts_with("a_")) names.push_back(element.text);
    }
    return names;
  };
  CHECK(names_in(600) == std::vector<std::string>{"a_long_name"});
  CHECK(names_in(60) == std::vector<std::string>{"a_long_\xE2\x80\xA6"});
  CHECK(names_in(30).empty());
  CHECK(names_in(1).empty());
}

TEST_CASE("profiles with nothing in them, or with little, have a picture") {
  CHECK(has_text(parsed(svg_of({})), "nothing ran"));
  CHECK(has_text(parsed(svg_of({})), "a profile"));

  Profile computing = many_operations(3, 1000, 1);
  CHECK(titled(parsed(svg_of(computing))).size() == 3 + 2);  // and two gaps
  computing.iteration_ends.clear();
  CHECK(has_text(parsed(svg_of(computing)), "4.000 us without a whole iteration"));

  Profile at_once;
  at_once.spans = {operation_span("o", 0, 0)};
  at_once.levels = {level(0, 0)};
  at_once.iteration_ends = {nanoseconds{0}};
  CHECK(titled(parsed(svg_of(at_once))).size() == 1);
}

TEST_CASE("the largest times and sizes have a picture") {
  const std::int64_t late = std::int64_t{1} << 61U;
  Profile profile;
  profile.device_budget = Bytes{UINT64_MAX};
  profile.spans = {operation_span("o", -late, late), copy_span(Lane::h2d, "t", UINT64_MAX, 0, late)};
  profile.levels = {level(0, UINT64_MAX), level(late, 0)};
  profile.iteration_ends = {nanoseconds{late}};
  const auto elements = parsed(svg_of(profile));
  CHECK(has_text(elements, "iteration 2305843009.214 s"));
  CHECK(has_text(elements, "peak 16777216.00 TiB"));
  CHECK(titled(elements).size() == 2);
}

TEST_CASE("an unusable width becomes the nearest that is usable") {
  CHECK(svg_of(one_layer_swapped(), {.width = -5, .title = ""}) ==
        svg_of(one_layer_swapped(), {.width = 900, .title = ""}));
  CHECK(svg_of(one_layer_swapped(), {.width = 1'000'000'000, .title = ""}) ==
        svg_of(one_layer_swapped(), {.width = 20'000, .title = ""}));
}

TEST_CASE("a picture is written by no locale") {
  /// Groups digits as many languages do.
  struct Grouping : std::numpunct<char> {
    char do_thousands_sep() const override { return '.'; }
    char do_decimal_point() const override { return ','; }
    std::string do_grouping() const override { return "\3"; }
  };
  std::ostringstream out;
  out.imbue(std::locale(std::locale::classic(), new Grouping));
  write_svg(out, one_layer_swapped());
  CHECK(out.str() == svg_of(one_layer_swapped()));
}
