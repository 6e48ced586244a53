#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "models/base/data.h"
#include "models/base/names.h"
#include "models/load/load_spec.h"
#include "models/spec/recipes.h"
#include "sim/advice/first_answer.h"
#include "sim/advice/fitting.h"
#include "sim/advice/save_spec.h"
#include "sim/cli/commands.h"
#include "sim/export/chrome_trace.h"
#include "sim/generate/generate.h"
#include "sim/predict/long_steps.h"
#include "sim/predict/predict.h"
#include "sim/report/gantt.h"
#include "sim/report/report_text.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// Whether a file with this name exists. The answer is no, not an error, for a text that cannot be a file name.
bool is_there(const std::string& name) {
  std::error_code unknown;
  return fs::exists(name, unknown);
}

// The spec to simulate: the one that is given, or one made from a given model and machines (--on).
FirstAnswer spec_of(const SimulateOptions& o, const Common& common) {
  const bool model = names_a_model(o.spec);
  const std::vector<std::string_view> recipes = recipe_names();
  const bool spec = is_there(o.spec) || std::find(recipes.begin(), recipes.end(), o.spec) != recipes.end();
  if (!o.on.empty() && !model && !spec && o.spec.ends_with(".json"))
    throw Error(fmt::format("{}: no such file, and no built-in model (orrery list models)", o.spec));
  if (!o.on.empty() && !model && !spec) throw Error(unknown_name("model", o.spec, data_names("models")));
  if (!o.on.empty() && !model)
    throw Error(
        fmt::format("{}: --on goes with a model (built in, a config.json, or its folder), not with a spec, which "
                    "has its cluster",
                    o.spec));
  if (!o.on.empty()) return first_answer(o.spec, o.on, o.overrides, common.threads, nullptr);
  if (model) throw Error(fmt::format("{}: is a model and no spec; say on what it is trained: --on 2xdgx-h100", o.spec));
  return {read_spec_text(o.spec), {}};
}

void save(const std::string& path, const FirstAnswer& made, const std::vector<std::string>& overrides) {
  std::vector<std::string> comment = {fmt::format("{}, by orrery simulate --save", made.spec.path)};
  comment.insert(comment.end(), made.chosen.begin(), made.chosen.end());
  save_spec(path, comment, made.spec, overrides);
}

// The lines on what was chosen for the user, printed before the report.
std::string chosen_text(const FirstAnswer& made, const Style& style) {
  if (made.chosen.empty()) return "";
  std::string text = heading("chosen", style) + "\n";
  for (const std::string& line : made.chosen) text += fmt::format("  {}\n", line);
  return text + "\n";
}

}  // namespace

Outcome simulate_command(const SimulateOptions& options, const Common& common) {
  const FirstAnswer made = spec_of(options, common);
  const Spec spec = parse_spec(made.spec.text, made.spec.path, options.overrides);
  if (!options.save.empty()) save(options.save, made, options.overrides);
  const bool draws = options.timeline && !common.json;
  Outcome outcome;
  if (spec.generation) {
    const GenerationReport report = predict_generation(spec, profile_for(spec, options.profile));
    if (options.require_fit && !report.memory.fits()) outcome.status = kDoesNotFit;
    outcome.text = common.json ? to_json(spec, report) : generation_text(spec, report, common.style);
    return outcome;
  }
  const auto say = [&](const Report& report) {
    if (options.require_fit && !report.memory.fits) outcome.status = kDoesNotFit;
    outcome.text =
        common.json ? to_json(report) : chosen_text(made, common.style) + report_text(spec, report, common.style);
    if (common.json || report.memory.fits) return;
    common.progress("looking for changes that fit");
    const auto changes = fitting_changes(made.spec, options.overrides, options.profile);
    if (!changes.empty()) outcome.text += "\n" + fitting_text(changes, report.step_time_s, common.style);
  };
  if (options.trace.empty() && !draws && !options.unfold) {
    say(predict_report(spec, profile_for(spec, options.profile)));
    return outcome;
  }
  const Prediction p = predict(spec, options.unfold, options.profile);
  if (!options.trace.empty())
    write_chrome_trace(options.trace, p.plan, p.trace, memory_samples(spec, p.plan, p.costs, p.trace, p.profile),
                       {.device = spec.cluster.gpu.name, .steps = p.plan.steps == 1 ? spec.steps : 1});
  say(p.report);
  if (draws) outcome.text += "\n" + gantt(p.plan, p.trace, gantt_columns(p.plan, common.style.columns));
  return outcome;
}

}  // namespace orrery
