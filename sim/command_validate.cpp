#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "models/error.h"
#include "models/output_file.h"
#include "models/trace_file.h"
#include "sim/commands.h"
#include "sim/job.h"
#include "sim/validation.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// The ranks' own files, as they were read.
void keep(const std::string& folder, const std::vector<RankRun>& runs) {
  fs::create_directories(folder);
  for (const RankRun& run : runs) write_rank_run(rank_file(folder, run.rank), run);
}

Validation validate_one(const std::string& path, const ValidateOptions& options, const Common& common) {
  const std::string name = fs::path(path).stem().string();
  Common named = common;
  named.progress = [&](std::string_view line) { common.progress(fmt::format("{}: {}", name, line)); };
  const Job job =
      make_job({.spec = path, .overrides = options.overrides, .profile = options.profile, .steps = options.steps});
  const Prediction prediction = predict(job.spec, true, options.profile);
  const std::vector<RankRun> runs = run_job(job, named);
  if (!options.out.empty()) keep(options.out + '/' + name, runs);
  Validation v = validate(job.spec, prediction, runs);
  v.name = name;
  return v;
}

}  // namespace

Outcome validate_command(const ValidateOptions& options, const Common& common) {
  if (!options.published.empty()) return validate_published_command(options, common);
  if (options.specs.empty()) throw Error("validate: give one or more SPECs, or --published FILE");
  if (options.profile.empty()) throw Error("--profile is required");
  std::vector<Validation> all;
  for (const std::string& path : options.specs) all.push_back(validate_one(path, options, common));
  if (!options.out.empty()) {
    OutputFile file(options.out + "/validation.json");
    file.write(to_json(all));
    file.commit();
  }
  Outcome outcome;
  for (const Validation& v : all) {
    if (!common.json && all.size() <= 3) outcome.text += validation_text(v) + '\n';
    if (!(std::abs(v.step_error) <= options.tolerance)) outcome.status = kOutOfTolerance;
  }
  outcome.text = common.json ? to_json(all) : outcome.text + validation_table(all, common.style);
  return outcome;
}

}  // namespace orrery
