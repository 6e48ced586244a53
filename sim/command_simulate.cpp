#include "sim/chrome_trace.h"
#include "sim/commands.h"
#include "sim/gantt.h"
#include "sim/live_memory.h"
#include "sim/predict.h"
#include "sim/report_text.h"

namespace orrery {

Outcome simulate_command(const SimulateOptions& options, const Common& common) {
  const Spec spec = load_spec(options.spec, options.overrides);
  const Prediction p = predict(spec, options.unfold, options.profile);
  if (!options.trace.empty()) {
    write_chrome_trace(options.trace, p.plan, p.trace, live_memory(p.plan, p.trace), {.device = spec.cluster.gpu.name});
  }
  Outcome outcome;
  outcome.text = common.json ? to_json(p.report) : report_text(spec, p.report, common.style);
  if (options.timeline && !common.json) outcome.text += "\n" + gantt(p.plan, p.trace);
  if (options.require_fit && !p.report.memory.fits) outcome.status = kDoesNotFit;
  return outcome;
}

}  // namespace orrery
