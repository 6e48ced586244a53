// Closed forms of pipelines' bubbles.
#include <string_view>

#include "models/schedule/schedules.h"
#include "sim/explain/formulas.h"

namespace orrery {

std::optional<Bubble> bubble_formula(const Strategy& strategy, bool validates_after_update) {
  struct Row {
    std::string_view schedule, formula;
    double (*share)(double p, double m, double v);
    std::int64_t least = 0;  // micro-batches per stage from which on the formula holds
    bool as_many = false;    // the formula holds for exactly so many micro-batches
    std::int64_t reached =
        0;  // stages up to which the order comes to it; with more it waits longer (0: it always does)
  };
  // GPipe: Huang et al. 2019; 1F1B and interleaved: Narayanan et al. 2021, section 2.2, as a share of the whole step.
  // The others where forward, input and weight gradient take the same time and a barrier ends the step: Qi et al. 2024
  // (arXiv 2401.10241) for zb-h1 and zb-h2, Qi et al. 2024 (arXiv 2405.15362, table 1) for the Vs, Li and Hoefler 2021
  // (table 2) for Chimera with as many micro-batches as stages, DeepSeek-AI 2024 (table 2) for DualPipe without
  // overlap.
  static constexpr Row rows[] = {
      {"naive", "(p-1)/p", [](double p, double, double) { return (p - 1) / p; }},
      {"gpipe", "(p-1)/(m+p-1)", [](double p, double m, double) { return (p - 1) / (m + p - 1); }},
      {"1f1b", "(p-1)/(m+p-1)", [](double p, double m, double) { return (p - 1) / (m + p - 1); }},
      {"dapple", "(p-1)/(m+p-1)", [](double p, double m, double) { return (p - 1) / (m + p - 1); }},
      {"interleaved", "(p-1)/(vm+p-1)", [](double p, double m, double v) { return (p - 1) / (v * m + p - 1); }},
      {"zb-h1", "(p-1)/(3m+p-1)", [](double p, double m, double) { return (p - 1) / (3 * m + p - 1); }},
      // Schedules without flushes have no bubble once the pipeline is filled: Narayanan et al. 2019, 2021.
      {"pipedream", "0", [](double, double, double) { return 0.0; }},
      {"pipedream-2bw", "0", [](double, double, double) { return 0.0; }},
      {"zb-h2", "(p-1)/(3m+p-1)", [](double p, double m, double) { return (p - 1) / (3 * m + p - 1); }, 2},
      {"zb-v", "(p-1)/(6m+p-1)", [](double p, double m, double) { return (p - 1) / (6 * m + p - 1); }, 1},
      {"v-half", "at most p/(2m+p)", [](double p, double m, double) { return p / (2 * m + p); }, 1},
      {"v-min", "at most 2p/(3m+2p)", [](double p, double m, double) { return 2 * p / (3 * m + 2 * p); }, 1},
      {"chimera", "(p-2)/(1.5m+p-2)", [](double p, double m, double) { return (p - 2) / (1.5 * m + p - 2); }, 1, true},
      {"chimera-4", "(p-4)/(3m+p-4)", [](double p, double m, double) { return (p - 4) / (3 * m + p - 4); }, 1, true,
       12},
      {"chimera-8", "(p-8)/(6m+p-8)", [](double p, double m, double) { return (p - 8) / (6 * m + p - 8); }, 1, true,
       24},
      {"dualpipe", "(p-2)/(3m+p-2)", [](double p, double m, double) { return (p - 2) / (3 * m + p - 2); }, 2},
      {"dualpipev", "(p-1)/(3m+p-1)", [](double p, double m, double) { return (p - 1) / (3 * m + p - 1); }, 2}};
  const std::int64_t p = strategy.pipeline, m = strategy.micro_batches();
  // Without a barrier a step ends on each stage by itself: the period is that of the stage which is busy longest, and
  // ZB-H2 leaves no stage idle (Qi et al. 2024, section 4). In flushed one-way schedules the first stage sets the same
  // period as with a barrier.
  if (validates_after_update) {
    if (strategy.schedule == "zb-h2" && m >= 2 * p) return Bubble{"0", 0};
    if (strategy.schedule.starts_with("zb-") && strategy.schedule != "zb-h1") return std::nullopt;
  }
  for (const Row& row : rows) {
    if (row.schedule != strategy.schedule || m < row.least * p || (row.as_many && m != row.least * p)) continue;
    if (p % model_copies(strategy.schedule) != 0) continue;
    const bool longer = row.reached > 0 && p > row.reached;
    return Bubble{
        (longer ? "at least " : "") + std::string(row.formula),
        row.share(static_cast<double>(p), static_cast<double>(m), static_cast<double>(strategy.virtual_stages))};
  }
  return std::nullopt;
}

}  // namespace orrery
