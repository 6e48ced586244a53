#include "sim/report/gantt.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace orrery {
namespace {

// The letter for each kind of work (see gantt.h). Idle (.) comes first and gets the time that no other kind takes.
constexpr std::string_view kLetters = ".FBRUW";

std::size_t letter_of(const Op& op) {
  if (op.optimizer) return 4;
  if (op.recompute) return 3;
  return op.phase == Phase::forward ? 1 : op.phase == Phase::weight_gradient ? 5 : 2;
}

std::string line_of(const Plan& plan, const Trace& trace, const RankClass& slot, int columns) {
  std::vector<std::array<Picoseconds, kLetters.size()>> cells(columns);
  const auto edge = [&](Picoseconds cell) { return trace.step_time / columns * cell; };
  for (TaskId t = slot.begin; t < slot.end; ++t) {
    const Op& op = plan.op_of(t);
    if (op.lane != LaneKind::compute) continue;
    const Span& span = trace.spans[t];
    const Picoseconds width = std::max<Picoseconds>(1, trace.step_time / columns);
    for (Picoseconds c = span.entered / width; c < columns && edge(c) < span.ended; ++c) {
      cells[c][letter_of(op)] += std::min(span.ended, edge(c + 1)) - std::max(span.entered, edge(c));
    }
  }
  std::string line;
  for (auto& cell : cells) {
    Picoseconds busy = 0;
    for (const Picoseconds part : cell) busy += part;
    cell[0] = std::max<Picoseconds>(0, trace.step_time / columns - busy);
    line += kLetters[std::max_element(cell.begin(), cell.end()) - cell.begin()];
  }
  return line;
}

std::size_t name_width(const Plan& plan, std::size_t classes) {
  std::size_t width = 0;
  for (std::size_t s = 0; s < classes; ++s) width = std::max(width, plan.classes[s].name.size());
  return width;
}

}  // namespace

int gantt_columns(const Plan& plan, std::size_t columns) {
  constexpr std::size_t kLeast = 20, kMost = 100, kGaps = 4;
  const std::size_t beside = name_width(plan, plan.classes.size()) + kGaps;
  return static_cast<int>(columns == 0 ? kMost : std::clamp(columns - std::min(columns, beside), kLeast, kMost));
}

std::string gantt(const Plan& plan, const Trace& trace, int columns, int lines) {
  std::string text;
  const auto count = std::min<std::size_t>(plan.classes.size(), lines);
  const std::size_t width = name_width(plan, count);
  for (std::size_t s = 0; s < count; ++s) {
    text += fmt::format("  {:<{}}  {}\n", plan.classes[s].name, width, line_of(plan, trace, plan.classes[s], columns));
  }
  const bool weights =
      std::any_of(plan.ops.begin(), plan.ops.end(), [](const Op& op) { return op.phase == Phase::weight_gradient; });
  if (count < plan.classes.size()) text += fmt::format("  ... {} more\n", plan.classes.size() - count);
  return text + "  F forward, B backward, " + std::string(weights ? "W weight gradients, " : "") +
         "R forward again, U update, . idle\n";
}

}  // namespace orrery
