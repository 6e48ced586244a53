#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/advice/prices.h"
#include "sim/print/progress.h"
#include "sim/runs/job.h"

namespace orrery {

inline constexpr int kDoesNotFit = 3;  // exit status of simulate --require-fit if the step does not fit in memory

struct SimulateOptions {
  std::string spec;
  std::vector<std::string> overrides;  // values of the option --set: "strategy.tensor=4"
  std::string profile;                 // path of a measured profile, "" = the built-in one
  std::string trace;                   // path of a Chrome trace to write, "" = none
  std::string on;                      // machines ("2xdgx-h100") if `spec` names only a model, "" = none
  std::string save;                    // path of the file to which the simulated spec is written, "" = none
  bool unfold = false;
  bool timeline = false;  // whether to print the step's timeline, in letters, after the tables
  bool require_fit = false;
};
Outcome simulate_command(const SimulateOptions& options, const Common& common);

// orrery run: executes the plan, and reports the same figures as `simulate`, but measured. Starts the ranks by mpirun
// and watches them or, if a launcher has started this process as one rank, becomes that rank. Throws Error with status
// 5 (kRankLost) if a rank was lost or hung, and Interrupted (processes.h) if the user stopped it; in each case no
// process and no file remains.
Outcome run_command(const RunOptions& options, const Common& common);

// orrery calibrate: measures single ops and transfers of this machine, on all ranks at the same time, and writes a
// profile; or makes a profile from measurements by other tools (sim/calibrate/import.h). Throws Error with status 1 if
// measurements are too noisy to be of use.
struct CalibrateOptions {
  std::string out;  // path of the profile to write, "" = stdout (imports only)
  std::string device = "cpu";
  std::int64_t ranks = 2;
  bool quick = false;  // whether to measure two small shapes only
  // Largest accepted noise: quartile distance over median of an op's times, averaged over ops by time.
  double noise = 0.3;
  std::string date;                  // date to write into the profile, "" = today
  std::vector<std::string> imports;  // files with other tools' measurements to import; then nothing is measured
  // paths of specs whose exact shapes are measured too, besides the grid of shapes (own_shapes.h)
  std::vector<std::string> own;
  double settle = 1;  // seconds for which a GPU runs each spec, for its clocks to settle
};
Outcome calibrate_command(const CalibrateOptions& options, const Common& common);
Outcome import_command(const CalibrateOptions& options);

// orrery validate: predicts every spec with a profile, runs the spec, and compares the two: kinds of ops, the engine
// (the measured durations simulated again), step time, memory. If no profile is given, the machine is first measured
// briefly (CPU ranks only). The exit status is 4 (kOutOfTolerance) if the error of a step time exceeds `tolerance`.
// With `published` or `recipes` nothing is run: all measured steps in the files, or the built-in recipes, are
// predicted, and the errors printed.
struct ValidateOptions {
  std::vector<std::string> specs, overrides;
  std::vector<std::string> served;     // files of measured inference to predict; then nothing is run
  std::vector<std::string> kernels;    // tables of measured kernels to predict; then nothing is run
  std::string fit;                     // path of a file to which laws that are fitted to `kernels` go; "": none
  std::vector<std::string> published;  // files of published measurements of steps to predict; then nothing is run
  bool recipes = false;                // whether to predict the figures of the built-in recipes; then nothing is run
  // Whether to fit the constants of models/data/fitted.json again with each source of measurements left out in turn; of
  // `kernels`, the laws of kernels with each kind of GPU left out in turn.
  bool leave_one_out = false;

  // Paths of files to write: scatter plot (SVG), page (Markdown), models/data/intervals.json and
  // models/data/validated_rows.json; "": none.
  std::string scatter, page, intervals, rows;
  std::string profile;
  std::string device = "cpu";
  std::int64_t ranks = 0;  // number of ranks; 0: the number that each spec states
  std::int64_t steps = 20;
  // GPU ranks time single tasks in every mark_every-th step only; other steps give only the time of the whole step.
  std::int64_t mark_every = 1;
  double tolerance = 0.25;
  std::string out;        // folder to which the ranks' measurements are written, "" = none
  bool composed = false;  // whether GPU ranks run one after another; then only compute and memory are compared
};
inline constexpr int kOutOfTolerance = 4;
Outcome validate_command(const ValidateOptions& options, const Common& common);
Outcome validate_published_command(const ValidateOptions& options, const Common& common);
Outcome validate_served_command(const ValidateOptions& options, const Common& common);
Outcome validate_recipes_command(const Common& common);

// orrery compare: predicts every spec with every combination of the varied values. vary: a key and its values,
// "strategy.sharding=none,zero1"; commas inside [] and {} do not separate values. An impossible combination becomes a
// row with the reason, unless nothing is varied or no combination is possible: then its Error is thrown.
struct CompareOptions {
  std::vector<std::string> specs;
  std::vector<std::string> overrides, vary;
  std::string profile;
  double tokens = 0;  // number of tokens of the training run whose days and cost are asked for; 0: not given
  PriceOptions prices;
  bool csv = false;
};
Outcome compare_command(const CompareOptions& options, const Common& common);

// orrery explain: explains a prediction. First comes what decides the step; with `all`, or where the output is no
// terminal, then every value with its origin, the formulas, and similar published steps. picture: path of an SVG file
// to write, which draws the layout (sim/picture/picture.h); "" = none.
struct ExplainOptions {
  std::string spec;
  std::vector<std::string> overrides;
  std::string profile;
  std::string picture;
  bool all = false;
};
Outcome explain_command(const ExplainOptions& options, const Common& common);

// orrery import: makes a spec from launch files of a training framework, or from a command line (sim/launch/import.h).
struct ImportOptions {
  std::vector<std::string> files;
  std::string on;   // the cluster: "2xdgx-h100"; "" = not given
  std::string out;  // path of the spec to write, "" = stdout
};
Outcome import_launch_command(const ImportOptions& options, const Common& common);

// orrery export: writes the launch options with which a training framework runs the spec (sim/launch/export.h).
struct ExportOptions {
  std::string spec, to;
  std::vector<std::string> overrides;
  std::string out;  // path of the file to write, "" = stdout
};
Outcome export_command(const ExportOptions& options);
// Writes the spec's step as Chakra execution traces, one file for each rank: OUT.RANK.et (sim/chakra/from_plan.h).
Outcome export_chakra_command(const ExportOptions& options);
// Whether the files to import are Chakra execution traces; import then simulates them on the machines of `on`
// (sim/chakra/replay.h).
bool is_chakra(const ImportOptions& options);
Outcome import_chakra_command(const ImportOptions& options, const Common& common);

// orrery trace: sums up traces of any origin, ours or PyTorch's (sim/summary/summary.h).
struct TraceOptions {
  std::string action;              // "summarize"; for any other word throws Error
  std::vector<std::string> files;  // paths of traces: a file per rank, or of several ranks
  double top = 15;                 // number of kernels and of operators to list
};
Outcome trace_command(const TraceOptions& options, const Common& common);

// orrery whatif: replays a measured run, and says what slowed it down (sim/whatif/whatif.h).
struct WhatifOptions {
  std::vector<std::string> files;           // traces or rows of one run, as read_measured_run() takes them
  std::vector<std::string> without, speed;  // "rank=17", "stage=3" or "op=gc"; "network=2" or "compute=1.5"
  bool even_stages = false;
};
Outcome whatif_command(const WhatifOptions& options, const Common& common);

// orrery doctor: says what is missing or too small on this machine, and how to mend it (sim/runs/doctor.h). The exit
// status is 1 if something is missing that every machine needs.
Outcome doctor_command(const Common& common);

// orrery list: lists names. what: models, clusters, gpus, schedules, shardings, software, recipes or limits; for any
// other word throws Error that names these. markdown: print a Markdown table.
Outcome list_command(std::string_view what, const Common& common, bool markdown = false);
std::vector<std::string_view> list_names();

}  // namespace orrery
