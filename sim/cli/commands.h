#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/advice/prices.h"
#include "sim/print/progress.h"
#include "sim/runs/job.h"

namespace orrery {

inline constexpr int kDoesNotFit = 3;  // exit status of simulate --require-fit

struct SimulateOptions {
  std::string spec;
  std::vector<std::string> overrides;  // "strategy.tensor=4"
  std::string profile;                 // a measured profile's path, "" = the built-in one
  std::string trace;                   // a Chrome trace to write, "" = none
  std::string on;                      // machines for a model that comes without a spec, "" = none
  std::string save;                    // a file for the spec as it was simulated, "" = none
  bool unfold = false;
  bool timeline = false;  // print the step as lines of letters after the tables
  bool require_fit = false;
};
Outcome simulate_command(const SimulateOptions& options, const Common& common);

// Executes the plan and reports the same figures as `simulate`, measured. Starts the ranks by mpirun and watches them,
// or, where a launcher has started this process as one rank, becomes that rank. Throws Error with status 5 (kRankLost)
// when a rank was lost or hung, and Interrupted (processes.h) when the user stopped it; either way no process and no
// file is left.
Outcome run_command(const RunOptions& options, const Common& common);

// Measures single ops and transfers of this machine, all ranks at once, and writes a profile; or imports measurements
// that others made (sim/calibrate/import.h). Throws Error with status 1 where measurements are too noisy to be of use.
struct CalibrateOptions {
  std::string out;  // the profile's path, "" = stdout (imports only)
  std::string device = "cpu";
  std::int64_t ranks = 2;
  bool quick = false;                // measure two small shapes only
  double noise = 0.3;                // accepted noise: quartile distance over median, by time
  std::string date;                  // "" = today
  std::vector<std::string> imports;  // files that others measured: read instead of measuring
  std::vector<std::string> own;      // specs whose very shapes are measured beside the grid (own_shapes.h)
};
Outcome calibrate_command(const CalibrateOptions& options, const Common& common);
Outcome import_command(const CalibrateOptions& options);

// Predicts every spec with a profile (for CPU ranks without one, the machine is first measured in short form), runs the
// spec, and compares: kinds of ops, the engine (measured durations simulated again), the step, memory. Status 4
// (kOutOfTolerance) when a step is further off than `tolerance`. Or predicts every row of files of published
// measurements and prints the errors; or does so for the built-in recipes.
struct ValidateOptions {
  std::vector<std::string> specs, overrides;
  std::vector<std::string> published;  // files of published measurements; then nothing is run
  bool recipes = false;                // the built-in recipes are predicted; then nothing is run
  bool leave_one_out = false;          // fit the listed constants again without each source in turn

  // Files to write: SVG, Markdown, models/data/intervals.json, models/data/validated_rows.json; "" = none.
  std::string scatter, page, intervals, rows;
  std::string profile;
  std::string device = "cpu";
  std::int64_t ranks = 0;  // 0: as many as each spec says
  std::int64_t steps = 20;
  std::int64_t mark_every = 1;  // GPU ranks time the tasks of each so many steps; the others tell the whole step's time
  double tolerance = 0.25;
  std::string out;        // a folder for the raw results, "" = not kept
  bool composed = false;  // compare compute and memory of GPU ranks that run one by one, instead of steps
};
inline constexpr int kOutOfTolerance = 4;
Outcome validate_command(const ValidateOptions& options, const Common& common);
Outcome validate_published_command(const ValidateOptions& options, const Common& common);
Outcome validate_recipes_command(const Common& common);

// Predicts every spec under every combination of the varied values. vary: "strategy.sharding=none,zero1"; commas inside
// [] and {} do not separate. An impossible combination is a row with the reason, unless nothing is varied or no
// combination is possible: then the Error of the combination is thrown.
struct CompareOptions {
  std::vector<std::string> specs;
  std::vector<std::string> overrides, vary;
  std::string profile;
  double tokens = 0;  // of a whole run, for its days and rent; 0: not asked
  PriceOptions prices;
  bool csv = false;
};
Outcome compare_command(const CompareOptions& options, const Common& common);

struct ExplainOptions {
  std::string spec;
  std::vector<std::string> overrides;
  std::string profile;
};
Outcome explain_command(const ExplainOptions& options, const Common& common);

// Makes a spec of the launch files of a training framework, or of a command line (sim/launch/import.h).
struct ImportOptions {
  std::vector<std::string> files;
  std::string on;   // the cluster as "2xdgx-h100", "" = not named
  std::string out;  // the spec's path, "" = stdout
};
Outcome import_launch_command(const ImportOptions& options, const Common& common);

// Writes the options that run a spec with a framework (sim/launch/export.h).
struct ExportOptions {
  std::string spec, to;
  std::vector<std::string> overrides;
  std::string out;  // "" = stdout
};
Outcome export_command(const ExportOptions& options);

// Lists names. what: models, clusters, gpus, schedules, shardings, software, recipes or limits. Throws Error naming
// these words for anything else. markdown: as a Markdown table.
Outcome list_command(std::string_view what, const Common& common, bool markdown = false);
std::vector<std::string_view> list_names();

}  // namespace orrery
