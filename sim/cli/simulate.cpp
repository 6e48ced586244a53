#include "models/load/load_spec.h"
#include "sim/cli/commands.h"
#include "sim/export/chrome_trace.h"
#include "sim/predict/long_steps.h"
#include "sim/predict/predict.h"
#include "sim/report/gantt.h"
#include "sim/report/report_text.h"

namespace orrery {

Outcome simulate_command(const SimulateOptions& options, const Common& common) {
  const Spec spec = load_spec(options.spec, options.overrides);
  const bool draws = options.timeline && !common.json;
  Outcome outcome;
  const auto say = [&](const Report& report) {
    outcome.text = common.json ? to_json(report) : report_text(spec, report, common.style);
    if (options.require_fit && !report.memory.fits) outcome.status = kDoesNotFit;
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
  if (draws) outcome.text += "\n" + gantt(p.plan, p.trace);
  return outcome;
}

}  // namespace orrery
