// Draws groups of ranks and the transfers in these groups.
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "sim/picture/draw.h"
#include "sim/print/text.h"

namespace orrery {
namespace {

constexpr TextStyle kSmallRank = {.size = 8.5, .anchor = "middle"}, kTalkLine = {.size = 10.5};
constexpr double kArcRoom = 44;
constexpr std::size_t kMostTalkLines = 6;

// The shown members of a group, and the number of all its members.
struct ShownGroup {
  std::int32_t number = 0;
  std::size_t all = 0;
  std::vector<GridRank> members;
};

std::vector<ShownGroup> shown_groups(const Plan& plan, const RankGrid& grid, Dimension d) {
  const GroupTable& table = plan.dimensions[static_cast<std::size_t>(d)];
  std::map<std::int32_t, ShownGroup> groups;
  for (const GridRank& r : grid.ranks) {
    const std::int32_t number = table.member_of[static_cast<std::size_t>(r.rank->rank)];
    ShownGroup& group = groups[number];
    group.number = number;
    group.all = table.groups[static_cast<std::size_t>(number)].size();
    group.members.push_back(r);
  }
  std::vector<ShownGroup> result;
  for (auto& [number, group] : groups) {
    if (group.all > 1) result.push_back(std::move(group));
  }
  return result;
}

std::string ranks_text(const ShownGroup& group) {
  std::string text;
  for (const GridRank& r : group.members) text += fmt::format("{}{}", text.empty() ? "" : " ", r.rank->rank);
  return text;
}

void draw_small_rank(Drawing& d, const GridRank& r, const CellSize& size, const std::string& fill) {
  const double x = size.left(r.at), y = size.top(r.at);
  d.rect({x, y, size.width, size.height}, {{"class", "member"}, {"fill", fill}, {"stroke", "none"}});
  d.text(x + size.width / 2, y + size.height / 2 + 0.35 * kSmallRank.size, fmt::format("{}", r.rank->rank), kSmallRank);
}

void draw_group(Drawing& d, const ShownGroup& group, Dimension dimension, const CellSize& size,
                const std::string& fill) {
  d.open({{"class", "group"},
          {"data-dimension", std::string(name_of(dimension))},
          {"data-group", fmt::format("{}", group.number)},
          {"data-ranks", ranks_text(group)}});
  const bool all = group.members.size() == group.all;
  d.hint(fmt::format("{} group {}: ranks {}{}", name_of(dimension), group.number, ranks_text(group),
                     all ? "" : fmt::format(" of {}", group.all)));
  std::set<GridPlace> cells;
  for (const GridRank& r : group.members) {
    draw_small_rank(d, r, size, fill);
    cells.insert(r.at);
  }
  d.path(outline(cells, size), {{"stroke", "#333333"}, {"stroke-width", "1"}, {"fill", "none"}});
  d.close();
}

// Draws an arrow from one line of the grid of ranks to another, left of the first column. A downward arrow ends a
// little lower than an upward one, so that arrows in opposite directions do not cover each other.
void draw_arrow(Drawing& d, std::pair<std::int64_t, std::int64_t> stages, std::int64_t from, std::int64_t to,
                const CellSize& size) {
  const double x = size.left({0, from}), shift = to > from ? 2.5 : -2.5;
  const double y1 = size.top({0, from}) + size.height / 2 + shift, y2 = size.top({0, to}) + size.height / 2 + shift;
  // A cubic Bezier curve bulges by three quarters of the distance of its two inner control points.
  const double inner = x - 3 - std::min(kArcRoom - 8, 10 + 0.22 * std::abs(y2 - y1)) * 4 / 3;
  const std::string colour = to > from ? "#1d3557" : "#b23a48";
  d.open({{"class", "arrow"}, {"data-stages", fmt::format("{} {}", stages.first, stages.second)}});
  d.path(fmt::format("M{0} {2}C{1} {2} {1} {3} {0} {3}", pixels(x - 3), pixels(inner), pixels(y1), pixels(y2)),
         {{"fill", "none"}, {"stroke", colour}, {"stroke-width", "1.2"}});
  d.path(fmt::format("M{} {}l-5 -2.5l0 5Z", pixels(x - 2), pixels(y2)), {{"fill", colour}});
  d.close();
}

// Draws an arrow for each pair of shown stages that send to each other.
void draw_arrows(Drawing& d, const RankGrid& grid, const DimensionTalk& talk, const CellSize& size) {
  std::map<std::int64_t, std::int64_t> line_of;  // for each shown stage, its first line
  for (const GridRank& r : grid.ranks) {
    if (!r.rank->server) line_of.try_emplace(r.rank->at.pipeline, r.at.line);
  }
  for (const auto& pair : talk.pairs) {
    if (line_of.contains(pair.first) && line_of.contains(pair.second))
      draw_arrow(d, pair, line_of.at(pair.first), line_of.at(pair.second), size);
  }
}

std::vector<std::string> talk_lines(const DimensionTalk& talk, const std::vector<ShownGroup>& groups) {
  std::vector<std::string> lines = {std::string(talk.about)};
  std::size_t shown = 0, all = 0;
  for (const ShownGroup& g : groups) {
    shown = std::max(shown, g.members.size());
    all = std::max(all, g.all);
  }
  if (all == 0)
    lines.emplace_back("between ranks of the frozen model, which are not shown");
  else
    lines.push_back(shown < all
                        ? fmt::format("groups of {} ranks, of which {} {} shown", all, shown, shown == 1 ? "is" : "are")
                        : fmt::format("groups of {} ranks", all));
  const std::size_t most = talk.talks.size() > kMostTalkLines ? kMostTalkLines - 1 : talk.talks.size();
  for (std::size_t i = 0; i < most; ++i) {
    const Talk& t = talk.talks[i];
    const std::string link = t.link.empty() ? "" : " over " + t.link;
    lines.push_back(
        fmt::format("{}: {}{}, {} call{}", t.kind, volume_text(t.bytes), link, t.count, t.count == 1 ? "" : "s"));
  }
  if (most < talk.talks.size()) lines.push_back(fmt::format("and {} kinds more", talk.talks.size() - most));
  if (!talk.pairs.empty()) lines.emplace_back("arrows: stages that send to each other, blue onwards, red back");
  return lines;
}

}  // namespace

Drawing draw_talk(const Plan& plan, const RankGrid& grid, const DimensionTalk& talk, double width) {
  double cell = 24;
  for (const GridRank& r : grid.ranks)
    cell = std::max(cell, text_width(fmt::format("{}", r.rank->rank), kSmallRank) + 4);
  const CellSize size = {cell, 14, 5};
  const std::vector<ShownGroup> groups = shown_groups(plan, grid, talk.dimension);
  Drawing cells;
  std::set<std::int64_t> drawn;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    draw_group(cells, groups[i], talk.dimension, size, colour_of(i, groups.size()));
    for (const GridRank& r : groups[i].members) drawn.insert(r.rank->rank);
  }
  for (const GridRank& r : grid.ranks) {
    if (!drawn.contains(r.rank->rank)) draw_small_rank(cells, r, size, "#eeeeee");
  }
  draw_arrows(cells, grid, talk, size);
  cells.extend(cells.width() + 3, cells.height() + 3);
  Drawing content;
  content.add(cells, talk.pairs.empty() ? 0 : kArcRoom, 0);
  return framed(std::string(name_of(talk.dimension)), talk_lines(talk, groups), content, width);
}

}  // namespace orrery
