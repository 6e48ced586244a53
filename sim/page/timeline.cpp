#include "sim/page/timeline.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "sim/page/axis.h"
#include "sim/page/chart.h"
#include "sim/page/colours.h"
#include "sim/page/legend.h"
#include "sim/print/text.h"
#include "sim/report/attribution.h"

namespace orrery {
namespace {

constexpr std::size_t kMostClasses = 24;     // the most classes of ranks that are drawn
constexpr std::int64_t kMostCells = 40'000;  // the most intervals of time (cells) in all rows together
constexpr double kTimelineLeft = 222, kTimelineTop = 8;
constexpr double kComputeRow = 18, kTransferRow = 10, kRowGap = 2, kClassGap = 9;

// The kinds of work that the chart tells apart. A row of the compute lane may show any but `transfer`; a row of
// transfers shows `transfer` alone.
enum class Work : std::uint8_t { forward, backward, weight_gradient, recompute, optimizer, transfer };
constexpr std::size_t kWorks = 6;

Work work_of(const Op& op) {
  if (op.lane != LaneKind::compute) return Work::transfer;
  if (op.optimizer || op.phase == Phase::step) return Work::optimizer;
  if (op.recompute) return Work::recompute;
  return op.phase == Phase::forward           ? Work::forward
         : op.phase == Phase::weight_gradient ? Work::weight_gradient
                                              : Work::backward;
}

std::string_view colour_of_work(Work work, TimeKind row) {
  constexpr std::array<std::string_view, kWorks> kColours = {kForwardColour, kBackwardColour, kWeightGradientColour};
  if (work == Work::recompute) return colour_of(TimeKind::recompute);
  if (work == Work::optimizer) return colour_of(TimeKind::optimizer);
  return work == Work::transfer ? colour_of(row) : kColours[static_cast<std::size_t>(work)];
}

std::string_view name_of_work(Work work, TimeKind row) {
  constexpr std::array<std::string_view, kWorks> kNames = {"forward", "backward", "weight gradients", "forward again",
                                                           "update"};
  if (work != Work::transfer) return kNames[static_cast<std::size_t>(work)];
  switch (row) {
    case TimeKind::exposed_tensor:
      return "tensor transfers";
    case TimeKind::exposed_context:
      return "context transfers";
    case TimeKind::exposed_expert:
      return "expert transfers";
    case TimeKind::exposed_pipeline:
      return "pipeline transfers";
    case TimeKind::exposed_data:
      return "data transfers";
    default:
      return "copies, host, disks";
  }
}

// For each kind of work, the picoseconds that it takes of one interval of time.
using Cell = std::array<Picoseconds, kWorks>;

struct TimelineRow {
  std::size_t slot = 0;             // index of the class of ranks in the plan
  TimeKind kind = TimeKind::other;  // kind of the transfers; `compute` for the row of the compute lane
  std::vector<Cell> cells;
};

TimeKind row_kind(const Op& op) { return op.lane == LaneKind::compute ? TimeKind::compute : exposed_kind(op.lane); }

// The indices of the classes of ranks that are drawn: all of them, or the first and the last ones.
std::vector<std::size_t> classes_shown(const Plan& plan) {
  std::vector<std::size_t> shown;
  const std::size_t all = plan.classes.size(), half = kMostClasses / 2;
  for (std::size_t s = 0; s < all; ++s) {
    if (all <= kMostClasses || s < half || s >= all - half) shown.push_back(s);
  }
  return shown;
}

std::vector<TimelineRow> rows_of(const Plan& plan, const std::vector<std::size_t>& classes) {
  std::vector<TimelineRow> rows;
  for (const std::size_t s : classes) {
    std::array<bool, kTimeKinds> has{};
    for (TaskId t = plan.classes[s].begin; t < plan.classes[s].end; ++t)
      has[static_cast<std::size_t>(row_kind(plan.op_of(t)))] = true;
    for (int k = 0; k < kTimeKinds; ++k) {
      const auto kind = static_cast<TimeKind>(k);
      if (has[k] || kind == TimeKind::compute) rows.push_back({s, kind, {}});
    }
  }
  return rows;
}

// Adds the time from `begin` to `end`, in which a task ran, to those intervals of time of the chart's row that it
// overlaps. width: picoseconds of an interval.
void add(TimelineRow& row, Work work, Picoseconds begin, Picoseconds end, Picoseconds width) {
  const auto cells = static_cast<Picoseconds>(row.cells.size());
  for (Picoseconds c = std::max<Picoseconds>(begin, 0) / width; c < cells && c * width < end; ++c)
    row.cells[c][static_cast<std::size_t>(work)] += std::min(end, (c + 1) * width) - std::max(begin, c * width);
}

void fill(std::vector<TimelineRow>& rows, const Plan& plan, const Trace& trace, const Period& period,
          std::int64_t cells) {
  const Picoseconds width = std::max<Picoseconds>(1, ceil_div(period.length(), cells));
  for (std::size_t first = 0; first < rows.size();) {
    std::array<TimelineRow*, kTimeKinds> row_of{};
    const RankClass& slot = plan.classes[rows[first].slot];
    for (const std::size_t s = rows[first].slot; first < rows.size() && rows[first].slot == s; ++first) {
      rows[first].cells.resize(cells);
      row_of[static_cast<std::size_t>(rows[first].kind)] = &rows[first];
    }
    for (TaskId t = slot.begin; t < slot.end; ++t) {
      const Op& op = plan.op_of(t);
      const Span& span = trace.spans[t];
      add(*row_of[static_cast<std::size_t>(row_kind(op))], work_of(op), span.matched - period.begin,
          span.ended - period.begin, width);
    }
  }
}

// Opacities with which an interval is drawn: the first for one that is busy for hardly any time, the last for one that
// is busy for all of it.
constexpr std::array<double, 5> kOpacities = {0.12, 0.3, 0.55, 0.8, 1};

// The look of an interval of time: the kind of work that takes most of it, and how much of it is busy.
struct Look {
  std::size_t work = 0;
  int level = 0;  // opacity of the interval: 1 + index in kOpacities; 0: not drawn
  auto operator<=>(const Look&) const = default;
};

Look look_of(const Cell& cell, Picoseconds width) {
  Picoseconds busy = 0;
  for (const Picoseconds part : cell) busy += part;
  const auto most = static_cast<std::size_t>(std::max_element(cell.begin(), cell.end()) - cell.begin());
  const double share = static_cast<double>(busy) / static_cast<double>(width);
  return {most, share < 0.002 ? 0 : std::clamp(static_cast<int>(4 * share + 0.5), 0, 4) + 1};
}

// The drawn intervals of a row as one SVG path for each look. One unit across is an interval, and the row is one unit
// high.
std::map<Look, std::string> paths_of(const TimelineRow& row, Picoseconds width) {
  std::map<Look, std::string> paths;
  for (std::size_t begin = 0; begin < row.cells.size();) {
    const Look look = look_of(row.cells[begin], width);
    std::size_t end = begin + 1;
    while (end < row.cells.size() && look_of(row.cells[end], width) == look) ++end;
    if (look.level > 0) paths[look] += fmt::format("M{} 0h{}v1H{}z", begin, end - begin, begin);
    begin = end;
  }
  return paths;
}

std::string class_text(const RankClass& slot) {
  if (slot.multiplicity == 1) return fmt::format("{}, rank {}", slot.name, slot.representative);
  return fmt::format("{}, {} ranks like {}", slot.name, slot.multiplicity, slot.representative);
}

double height_of(const TimelineRow& row) { return row.kind == TimeKind::compute ? kComputeRow : kTransferRow; }

class Chart {
 public:
  Chart(const Plan& plan, const Trace& trace)
      : plan_(plan), period_(period_of(plan, trace)), classes_(classes_shown(plan)), rows_(rows_of(plan, classes_)) {
    cells_ = std::clamp<std::int64_t>(kMostCells / std::max<std::int64_t>(1, static_cast<std::int64_t>(rows_.size())),
                                      120, 800);
    fill(rows_, plan, trace, period_, cells_);
  }

  std::string markup() const {
    double height = kTimelineTop;
    for (std::size_t i = 0; i < rows_.size(); ++i) height += height_of(rows_[i]) + gap_before(i);
    Drawing d;
    const Scale unit = time_scale(seconds(period_.length()));
    const PageAxis time{0, seconds(period_.length()) / unit.size, false, kTimelineLeft, kChartUnits - 8};
    double y = kTimelineTop;
    std::map<std::pair<std::size_t, Work>, std::string> legend;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      y += gap_before(i);
      draw(d, rows_[i], y, time, legend);
      y += height_of(rows_[i]);
    }
    for (const double tick : ticks(time, 8)) {
      d.line(time.at(tick), kTimelineTop, time.at(tick), y + 5, "#b9bfc9", 0.5);
      d.text(time.at(tick), y + 18, tick_text(tick), axis_words("middle"));
    }
    d.text((time.begin + time.end) / 2, y + 38, fmt::format("time of the step, {}", unit.unit), chart_words("middle"));
    std::vector<LegendEntry> entries;
    for (const auto& [key, colour] : legend)
      entries.push_back({colour, std::string(name_of_work(key.second, static_cast<TimeKind>(key.first)))});
    entries.push_back({std::string(kIdleColour), "idle"});
    return chart_markup(inline_svg(d, kChartUnits, height + 46, "what each class of ranks does over a step"),
                        legend_markup(entries), caption());
  }

 private:
  double gap_before(std::size_t i) const {
    return i == 0 ? 0 : rows_[i].slot == rows_[i - 1].slot ? kRowGap : kClassGap;
  }

  void draw(Drawing& d, const TimelineRow& row, double y, const PageAxis& time,
            std::map<std::pair<std::size_t, Work>, std::string>& legend) const {
    const Picoseconds width = std::max<Picoseconds>(1, ceil_div(period_.length(), cells_));
    const double height = height_of(row);
    // The intervals together are a little longer than the step where the step's length is no multiple of their number.
    const double scale = (time.end - time.begin) * static_cast<double>(width) / static_cast<double>(period_.length());
    d.rect({time.begin, y, time.end - time.begin, height}, {{"fill", std::string(kIdleColour)}});
    const bool compute = row.kind == TimeKind::compute;
    d.text(kTimelineLeft - 8, y + height - (compute ? 4.5 : 1),
           compute ? class_text(plan_.classes[row.slot]) : name_of_work(Work::transfer, row.kind),
           {.size = compute ? 12.0 : 10.0,
            .anchor = "end",
            .fill = compute ? kInkColour : kFaintColour,
            .room = kTimelineLeft - 10});
    for (const auto& [look, path] : paths_of(row, width)) {
      const auto work = static_cast<Work>(look.work);
      const std::string colour(colour_of_work(work, row.kind));
      d.path(path, {{"fill", colour},
                    {"fill-opacity", fmt::format("{}", kOpacities[look.level - 1])},
                    {"transform", fmt::format("translate({} {}) scale({:.5f} {})", pixels(time.begin), pixels(y), scale,
                                              pixels(height))}});
      legend.try_emplace({work == Work::transfer ? static_cast<std::size_t>(row.kind) : 0, work}, colour);
    }
  }

  std::string caption() const {
    std::string text = fmt::format(
        "Each row is cut into {} slots; a slot has the colour of what takes most of it, paler where it is idle in "
        "part.",
        cells_);
    if (classes_.size() < plan_.classes.size())
      text += fmt::format(" Of {} classes of ranks the first and the last {} are drawn.", plan_.classes.size(),
                          classes_.size() / 2);
    return text;
  }

  const Plan& plan_;
  Period period_;
  std::vector<std::size_t> classes_;
  std::vector<TimelineRow> rows_;
  std::int64_t cells_ = 0;
};

}  // namespace

std::string timeline_markup(const Plan& plan, const Trace& trace) {
  if (period_of(plan, trace).length() <= 0) return "";
  return Chart(plan, trace).markup();
}

}  // namespace orrery
