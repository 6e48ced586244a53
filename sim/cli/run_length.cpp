// `orrery run-length`: a job's failures, checkpoints and restarts over days, played many times.
#include "sim/run_length/run_length.h"
#include "models/load/load_spec.h"
#include "sim/cli/commands.h"
#include "sim/predict/long_steps.h"
#include "sim/predict/predict.h"

namespace orrery {

Outcome run_length_command(const RunLengthOptions& options, const Common& common) {
  const Spec spec = load_spec(options.spec, options.overrides);
  Spec step = spec;
  step.cluster.failures.reset();  // which are no part of a single step
  const Report report = predict_report(step, profile_for(step, options.profile));
  const LongRun run = long_run(spec, report, options.days);
  const auto plays = static_cast<std::int64_t>(options.plays);
  const RunQuantiles q = play_often(run, options.seed, plays);
  if (common.json) return {run_length_json(report, run, q, plays)};
  return {run_length_text(spec, report, run, q, plays)};
}

}  // namespace orrery
