// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/svg/chart_picture.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/base/text/figures.hpp>
#include <swapmm/formats/svg/elements.hpp>
#include <swapmm/formats/svg/profile_boxes.hpp>
#include <swapmm/formats/svg/profile_scale.hpp>

namespace swapmm::svg {
namespace {

using std::chrono::nanoseconds;

// The colours of kinds are in chart.cpp.
constexpr std::string_view idle_colour = "#c0392b";
constexpr std::string_view used_colour = "#bfbfbf";

// Positions, from top to bottom.
constexpr Length margin = 20 * pixel;
constexpr Length least_left = 92 * pixel;
constexpr Length most_left = 240 * pixel;
constexpr Length right_margin = 36 * pixel;
constexpr Length title_baseline = 26 * pixel;
constexpr Length device_baseline = 47 * pixel;
constexpr Length figures_baseline = 67 * pixel;
constexpr Length legend_baseline = 93 * pixel;
constexpr Length bytes_top = 108 * pixel;
constexpr Length bytes_gap = 16 * pixel;
constexpr Length lane_height = 36 * pixel;
constexpr Length lane_step = 44 * pixel;
constexpr Length axis_step = 22 * pixel;
constexpr Length bottom_margin = 14 * pixel;

constexpr std::string_view untitled = "a profile";
constexpr Length title_size = 16 * pixel;
constexpr Length text_size = 12 * pixel;
constexpr Length name_size = 11 * pixel;
constexpr std::string_view iteration_line = "stroke=\"#000\" stroke-width=\"0.75\"";
/// Largest number of characters of a name in a title, so that many long names do not make a document large.
constexpr std::size_t characters_of_few = 200;
constexpr std::size_t characters_of_many = 40;
constexpr std::size_t few_spans = 1000;

/// The height of the curve of one of several memories.
Length bytes_height(std::size_t memories) { return (memories <= 1 ? 170 : memories == 2 ? 120 : 90) * pixel; }

/// Whether the picture shows the limit. A limit far above the used bytes would make the picture flat.
bool shows_limit(const chart::Memory& memory) {
  const Bytes peak = peak_used(memory);
  return memory.limit.value != 0 && (peak.value == 0 || memory.limit.value / 4 <= peak.value);
}

Bytes bytes_shown(const chart::Memory& memory) {
  Bytes most = peak_used(memory);
  if (shows_limit(memory)) most = std::max(most, memory.limit);
  // Room above for the label of the limit.
  most = std::min(most, Bytes{std::uint64_t{1} << 62U});
  return most + Bytes{most.value / 8 + 1};
}

/// The beginning of the time axis: there is room for the names of rows before it.
Length left_of(const chart::Chart& chart) {
  Length widest = 0;
  // Bold is about a tenth wider.
  for (const chart::Row& row : chart.rows) widest = std::max(widest, text_width(row.name, text_size) * 11 / 10);
  return std::clamp(widest + 16 * pixel, least_left, most_left);
}

class Picture {
 public:
  Picture(const chart::Chart& chart, int width, std::string_view title)
      : chart_(chart),
        title_(!title.empty()         ? title
               : !chart.title.empty() ? chart.title
                                      : untitled),
        width_(std::clamp(width, 900, 20'000) * pixel),
        left_(left_of(chart)),
        right_(width_ - right_margin),
        time_{left_, right_ - left_, chart.end},
        rows_(chart.rows.size()),
        fine_(time_.time_of(pixel / 2)),
        start_unit_(text::time_unit(time_.length / 10)) {
    Length top = bytes_top;
    for (const chart::Memory& memory : chart.memories) {
      const Length height = bytes_height(chart.memories.size());
      bytes_.push_back({top + height, height, bytes_shown(memory)});
      top += height + bytes_gap;
    }
    rows_top_ = top;
    rows_bottom_ = top;
    if (!chart.rows.empty()) rows_bottom_ += static_cast<Length>(chart.rows.size() - 1) * lane_step + lane_height;
    axis_baseline_ = rows_bottom_ + axis_step;
    for (const chart::Span& span : chart.spans) rows_[span.row].push_back(span);
  }

  /// The whole document.
  [[nodiscard]] std::string draw() && {
    begin();
    draw_headline();
    draw_legend();
    for (std::size_t m = 0; m < bytes_.size(); ++m) draw_levels(m);
    draw_axes();
    for (std::size_t i = 0; i < rows_.size(); ++i) draw_row(i, rows_top_ + static_cast<Length>(i) * lane_step);
    draw_iteration_ends();
    draw_limits();
    page_ += "</svg>\n";
    return std::move(page_);
  }

 private:
  void begin();
  void draw_headline();
  void draw_legend();
  void draw_axes();
  void draw_levels(std::size_t memory);
  void draw_limits();
  void draw_row(std::size_t row, Length top);
  void draw_idle(const std::vector<Box>& boxes, Length top);
  void draw_iteration_ends();

  [[nodiscard]] std::string when(nanoseconds start, nanoseconds length) const;
  [[nodiscard]] std::string title_of(const Box& box, std::size_t row) const;

  const chart::Chart& chart_;
  std::string_view title_;
  Length width_;
  Length left_;
  Length right_;
  Length rows_top_ = 0;
  Length rows_bottom_ = 0;
  Length axis_baseline_ = 0;
  TimeScale time_;
  std::vector<ByteScale> bytes_;                // of each memory
  std::vector<std::vector<chart::Span>> rows_;  // the spans of each row
  nanoseconds fine_;                            // shorter times are not visible
  text::FigureUnit start_unit_;
  std::string page_;
};

void Picture::begin() {
  page_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"";
  append_length(page_, width_);
  page_ += "\" height=\"";
  append_length(page_, axis_baseline_ + bottom_margin);
  page_ += "\" viewBox=\"0 0 ";
  append_length(page_, width_);
  page_ += ' ';
  append_length(page_, axis_baseline_ + bottom_margin);
  page_ += "\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n<title>";
  page_ += escaped(shortened(title_, characters_of_few));
  page_ += "</title>\n";
  // Viewers may have a dark background; the picture has a light one.
  append_rectangle(page_, {0, 0, width_, axis_baseline_ + bottom_margin}, "#fff");
}

void Picture::draw_headline() {
  const Length room = width_ - 2 * margin;
  // Bold is about a tenth wider.
  append_text(page_, margin, title_baseline, fitted(title_, room * 9 / 10, title_size),
              "font-size=\"16\" font-weight=\"bold\"");
  if (!chart_.machine.empty()) {
    append_text(page_, margin, device_baseline, fitted(chart_.machine, room, text_size), "fill=\"#555\"");
  }
  append_text(page_, margin, figures_baseline, fitted(chart_.figures, room, text_size));
}

void Picture::draw_legend() {
  Length x = left_;
  constexpr Length swatch = 16 * pixel;
  const auto entry = [&](std::string_view left_shade, std::string_view right_shade, std::string_view text) {
    const Rectangle whole{x, legend_baseline - 10 * pixel, swatch, 11 * pixel};
    append_rectangle(page_, whole, left_shade);
    if (right_shade != left_shade) {
      append_rectangle(page_, {x + swatch / 2, whole.y, swatch / 2, whole.height}, right_shade);
    }
    append_text(page_, x + swatch + 5 * pixel, legend_baseline, text);
    x += swatch + text_width(text, text_size) + 21 * pixel;
  };
  const auto kind_entry = [&](const chart::Kind& kind) {
    if (kind.in_legend) entry(kind.shades[0], kind.shades[1], kind.legend);
  };
  entry(used_colour, used_colour, "bytes taken");
  kind_entry(chart_.kinds.front());
  entry(idle_colour, idle_colour, "idle");
  for (std::size_t i = 1; i < chart_.kinds.size(); ++i) kind_entry(chart_.kinds[i]);
  if (chart_.iteration_ends.size() < 2) return;
  append_line(page_, x + swatch / 2, legend_baseline - 12 * pixel, x + swatch / 2, legend_baseline + 3 * pixel,
              iteration_line);
  append_text(page_, x + swatch + 2 * pixel, legend_baseline, "end of an iteration");
}

void Picture::draw_axes() {
  page_ += "<g font-size=\"11\" fill=\"#555\">\n";
  for (const ByteScale& bytes : bytes_) {
    for (const Tick& tick : ticks(bytes, bytes_.size() <= 1 ? 5 : 3)) {
      append_line(page_, left_, tick.at, right_, tick.at, "stroke=\"#000\" stroke-opacity=\"0.12\"");
      append_text(page_, left_ - 8 * pixel, tick.at + 4 * pixel, tick.label, "text-anchor=\"end\"");
    }
  }
  for (const Tick& tick : ticks(time_, (right_ - left_) / (90 * pixel))) {
    append_line(page_, tick.at, bytes_top, tick.at, rows_bottom_ + 6 * pixel,
                "stroke=\"#000\" stroke-opacity=\"0.12\"");
    append_text(page_, tick.at, axis_baseline_, tick.label, "text-anchor=\"middle\"");
  }
  page_ += "</g>\n";
}

void Picture::draw_levels(std::size_t memory) {
  const ByteScale& bytes = bytes_[memory];
  const std::vector<ProfileLevel> levels = coarser(chart_.memories[memory].levels, fine_);
  if (levels.empty()) return;
  page_ += "<path d=\"M";
  append_length(page_, time_.at(levels.front().time));
  page_ += ' ';
  append_length(page_, bytes.bottom);
  for (std::size_t i = 0; i < levels.size(); ++i) {
    page_ += 'V';
    append_length(page_, bytes.at(levels[i].used));
    page_ += 'H';
    append_length(page_, i + 1 < levels.size() ? time_.at(levels[i + 1].time) : right_);
  }
  page_ += 'V';
  append_length(page_, bytes.bottom);
  page_ += "Z\" fill=\"";
  page_ += used_colour;
  page_ += "\"/>\n";
}

void Picture::draw_limits() {
  for (std::size_t m = 0; m < bytes_.size(); ++m) {
    const chart::Memory& memory = chart_.memories[m];
    const ByteScale& bytes = bytes_[m];
    const Length top = bytes.bottom - bytes.height;
    if (!memory.name.empty()) {
      append_text(page_, left_ + 6 * pixel, top + 12 * pixel, fitted(memory.name, (right_ - left_) / 2, text_size),
                  "font-weight=\"bold\"");
    }
    if (memory.limit.value == 0) continue;
    const std::string label = std::string(memory.limit_label) + ' ' + text::size_text(memory.limit);
    if (!shows_limit(memory)) {
      append_text(page_, right_, top + 12 * pixel, label + ", above this picture", "text-anchor=\"end\"");
      continue;
    }
    const Length y = bytes.at(memory.limit);
    append_line(page_, left_, y, right_, y, "stroke=\"#000\" stroke-width=\"1.25\" stroke-dasharray=\"7 4\"");
    append_text(page_, right_, y - 5 * pixel, label, "text-anchor=\"end\" font-weight=\"bold\"");
  }
}

std::string Picture::when(nanoseconds start, nanoseconds length) const {
  return ": at " + text::time_text(start, start_unit_) + " for " + text::time_text(length);
}

std::string Picture::title_of(const Box& box, std::size_t row) const {
  const std::size_t characters = chart_.spans.size() <= few_spans ? characters_of_few : characters_of_many;
  const auto name = [&](std::size_t span) { return shortened(rows_[row][span].name, characters); };
  std::string title = name(box.first);
  if (box.spans > 1) {
    title =
        std::to_string(box.spans) + ' ' + std::string(chart_.rows[row].plural) + ", " + title + " to " + name(box.last);
  } else if (const std::string_view category = chart_.kinds[box.kind].category; !category.empty()) {
    title += " (" + std::string(category) + ')';
  }
  title += when(box.start, box.end - box.start);
  if (box.spans > 1) title += ", busy " + text::time_text(box.busy);
  if (chart_.rows[row].shows_bytes) title += ", " + text::size_text(box.bytes);
  return title;
}

void Picture::draw_row(std::size_t row, Length top) {
  append_text(page_, left_ - 8 * pixel, top + lane_height / 2 + 4 * pixel,
              fitted(chart_.rows[row].name, (left_ - 12 * pixel) * 10 / 11, text_size),
              "text-anchor=\"end\" font-weight=\"bold\"");
  append_rectangle(page_, {left_, top, right_ - left_, lane_height}, "#f4f4f4");
  const std::vector<Box> boxes = boxes_of(rows_[row], fine_);
  if (chart_.rows[row].shows_idle) draw_idle(boxes, top);
  std::map<std::string_view, std::string> names;  // by colour
  std::size_t drawn = 0;
  for (const Box& box : boxes) {
    if (box.start < nanoseconds{0} && box.drawn_end() <= nanoseconds{0}) continue;  // before the picture begins
    const chart::Kind& kind = chart_.kinds[box.kind];
    const Length x = time_.at(box.start);
    const Length box_width = time_.at(box.drawn_end()) - x;
    // A span without neighbours must be visible, however short it is.
    append_rectangle(page_, {x, top, std::max(box_width, pixel / 2), lane_height}, kind.shades[drawn % 2],
                     title_of(box, row));
    ++drawn;
    if (box.spans > 1 || box_width < 18 * pixel) continue;
    const std::string name = fitted(rows_[row][box.first].name, box_width - 6 * pixel, name_size);
    if (!name.empty()) append_text(names[kind.ink], x + 3 * pixel, top + lane_height / 2 + 4 * pixel, name);
  }
  // Names must not catch the pointer, because titles belong to the rectangles.
  for (const auto& [ink, texts] : names) {
    page_ += "<g font-size=\"11\" pointer-events=\"none\" fill=\"";
    page_ += ink;
    page_ += "\">\n" + texts + "</g>\n";
  }
}

void Picture::draw_idle(const std::vector<Box>& boxes, Length top) {
  for (const Gap& gap : gaps_between(boxes, chart_.compute_end)) {
    const Length x = time_.at(gap.start);
    const Length gap_width = time_.at(gap.end) - x;
    if (gap_width == 0) continue;
    const nanoseconds length = gap.end - gap.start;
    append_rectangle(page_, {x, top, gap_width, lane_height}, idle_colour,
                     length < fine_ ? std::string() : "idle" + when(gap.start, length));
  }
}

void Picture::draw_iteration_ends() {
  if (chart_.iteration_ends.size() < 2) return;
  Length before = left_;
  for (const nanoseconds end : chart_.iteration_ends) {
    const Length x = time_.at(end);
    if (x - before < 4 * pixel) continue;
    before = x;
    append_line(page_, x, bytes_top, x, rows_bottom_, iteration_line);
  }
}

}  // namespace

std::string draw(const chart::Chart& chart, int width, std::string_view title) {
  return Picture(chart, width, title).draw();
}

}  // namespace swapmm::svg
