#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "models/base/data.h"
#include "models/base/names.h"
#include "models/load/load_spec.h"
#include "models/spec/recipes.h"
#include "sim/advice/advice.h"
#include "sim/advice/first_answer.h"
#include "sim/advice/fitting.h"
#include "sim/advice/machines.h"
#include "sim/advice/run_cost.h"
#include "sim/advice/save_spec.h"
#include "sim/cli/commands.h"
#include "sim/explain/techniques.h"
#include "sim/export/chrome_trace.h"
#include "sim/generate/generate.h"
#include "sim/generate/generated_steps.h"
#include "sim/page/generate.h"
#include "sim/page/simulate.h"
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

// The spec to simulate: the one that is given, or one made from the given model and machines (--on).
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

// The lines on the values of the spec that were chosen for the user, such as the batch; they are printed before the
// report.
std::string chosen_text(const FirstAnswer& made, const Style& style) {
  if (made.chosen.empty()) return "";
  std::string text = heading("chosen", style) + "\n";
  for (const std::string& line : made.chosen) text += fmt::format("  {}\n", line);
  return text + "\n";
}

SpecNotes spec_notes(const FirstAnswer& made, const SimulateOptions& options, const Common& common) {
  return {made.spec, options.overrides, made.chosen, common.command, common.version};
}

// Writes the trace and draws the timeline of a generation's first passes, as far as these are asked for.
Outcome with_timeline(const Spec& spec, const SimulateOptions& options, const Common& common, Outcome outcome) {
  const std::vector<GenerationPass> passes = shown_passes(spec);
  const Prediction p = predict_passes(spec, profile_for(spec, options.profile), passes);
  if (!options.trace.empty()) {
    Spec once = spec;
    once.steps = 1;
    write_chrome_trace(
        options.trace, p.plan, p.trace, memory_samples(once, p.plan, p.costs, p.trace, p.profile),
        {.device = spec.cluster.gpu.name, .passes = names_of(spec, passes), .cache = cache_use(spec, p.plan, passes)});
  }
  if (options.timeline && !common.json)
    outcome.text += "\n" + gantt(p.plan, p.trace, gantt_columns(p.plan, common.style.columns));
  if (const std::string cut = cut_remark(spec, passes); !cut.empty()) outcome.log += cut + '\n';
  return outcome;
}

Outcome generate(const Spec& spec, const FirstAnswer& made, const SimulateOptions& options, const Common& common) {
  Outcome outcome;
  const GenerationReport report = predict_generation(spec, profile_for(spec, options.profile));
  if (options.require_fit && !report.memory.fits()) outcome.status = kDoesNotFit;
  if (options.unfold)
    throw Error(with_place(spec, "spec: workload: generate: --unfold is for training steps; leave it out"));
  if (!options.trace.empty() || (options.timeline && !common.json))
    outcome = with_timeline(spec, options, common, outcome);
  outcome.text = (common.json ? to_json(spec, report)
                              : chosen_text(made, common.style) + generation_text(spec, report, common.style)) +
                 outcome.text;
  if (common.page) {
    const std::vector<GenerationPass> passes = shown_passes(spec);
    const Prediction first = predict_passes(spec, profile_for(spec, options.profile), passes);
    outcome.page = generation_page(spec, report, first, cut_remark(spec, passes), spec_notes(made, options, common));
  }
  return outcome;
}

std::vector<std::string> price_lines(const Spec& spec, const Report& report) {
  const PriceList prices = load_prices({});
  const Price* price = prices.find(spec.cluster.gpu.id);
  if (price == nullptr) return {};
  std::vector<std::string> lines = {price_line(*price)};
  if (price->cloud)
    lines.push_back(
        fmt::format("rent of these GPUs: {} $ an hour", grouped(*price->cloud * static_cast<double>(spec.gpus))));
  if (const RunCost cost = run_cost(spec, 0, report.tokens_per_s, report.step_time_s, prices); cost.usd_per_Mtoken)
    lines.push_back(
        fmt::format("rent of a million tokens: {:.3g} $, failures of nodes included", *cost.usd_per_Mtoken));
  lines.push_back(fmt::format("prices of {}; they vary several times between providers", prices.date));
  return lines;
}

// The changes that the HTML page advises. To find them, each technique that the step uses or could use, and each rate
// of the machine, is changed alone and simulated.
StepAdvice advice_on(const Spec& spec, const Prediction& p, const Common& common) {
  constexpr std::size_t kShown = 3;
  constexpr double kWorthNaming = 0.002;  // least share of a token's time that an advised change must save
  StepAdvice advice;
  common.progress("simulating changes for the page");
  std::vector<Effect> changes = effects(p.profile, p.report, techniques(spec), common.threads);
  std::erase_if(changes, [](const Effect& e) { return !e.refused.empty(); });
  advice.tried = changes.size();
  std::erase_if(changes, [](const Effect& e) { return !e.fits || e.slower > -kWorthNaming; });
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Effect& a, const Effect& b) { return a.slower < b.slower; });
  for (std::size_t i = 0; i < std::min(kShown, changes.size()); ++i) {
    const Technique& t = changes[i].technique;
    advice.strategy.push_back(t.used ? fmt::format("{}, {}", t.name, text_of(changes[i])) : text_of(changes[i]));
  }
  for (Sensitivity& s : sensitivities(spec, p.profile)) {
    // A changed step that does not fit in memory is blamed on the change only if the unchanged step fits.
    s.fits = s.fits || !p.report.memory.fits;
    if (advice.machine.size() < kShown && s.faster > kWorthNaming) advice.machine.push_back(lever_text(s));
  }
  advice.prices = price_lines(spec, p.report);
  return advice;
}

Outcome train(const Spec& spec, const FirstAnswer& made, const SimulateOptions& options, const Common& common) {
  const bool draws = options.timeline && !common.json;
  Outcome outcome;
  std::vector<FittingChange> fitting;
  const auto say = [&](const Report& report) {
    if (options.require_fit && !report.memory.fits) outcome.status = kDoesNotFit;
    outcome.text =
        common.json ? to_json(report) : chosen_text(made, common.style) + report_text(spec, report, common.style);
    if (report.memory.fits || (common.json && !common.page)) return;
    common.progress("looking for changes that fit");
    fitting = fitting_changes(made.spec, options.overrides, options.profile);
    if (!fitting.empty() && !common.json)
      outcome.text += "\n" + fitting_text(fitting, report.step_time_s, common.style);
  };
  if (options.trace.empty() && !draws && !options.unfold && !common.page) {
    say(predict_report(spec, profile_for(spec, options.profile)));
    return outcome;
  }
  const Prediction p = predict(spec, options.unfold, options.profile);
  if (!options.trace.empty())
    write_chrome_trace(options.trace, p.plan, p.trace, memory_samples(spec, p.plan, p.costs, p.trace, p.profile),
                       {.device = spec.cluster.gpu.name, .steps = p.plan.steps == 1 ? spec.steps : 1});
  say(p.report);
  if (draws) outcome.text += "\n" + gantt(p.plan, p.trace, gantt_columns(p.plan, common.style.columns));
  if (common.page) {
    StepAdvice advice = advice_on(spec, p, common);
    advice.fitting = fitting_table(fitting, p.report.step_time_s);
    outcome.page = simulate_page(spec, p, advice, spec_notes(made, options, common));
  }
  return outcome;
}

}  // namespace

Outcome simulate_command(const SimulateOptions& options, const Common& common) {
  const FirstAnswer made = spec_of(options, common);
  const Spec spec = parse_spec(made.spec.text, made.spec.path, options.overrides);
  if (!options.save.empty()) save(options.save, made, options.overrides);
  return spec.generation ? generate(spec, made, options, common) : train(spec, made, options, common);
}

}  // namespace orrery
