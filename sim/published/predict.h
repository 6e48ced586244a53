#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/report/interval.h"
#include "sim/report/report.h"
#include "sim/report/validated_rows.h"

namespace orrery {

// One measured step of somebody else's cluster, from a published-measurement file (a JSON list; docs/figures.md).
// Figures that the source does not print are absent. A row never holds a prediction.
struct PublishedRow {
  std::string id;
  std::string source;    // the file's name; of a file with several groups, the group's
  std::string spec;      // JSON
  std::string doubtful;  // why its source should be checked, "" = nothing is known against it
  std::optional<double> step_time_s, forward_s, backward_s;  // forward, backward: times of one layer
  std::optional<double> peak_memory_bytes;
  std::optional<double> bubble_fraction;
  // allocated | reserved | device | unstated; in a case: the kind that the log of the stack means
  std::string memory_kind;
  bool out_of_memory = false;
  // whether the figure is composed of parts that were measured by themselves: nobody saw the whole fit a GPU
  bool composed = false;
};

// Throws Error "file: row 3: what" for anything that is not such a list.
std::vector<PublishedRow> read_published(const std::string& path);
std::vector<PublishedRow> parse_published(std::string_view text, const std::string& path);

// The prediction for a row, in seconds, bytes and shares like the measured figures. An unsupported row has a reason
// alone.
struct PublishedCase {
  PublishedRow row;
  std::string reason;  // why it was not predicted, "" = it was
  std::string gpu, model;
  std::int64_t gpus = 0, nodes = 0;
  double tokens = 0, model_flops = 0;  // tokens and model FLOPs of a step
  std::string software, architecture;
  ValidatedRow like;  // the properties of the spec, without an error
  std::vector<std::string> techniques;
  double step_time_s = 0, forward_s = 0, backward_s = 0;
  double step_time_low_s = 0, step_time_high_s = 0;
  double peak_memory_bytes = 0;  // peak memory of the kind that the row has (memory_kind)

  // Bubble fraction of rows that have one: without launches and transfers, as their authors computed it.
  double bubble_fraction = 0;
  bool fits = true;
  TimeSplit time_s{};
  CategoryBytes at_peak{};
  std::string limit;
};

// The prediction for a row: its spec, planned and simulated on one thread. Never throws for what the row asks: `reason`
// says why a row was not predicted.
PublishedCase predict_published(const PublishedRow& row, const std::string& profile);

// The error of one judged figure: predicted / measured - 1; for bubbles, which may be 0, predicted - measured.
struct Miss {
  const PublishedCase* of = nullptr;
  double error = 0;
  // error of a prediction by one constant FLOP/s per source and GPU kind; 0 for memory and single layers
  double null_error = 0;
};
enum class Judged : std::uint8_t { step, layer, memory, bubble };
std::vector<Miss> misses(const std::vector<PublishedCase>& cases, Judged what, bool doubtful);

// Summary of |error| over rows.
struct ErrorSummary {
  std::string source;  // "all" for the last summary; in summarize_by_technique the technique
  std::size_t rows = 0;
  std::size_t sources = 1;
  double bias = 0, median = 0, mean = 0, p90 = 0, worst = 0, null_mean = 0;
};
std::vector<ErrorSummary> summarize(const std::vector<Miss>& misses);
// A row counts for every technique that it uses ("zero1", "pipeline, 1f1b", "experts"): the summary shows by which rows
// a technique was validated.
std::vector<ErrorSummary> summarize_by_technique(const std::vector<Miss>& misses);
std::vector<std::string> techniques_in(const Spec& spec);

// The regret of picking the fastest layout of a measured grid (the rows of a source with one model on one number of
// GPUs) by prediction: how much longer the picked layout takes than the fastest measured one.
struct GridRegret {
  std::string source;
  std::size_t grids = 0;
  double mean = 0, worst = 0, right = 0;  // right: share of grids whose fastest layout is picked
};
std::vector<GridRegret> regrets(const std::vector<PublishedCase>& cases);

// How many measured steps lie in the predicted interval, doubtful rows included.
struct Coverage {
  std::size_t inside = 0, rows = 0;
};
Coverage coverage(const std::vector<PublishedCase>& cases);

// Measured over predicted of every row that is not doubtful, for the intervals.
std::vector<StepResidual> residuals(const std::vector<PublishedCase>& cases);
// The same rows, with the error of each, for users who ask how far off predictions of steps like theirs were.
std::vector<ValidatedRow> validated_rows(const std::vector<PublishedCase>& cases);

std::string published_text(const std::vector<PublishedCase>& cases);
std::string published_json(const std::vector<PublishedCase>& cases);
std::string scatter_svg(const std::vector<PublishedCase>& cases);
// The results as a Markdown page. fit: null = not made; picture: a link, "" = none.
struct Refit;
std::string published_page(const std::vector<PublishedCase>& cases, const Refit* fit, const std::string& picture);

}  // namespace orrery
