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

// One measured step of somebody else's cluster, from a file of published measurements (a JSON list; docs/figures.md).
// Figures that the publication does not print are nullopt. A row never contains a prediction.
struct PublishedRow {
  std::string id;
  // publication (a paper or data set): name of the file, or of the group in a file with several groups
  std::string source;
  std::string spec;      // the spec of the step, as JSON
  std::string doubtful;  // reason to check the row against its publication, "" = nothing is known against it
  // forward_s, backward_s: seconds of one layer.
  std::optional<double> step_time_s, forward_s, backward_s;
  std::optional<double> peak_memory_bytes;
  std::optional<double> bubble_fraction;
  // allocated | reserved | device | unstated; in a PublishedCase: the kind of memory that the software of the step
  // prints in its log
  std::string memory_kind;
  bool out_of_memory = false;
  // Whether the figure is a sum of parts that were measured one by one, so that no GPU ran the complete step.
  bool composed = false;
};

// Reads a list of measured steps. Throws Error "file: row 3: what" for anything else.
std::vector<PublishedRow> read_published(const std::string& path);
std::vector<PublishedRow> parse_published(std::string_view text, const std::string& path);

// The prediction for a published step, in seconds, bytes and shares like the measured figures. If the step cannot be
// predicted, only `reason` is set.
struct PublishedCase {
  PublishedRow row;
  std::string reason;  // reason why the step was not predicted, "" = it was
  std::string gpu, model;
  std::int64_t gpus = 0, nodes = 0;
  double tokens = 0, model_flops = 0;  // number of tokens and of model FLOPs in a step
  std::string software, architecture;
  ValidatedRow like;  // properties of the step by which similar steps are found; the field `error` is not set
  std::vector<std::string> techniques;
  double step_time_s = 0, forward_s = 0, backward_s = 0;
  double step_time_low_s = 0, step_time_high_s = 0;
  double peak_memory_bytes = 0;  // predicted peak of the kind of memory that the row's memory_kind names

  // Bubble fraction, for rows that state one: without launches and transfers, as the authors of such figures compute
  // it.
  double bubble_fraction = 0;
  bool fits = true;
  TimeSplit time_s{};
  CategoryBytes at_peak{};
  std::string limit;
};

// Predicts a published step: its spec is planned, and simulated on one thread. If the spec asks for something
// unsupported, this does not throw: `reason` then says why there is no prediction.
PublishedCase predict_published(const PublishedRow& row, const std::string& profile);

// The error of one predicted figure: predicted / measured - 1; for bubble fractions, which may be 0, predicted -
// measured.
struct Miss {
  const PublishedCase* of = nullptr;
  double error = 0;
  // Error of a prediction that assumes one constant FLOP/s per publication and GPU model; 0: not computed, for memory
  // and single layers.
  double null_error = 0;
};
enum class Judged : std::uint8_t { step, layer, memory, bubble };
std::vector<Miss> misses(const std::vector<PublishedCase>& cases, Judged what, bool doubtful);

// Summary of |error| over the published steps of one publication or with one technique.
struct ErrorSummary {
  std::string source;  // publication, "all" for the last summary; in summarize_by_technique the technique's name
  std::size_t rows = 0;
  std::size_t sources = 1;
  double bias = 0, median = 0, mean = 0, p90 = 0, worst = 0, null_mean = 0;
};
std::vector<ErrorSummary> summarize(const std::vector<Miss>& misses);
// Summaries by technique: a published step counts for every technique that it uses ("zero1", "pipeline, 1f1b",
// "experts"), so that the summary shows on how many steps a technique was validated.
std::vector<ErrorSummary> summarize_by_technique(const std::vector<Miss>& misses);
std::vector<std::string> techniques_in(const Spec& spec);

// The regret of choosing a strategy by prediction in a measured grid (the steps of a publication with one model on one
// number of GPUs): how much longer the step takes, as measured, with the strategy predicted to be the fastest than with
// the fastest one.
struct GridRegret {
  std::string source;
  std::size_t grids = 0;
  double mean = 0, worst = 0, right = 0;  // right: share of the grids in which the fastest strategy is chosen
};
std::vector<GridRegret> regrets(const std::vector<PublishedCase>& cases);

// The number of measured steps whose time lies in the predicted interval, doubtful rows included, and the number of
// all.
struct Coverage {
  std::size_t inside = 0, rows = 0;
};
Coverage coverage(const std::vector<PublishedCase>& cases);

// Measured over predicted time of every published step that is not doubtful, from which intervals of predictions are
// derived.
std::vector<StepResidual> residuals(const std::vector<PublishedCase>& cases);
// The same steps with their errors, for users who ask how far off predictions of steps like theirs were.
std::vector<ValidatedRow> validated_rows(const std::vector<PublishedCase>& cases);

std::string published_text(const std::vector<PublishedCase>& cases, const Style& style = {});
std::string published_json(const std::vector<PublishedCase>& cases);
std::string scatter_svg(const std::vector<PublishedCase>& cases);
// The results as a Markdown page. fit: nullptr if no fit was made; picture: link to the scatter plot, "" = none.
struct Refit;
std::string published_page(const std::vector<PublishedCase>& cases, const Refit* fit, const std::string& picture);

}  // namespace orrery
