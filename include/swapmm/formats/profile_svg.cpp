// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/profile_svg.hpp>

#include <algorithm>
#include <array>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/base/text/figures.hpp>
#include <swapmm/formats/svg/elements.hpp>
#include <swapmm/formats/svg/profile_boxes.hpp>
#include <swapmm/formats/svg/profile_scale.hpp>

namespace swapmm {
namespace {

using std::chrono::nanoseconds;
using svg::Length;
using svg::pixel;

// Colours of operations, idle time and copies differ clearly for any kind of colour vision (simulated as by Machado and
// others, 2009: at least 30 apart in CIELAB). Neighbours in a lane alternate between its two shades.
constexpr std::string_view idle_colour = "#c0392b";
constexpr std::string_view used_colour = "#bfbfbf";

struct LaneStyle {
  Lane lane;
  std::string_view label;
  std::string_view legend;
  std::array<std::string_view, 2> shades;
  std::string_view ink;  // colour of names in it
};
constexpr std::array<LaneStyle, lane_count> lane_styles = {{
    {Lane::compute, "compute", "operations", {"#1a3a5c", "#2f5f91"}, "#fff"},
    {Lane::h2d, "H2D", "copies to the device", {"#56b4e9", "#86caef"}, "#000"},
    {Lane::d2h, "D2H", "copies to the host", {"#e69f00", "#f2bc45"}, "#000"},
}};

// Positions, from top to bottom.
constexpr Length margin = 20 * pixel;
constexpr Length left = 92 * pixel;
constexpr Length right_margin = 36 * pixel;
constexpr Length title_baseline = 26 * pixel;
constexpr Length device_baseline = 47 * pixel;
constexpr Length figures_baseline = 67 * pixel;
constexpr Length legend_baseline = 93 * pixel;
constexpr Length bytes_top = 108 * pixel;
constexpr Length bytes_height = 170 * pixel;
constexpr Length lanes_top = bytes_top + bytes_height + 16 * pixel;
constexpr Length lane_height = 36 * pixel;
constexpr Length lane_step = 44 * pixel;
constexpr Length lanes_bottom = lanes_top + 2 * lane_step + lane_height;
constexpr Length axis_baseline = lanes_bottom + 22 * pixel;
constexpr Length height = axis_baseline + 14 * pixel;

constexpr std::string_view untitled = "a profile";
constexpr Length title_size = 16 * pixel;
constexpr Length text_size = 12 * pixel;
constexpr Length name_size = 11 * pixel;
constexpr std::string_view iteration_line = "stroke=\"#000\" stroke-width=\"0.75\"";
/// Largest number of characters of a name in a title, so that many long names do not make a document large.
constexpr std::size_t characters_of_few = 200;
constexpr std::size_t characters_of_many = 40;
constexpr std::size_t few_spans = 1000;

/// Whether the picture shows the budget. A budget far above the used bytes would make the picture flat.
bool shows_budget(const Profile& profile) {
  const Bytes peak = peak_used(profile);
  return profile.device_budget.value != 0 && (peak.value == 0 || profile.device_budget.value / 4 <= peak.value);
}

Bytes bytes_shown(const Profile& profile) {
  Bytes most = peak_used(profile);
  if (shows_budget(profile)) most = std::max(most, profile.device_budget);
  // Room above for the label of the budget.
  most = std::min(most, Bytes{std::uint64_t{1} << 62U});
  return most + Bytes{most.value / 8 + 1};
}

class Picture {
 public:
  Picture(const Profile& profile, const SvgOptions& options)
      : profile_(profile),
        title_(!options.title.empty()   ? options.title
               : !profile.title.empty() ? profile.title
                                        : untitled),
        width_(std::clamp(options.width, 900, 20'000) * pixel),
        right_(width_ - right_margin),
        time_{left, right_ - left, profile_end(profile)},
        bytes_{bytes_top + bytes_height, bytes_height, bytes_shown(profile)},
        fine_(time_.time_of(pixel / 2)),
        start_unit_(text::time_unit(time_.length / 10)) {}

  /// The whole document.
  [[nodiscard]] std::string draw() && {
    begin();
    draw_headline();
    draw_legend();
    draw_levels();
    draw_axes();
    for (std::size_t i = 0; i < lane_count; ++i)
      draw_lane(lane_styles[i], lanes_top + static_cast<Length>(i) * lane_step);
    draw_iteration_ends();
    draw_budget();
    page_ += "</svg>\n";
    return std::move(page_);
  }

 private:
  void begin();
  void draw_headline();
  void draw_legend();
  void draw_axes();
  void draw_levels();
  void draw_budget();
  void draw_lane(const LaneStyle& style, Length top);
  void draw_idle(const std::vector<svg::Box>& boxes, Length top);
  void draw_iteration_ends();

  [[nodiscard]] std::string when(nanoseconds start, nanoseconds length) const;
  [[nodiscard]] std::string title_of(const svg::Box& box, Lane lane) const;

  const Profile& profile_;
  std::string_view title_;
  Length width_;
  Length right_;
  svg::TimeScale time_;
  svg::ByteScale bytes_;
  nanoseconds fine_;  // shorter times are not visible
  text::FigureUnit start_unit_;
  std::string page_;
};

void Picture::begin() {
  page_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"";
  svg::append_length(page_, width_);
  page_ += "\" height=\"";
  svg::append_length(page_, height);
  page_ += "\" viewBox=\"0 0 ";
  svg::append_length(page_, width_);
  page_ += ' ';
  svg::append_length(page_, height);
  page_ += "\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n<title>";
  page_ += svg::escaped(svg::shortened(title_, characters_of_few));
  page_ += "</title>\n";
  // Viewers may have a dark background; the picture has a light one.
  svg::append_rectangle(page_, {0, 0, width_, height}, "#fff");
}

void Picture::draw_headline() {
  const Length room = width_ - 2 * margin;
  // Bold is about a tenth wider.
  svg::append_text(page_, margin, title_baseline, svg::fitted(title_, room * 9 / 10, title_size),
                   "font-size=\"16\" font-weight=\"bold\"");
  if (!profile_.device.empty()) {
    svg::append_text(page_, margin, device_baseline, svg::fitted(profile_.device, room, text_size), "fill=\"#555\"");
  }
  svg::append_text(page_, margin, figures_baseline, svg::fitted(describe(profile_), room, text_size));
}

void Picture::draw_legend() {
  Length x = left;
  constexpr Length swatch = 16 * pixel;
  const auto entry = [&](std::string_view left_shade, std::string_view right_shade, std::string_view text) {
    const svg::Rectangle whole{x, legend_baseline - 10 * pixel, swatch, 11 * pixel};
    svg::append_rectangle(page_, whole, left_shade);
    if (right_shade != left_shade) {
      svg::append_rectangle(page_, {x + swatch / 2, whole.y, swatch / 2, whole.height}, right_shade);
    }
    svg::append_text(page_, x + swatch + 5 * pixel, legend_baseline, text);
    x += swatch + svg::text_width(text, text_size) + 21 * pixel;
  };
  const auto lane_entry = [&](const LaneStyle& style) { entry(style.shades[0], style.shades[1], style.legend); };
  entry(used_colour, used_colour, "bytes taken");
  lane_entry(lane_styles[0]);
  entry(idle_colour, idle_colour, "idle");
  for (std::size_t i = 1; i < lane_count; ++i) lane_entry(lane_styles[i]);
  if (profile_.iteration_ends.size() < 2) return;
  svg::append_line(page_, x + swatch / 2, legend_baseline - 12 * pixel, x + swatch / 2, legend_baseline + 3 * pixel,
                   iteration_line);
  svg::append_text(page_, x + swatch + 2 * pixel, legend_baseline, "end of an iteration");
}

void Picture::draw_axes() {
  page_ += "<g font-size=\"11\" fill=\"#555\">\n";
  for (const svg::Tick& tick : svg::ticks(bytes_, 5)) {
    svg::append_line(page_, left, tick.at, right_, tick.at, "stroke=\"#000\" stroke-opacity=\"0.12\"");
    svg::append_text(page_, left - 8 * pixel, tick.at + 4 * pixel, tick.label, "text-anchor=\"end\"");
  }
  for (const svg::Tick& tick : svg::ticks(time_, (right_ - left) / (90 * pixel))) {
    svg::append_line(page_, tick.at, bytes_top, tick.at, lanes_bottom + 6 * pixel,
                     "stroke=\"#000\" stroke-opacity=\"0.12\"");
    svg::append_text(page_, tick.at, axis_baseline, tick.label, "text-anchor=\"middle\"");
  }
  page_ += "</g>\n";
}

void Picture::draw_levels() {
  const std::vector<ProfileLevel> levels = svg::coarser(profile_.levels, fine_);
  if (levels.empty()) return;
  page_ += "<path d=\"M";
  svg::append_length(page_, time_.at(levels.front().time));
  page_ += ' ';
  svg::append_length(page_, bytes_.bottom);
  for (std::size_t i = 0; i < levels.size(); ++i) {
    page_ += 'V';
    svg::append_length(page_, bytes_.at(levels[i].used));
    page_ += 'H';
    svg::append_length(page_, i + 1 < levels.size() ? time_.at(levels[i + 1].time) : right_);
  }
  page_ += 'V';
  svg::append_length(page_, bytes_.bottom);
  page_ += "Z\" fill=\"";
  page_ += used_colour;
  page_ += "\"/>\n";
}

void Picture::draw_budget() {
  if (profile_.device_budget.value == 0) return;
  const std::string label = "budget " + text::size_text(profile_.device_budget);
  if (!shows_budget(profile_)) {
    svg::append_text(page_, right_, bytes_top + 12 * pixel, label + ", above this picture", "text-anchor=\"end\"");
    return;
  }
  const Length y = bytes_.at(profile_.device_budget);
  svg::append_line(page_, left, y, right_, y, "stroke=\"#000\" stroke-width=\"1.25\" stroke-dasharray=\"7 4\"");
  svg::append_text(page_, right_, y - 5 * pixel, label, "text-anchor=\"end\" font-weight=\"bold\"");
}

std::string Picture::when(nanoseconds start, nanoseconds length) const {
  return ": at " + text::time_text(start, start_unit_) + " for " + text::time_text(length);
}

std::string Picture::title_of(const svg::Box& box, Lane lane) const {
  const std::size_t characters = profile_.spans.size() <= few_spans ? characters_of_few : characters_of_many;
  const auto name = [&](std::size_t span) { return svg::shortened(profile_.spans[span].name, characters); };
  std::string title = name(box.first);
  if (box.spans > 1) {
    title = std::to_string(box.spans) + (lane == Lane::compute ? " operations, " : " copies, ") + title + " to " +
            name(box.last);
  }
  title += when(box.start, box.end - box.start);
  if (box.spans > 1) title += ", busy " + text::time_text(box.busy);
  if (lane != Lane::compute) title += ", " + text::size_text(box.bytes);
  return title;
}

void Picture::draw_lane(const LaneStyle& style, Length top) {
  svg::append_text(page_, left - 8 * pixel, top + lane_height / 2 + 4 * pixel, style.label,
                   "text-anchor=\"end\" font-weight=\"bold\"");
  svg::append_rectangle(page_, {left, top, right_ - left, lane_height}, "#f4f4f4");
  const std::vector<svg::Box> boxes = svg::boxes_of(profile_, style.lane, fine_);
  if (style.lane == Lane::compute) draw_idle(boxes, top);
  std::string names;
  std::size_t drawn = 0;
  for (const svg::Box& box : boxes) {
    if (box.start < nanoseconds{0} && box.drawn_end() <= nanoseconds{0}) continue;  // before the picture begins
    const Length x = time_.at(box.start);
    const Length box_width = time_.at(box.drawn_end()) - x;
    // A span without neighbours must be visible, however short it is.
    svg::append_rectangle(page_, {x, top, std::max(box_width, pixel / 2), lane_height}, style.shades[drawn % 2],
                          title_of(box, style.lane));
    ++drawn;
    if (box.spans > 1 || box_width < 18 * pixel) continue;
    const std::string name = svg::fitted(profile_.spans[box.first].name, box_width - 6 * pixel, name_size);
    if (!name.empty()) svg::append_text(names, x + 3 * pixel, top + lane_height / 2 + 4 * pixel, name);
  }
  if (names.empty()) return;
  // Names must not catch the pointer, because titles belong to the rectangles.
  page_ += "<g font-size=\"11\" pointer-events=\"none\" fill=\"";
  page_ += style.ink;
  page_ += "\">\n" + names + "</g>\n";
}

void Picture::draw_idle(const std::vector<svg::Box>& boxes, Length top) {
  for (const svg::Gap& gap : svg::gaps_between(boxes, compute_end(profile_))) {
    const Length x = time_.at(gap.start);
    const Length gap_width = time_.at(gap.end) - x;
    if (gap_width == 0) continue;
    const nanoseconds length = gap.end - gap.start;
    svg::append_rectangle(page_, {x, top, gap_width, lane_height}, idle_colour,
                          length < fine_ ? std::string() : "idle" + when(gap.start, length));
  }
}

void Picture::draw_iteration_ends() {
  if (profile_.iteration_ends.size() < 2) return;
  Length before = left;
  for (const nanoseconds end : profile_.iteration_ends) {
    const Length x = time_.at(end);
    if (x - before < 4 * pixel) continue;
    before = x;
    svg::append_line(page_, x, bytes_top, x, lanes_bottom, iteration_line);
  }
}

}  // namespace

void write_svg(std::ostream& out, const Profile& profile, const SvgOptions& options) {
  out << Picture(profile, options).draw();
}

}  // namespace swapmm
