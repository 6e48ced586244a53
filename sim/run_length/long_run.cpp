#include <algorithm>

#include "sim/report/goodput.h"
#include "sim/run_length/run_length.h"

namespace orrery {

LongRun long_run(const Spec& spec, const Report& report, double days) {
  const std::int64_t in_node = std::min<std::int64_t>(spec.gpus, std::max(1, spec.cluster.gpus_per_node));
  const Failures failures = spec.cluster.failures.value_or(Failures{});
  FailurePlan plan =
      failure_plan(spec.cluster, ceil_div(spec.gpus, in_node), checkpoint_bytes(spec), report.step_time_s);
  LongRun run;
  run.length = days * 24 * 3600;
  run.between_failures = plan.between_failures;
  run.detection = failures.detect_s;
  run.restart = plan.restart.value_or(0);
  run.repair = failures.repair_hours * 3600;
  run.spares = failures.spares;
  if (const auto& network = spec.cluster.network) {
    run.between_flaps = network->flap_every_s;
    const Fabric fabric = spec.cluster.fabric;
    const bool timers = fabric == Fabric::infiniband || fabric == Fabric::roce;
    run.flap = timers ? held_by_flap(network->flap_down_s) : network->flap_down_s;
  }
  run.stall = plan.checkpoint.value_or(0);
  if (report.checkpoint) {
    run.stall = report.checkpoint->stall;
    run.writing = spec.strategy.checkpoint->asynchronous ? report.checkpoint->writing : 0;
    plan.interval = static_cast<double>(spec.strategy.checkpoint->every) * report.step_time_s;
  }
  plan.checkpoint = run.stall;
  run.interval = plan.interval > 0 ? plan.interval : best_interval(plan);
  return run;
}

}  // namespace orrery
