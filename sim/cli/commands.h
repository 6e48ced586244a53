#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/advice/prices.h"
#include "sim/print/progress.h"
#include "sim/runs/job.h"

namespace orrery {

struct SpecText;

inline constexpr int kDoesNotFit = 3;  // exit status of `simulate --require-fit` if the step does not fit in memory

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

// orrery run: executes the plan of a spec, and reports the same figures as `simulate`, but measured. Starts the ranks
// by mpirun and watches them or, if a launcher has started this process as one rank, becomes that rank. Throws Error
// with status 5 (kRankLost) if a rank was lost or hung, and Interrupted (processes.h) if the user stopped the run; in
// each case no process and no file remains.
Outcome run_command(const RunOptions& options, const Common& common);

// orrery calibrate: measures single ops and transfers of this machine, on all ranks at the same time, and writes a
// profile; or makes a profile from measurements by other tools (sim/calibrate/import.h). Throws Error with status 1 if
// measurements are too noisy to be of use.
struct CalibrateOptions {
  std::string out;  // path of the profile to write, "" = stdout (imports only)
  std::string device = "cpu";
  std::int64_t ranks = 2;
  bool quick = false;  // whether to measure only two small shapes
  // Largest accepted noise of measurements: quartile distance over median of an op's times, averaged over ops by time.
  double noise = 0.3;
  std::string date;                  // date to write into the profile, "" = today
  std::vector<std::string> imports;  // files with other tools' measurements to import; then nothing is measured
  std::string from_steps;            // file of measured steps of one stack and cluster; then nothing is measured here
  // paths of specs whose exact shapes of ops are measured too, besides the built-in grid of shapes (own_shapes.h)
  std::vector<std::string> own;
  double settle = 1;  // seconds for which a GPU runs each spec, for its clocks to settle
};
Outcome calibrate_command(const CalibrateOptions& options, const Common& common);
Outcome import_command(const CalibrateOptions& options);
// Makes a profile from a few measured steps (sim/published/from_steps.h), and says which step to measure next.
Outcome calibrate_steps_command(const CalibrateOptions& options, const Common& common);

// orrery validate: predicts every spec with a profile, runs the spec, and compares the two: times of kinds of ops, the
// simulation's order and waiting (by simulating again with the measured durations), step time, memory. If no profile is
// given, the machine is first measured briefly (CPU ranks only). The exit status is 4 (kOutOfTolerance) if the error of
// a step time exceeds `tolerance`. With `published` or `recipes` nothing is run; instead all measured steps in the
// files, or the built-in recipes, are predicted, and the errors printed.
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
  std::string by = "source";      // what of published steps is left out in turn: "source", "release" or "model"
  bool without_inferred = false;  // whether published steps are predicted without facts that were inferred

  // Number of published steps of each source that are taken as known, to judge calibrate --from-steps by the others; 0:
  // the steps are predicted as they are.
  std::int64_t from_steps = 0;

  // Paths of files to write, "" for none: a scatter plot (SVG), a page (Markdown), models/data/intervals.json,
  // models/data/validated_rows.json and models/data/step_priors.json.
  std::string scatter, page, intervals, rows, priors;
  std::string profile;
  std::string device = "cpu";
  std::int64_t ranks = 0;  // number of ranks; 0: the number that each spec states
  std::int64_t steps = 20;
  // GPU ranks time single tasks in every mark_every-th step only; other steps give only the time of the whole step.
  std::int64_t mark_every = 1;
  double tolerance = 0.25;
  std::string out;        // folder to which the ranks' measurements are written, "" = none
  bool composed = false;  // whether GPU ranks run one after another, so that only compute and memory are compared
};
inline constexpr int kOutOfTolerance = 4;
Outcome validate_command(const ValidateOptions& options, const Common& common);
Outcome validate_published_command(const ValidateOptions& options, const Common& common);
Outcome validate_served_command(const ValidateOptions& options, const Common& common);
Outcome validate_recipes_command(const Common& common);

// orrery compare: predicts every spec with every combination of the varied values. vary: a key and its values, as in
// "strategy.sharding=none,zero1"; commas inside [] and {} do not separate values. An impossible combination becomes a
// row with the reason. If nothing is varied, or no combination is possible, the reason is thrown as an Error instead.
struct CompareOptions {
  std::vector<std::string> specs;
  std::vector<std::string> overrides, vary;
  std::string profile;
  double tokens = 0;  // number of tokens of the training run whose days and cost are asked for; 0: not given
  PriceOptions prices;
  bool csv = false;
};
Outcome compare_command(const CompareOptions& options, const Common& common);

// orrery explain: explains a prediction. The output begins with what decides the step time. With `all`, or where the
// output is no terminal, every value of the spec with its origin, the formulas, and similar published steps follow.
// picture: path of an SVG file to write, which draws the layout of the plan (sim/picture/picture.h); "" = none.
struct ExplainOptions {
  std::string spec;
  std::vector<std::string> overrides;
  std::string profile;
  std::string picture;
  bool all = false;
  bool next_run = false;  // whether to say which step to measure next
};
Outcome explain_command(const ExplainOptions& options, const Common& common);
// The same for a spec that generates text (explain_generation.cpp). text: that of the spec's file.
Outcome explain_generation(const Spec& spec, const SpecText& text, const ExplainOptions& options, const Common& common);

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
// Writes the step of a spec as Chakra execution traces, one file for each rank: OUT.RANK.et (sim/chakra/from_plan.h).
Outcome export_chakra_command(const ExportOptions& options);
// Whether the files to import are Chakra execution traces. If they are, `orrery import` simulates them on the machines
// of `on` (sim/chakra/replay.h).
bool is_chakra(const ImportOptions& options);
Outcome import_chakra_command(const ImportOptions& options, const Common& common);

// orrery run-length: plays a job's failures, checkpoints and restarts over days (sim/run_length/run_length.h).
struct RunLengthOptions {
  std::string spec;
  std::vector<std::string> overrides;  // values of the option --set
  std::string profile;                 // path of a measured profile, "" = the built-in one
  double days = 54;                    // how long the run lasts
  std::uint64_t seed = 1;
  double plays = 10'000;  // how often the run is played
};
Outcome run_length_command(const RunLengthOptions& options, const Common& common);

// orrery import-topology: writes a spec's `cluster` from what a cluster's own tools print
// (sim/topology/cluster_facts.h).
struct ImportTopologyOptions {
  std::vector<std::string> files;
  std::string out;  // path of the file to write; "": stdout
};
Outcome import_topology_command(const ImportTopologyOptions& options);

// orrery trace: sums up traces of any origin, ours or PyTorch's (sim/summary/summary.h).
struct TraceOptions {
  std::string action;              // "summarize"; for any other word throws Error
  std::vector<std::string> files;  // paths of traces, each of one rank or of several
  double top = 15;                 // number of kernels and of operators to list
};
Outcome trace_command(const TraceOptions& options, const Common& common);

// orrery whatif: replays a measured run with something changed, and says what slowed the run down
// (sim/whatif/whatif.h).
struct WhatifOptions {
  std::vector<std::string> files;  // files of one measured run: traces, or tables (CSV) of times
  // without: a rank or stage that is to take average times, or an op that is to take none ("rank=17", "stage=3",
  // "op=gc"); speed: factors by which transfers or compute are faster ("network=2", "compute=1.5").
  std::vector<std::string> without, speed;
  bool even_stages = false;
  std::string between;   // two ranks that are compared ("0,17"); "": the slowest and the fastest
  std::string roofline;  // GPU whose roofs measured kernels are held against ("h100-sxm"); "": none
};
Outcome whatif_command(const WhatifOptions& options, const Common& common);

// orrery doctor: says what is missing or too small on this machine, and how to mend it (sim/runs/doctor.h). The exit
// status is 1 if something is missing that every machine needs.
Outcome doctor_command(const Common& common);

// orrery list: lists names. what: models, clusters, gpus, schedules, shardings, software, recipes or limits; any other
// word gives an Error that lists these. markdown: print a Markdown table.
Outcome list_command(std::string_view what, const Common& common, bool markdown = false);
std::vector<std::string_view> list_names();

}  // namespace orrery
