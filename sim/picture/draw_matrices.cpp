// Draws weight matrices, and how they are cut over ranks.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "sim/picture/draw.h"

namespace orrery {
namespace {

constexpr double kHiddenSide = 84;  // pixels of the side of a matrix that is as long as the hidden size
constexpr double kLeastSide = 26, kMostSide = 168, kMostStack = 400;
constexpr double kStripHeight = 7, kStripGap = 3;
constexpr TextStyle kNameStyle = {.size = 12, .bold = true};
constexpr TextStyle kShapeStyle = {.size = 10, .fill = "#555555"};
constexpr TextStyle kPartStyle = {.size = 9, .anchor = "middle"};

// Returns the length in pixels of a matrix's side of `length` elements. It grows with the square root, so that short
// sides stay visible beside long ones.
double side_pixels(std::int64_t length, double hidden, double most) {
  return std::clamp(kHiddenSide * std::sqrt(static_cast<double>(length) / hidden), kLeastSide, most);
}

std::string holders_text(const MatrixCut& cut, const HeldPart& part) {
  std::string text;
  for (const std::size_t h : part.holders) text += (text.empty() ? "" : ", ") + cut.holders[h].label;
  return text;
}

std::string part_hint(const MatrixCut& cut, const HeldPart& part) {
  return fmt::format("{}: rows {} to {}, columns {} to {} on {}", cut.name, part.row, part.row + part.rows - 1,
                     part.column, part.column + part.columns - 1, holders_text(cut, part));
}

// Draws one part of a matrix. A part that several ranks hold has a stripe for each of them, unless all ranks hold it.
void draw_part(Drawing& d, const MatrixCut& cut, const HeldPart& part, const Box& box) {
  const std::size_t n = cut.holders.size(), held = part.holders.size();
  const bool everywhere = n > 1 && held == n;
  const std::string fill = everywhere ? "#e4e4e4" : colour_of(part.holders.front(), n);
  d.open({{"class", "held"}});
  d.hint(part_hint(cut, part));
  d.rect(box, {{"class", "part"}, {"fill", fill}, {"stroke", "#444444"}, {"stroke-width", "0.5"}});
  const double stripe = box.width / static_cast<double>(held);
  for (std::size_t i = 1; i < held && !everywhere; ++i) {
    d.rect({box.x + stripe * static_cast<double>(i), box.y, stripe, box.height},
           {{"class", "stripe"}, {"fill", colour_of(part.holders[i], n)}});
  }
  const std::string label = everywhere ? "on each" : holders_text(cut, part);
  if (n > 1 && text_width(label, kPartStyle) + 2 <= box.width && box.height >= kPartStyle.size + 2)
    d.text(box.x + box.width / 2, box.y + box.height / 2 + kPartStyle.size * 0.35, label, kPartStyle);
  d.close();
}

void draw_parts(Drawing& d, const MatrixCut& cut, const Box& whole) {
  const double per_row = whole.height / static_cast<double>(cut.rows);
  const double per_column = whole.width / static_cast<double>(cut.columns);
  for (const HeldPart& p : cut.parts) {
    draw_part(d, cut, p,
              {whole.x + static_cast<double>(p.column) * per_column, whole.y + static_cast<double>(p.row) * per_row,
               static_cast<double>(p.columns) * per_column, static_cast<double>(p.rows) * per_row});
  }
}

// Draws the strip that shows how data ranks share one rank's part of a matrix. Where the shares are too many to draw
// one by one, the strip is a single rectangle.
void draw_strip(Drawing& d, const MatrixCut& cut, const Box& strip) {
  d.open({{"class", "shares"}, {"data-ranks", fmt::format("{}", cut.sharers)}});
  d.rect(strip, {{"class", "strip"}, {"fill", "#d9d9d9"}, {"stroke", "#444444"}, {"stroke-width", "0.5"}});
  const auto n = static_cast<std::size_t>(cut.sharers);
  if (!cut.shares.empty())
    d.hint(fmt::format("{}: shares of data ranks {} to {}", cut.name, cut.shares.front().member,
                       cut.shares.back().member));
  constexpr double kLeastShare = 1.5;  // least width in pixels of a data rank's share that is drawn by itself
  if (static_cast<double>(cut.shares.size()) * kLeastShare > strip.width) return d.close();
  for (const Share& s : cut.shares) {
    d.rect({strip.x + s.begin * strip.width, strip.y, (s.end - s.begin) * strip.width, strip.height},
           {{"class", "share"},
            {"fill", colour_of(static_cast<std::size_t>(s.member), n)},
            {"stroke", "#444444"},
            {"stroke-width", "0.3"}});
  }
  d.close();
}

std::string shape_text(const MatrixCut& cut) {
  const std::string shape = fmt::format("{} x {}", cut.out, cut.in);
  return cut.experts > 0 ? fmt::format("{} x ({})", cut.experts, shape) : shape;
}

// Returns a text on the size of the part of a matrix that one rank holds: "4096 x 1024 on each of 8"; "up to ..." where
// parts differ in size.
std::string own_text(const MatrixCut& cut) {
  std::int64_t out = 0, in = 0;
  bool unlike = false;            // whether parts differ in size
  std::set<std::size_t> holders;  // indices of the ranks that hold any part
  for (const HeldPart& p : cut.parts) {
    unlike = unlike || p.rows != cut.parts.front().rows || p.columns != cut.parts.front().columns;
    holders.insert(p.holders.begin(), p.holders.end());
    out = std::max(out, p.rows);
    in = std::max(in, p.columns);
  }
  if (cut.holders.size() == 1) return cut.sharers > 1 ? "" : "whole on one rank";
  if (std::ranges::all_of(cut.parts, [&](const HeldPart& p) { return p.holders.size() == cut.holders.size(); }))
    return fmt::format("whole on each of {}", cut.holders.size());
  const std::int64_t experts = cut.experts == 0 ? 0 : cut.across ? in / cut.in : out / cut.out;
  if (experts > 0)
    return fmt::format("{} expert{} on each of {}", experts, experts == 1 ? "" : "s", cut.holders.size());
  return fmt::format("{}{} x {} on each of {}", unlike ? "up to " : "", out, in, holders.size());
}

std::string sharers_text(const MatrixCut& cut) {
  return fmt::format("{} over {} data ranks", cut.shares_weights ? "sharded" : "optimizer", cut.sharers);
}

// Draws a matrix and its parts. says_sharers: whether a line below the matrix says how many data ranks share its
// states.
Drawing draw_matrix(const MatrixCut& cut, double hidden, bool says_sharers) {
  const bool stacked = cut.experts > 0;
  const double width = stacked && cut.across ? side_pixels(cut.columns, hidden, kMostStack)
                                             : side_pixels(cut.columns, hidden, kMostSide);
  const double height =
      stacked && !cut.across ? side_pixels(cut.rows, hidden, kMostStack / 2) : side_pixels(cut.rows, hidden, kMostSide);
  Drawing d;
  d.open({{"class", "matrix"},
          {"data-name", cut.name},
          {"data-rows", fmt::format("{}", cut.rows)},
          {"data-columns", fmt::format("{}", cut.columns)}});
  std::vector<std::string> below = {shape_text(cut) + (cut.frozen ? ", frozen" : "")};
  if (const std::string own = own_text(cut); !own.empty()) below.push_back(own);
  if (says_sharers && cut.sharers > 1) below.push_back(sharers_text(cut));
  const double top = kNameStyle.size + 6;
  d.rect({0, top, width, height}, {{"class", "whole"}, {"fill", "none"}, {"stroke", "none"}});
  d.text(0, kNameStyle.size, cut.name, kNameStyle);
  draw_parts(d, cut, {0, top, width, height});
  d.rect({0, top, width, height}, {{"class", "edge"}, {"fill", "none"}, {"stroke", "#222222"}});
  double y = top + height;
  if (cut.sharers > 1) {
    draw_strip(d, cut, {0, y + kStripGap, width, kStripHeight});
    y += kStripGap + kStripHeight;
  }
  for (const std::string& line : below) d.text(0, y += kShapeStyle.size + 3, line, kShapeStyle);
  d.close();
  return d;
}

}  // namespace

Drawing framed(const std::string& title, const std::vector<std::string>& lines, const Drawing& content,
               double least_width) {
  constexpr double kPadding = 10;
  constexpr TextStyle kTitle = {.size = 14, .bold = true}, kLine = {.size = 11, .fill = "#444444"};
  const double width = std::max({content.width(), least_width - 2 * kPadding, text_width(title, kTitle)});
  Drawing inner;
  double y = kTitle.size;
  inner.text(0, y, fitted(title, width, kTitle), kTitle);
  for (const std::string& line : lines) {
    for (const std::string& part : wrapped(line, width, kLine)) inner.text(0, y += kLine.size + 4, part, kLine);
  }
  inner.add(content, 0, y + kPadding);
  Drawing d;
  d.rect({0, 0, width + 2 * kPadding, inner.height() + 2 * kPadding},
         {{"class", "panel"}, {"fill", "#fbfbfb"}, {"stroke", "#bbbbbb"}, {"rx", "4"}});
  d.add(inner, kPadding, kPadding);
  return d;
}

Drawing draw_matrices(const MatrixPanel& panel, double hidden) {
  constexpr double kRoom = kPictureWidth - 40, kGap = 22;
  std::vector<Drawing> matrices;
  matrices.reserve(panel.matrices.size());
  const bool alike = std::ranges::all_of(
      panel.matrices, [&](const MatrixCut& cut) { return cut.sharers == panel.matrices.front().sharers; });
  for (const MatrixCut& cut : panel.matrices) matrices.push_back(draw_matrix(cut, hidden, !alike));
  std::vector<std::string> lines;
  if (!panel.about.empty()) lines.push_back(panel.about);
  if (alike && !panel.matrices.empty() && panel.matrices.front().sharers > 1)
    lines.push_back(sharers_text(panel.matrices.front()));
  if (panel.vectors > 0)
    lines.push_back(fmt::format("and {} vector{} (norms, biases) of {} numbers on a rank", panel.vectors,
                                panel.vectors == 1 ? "" : "s", panel.vector_elements));
  return framed(panel.title, lines, in_rows(matrices, kRoom, kGap), 240);
}

}  // namespace orrery
