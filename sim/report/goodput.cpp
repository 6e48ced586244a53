#include "sim/report/goodput.h"

#include <algorithm>
#include <cmath>

#include "models/spec/vision.h"
#include "sim/report/checkpoint.h"

namespace orrery {

Seconds best_interval(const FailurePlan& plan) {
  const double m = plan.between_failures, d = plan.checkpoint.value_or(0);
  if (m <= 0) return 0;
  if (d >= 2 * m) return m;
  const double ratio = std::sqrt(d / (2 * m));
  return std::sqrt(2 * d * m) * (1 + ratio / 3 + ratio * ratio / 9) - d;
}

double goodput(const FailurePlan& plan) {
  const double m = plan.between_failures, checkpoint = plan.checkpoint.value_or(0), restart = plan.restart.value_or(0);
  if (m <= 0) return plan.interval > 0 ? plan.interval / (plan.interval + checkpoint) : 1;
  const double interval = plan.interval > 0 ? plan.interval : best_interval(plan);
  // The best interval is 0 if a checkpoint takes no time to write: then a failure costs only the restart.
  if (interval <= 0) return std::exp(-restart / m);
  return interval / (m * std::exp(restart / m) * std::expm1((interval + checkpoint) / m));
}

FailurePlan failure_plan(const Cluster& cluster, std::int64_t nodes, double checkpoint_bytes, Seconds step) {
  const Failures failures = cluster.failures.value_or(Failures{});
  FailurePlan plan;
  plan.between_failures = failures.node_mtbf_hours * 3600 / static_cast<double>(std::max<std::int64_t>(1, nodes));
  if (failures.restart_s > 0) plan.restart = failures.restart_s;
  plan.interval = static_cast<double>(failures.checkpoint_every) * step;
  const std::optional<Store>& disks = store_of(cluster, MemoryTier::nvme);
  if (disks && disks->write_GBps > 0)
    plan.checkpoint = checkpoint_bytes / static_cast<double>(nodes) / (disks->write_GBps * 1e9);
  return plan;
}

double checkpoint_bytes(const Spec& spec) {
  return static_cast<double>(parameter_count(spec.model, spec.sequence) + vision_parameter_count(spec.model)) *
         static_cast<double>(checkpoint_width(spec));
}

}  // namespace orrery
