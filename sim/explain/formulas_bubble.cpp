// Closed formulas for the pipeline bubbles of schedules.
#include <string>

#include "models/schedule/schedules.h"
#include "sim/explain/formulas.h"

namespace orrery {

std::optional<Bubble> bubble_formula(const Strategy& strategy, bool post_update_validation) {
  const ScheduleRow* row = schedule_in_table(strategy.schedule);
  const std::int64_t p = strategy.pipeline, m = strategy.micro_batches();
  if (row == nullptr || p % row->copies != 0) return std::nullopt;
  const auto other =
      post_update_validation ? BubbleFormula::Holds::with_barrier : BubbleFormula::Holds::without_barrier;
  for (const BubbleFormula& form : row->bubbles) {
    if (form.share == nullptr || form.holds == other) continue;
    if (m < form.least_rounds * p || (form.exactly_least && m != form.least_rounds * p)) continue;
    const bool longer = form.most_stages > 0 && p > form.most_stages;
    return Bubble{
        (longer ? "at least " : "") + std::string(form.formula),
        form.share(static_cast<double>(p), static_cast<double>(m), static_cast<double>(strategy.virtual_stages))};
  }
  return std::nullopt;
}

}  // namespace orrery
