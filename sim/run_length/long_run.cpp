#include <algorithm>
#include <set>

#include "models/partition/job_places.h"
#include "models/spec/uplink_rates.h"
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

static std::set<std::int64_t> nodes_of_job(const Spec& spec) {
  const Cluster& c = spec.cluster;
  const std::vector<std::int64_t> places = places_of(c, c.gpus_per_node);
  std::set<std::int64_t> nodes;
  for (std::int64_t node = 0; node < ceil_div(spec.gpus, static_cast<std::int64_t>(c.gpus_per_node)); ++node)
    nodes.insert(node < std::ssize(places) ? places[node] : node);
  return nodes;
}

// Whether a fault strikes a node, leaf or plane of the job.
static bool strikes(const LinkFault& f, const Network& n, const std::set<std::int64_t>& nodes) {
  if (f.node >= 0) return nodes.contains(f.node);
  return f.leaf < 0 || std::ranges::any_of(nodes, [&](std::int64_t node) { return node / n.leaf_nodes == f.leaf; });
}

// Whether nothing moves, some of the job's nodes have no plane left in common, or a leaf has no uplink.
static bool stops(const TimedFault& t, const Network& n, const std::set<std::int64_t>& nodes) {
  if (t.stops) return true;
  Network broken = n;
  broken.faults.push_back(t.fault);
  if (t.fault.link >= 0) return uplink_rates(broken, t.fault.leaf).empty();
  return t.fault.plane >= 0 && common_planes(broken, nodes, true) == 0;
}

std::vector<std::optional<Spec>> with_timed_faults(const Spec& spec) {
  std::vector<std::optional<Spec>> specs;
  if (!spec.cluster.network) return specs;
  const Network& n = *spec.cluster.network;
  const std::set<std::int64_t> nodes = nodes_of_job(spec);
  for (const TimedFault& t : n.timed_faults) {
    std::optional<Spec>& slow = specs.emplace_back();
    if (!strikes(t.fault, n, nodes) || stops(t, n, nodes)) continue;
    slow = spec;
    slow->cluster.network->timed_faults.clear();
    slow->cluster.network->faults.push_back(t.fault);
  }
  return specs;
}

// Transfers over a link that is down wait until they are resent, and fail if that is too long. A spare node takes the
// place of one that fails, but not of a whole leaf.
static std::vector<LongRun::Fault> faults_of_run(const Spec& spec, Seconds step, const std::vector<Seconds>& slowed) {
  std::vector<LongRun::Fault> faults;
  if (!spec.cluster.network) return faults;
  const Network& n = *spec.cluster.network;
  const std::set<std::int64_t> nodes = nodes_of_job(spec);
  const bool spare = spec.cluster.failures.value_or(Failures{}).spares != 0;
  for (std::size_t i = 0; i < n.timed_faults.size(); ++i) {
    const TimedFault& t = n.timed_faults[i];
    if (!strikes(t.fault, n, nodes)) continue;
    LongRun::Fault& fault =
        faults.emplace_back(LongRun::Fault{.what = name_of(t.fault), .from = t.from_s, .until = t.until_s});
    if (!stops(t, n, nodes)) {
      const Seconds slow = i < slowed.size() ? slowed[i] : 0;
      fault.lost = slow > step ? 1 - step / slow : 0;
      continue;
    }
    const bool whole_node = t.fault.node >= 0 && t.fault.nic < 0 && t.fault.plane < 0;
    fault.ends = whole_node || t.until_s - t.from_s > kMostResends * kResend_s;
    fault.lost = 1;
    if (!fault.ends) fault.until = t.from_s + held_by_flap(t.until_s - t.from_s);
    if (fault.ends && spare && t.fault.node >= 0) fault.until = fault.from;
  }
  std::ranges::stable_sort(faults, {}, &LongRun::Fault::from);
  return faults;
}

LongRun long_run(const Spec& spec, const Report& report, double days, Seconds slowed_step,
                 const std::vector<Seconds>& fault_steps) {
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
  run.faults = faults_of_run(spec, report.step_time_s, fault_steps);
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
