#include "sim/picture/picture.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/layout/uncut_place.h"
#include "models/spec/sharding.h"
#include "sim/picture/draw.h"
#include "sim/report/report_text.h"

namespace orrery {
namespace {

constexpr double kMargin = 20, kPanelGap = 14, kSectionGap = 26;
constexpr std::int64_t kMostColumns = 8;

// A drawing like a page: every drawing that is added to it goes below those added before.
class PageColumn {
 public:
  void add(const Drawing& part, double gap) {
    drawing_.add(part, 0, drawing_.height() == 0 ? 0 : drawing_.height() + gap);
  }
  void heading(std::string_view words, double gap) {
    constexpr TextStyle kHeading = {.size = 17, .bold = true};
    Drawing line;
    line.text(0, kHeading.size, words, kHeading);
    add(line, gap);
  }
  void paragraph(std::string_view words, double gap) {
    constexpr TextStyle kParagraph = {.size = 12};
    Drawing lines;
    double y = 0;
    for (const std::string& line : wrapped(words, kPictureWidth, kParagraph))
      lines.text(0, y += kParagraph.size + 3, line, kParagraph);
    add(lines, gap);
  }
  const Drawing& drawing() const { return drawing_; }

 private:
  Drawing drawing_;
};

// Adds the lines of the title: model and cluster, strategy, batch.
void add_title(PageColumn& page, const Spec& spec) {
  const std::string text = title(spec, {});
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    const std::string line = text.substr(begin, end - begin);
    if (begin == 0)
      page.heading(fitted(line, kPictureWidth, {.size = 17, .bold = true}), 0);
    else
      page.paragraph(line.substr(std::min(line.find_first_not_of(' '), line.size())), 2);
    begin = end + 1;
  }
}

Drawing swatch(const std::string& fill, std::string_view words) {
  constexpr TextStyle kWords = {.size = 11};
  Drawing d;
  d.rect({0, 1, 16, 12}, {{"class", "swatch"}, {"fill", fill}, {"stroke", "#444444"}, {"stroke-width", "0.5"}});
  d.text(21, 11, words, kWords);
  return d;
}

// Adds a legend's colour swatches of ranks 0 to count - 1; of many ranks only the first and the last ones.
void add_swatches(std::vector<Drawing>& to, std::string_view letter, std::int64_t count, std::string_view what) {
  constexpr std::int64_t kMost = 8;
  for (std::int64_t i = 0; i < count; ++i) {
    if (count > kMost && i == kMost - 2) i = count - 1;
    const std::string name = fmt::format("{}{}", letter, i);
    to.push_back(swatch(colour_of(static_cast<std::size_t>(i), static_cast<std::size_t>(count)),
                        i == 0                            ? fmt::format("{}: {} 0", name, what)
                        : i + 1 == count && count > kMost ? "... " + name
                                                          : name));
  }
}

// Returns which states the data ranks share: "parameters, gradients and optimizer states".
std::string shared_states(const ShardingRow& row) {
  return fmt::format("{}{}optimizer states", row.shards_parameters ? "parameters, " : "",
                     row.shards_gradients ? "gradients and " : "");
}

void add_legend(PageColumn& page, const Spec& spec, const Plan& plan) {
  const Strategy& s = spec.strategy;
  std::vector<Drawing> items;
  const auto size_of = [&](Dimension d) { return position_in(plan, d, 0).size; };
  if (size_of(Dimension::tensor) > 1) add_swatches(items, "t", size_of(Dimension::tensor), "tensor rank");
  if (spec.model.moe && s.expert > 1) add_swatches(items, "e", s.expert, "expert rank");
  if (row_of(s.sharding).shards_optimizer && size_of(Dimension::data) > 1)
    add_swatches(items, "d", size_of(Dimension::data), "in strips, data rank");
  items.push_back(swatch("#e4e4e4", "whole on each rank of the group"));
  page.add(in_rows(items, kPictureWidth, 16), 10);
  std::string words =
      "A rank's place: t tensor, c context, d data, e expert rank, r replica of a stage. Matrices are (outputs x "
      "inputs), "
      "as weights are stored; pixels of a side grow with the square root of its length. A part in several colours lies "
      "on each of these ranks.";
  const ShardingRow& row = row_of(s.sharding);
  if (row.shards_optimizer)
    words += fmt::format(
        " The strip below a matrix is one rank's part of it, in the order of its buffer, with a colour for each data "
        "rank "
        "that keeps a share ({} shares {}); a grey strip has too many to draw.",
        row.name, shared_states(row));
  if (s.on_grid()) words += fmt::format(" Tensor ranks form a grid ({}) of side {}.", s.tensor_kind, grid_side(s));
  page.paragraph(words, 4);
}

void add_matrix_panels(PageColumn& page, const Spec& spec, const Plan& plan) {
  std::vector<Drawing> panels;
  for (const MatrixPanel& panel : matrix_panels(spec, plan))
    panels.push_back(draw_matrices(panel, static_cast<double>(spec.model.hidden)));
  page.add(in_rows(panels, kPictureWidth, kPanelGap), 8);
}

void add_talk_panels(PageColumn& page, const Spec& spec, const Plan& plan, const Report& report, const RankGrid& grid) {
  constexpr double kTalkWidth = (kPictureWidth - 2 * kPanelGap) / 3;
  std::vector<Drawing> panels;
  for (const DimensionTalk& talk : talks_of(spec, plan, report))
    panels.push_back(draw_talk(plan, grid, talk, kTalkWidth));
  if (panels.empty()) return page.paragraph("No rank talks to another.", 8);
  page.add(in_rows(panels, kPictureWidth, kPanelGap), 8);
}

}  // namespace

std::string picture(const Spec& spec, const Plan& plan, const Report& report) {
  PageColumn page;
  add_title(page, spec);
  add_legend(page, spec, plan);
  page.heading("How matrices are cut", kSectionGap);
  add_matrix_panels(page, spec, plan);
  const ShownRanks shown = shown_ranks(spec, plan);
  const RankGrid grid = rank_grid(shown, kMostColumns);
  page.heading("What each rank holds", kSectionGap);
  if (!shown.left_out.empty()) page.paragraph(shown.left_out, 4);
  page.paragraph("Bytes that a rank keeps between steps, as the plan's buffers have them. Frames are nodes.", 4);
  page.add(draw_ranks(spec, grid, holdings_of(plan)), 10);
  page.heading("Who talks to whom", kSectionGap);
  page.paragraph(
      "Ranks of one colour are a group. Bytes and calls are those of one rank in a step, as a mean over all ranks.", 4);
  add_talk_panels(page, spec, plan, report, grid);
  return svg_file(page.drawing(), fmt::format("{}: how its training is cut", spec.model.name), kMargin);
}

void check_picture_name(const std::string& path) {
  const bool device = path.starts_with("/dev/");
  if (device || path.ends_with(".svg") || path.ends_with(".svg.gz")) return;
  throw Error(fmt::format("--picture {}: a picture is SVG; give a name that ends in .svg or .svg.gz", path));
}

}  // namespace orrery
