#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/print/section.h"
#include "sim/print/text.h"
#include "sim/report/report.h"
#include "sim/report/validated_rows.h"

namespace orrery {

// One step that others have measured on their cluster, from a file of published measurements (a JSON list;
// docs/figures.md). Figures that the publication does not give are nullopt. A row never contains a prediction.
struct PublishedRow {
  std::string id;
  // The name of the publication (paper or data set): that of the file or, in a file of several publications, that of
  // the row's group.
  std::string source;
  // The release of the stack as the row's facts give it, "NeMo 26.06", and the model as name_models says; "": not said.
  std::string release, model;
  std::string spec;      // the spec of the step, as JSON
  std::string doubtful;  // reason to doubt the measurement, "": none is known
  // Measured seconds of the step (step_time_s), and of one layer's passes (forward_s, backward_s).
  std::optional<double> step_time_s, forward_s, backward_s;
  std::optional<double> peak_memory_bytes;
  std::optional<double> bubble_fraction;
  // The kind of memory that peak_memory_bytes counts: allocated, reserved, device or unstated. In a PublishedCase,
  // "unstated" is replaced by the kind that the step's software prints in its log.
  std::string memory_kind;
  bool out_of_memory = false;
  // Whether the measured figures are composed of parts that were measured one by one, so that no GPU ran the complete
  // step.
  bool composed = false;
};

// The facts about published runs (models/data/published_facts.json) that complete their specs: all, or only those that
// are read in a document of the run or of what it names, without those that are inferred.
enum class PublishedFacts : std::uint8_t { all, read };

// Names the model of each row by the widths of its layers (columns, heads, MLP, experts), which are the same under all
// names that publications give a model and for copies of it with fewer layers.
void name_models(std::vector<PublishedRow>& rows);

// Reads a file of measured steps. Throws Error "file: row 3: what" if it is no list of measured steps.
std::vector<PublishedRow> read_published(const std::string& path, PublishedFacts facts = PublishedFacts::all);
std::vector<PublishedRow> parse_published(std::string_view text, const std::string& path,
                                          PublishedFacts facts = PublishedFacts::all);

// The prediction of a published step, in the units of the measured figures (seconds, bytes, shares). If the step cannot
// be predicted, only `row` and `reason` are set.
struct PublishedCase {
  PublishedRow row;
  std::string reason;  // reason why the step was not predicted, "" = it was
  std::string gpu, model;
  std::int64_t gpus = 0, nodes = 0;
  double tokens = 0, model_flops = 0;  // number of tokens and of model FLOPs in a step
  std::string software, architecture;
  // Properties of the step by which users find published steps similar to theirs; the field `error` is not set.
  ValidatedRow like;
  std::vector<std::string> techniques;
  double step_time_s = 0, forward_s = 0, backward_s = 0;
  double step_time_low_s = 0, step_time_high_s = 0;
  // time of the step if the stack's hosts stall (sim/report/stalls.h), and its peak memory then; 0: they never do
  double stalled_step_s = 0, stalled_memory_bytes = 0;
  // Predicted peak bytes, of the kind of memory that the row's memory_kind names.
  double peak_memory_bytes = 0;

  // Predicted bubble fraction, if the row has a measured one. It leaves out the time of launches and transfers, as the
  // authors of published fractions do.
  double bubble_fraction = 0;
  bool fits = true;
  TimeSplit time_s{};
  CategoryBytes at_peak{};
  std::string limit;
};

// Predicts a published step: makes a plan from its spec and simulates it, on one thread. If the spec asks for something
// that is not supported, this throws nothing, and `reason` says why there is no prediction.
PublishedCase predict_published(const PublishedRow& row, const std::string& profile);

// The error of one predicted figure: predicted / measured - 1; for bubble fractions, which may be 0, it is predicted -
// measured.
struct Miss {
  const PublishedCase* of = nullptr;
  double error = 0;
  // Error of the null model, which assumes one constant FLOP/s per publication and GPU model; 0: not computed, for
  // memory and single layers.
  double null_error = 0;
};
// stalled, stalled_memory: steps whose rows say that they stalled, against the prediction of that state.
enum class Judged : std::uint8_t { step, layer, memory, bubble, stalled, stalled_memory };
std::vector<Miss> misses(const std::vector<PublishedCase>& cases, Judged what, bool doubtful);

// Statistics of |error| over the published steps of one publication, or over those that use one technique.
struct ErrorSummary {
  // Name of the publication, or "all" for the summary of all steps; in summarize_by_technique() the technique.
  std::string source;
  std::size_t rows = 0;
  std::size_t sources = 1;
  double bias = 0, median = 0, mean = 0, p90 = 0, worst = 0, null_mean = 0;
};
std::vector<ErrorSummary> summarize(const std::vector<Miss>& misses);
// Statistics by technique: a published step counts for every technique that it uses ("zero1", "pipeline, 1f1b",
// "experts"), so that they show on how many steps a technique was validated.
std::vector<ErrorSummary> summarize_by_technique(const std::vector<Miss>& misses);
std::vector<std::string> techniques_in(const Spec& spec);

// The cost of choosing a strategy by prediction. A grid is a set of measured steps of one publication with one model on
// one number of GPUs. The regret of a grid is how much longer the measured step with the strategy that is predicted to
// be fastest takes than the fastest measured step (a share).
struct GridRegret {
  std::string source;
  std::size_t grids = 0;
  // mean, worst: mean and largest regret (share of time lost by choosing the strategy that is predicted to be fastest);
  // right: share of the grids (steps of a publication with one model on one number of GPUs) in which that strategy
  // really was the fastest.
  double mean = 0, worst = 0, right = 0;
};
std::vector<GridRegret> regrets(const std::vector<PublishedCase>& cases);

// The number of measured steps whose time lies within the predicted interval (inside), and the number of all measured
// steps (rows). Doubtful rows are included.
struct Coverage {
  std::size_t inside = 0, rows = 0;
};
Coverage coverage(const std::vector<PublishedCase>& cases);

// Every published step that is not doubtful, with its error, for users who ask how far off predictions of similar steps
// were.
std::vector<ValidatedRow> validated_rows(const std::vector<PublishedCase>& cases);

// The result as sections: a table of the steps, tables of errors, and how often intervals and memory were right.
std::vector<Section> published_sections(const std::vector<PublishedCase>& cases);
std::string published_text(const std::vector<PublishedCase>& cases, const Style& style = {});
std::string published_json(const std::vector<PublishedCase>& cases);
std::string scatter_svg(const std::vector<PublishedCase>& cases);
// The results as a Markdown page. fit: result of a fit, or nullptr; picture: link to the scatter plot ("": none).
struct Refit;
std::string published_page(const std::vector<PublishedCase>& cases, const Refit* fit, const std::string& picture);

}  // namespace orrery
