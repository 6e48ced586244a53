// Draws groups of ranks and what they move.
#include <algorithm>
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

// Draws the pairs of ranks of the first shown pipeline that send to each other, as arcs left of the grid or, between
// ranks of other columns, as straight lines.
void draw_arcs(Drawing& d, const ShownGroup& group, const DimensionTalk& talk, const CellSize& size) {
  std::map<std::int64_t, GridPlace> at;
  for (const GridRank& r : group.members) at[r.rank->rank] = r.at;
  for (const auto& [from, to] : talk.pairs) {
    if (!at.contains(from) || !at.contains(to)) continue;
    const GridPlace a = at.at(from), b = at.at(to);
    const double down = b.line > a.line ? 2 : -2;  // an arrow down and one up lie beside each other
    const double x1 = size.left(a), x2 = size.left(b), y1 = size.top(a) + size.height / 2 + down,
                 y2 = size.top(b) + size.height / 2 + down;
    const double bulge = std::min(kArcRoom - 8, 10 + 0.22 * std::abs(y2 - y1)) * 4 / 3;
    const std::string_view colour = b.line > a.line ? "#1d3557" : "#b23a48";
    d.path(fmt::format("M{} {}C{} {} {} {} {} {}", pixels(x1), pixels(y1), pixels(x1 - bulge), pixels(y1),
                       pixels(x2 - bulge), pixels(y2), pixels(x2), pixels(y2)),
           {{"class", "arc"},
            {"data-pair", fmt::format("{} {}", from, to)},
            {"fill", "none"},
            {"stroke", std::string(colour)},
            {"stroke-width", "1.2"}});
    d.path(fmt::format("M{} {}L{} {}L{} {}Z", pixels(x2), pixels(y2), pixels(x2 - 5), pixels(y2 - 2.5), pixels(x2 - 5),
                       pixels(y2 + 2.5)),
           {{"fill", std::string(colour)}});
  }
}

std::vector<std::string> talk_lines(const DimensionTalk& talk, const std::vector<ShownGroup>& groups) {
  std::vector<std::string> lines = {std::string(talk.about)};
  std::size_t shown = 0, all = 0;
  for (const ShownGroup& g : groups) {
    shown = std::max(shown, g.members.size());
    all = std::max(all, g.all);
  }
  lines.push_back(shown < all ? fmt::format("groups of {} ranks, of which {} are shown", all, shown)
                              : fmt::format("groups of {} ranks", all));
  const std::size_t most = talk.talks.size() > kMostTalkLines ? kMostTalkLines - 1 : talk.talks.size();
  for (std::size_t i = 0; i < most; ++i) {
    const Talk& t = talk.talks[i];
    const std::string link = t.link.empty() ? "" : " over " + t.link;
    lines.push_back(fmt::format("{}: {}{}, {} call{}", t.kind, volume_text(t.bytes), link, t.count,
                                t.count == 1 ? "" : "s"));
  }
  if (most < talk.talks.size()) lines.push_back(fmt::format("and {} kinds more", talk.talks.size() - most));
  if (!talk.pairs.empty())
    lines.emplace_back("arrows: one pipeline's stages that send to each other, blue onwards, red back");
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
  if (!groups.empty() && !talk.pairs.empty()) draw_arcs(cells, groups.front(), talk, size);
  cells.extend(cells.width() + 3, cells.height() + 3);
  Drawing content;
  content.add(cells, talk.pairs.empty() ? 0 : kArcRoom, 0);
  return framed(std::string(name_of(talk.dimension)), talk_lines(talk, groups), content, width);
}

}  // namespace orrery
