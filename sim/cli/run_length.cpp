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
  const std::optional<Spec> broken = without_a_switch(step);
  const Seconds slowed = broken ? predict_report(*broken, profile_for(step, options.profile)).step_time_s : 0;
  std::vector<LongRun::Fault> faults;
  for (FaultOfRun& f : timed_faults_of(step)) {
    const Seconds time = f.slow ? predict_report(*f.slow, profile_for(step, options.profile)).step_time_s : 0;
    if (time > report.step_time_s) f.fault.lost = 1 - report.step_time_s / time;
    faults.push_back(std::move(f.fault));
  }
  const LongRun run = long_run(spec, report, options.days, slowed, std::move(faults));
  const auto plays = static_cast<std::int64_t>(options.plays);
  const RunQuantiles q = play_often(run, options.seed, plays);
  if (common.json) return {run_length_json(report, run, q, plays)};
  return {run_length_text(spec, report, run, q, plays)};
}

}  // namespace orrery
