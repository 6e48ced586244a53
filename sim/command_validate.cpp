#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "models/error.h"
#include "models/output_file.h"
#include "models/trace_file.h"
#include "sim/commands.h"
#include "sim/compose.h"
#include "sim/job.h"
#include "sim/launch.h"
#include "sim/measured_loads.h"
#include "sim/validation.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostHere = 64;  // ranks of one machine that are measured at once
constexpr double kAnyNoise = 1e9;       // a busy machine is predicted badly rather than not; how busy it was is printed

// The ranks' own files, as they were read.
void keep(const std::string& folder, const std::vector<RankRun>& runs) {
  fs::create_directories(folder);
  for (const RankRun& run : runs) write_rank_run(rank_file(folder, run.rank), run);
}

// A spec that was run, and what was predicted of it.
struct Ran {
  std::string name;
  Job job;
  Prediction prediction;
  std::vector<RankRun> runs;
};

Ran run_one(const std::string& path, const ValidateOptions& options, const Common& common) {
  const std::string name = fs::path(path).stem().string();
  Common named = common;
  named.progress = [&](std::string_view line) { common.progress(fmt::format("{}: {}", name, line)); };
  Job job = make_job({.spec = path,
                      .overrides = options.overrides,
                      .profile = options.profile,
                      .device = options.device,
                      .steps = options.steps,
                      .composed = options.composed});
  Prediction prediction = predict(job.spec, true, options.profile);
  std::vector<RankRun> runs = run_job(job, named);
  if (!options.out.empty()) keep(options.out + '/' + name, runs);
  return {name, std::move(job), std::move(prediction), std::move(runs)};
}

void write(const ValidateOptions& options, const std::string& name, const std::string& text) {
  if (options.out.empty()) return;
  OutputFile file(options.out + '/' + name);
  file.write(text);
  file.commit();
}

Outcome validate_steps(const ValidateOptions& options, const Common& common) {
  std::vector<Validation> all;
  for (const std::string& path : options.specs) {
    const Ran ran = run_one(path, options, common);
    const Prediction loaded = with_measured_loads(ran.job.spec, ran.prediction, ran.runs);
    all.push_back(validate(ran.job.spec, loaded, ran.runs, options.device == "cuda"));
    all.back().name = ran.name;
  }
  write(options, "validation.json", to_json(all));
  Outcome outcome;
  for (const Validation& v : all) {
    if (!common.json && all.size() <= 3) outcome.text += validation_text(v) + '\n';
    if (!(std::abs(v.step_error) <= options.tolerance)) outcome.status = kOutOfTolerance;
  }
  outcome.text = common.json ? to_json(all) : outcome.text + validation_table(all, common.style);
  return outcome;
}

Outcome validate_composed(const ValidateOptions& options, const Common& common) {
  std::vector<Composed> all;
  for (const std::string& path : options.specs) {
    const Ran ran = run_one(path, options, common);
    all.push_back(compare_composed(ran.job.spec, ran.prediction, ran.runs));
    all.back().name = ran.name;
  }
  write(options, "composed.json", to_json(all));
  Outcome outcome{common.json ? to_json(all) : composed_table(all, common.style)};
  for (const Composed& c : all) {
    if (!(worst_compute_error(c) <= options.tolerance)) outcome.status = kOutOfTolerance;
  }
  return outcome;
}

// On a machine that nobody has measured yet.
Outcome validate_unmeasured(ValidateOptions options, const Common& common) {
  const TemporaryFolder folder(short_temporary());
  options.profile = folder.path() + "/machine.json";
  const std::int64_t ranks = load_spec(options.specs.front(), options.overrides).gpus;
  const Outcome calibrated = calibrate_command({.out = options.profile,
                                                .ranks = std::clamp<std::int64_t>(ranks, 2, kMostHere),
                                                .quick = true,
                                                .noise = kAnyNoise},
                                               common);
  Outcome outcome = validate_command(options, common);
  if (!common.json)
    outcome.text += fmt::format(
        "this machine was measured in short form: repetitions differ by {:.0f} % (quartiles); `orrery calibrate` and "
        "--profile do better\n",
        100 * calibrated.spread);
  return outcome;
}

}  // namespace

Outcome validate_command(const ValidateOptions& options, const Common& common) {
  if ((options.recipes || !options.published.empty()) && !options.overrides.empty())
    throw Error("--set: published steps are predicted as they were run; leave it out, or give a SPEC", 2);
  if (options.recipes) return validate_recipes_command(common);
  if (!options.published.empty()) return validate_published_command(options, common);
  if (options.specs.empty()) throw Error("validate: give one or more SPECs, or --published FILE");
  if (options.profile.empty() && options.device != "cuda") return validate_unmeasured(options, common);
  return options.composed ? validate_composed(options, common) : validate_steps(options, common);
}

}  // namespace orrery
