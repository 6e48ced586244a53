#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/output_file.h"
#include "models/load/load_spec.h"
#include "models/trace/trace_file.h"
#include "sim/cli/commands.h"
#include "sim/kernels/fit_laws.h"
#include "sim/kernels/kernel_errors.h"
#include "sim/page/validate.h"
#include "sim/runs/job.h"
#include "sim/runs/launch.h"
#include "sim/runs/measured_loads.h"
#include "sim/runs/rank_session.h"
#include "sim/validate/compose.h"
#include "sim/validate/validation.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostHere = 64;  // most ranks that are started to measure this machine

// The accepted noise when `validate` measures the machine itself. There is no limit, because on a busy machine a bad
// prediction is better than none, and the noise is printed with it.
constexpr double kAnyNoise = 1e9;

// Writes the measurements of each rank into the folder that the user has named (--out), one file per rank.
void keep(const std::string& folder, const std::vector<RankRun>& runs) {
  fs::create_directories(folder);
  for (const RankRun& run : runs) write_rank_run(rank_file(folder, run.rank), run);
}

// A spec that was run, its prediction, and the measurements of its ranks.
struct Ran {
  Job job;
  Prediction prediction;
  std::vector<RankRun> runs;
};

Ran run_one(const std::string& path, const ValidateOptions& options, const Common& common, RankSession* session) {
  const std::string name = fs::path(path).stem().string();
  Common named = common;
  named.progress = [&](std::string_view line) { common.progress(fmt::format("{}: {}", name, line)); };
  Job job = make_job({.spec = path,
                      .overrides = options.overrides,
                      .profile = options.profile,
                      .device = options.device,
                      .ranks = options.ranks,
                      .steps = options.steps,
                      .mark_every = options.mark_every,
                      .composed = options.composed});
  check_cores(job, std::thread::hardware_concurrency());
  Prediction prediction = predict(job.spec, true, options.profile);
  std::vector<RankRun> runs = run_job(job, named, session);
  if (!options.out.empty()) keep(options.out + '/' + name, runs);
  return {std::move(job), std::move(prediction), std::move(runs)};
}

void write(const ValidateOptions& options, const std::string& name, const std::string& text) {
  if (options.out.empty()) return;
  fs::create_directories(options.out);
  OutputFile file(options.out + '/' + name);
  file.write(text);
  file.commit();
}

// The rows of the table of results, one for each spec that is run. A spec that fails gives a row with the reason,
// unless it is the only spec. The output file is rewritten after each row, so that the results so far are kept if a
// later run fails.
template <class Row>
struct Rows {
  std::vector<Row> rows;
  int status = 0;  // exit status of the first spec whose comparison failed

  template <class Compare>
  void run(const ValidateOptions& options, const Common& common, const std::string& file, const Compare& compare) {
    std::optional<RankSession> session;
    if (options.device == "cuda") session.emplace();
    for (const std::string& path : options.specs) {
      Row row;
      try {
        row = compare(run_one(path, options, common, session ? &*session : nullptr));
      } catch (const std::exception& error) {
        if (options.specs.size() == 1) throw;
        const auto* known = dynamic_cast<const Error*>(&error);
        row.failure = error.what();
        if (status == 0) status = known != nullptr ? known->exit_code : 1;
        common.progress(fmt::format("{} failed: {}", path, row.failure));
      }
      row.name = fs::path(path).stem().string();
      rows.push_back(std::move(row));
      write(options, file, to_json(rows));
    }
    if (session) session->end();
  }
};

// A plot of predicted over measured values on logarithmic axes, still without points.
PagePlot plot_of(const std::string& title, const std::string& unit) {
  PagePlot plot{title,
                {.x_name = "measured, " + unit, .y_name = "predicted, " + unit},
                "The line is where prediction and measurement agree, the dashes are 10 % off."};
  plot.scatter.logarithmic = plot.scatter.equal = true;
  return plot;
}

std::string steps_page(const std::vector<Validation>& all, const Common& common) {
  PagePlot steps = plot_of("Step time", "s"), memory = plot_of("Peak memory", "GiB");
  ValidatePage page{.title = "Predicted against measured", .command = common.command, .version = common.version};
  page.sections.push_back(validation_section(all));
  for (const Validation& v : all) {
    if (!v.failure.empty()) continue;
    steps.scatter.points.push_back({v.measured.step_time_s, v.predicted.step_time_s, 0, v.name, v.name});
    memory.scatter.points.push_back({static_cast<double>(v.measured.memory.peak) / kGiB,
                                     static_cast<double>(v.predicted.memory.peak) / kGiB, 0, v.name, v.name});
    for (Section& section : validation_sections(v)) page.sections.push_back(std::move(section));
  }
  page.plots = {steps, memory};
  return validate_page(page);
}

std::string composed_page(const std::vector<Composed>& all, const Common& common) {
  PagePlot compute = plot_of("Compute time of a rank", "s");
  for (const Composed& c : all) {
    for (const ComposedRank& r : c.ranks)
      compute.scatter.points.push_back({r.measured, r.predicted, 0, c.name + ", " + r.name, ""});
  }
  return validate_page({.title = "Predicted against measured, ranks one by one",
                        .plots = {compute},
                        .sections = {composed_section(all)},
                        .command = common.command,
                        .version = common.version});
}

Outcome validate_steps(const ValidateOptions& options, const Common& common) {
  Rows<Validation> all;
  all.run(options, common, "validation.json", [&](const Ran& ran) {
    const Prediction loaded = with_measured_loads(ran.job.spec, ran.prediction, ran.runs);
    return validate(ran.job.spec, loaded, ran.runs, options.device == "cuda");
  });
  Outcome outcome{.status = all.status};
  for (const Validation& v : all.rows) {
    if (!v.failure.empty()) continue;
    if (!common.json && all.rows.size() <= 3) outcome.text += validation_text(v, common.style) + '\n';
    if (!(std::abs(v.step_error) <= options.tolerance) && outcome.status == 0) outcome.status = kOutOfTolerance;
  }
  outcome.text = common.json ? to_json(all.rows) : outcome.text + validation_table(all.rows, common.style);
  if (common.page) outcome.page = steps_page(all.rows, common);
  return outcome;
}

Outcome validate_composed(const ValidateOptions& options, const Common& common) {
  Rows<Composed> all;
  all.run(options, common, "composed.json",
          [](const Ran& ran) { return compare_composed(ran.job.spec, ran.prediction, ran.runs); });
  Outcome outcome{common.json ? to_json(all.rows) : composed_table(all.rows, common.style), all.status};
  if (common.page) outcome.page = composed_page(all.rows, common);
  for (const Composed& c : all.rows) {
    if (!(worst_compute_error(c) <= options.tolerance) && outcome.status == 0) outcome.status = kOutOfTolerance;
  }
  return outcome;
}

// The number of ranks of the first spec that can be read. A spec that cannot be read is reported later, in its own row.
std::int64_t ranks_to_measure(const ValidateOptions& options) {
  for (const std::string& path : options.specs) {
    try {
      const std::int64_t ranks = options.ranks > 0 ? options.ranks : load_spec(path, options.overrides).gpus;
      return std::clamp<std::int64_t>(ranks, 2, kMostHere);
    } catch (const Error&) {
      if (options.specs.size() == 1) throw;
    }
  }
  return 2;
}

// Validates without a given profile; for this the machine is measured first.
Outcome validate_unmeasured(ValidateOptions options, const Common& common) {
  const TemporaryFolder folder(temporary_parent());
  options.profile = folder.path() + "/machine.json";
  const Outcome calibrated = calibrate_command(
      {.out = options.profile, .ranks = ranks_to_measure(options), .quick = true, .noise = kAnyNoise}, common);
  Outcome outcome = validate_command(options, common);
  if (!common.json)
    outcome.text += fmt::format(
        "this machine was measured in short form: repetitions differ by {:.0f} % (quartiles); `orrery calibrate` and "
        "--profile do better\n",
        100 * calibrated.spread);
  return outcome;
}

// Judges tables of measured kernels, and the laws of kernels that are built in, or are fitted to these tables and
// written to a file.
Outcome validate_kernels(const ValidateOptions& options, const Common& common) {
  KernelRows rows;
  for (const std::string& path : options.kernels)
    for (const std::string& table : kernel_tables(path)) read_kernel_rows(table, rows);
  KernelLaws laws = built_in_kernel_laws();
  if (!options.fit.empty()) {
    laws = fit_kernel_laws(rows, std::move(laws), "", common.progress);
    OutputFile file(options.fit);
    file.write(to_json(laws));
    file.commit();
  }
  const LawsWithout without = laws_without_each(rows, laws, options.leave_one_out, common.progress);
  std::vector<LawErrors> judged = judge_laws(rows, laws, without);
  KernelReport report = predict_kernels(std::move(rows), common.progress);
  report.laws = std::move(judged);
  Outcome outcome{common.json ? kernels_json(report) : kernels_text(report, common.style)};
  if (common.page)
    outcome.page = validate_page({.title = "Kernels, predicted against measured",
                                  .sections = kernel_sections(report),
                                  .command = common.command,
                                  .version = common.version});
  return outcome;
}

}  // namespace

Outcome validate_command(const ValidateOptions& options, const Common& common) {
  if ((options.recipes || !options.published.empty() || !options.served.empty() || !options.kernels.empty()) &&
      !options.overrides.empty())
    throw Error("--set: published steps are predicted as they were run; leave it out, or give a SPEC", 2);
  if (options.published.empty() && (options.without_inferred || options.by != "source"))
    throw Error("--by, --without-inferred: are for published steps; give them with --published", 2);
  if (options.recipes) return validate_recipes_command(common);
  if (!options.kernels.empty()) return validate_kernels(options, common);
  if (!options.fit.empty()) throw Error("--fit: is for tables of measured kernels; give them with --kernels", 2);
  if (!options.served.empty()) return validate_served_command(options, common);
  if (!options.published.empty()) return validate_published_command(options, common);
  if (options.mark_every > 1 && options.device != "cuda")
    throw Error("--mark-every: CPU ranks time every step; leave it out, or add --device cuda", 2);
  if (options.from_steps > 0) throw Error("--from-steps: is for published steps; give them with --published", 2);
  if (options.specs.empty()) throw Error("validate: give one or more SPECs, or --published FILE");
  if (options.profile.empty() && options.device != "cuda") return validate_unmeasured(options, common);
  return options.composed ? validate_composed(options, common) : validate_steps(options, common);
}

}  // namespace orrery
