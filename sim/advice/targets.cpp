#include "sim/advice/targets.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"

namespace orrery {
namespace {

std::string plane_fault_of(const LinkFault& f) {
  std::string text = fmt::format("{{plane: {}", f.plane);
  if (f.node >= 0) text += fmt::format(", node: {}", f.node);
  if (f.leaf >= 0) text += fmt::format(", leaf: {}", f.leaf);
  return text + "}";
}

std::string faults_of(const Network& n) {
  if (n.fault_share > 0) return fmt::format(", faults: {{share: {}, Gbps: {}}}", n.fault_share, n.fault_Gbps);
  std::vector<std::string> faults;
  for (const LinkFault& f : n.faults)
    faults.push_back(f.plane >= 0  ? plane_fault_of(f)
                     : f.node >= 0 ? fmt::format("{{node: {}, Gbps: {}}}", f.node, f.Gbps)
                                   : fmt::format("{{leaf: {}, uplinks: {}}}", f.leaf, f.uplinks));
  return faults.empty() ? "" : fmt::format(", faults: [{}]", fmt::join(faults, ", "));
}

// The spec's network as a map of a spec, with uplinks as fast as the NICs of the nodes that it joins.
std::string network_of(const Network& n) {
  std::string text = fmt::format("seed: {}", n.seed);
  if (n.kind == NetworkKind::torus)
    text += fmt::format(", kind: torus, torus: {{shape: [{}], wraps: {}}}, load: {}", fmt::join(n.torus.shape, ", "),
                        n.torus.wraps, n.load);
  if (n.kind == NetworkKind::graph)
    throw Error("cluster.network.kind: a graph has the nodes of its fabric, and cannot be given to others");
  if (n.kind == NetworkKind::dragonfly)
    text += fmt::format(", groups: {{leaves: {}, links: {}}}", n.groups.leaves, n.groups.links);
  if (n.leaf_nodes > 0)
    text += fmt::format(
        ", kind: {}, leaf: {{nodes: {}, uplinks: {}}}, planes: {}, routing: {{kind: {}, queue_pairs: {}, "
        "planes: {}{}}}, load: {}",
        name_of(n.kind), n.leaf_nodes, n.leaf_uplinks, n.planes, name_of(n.routing), n.queue_pairs,
        n.hashed_planes ? "hashed" : "even", n.hash_seed ? fmt::format(", seed: {}", *n.hash_seed) : "", n.load);
  if (n.leaf_nodes > 0 && n.kind != NetworkKind::dragonfly)
    text += fmt::format(", spine: {{leaves: {}, ratio: {}}}", n.spine_leaves, n.spine_ratio);
  if (n.site_nodes > 0)
    text += fmt::format(", sites: {{nodes: {}, Gbps: {}, ms: {}, buffer_MiB: {}}}", n.site_nodes, n.site_Gbps,
                        n.site_ms, n.site_buffer_MiB);
  if (n.efficiency < 1) text += fmt::format(", efficiency: {}", n.efficiency);
  if (n.incast_senders > 0)
    text += fmt::format(", incast: {{senders: {}, share: {}}}", n.incast_senders, n.incast_share);
  text += n.placement == Placement::listed ? fmt::format(", job_nodes: [{}]", fmt::join(n.job_nodes, ", "))
                                           : fmt::format(", placement: {}", name_of(n.placement));
  return fmt::format("{{{}{}}}", text, faults_of(n));
}

// The spec's cluster with nodes of another type and number, as a value of the option --set.
std::string cluster_of(const std::string& node, std::int64_t nodes, const Cluster& site) {
  std::string text = fmt::format("node: {}, nodes: {}", node, nodes);
  if (site.oversubscribed_above_gpus > 0)
    text += fmt::format(", oversubscription: {{above_gpus: {}, ratio: {}}}", site.oversubscribed_above_gpus,
                        site.oversubscription);
  if (site.network) text += fmt::format(", network: {}", network_of(*site.network));
  std::vector<std::string> slow;
  for (const Straggler& s : site.stragglers)
    slow.push_back(fmt::format("{{rank: {}, slowdown: {}}}", s.rank, s.slowdown));
  if (!slow.empty()) text += fmt::format(", stragglers: [{}]", fmt::join(slow, ", "));
  if (site.straggler_share > 0)
    text += fmt::format(", stragglers: {{share: {}, slowdown: {}}}", site.straggler_share, site.straggler_slowdown);
  if (site.variation)
    text += fmt::format(", variation: {{gpus: {}, kernels: {}}}", site.variation->gpus, site.variation->kernels);
  if (site.failures)
    text += fmt::format(
        ", failures: {{node_mtbf_hours: {}, restart_s: {}, checkpoint_every: {}, detect_s: {}, spares: {}, "
        "repair_hours: {}}}",
        site.failures->node_mtbf_hours, site.failures->restart_s, site.failures->checkpoint_every,
        site.failures->detect_s, site.failures->spares, site.failures->repair_hours);
  return "cluster={" + text + "}";
}

}  // namespace

std::vector<SearchTarget> targets_of(const SearchCommandOptions& o, const std::vector<std::string>& more) {
  const Spec given = parse_open_spec(o.text.text, o.text.path, o.overrides).spec;
  if (given.cluster.network && !given.cluster.network->jobs.empty())
    throw Error(with_place(given,
                           "cluster.network.neighbours.jobs: a search compares layouts of one job; give what the "
                           "others take as cluster.network.load"));
  std::vector<std::string> nodes = o.clusters;
  if (nodes.empty()) nodes.emplace_back();
  std::vector<std::int64_t> gpus = o.gpus;
  if (gpus.empty()) gpus.push_back(given.gpus);
  std::vector<SearchTarget> targets;
  for (const std::string& node : nodes) {
    for (const std::int64_t n : gpus) {
      if (n < 1) throw Error(fmt::format("--gpus: {} is not at least 1", n));
      if (o.max_gpus > 0 && n > o.max_gpus) continue;
      const Cluster base = node.empty() ? given.cluster : find_cluster(node, 1);
      const std::int64_t count = ceil_div(n, std::max(1, base.gpus_per_node));
      SearchTarget t{.gpus = n};
      if (!node.empty())
        t.overrides.push_back(cluster_of(node, count, given.cluster));
      else if (!o.gpus.empty())
        t.overrides.push_back(fmt::format("cluster.nodes={}", count));
      if (!t.overrides.empty()) t.overrides.push_back(fmt::format("gpus={}", n));
      std::vector<std::string> all = o.overrides;
      all.insert(all.end(), t.overrides.begin(), t.overrides.end());
      all.insert(all.end(), more.begin(), more.end());
      t.open = parse_open_spec(o.text.text, o.text.path, all);
      targets.push_back(std::move(t));
    }
  }
  if (targets.empty()) throw Error(fmt::format("--max-gpus: {} leaves no machine of those asked for", o.max_gpus));
  return targets;
}

}  // namespace orrery
