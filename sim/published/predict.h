#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/print/text.h"
#include "sim/report/interval.h"
#include "sim/report/report.h"
#include "sim/report/validated_rows.h"

namespace orrery {

// One measured step of somebody else's cluster, from a published-measurement file (a JSON list; docs/figures.md).
// Figures that the source does not print are absent. A row never holds a prediction.
struct PublishedRow {
  std::string id;
  std::string source;    // the file's name, or the group's name in a file with several groups
  std::string spec;      // JSON
  std::string doubtful;  // why the row's source should be checked, "" = nothing is known against it
  // forward_s, backward_s: times of one layer.
  std::optional<double> step_time_s, forward_s, backward_s;
  std::optional<double> peak_memory_bytes;
  std::optional<double> bubble_fraction;
  // allocated | reserved | device | unstated; in a PublishedCase: the kind that the log of the row's software means
  std::string memory_kind;
  bool out_of_memory = false;
  // Whether the figure is a sum of parts that were measured one by one, so that nobody ran the whole on a GPU.
  bool composed = false;
};

// Reads a list of measured steps. Throws Error "file: row 3: what" for anything else.
std::vector<PublishedRow> read_published(const std::string& path);
std::vector<PublishedRow> parse_published(std::string_view text, const std::string& path);

// The prediction for a row, in seconds, bytes and shares like the measured figures. For a row that cannot be predicted
// only `reason` is set.
struct PublishedCase {
  PublishedRow row;
  std::string reason;  // why it was not predicted, "" = it was
  std::string gpu, model;
  std::int64_t gpus = 0, nodes = 0;
  double tokens = 0, model_flops = 0;  // tokens and model FLOPs of a step
  std::string software, architecture;
  ValidatedRow like;  // the properties by which like steps are found, without an error
  std::vector<std::string> techniques;
  double step_time_s = 0, forward_s = 0, backward_s = 0;
  double step_time_low_s = 0, step_time_high_s = 0;
  double peak_memory_bytes = 0;  // peak memory of the row's memory_kind

  // Bubble fraction, for rows that state one: without launches and transfers, as their authors computed it.
  double bubble_fraction = 0;
  bool fits = true;
  TimeSplit time_s{};
  CategoryBytes at_peak{};
  std::string limit;
};

// The prediction for a row: its spec, planned and simulated on one thread. A row that asks for something unsupported
// does not make it throw: then `reason` says why the row was not predicted.
PublishedCase predict_published(const PublishedRow& row, const std::string& profile);

// The error of one predicted figure: predicted / measured - 1; for bubbles, which may be 0, predicted - measured.
struct Miss {
  const PublishedCase* of = nullptr;
  double error = 0;
  // Error of a prediction by one constant FLOP/s per source and kind of GPU; 0 for memory and single layers.
  double null_error = 0;
};
enum class Judged : std::uint8_t { step, layer, memory, bubble };
std::vector<Miss> misses(const std::vector<PublishedCase>& cases, Judged what, bool doubtful);

// Summary of |error| over rows, for one source or technique.
struct ErrorSummary {
  std::string source;  // "all" for the last summary; the technique's name in summarize_by_technique
  std::size_t rows = 0;
  std::size_t sources = 1;
  double bias = 0, median = 0, mean = 0, p90 = 0, worst = 0, null_mean = 0;
};
std::vector<ErrorSummary> summarize(const std::vector<Miss>& misses);
// A row counts for every technique that it uses ("zero1", "pipeline, 1f1b", "experts"): the summary shows by which rows
// a technique was validated.
std::vector<ErrorSummary> summarize_by_technique(const std::vector<Miss>& misses);
std::vector<std::string> techniques_in(const Spec& spec);

// The regret of picking by prediction the fastest layout of a measured grid (the rows of a source with one model on one
// number of GPUs): how much longer the picked layout took, as measured, than the fastest one.
struct GridRegret {
  std::string source;
  std::size_t grids = 0;
  double mean = 0, worst = 0, right = 0;  // right: share of grids whose fastest layout is picked
};
std::vector<GridRegret> regrets(const std::vector<PublishedCase>& cases);

// How many measured steps lie in their predicted interval, doubtful rows included.
struct Coverage {
  std::size_t inside = 0, rows = 0;
};
Coverage coverage(const std::vector<PublishedCase>& cases);

// Measured over predicted time of every row that is not doubtful, from which intervals of predictions are made.
std::vector<StepResidual> residuals(const std::vector<PublishedCase>& cases);
// The same rows with their errors, for users who ask how far off predictions of steps like theirs were.
std::vector<ValidatedRow> validated_rows(const std::vector<PublishedCase>& cases);

std::string published_text(const std::vector<PublishedCase>& cases, const Style& style = {});
std::string published_json(const std::vector<PublishedCase>& cases);
std::string scatter_svg(const std::vector<PublishedCase>& cases);
// The results as a Markdown page. fit: nullptr if no fit was made; picture: a link, "" = none.
struct Refit;
std::string published_page(const std::vector<PublishedCase>& cases, const Refit* fit, const std::string& picture);

}  // namespace orrery
