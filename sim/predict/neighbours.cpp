#include "sim/predict/neighbours.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "models/partition/job_places.h"

namespace orrery {
namespace {

constexpr std::string_view kNeighboursKey = "cluster.network.neighbours.jobs";
// Shares settle within 1 % in three or four rounds; more than kMostShareRounds are not tried.
constexpr int kMostShareRounds = 10;
constexpr double kSameStep = 1e-3;

[[noreturn]] void fail_neighbours(const Spec& spec, const std::string& what) {
  throw Error(with_place(spec, fmt::format("{}: {}", kNeighboursKey, what)));
}

// The nodes of the cluster in the order in which a job's placement takes them.
std::vector<std::int64_t> placement_order(const Cluster& c) {
  std::vector<std::int64_t> order = places_of(c, c.gpus_per_node);
  if (!order.empty()) return order;
  order.resize(static_cast<std::size_t>(c.nodes));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

void take_nodes(NeighbourJob& job, std::set<std::int64_t>& taken, const Spec& first) {
  const Cluster& c = job.spec.cluster;
  const std::int64_t needed = ceil_div(job.spec.gpus, static_cast<std::int64_t>(c.gpus_per_node));
  for (const std::int64_t node : placement_order(c)) {
    if (std::ssize(job.nodes) < needed && taken.insert(node).second) job.nodes.push_back(node);
  }
  if (std::ssize(job.nodes) < needed)
    fail_neighbours(first, fmt::format("{} needs {} nodes, {} are left of {}; give the cluster more (cluster.nodes)",
                                       job.path, needed, job.nodes.size(), c.nodes));
}

// The other job's spec on the cluster of the first one, with its own placement.
Spec on_cluster_of(const Spec& first, const std::string& path) {
  Spec spec = load_spec(path);
  require_training(spec);
  const Cluster &mine = first.cluster, own = spec.cluster;
  if (own.gpus_per_node != mine.gpus_per_node || own.nics != mine.nics || own.nic_Gbps != mine.nic_Gbps)
    fail_neighbours(
        first, fmt::format("{} has nodes of {} GPUs and {} NICs of {:g} Gb/s, this spec of {}, {} and {:g}", path,
                           own.gpus_per_node, own.nics, own.nic_Gbps, mine.gpus_per_node, mine.nics, mine.nic_Gbps));
  spec.cluster.nodes = mine.nodes;
  spec.cluster.network = mine.network;
  spec.cluster.oversubscribed_above_gpus = mine.oversubscribed_above_gpus;
  spec.cluster.oversubscription = mine.oversubscription;
  spec.cluster.network->placement = own.network ? own.network->placement : Placement::contiguous;
  spec.cluster.network->job_nodes = own.network ? own.network->job_nodes : std::vector<std::int64_t>();
  for (const std::int64_t node : spec.cluster.network->job_nodes) {
    if (node >= mine.nodes)
      fail_neighbours(first, fmt::format("{} has node {}, the cluster {}", path, node, mine.nodes));
  }
  return spec;
}

// The numbers of nodes that share uplinks, level by level. Sites have links without a load.
std::vector<std::int64_t> domain_nodes(const Network& n, std::int64_t nodes) {
  std::vector<std::int64_t> sizes;
  if (n.leaf_nodes > 0) sizes.push_back(n.leaf_nodes);
  if (n.leaf_nodes > 0 && n.spine_leaves > 1) sizes.push_back(n.leaf_nodes * std::min(n.spine_leaves, nodes));
  for (const SpineLevel& level : n.upper_spine) sizes.push_back(n.leaf_nodes * std::min(level.leaves, nodes));
  if (has_groups(n.kind)) sizes.push_back(n.leaf_nodes * std::min(n.groups.leaves, nodes));
  return sizes;
}

// The share of a job's use of uplinks that another job meets: in the domain of which they share most, the nodes that
// the job has there over the most that it has in any domain. Nothing of a job that is in one domain leaves it.
double meeting(const NeighbourJob& of, const NeighbourJob& other) {
  double most = 0;
  for (const std::int64_t size : domain_nodes(*of.spec.cluster.network, of.spec.cluster.nodes)) {
    std::map<std::int64_t, double> own;
    std::set<std::int64_t> others;
    for (const std::int64_t node : of.nodes) ++own[node / size];
    for (const std::int64_t node : other.nodes) others.insert(node / size);
    if (own.size() < 2 || others.size() < 2) continue;
    double largest = 0, shared = 0;
    for (const auto& [domain, nodes] : own) {
      largest = std::max(largest, nodes);
      if (others.contains(domain)) shared = std::max(shared, nodes);
    }
    if (largest > 0) most = std::max(most, shared / largest);
  }
  return most;
}

double use_of_uplinks(const Prediction& p) {
  double most = 0;
  for (std::uint32_t s = 0; s < p.plan.classes.size(); ++s) {
    double used = 0;
    for (TaskId t = p.plan.classes[s].begin; t < p.plan.classes[s].end; ++t) {
      const Span& span = p.trace.spans[t];
      const Rate rate = p.costs.timing.of(s, p.plan.tasks[t].op).uplink;
      used += static_cast<double>(rate) / static_cast<double>(kFullRate) * seconds(span.ended - span.matched);
    }
    most = std::max(most, used / seconds(p.trace.step_time));
  }
  return std::min(most, 1.0);
}

// The share of a job's uplinks that the others take: each what it needs, the least first, but no more than an equal
// part of what is left for it and for those that need more, among which is the job itself.
double load_on(const NeighbourJob& job, const std::vector<NeighbourJob>& jobs) {
  std::vector<double> needs;
  for (const NeighbourJob& other : jobs) {
    const double need = &other == &job ? 0 : other.use * meeting(other, job);
    if (need > 0) needs.push_back(need);
  }
  std::sort(needs.begin(), needs.end());
  double left = 1;
  for (std::size_t i = 0; i < needs.size(); ++i)
    left -= std::min(needs[i], left / static_cast<double>(needs.size() - i + 1));
  return 1 - left;
}

}  // namespace

std::vector<NeighbourJob> neighbours_of(const Spec& spec, const Profile& profile, const std::atomic<bool>* stop) {
  const Network& n = *spec.cluster.network;
  if (spec.cluster.nvlink_domain > spec.cluster.gpus_per_node || n.kind == NetworkKind::torus ||
      n.kind == NetworkKind::graph)
    fail_neighbours(
        spec, "not built yet on a torus or a graph, and where NVLink domains span nodes; give cluster.network.load");
  if (spec.generation) fail_neighbours(spec, "not built yet for generated text; give cluster.network.load");
  std::vector<NeighbourJob> jobs = {{.path = "this spec", .spec = spec, .profile = profile}};
  for (const std::string& path : n.jobs) {
    jobs.push_back({.path = path, .spec = on_cluster_of(spec, path)});
    jobs.back().profile = profile_for(jobs.back().spec, "");
  }
  std::set<std::int64_t> taken;
  for (NeighbourJob& job : jobs) {
    take_nodes(job, taken, spec);
    Network& own = *job.spec.cluster.network;
    own.jobs.clear();
    own.placement = Placement::listed;
    own.job_nodes = job.nodes;
  }
  for (int round = 0; round < kMostShareRounds; ++round) {
    double moved = 0;
    for (NeighbourJob& job : jobs) {
      const Prediction p = predict(job.spec, job.profile, false, stop);
      moved = std::max(moved, std::abs(p.report.step_time_s / std::max(job.step, 1e-12) - 1));
      job.step = p.report.step_time_s;
      if (round == 0) job.alone = job.step;
      job.use = use_of_uplinks(p) * (1 - job.spec.cluster.network->load);  // of all of the uplinks
    }
    if (moved < kSameStep || round + 1 == kMostShareRounds) break;
    for (NeighbourJob& job : jobs) job.spec.cluster.network->load = 1 - (1 - n.load) * (1 - load_on(job, jobs));
  }
  return jobs;
}

Prediction predict_among_neighbours(const Spec& spec, Profile profile, bool unfolded, const std::atomic<bool>* stop) {
  const std::vector<NeighbourJob> jobs = neighbours_of(spec, profile, stop);
  Prediction p = predict(jobs.front().spec, std::move(profile), unfolded, stop);
  for (const NeighbourJob& job : jobs)
    p.report.remarks.push_back(
        fmt::format("{}: {} takes {:.3g} s a step, {:.1f} % longer than alone, on nodes {} to {}; it uses {:.0f} % of "
                    "its uplinks' rate on average",
                    kNeighboursKey, job.path, job.step, 100 * (job.step / job.alone - 1),
                    *std::min_element(job.nodes.begin(), job.nodes.end()),
                    *std::max_element(job.nodes.begin(), job.nodes.end()), 100 * job.use));
  return p;
}

}  // namespace orrery
