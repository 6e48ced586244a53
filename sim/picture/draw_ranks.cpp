// Draws ranks, their layers and states.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "sim/picture/draw.h"
#include "sim/print/text.h"

namespace orrery {
namespace {

constexpr double kCellWidth = 132, kRankGap = 15, kStageLabel = 62, kBar = 5;
constexpr TextStyle kRankStyle = {.size = 11, .bold = true}, kRankLine = {.size = 9.5};
constexpr double kLineHeight = 12.5;
constexpr std::size_t kMostChunkLines = 4;

double as_figure(Bytes bytes) { return static_cast<double>(bytes); }

std::string chunk_line(const Holding& holding, const HeldChunk& chunk) {
  return holding.chunks.size() > 1 ? fmt::format("chunk {}: {}", chunk.chunk, chunk_text(chunk)) : chunk_text(chunk);
}

// Returns a text on the bytes of one category of states (such as gradients): those on the device, then those on hosts
// and disks.
std::string tiers_text(const std::map<MemoryTier, Bytes>& bytes) {
  if (bytes.empty()) return "0";
  std::string text;
  for (const auto& [tier, count] : bytes) {
    text += fmt::format("{}{}", text.empty() ? "" : " + ", memory_text(as_figure(count)));
    if (tier != MemoryTier::device) text += fmt::format(" on {}", row_of(tier).about);
  }
  return text;
}

// Returns the parts of the model in the chunks (virtual stages) of a rank, a text for each chunk: "chunk 0: layers
// 0-3". Many chunks share one text: "8 chunks, layers embedding; 15; 31; ...".
std::vector<std::string> chunk_lines(const Holding& holding) {
  std::vector<std::string> lines;
  if (holding.chunks.size() <= kMostChunkLines) {
    for (const HeldChunk& chunk : holding.chunks) lines.push_back(chunk_line(holding, chunk));
    return lines;
  }
  std::string text = fmt::format("{} chunks, layers", holding.chunks.size());
  for (const HeldChunk& chunk : holding.chunks) {
    const bool layers_alone = !chunk.vision && !chunk.embedding && !chunk.prediction && !chunk.output;
    text += fmt::format(" {};", layers_alone && !chunk.layers.empty() ? ranges_text(chunk.layers) : chunk_text(chunk));
  }
  text.pop_back();
  lines.push_back(text);
  return lines;
}

// Returns the lines of text in a rank's cell of the grid, each no wider than the cell.
std::vector<std::string> cell_lines(const Holding& holding) {
  constexpr double kLineWidth = kCellWidth - 4 * kBar;
  std::vector<std::string> lines;
  for (const std::string& text : chunk_lines(holding)) {
    for (const std::string& line : wrapped(text, kLineWidth, kRankLine)) lines.push_back(line);
  }
  if (lines.size() > kMostChunkLines) {
    lines.resize(kMostChunkLines);
    lines.back() = fitted(lines.back() + " \u2026", kLineWidth, kRankLine);
  }
  for (const std::string& states :
       {"weights " + tiers_text(holding.parameters), "gradients " + tiers_text(holding.gradients),
        "optimizer " + tiers_text(holding.optimizer)}) {
    for (const std::string& line : wrapped(states, kLineWidth, kRankLine)) lines.push_back(line);
  }
  return lines;
}

std::string rank_hint(const ShownRank& rank, const Holding& holding) {
  std::string text = fmt::format("rank {} on node {}:", rank.rank, rank.node);
  for (const HeldChunk& chunk : holding.chunks) text += ' ' + chunk_line(holding, chunk) + ';';
  return text + fmt::format(" weights {}, gradients {}, optimizer states {}", tiers_text(holding.parameters),
                            tiers_text(holding.gradients), tiers_text(holding.optimizer));
}

void draw_rank(Drawing& d, const Spec& spec, const ShownRank& rank, const Holding& holding, const Box& box) {
  d.open({{"class", "rank"},
          {"data-rank", fmt::format("{}", rank.rank)},
          {"data-node", fmt::format("{}", rank.node)},
          {"data-parameters", fmt::format("{}", sum_of(holding.parameters))},
          {"data-gradients", fmt::format("{}", sum_of(holding.gradients))},
          {"data-optimizer", fmt::format("{}", sum_of(holding.optimizer))}});
  d.hint(rank_hint(rank, holding));
  d.rect(box, {{"class", "box"}, {"fill", "#ffffff"}, {"stroke", "#555555"}});
  const Strategy& s = spec.strategy;
  if (rank.tensors > 1)
    d.rect({box.x, box.y, kBar, box.height},
           {{"fill", colour_of(static_cast<std::size_t>(rank.tensor), static_cast<std::size_t>(rank.tensors))}});
  if (spec.model.moe && s.expert > 1 && !rank.server)
    d.rect({box.x + box.width - kBar, box.y, kBar, box.height},
           {{"fill", colour_of(static_cast<std::size_t>(rank.expert), static_cast<std::size_t>(s.expert))}});
  const double left = box.x + 1.6 * kBar, right = box.x + box.width - 1.6 * kBar;
  double y = box.y + kRankStyle.size + 3;
  const std::string name = fmt::format("{} {}", rank.server ? "server" : "rank", rank.rank);
  d.text(left, y, name, kRankStyle);
  TextStyle place = kRankLine;
  place.anchor = "end";
  place.fill = "#555555";
  const double room = right - left - text_width(name, kRankStyle) - 4;
  d.text(right, y, fitted(coordinates_text(spec, rank), room, place), place);
  for (const std::string& line : cell_lines(holding))
    d.text(left, y += kLineHeight, fitted(line, right - left, kRankLine), kRankLine);
  d.close();
}

// Draws an outline around the ranks of each node, with the node's number at the top of every connected piece of the
// outline.
void draw_nodes(Drawing& d, const RankGrid& grid, const CellSize& size) {
  std::map<std::int64_t, std::set<GridPlace>> nodes;
  for (const GridRank& r : grid.ranks) nodes[r.rank->node].insert(r.at);
  for (const auto& [node, cells] : nodes) {
    d.open({{"class", "node"}, {"data-node", fmt::format("{}", node)}});
    d.path(outline(cells, size), {{"stroke", "#1d3557"}, {"stroke-width", "2"}, {"fill", "none"}});
    d.close();
  }
  for (const GridRank& r : grid.ranks) {
    const std::set<GridPlace>& cells = nodes.at(r.rank->node);
    const bool begins = !cells.contains({r.at.column - 1, r.at.line}) && !cells.contains({r.at.column, r.at.line - 1});
    if (!begins) continue;
    constexpr TextStyle kNode = {.size = 9, .bold = true, .fill = "#1d3557"};
    const std::string name = fmt::format("node {}", r.rank->node);
    const double x = size.left(r.at) + 8, y = size.top(r.at) - size.gap / 2;
    d.rect({x - 3, y - 2, text_width(name, kNode) + 6, 4}, {{"fill", "#ffffff"}});
    d.text(x, y + 3, name, kNode);
  }
}

}  // namespace

Drawing draw_ranks(const Spec& spec, const RankGrid& grid, const std::vector<Holding>& holdings) {
  std::size_t lines = 0;
  for (const GridRank& r : grid.ranks) lines = std::max(lines, cell_lines(holdings[r.rank->slot]).size());
  // The gap between two ranks has room for two margins and a node's name between them.
  const CellSize size = {kCellWidth, kRankStyle.size + 9 + kLineHeight * static_cast<double>(lines), kRankGap};
  Drawing cells;
  for (const GridRank& r : grid.ranks)
    draw_rank(cells, spec, *r.rank, holdings[r.rank->slot], {size.left(r.at), size.top(r.at), size.width, size.height});
  draw_nodes(cells, grid, size);
  cells.extend(cells.width() + size.gap / 2 + 1, cells.height() + size.gap / 2 + 1);
  Drawing d;
  constexpr TextStyle kStage = {.size = 11, .bold = true, .fill = "#444444"};
  for (const GridStage& stage : grid.stages) d.text(0, size.top({0, stage.line}) + kStage.size + 3, stage.name, kStage);
  d.add(cells, kStageLabel, 0);
  return d;
}

}  // namespace orrery
