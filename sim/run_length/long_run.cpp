#include <algorithm>
#include <set>
#include <utility>

#include "models/partition/job_places.h"
#include "sim/report/goodput.h"
#include "sim/run_length/run_length.h"

namespace orrery {

std::optional<Spec> without_a_switch(const Spec& spec) {
  const auto& network = spec.cluster.network;
  if (!network || network->planes < 2 || network->leaf_nodes == 0) return std::nullopt;
  const std::vector<std::int64_t> places = places_of(spec.cluster, spec.cluster.gpus_per_node);
  const std::int64_t node = places.empty() ? 0 : places.front();
  std::set<std::int64_t> nodes = {node};
  for (const LinkFault& f : network->faults)
    nodes.insert(f.node >= 0 ? f.node : std::max<std::int64_t>(0, f.leaf) * network->leaf_nodes);
  for (std::int64_t plane = 0; plane < network->planes; ++plane) {
    Spec broken = spec;
    broken.cluster.network->faults.push_back({.leaf = node / network->leaf_nodes, .plane = plane});
    const std::int64_t left = common_planes(*broken.cluster.network, nodes, true);
    if (left > 0 && left < common_planes(*network, nodes, true)) return broken;
  }
  return std::nullopt;
}

LongRun long_run(const Spec& spec, const Report& report, double days, Seconds slowed_step,
                 std::vector<LongRun::Fault> faults) {
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
  run.faults = std::move(faults);
  if (const auto& network = spec.cluster.network) {
    run.between_flaps = network->flap_every_s;
    const Fabric fabric = spec.cluster.fabric;
    const bool timers = fabric == Fabric::infiniband || fabric == Fabric::roce;
    run.flap = timers ? held_by_flap(network->flap_down_s) : network->flap_down_s;
  }
  if (slowed_step > 0 && run.between_failures > 0) {
    run.between_lost_planes = run.between_failures / share_of_switches();
    run.slowed_share = std::max(0.0, 1 - report.step_time_s / slowed_step);
    run.between_failures /= 1 - share_of_switches();
    plan.between_failures = run.between_failures;
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
