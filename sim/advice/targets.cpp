#include "sim/advice/targets.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"

namespace orrery {
namespace {

// A fault as an item of a spec's list, without its closing brace.
std::string open_fault(const LinkFault& f, bool stops) {
  std::string text = f.plane >= 0 ? fmt::format("plane: {}, ", f.plane) : "";
  if (f.node >= 0) text += fmt::format("node: {}, ", f.node);
  if (f.leaf >= 0) text += fmt::format("leaf: {}, ", f.leaf);
  if (f.nic >= 0) text += fmt::format("nic: {}, ", f.nic);
  if (f.link >= 0) text += fmt::format("link: {}, ", f.link);
  if ((f.Gbps > 0 || f.link >= 0) && !stops) text += fmt::format("Gbps: {}, ", f.Gbps);
  if (f.uplinks > 0 && !stops) text += fmt::format("uplinks: {}, ", f.uplinks);
  text.resize(text.size() - 2);
  return "{" + text;
}

std::string faults_of(const Network& n) {
  if (n.fault_share > 0) return fmt::format(", faults: {{share: {}, Gbps: {}}}", n.fault_share, n.fault_Gbps);
  std::vector<std::string> faults;
  for (const LinkFault& f : n.faults) faults.push_back(open_fault(f, false) + "}");
  for (const TimedFault& t : n.timed_faults)
    faults.push_back(open_fault(t.fault, t.stops) + fmt::format(", down: [{}, {}]}}", t.from_s, t.until_s));
  return faults.empty() ? "" : fmt::format(", faults: [{}]", fmt::join(faults, ", "));
}

// The levels of a network's spine, and its sites, as values of a spec.
std::string spine_of(const Network& n) {
  std::string text = fmt::format("{{leaves: {}, ratio: {}}}", n.spine_leaves, n.spine_ratio);
  for (const SpineLevel& level : n.upper_spine)
    text += fmt::format(", {{leaves: {}, ratio: {}}}", level.leaves, level.ratio);
  return n.upper_spine.empty() ? text : "[" + text + "]";
}

std::string sites_of(const Network& n) {
  if (n.site_nodes > 0)
    return fmt::format(", sites: {{nodes: {}, Gbps: {}, ms: {}, buffer_MiB: {}}}", n.site_nodes, n.site_Gbps, n.site_ms,
                       n.site_buffer_MiB);
  std::vector<std::string> sites;
  for (std::size_t site = 0; site < n.site_sizes.size(); ++site) {
    std::vector<std::string> links;
    for (const SiteLink& l : n.site_links) {
      if (l.from == static_cast<std::int64_t>(site))
        links.push_back(fmt::format("{}: {{Gbps: {}, ms: {}, buffer_MiB: {}}}", l.to, l.Gbps, l.ms, l.buffer_MiB));
    }
    sites.push_back(fmt::format("{{nodes: {}, to: {{{}}}}}", n.site_sizes[site], fmt::join(links, ", ")));
  }
  return sites.empty() ? "" : fmt::format(", sites: [{}]", fmt::join(sites, ", "));
}

// How other jobs load the links, and the latency of these.
std::string load_of(const Network& n) {
  std::string text = n.latency_us > 0 ? fmt::format(", latency_us: {}", n.latency_us) : "";
  if (n.loaded == LoadedLinks::everywhere && n.burst_ms == 0) return text + fmt::format(", load: {}", n.load);
  return text +
         fmt::format(", neighbours: {{load: {}, where: {}, burst_ms: {}}}", n.load, name_of(n.loaded), n.burst_ms);
}

// The rate of a link as a key of a spec, unless it is the one that it has without this key.
std::string rate_of(double Gbps, double habit) {
  return std::abs(Gbps - habit) <= 1e-9 * habit ? "" : fmt::format(", Gbps: {}", Gbps);
}

// The network of a spec's cluster as a map of a spec. Links whose rate the spec does not give are as fast as the NICs
// of the nodes that they join.
std::string network_of(const Cluster& c) {
  const Network& n = *c.network;
  std::string text = fmt::format("seed: {}", n.seed);
  if (n.kind == NetworkKind::torus)
    text += fmt::format(", kind: torus, torus: {{shape: [{}], wraps: {}{}}}, load: {}", fmt::join(n.torus.shape, ", "),
                        n.torus.wraps, rate_of(n.torus.Gbps, usual_Gbps(c, n.torus)), n.load);
  if (n.kind == NetworkKind::graph)
    throw Error("cluster.network.kind: a graph has the nodes of its fabric, and cannot be given to others");
  if (has_groups(n.kind))
    text += fmt::format(", groups: {{leaves: {}, {}links: {}{}}}", n.groups.leaves,
                        n.groups.spines > 0 ? fmt::format("spines: {}, ", n.groups.spines) : "", n.groups.links,
                        rate_of(n.groups.Gbps, c.nic_Gbps));
  if (n.leaf_nodes > 0)
    text += fmt::format(
        ", kind: {}, leaf: {{nodes: {}, uplinks: {}{}}}, planes: {}, routing: {{kind: {}, queue_pairs: {}, "
        "planes: {}{}}}{}",
        name_of(n.kind), n.leaf_nodes, n.leaf_uplinks, rate_of(n.leaf_Gbps, c.nic_Gbps / static_cast<double>(n.planes)),
        n.planes, name_of(n.routing), n.queue_pairs, n.hashed_planes ? "hashed" : "even",
        n.hash_seed ? fmt::format(", seed: {}", *n.hash_seed) : "", load_of(n));
  if (n.leaf_nodes > 0 && !has_groups(n.kind)) text += fmt::format(", spine: {}", spine_of(n));
  text += sites_of(n);
  if (n.efficiency < 1) text += fmt::format(", efficiency: {}", n.efficiency);
  if (n.incast_senders > 0)
    text += fmt::format(", incast: {{senders: {}, share: {}}}", n.incast_senders, n.incast_share);
  text += n.placement == Placement::listed ? fmt::format(", job_nodes: [{}]", fmt::join(n.job_nodes, ", "))
                                           : fmt::format(", placement: {}", name_of(n.placement));
  if (n.flap_every_s > 0) text += fmt::format(", flaps: {{every_s: {}, down_s: {}}}", n.flap_every_s, n.flap_down_s);
  return fmt::format("{{{}{}}}", text, faults_of(n));
}

// The spec's cluster with nodes of another type and number, as a value of the option --set.
std::string cluster_of(const std::string& node, std::int64_t nodes, const Cluster& site) {
  std::string text = fmt::format("node: {}, nodes: {}", node, nodes);
  if (site.oversubscribed_above_gpus > 0)
    text += fmt::format(", oversubscription: {{above_gpus: {}, ratio: {}}}", site.oversubscribed_above_gpus,
                        site.oversubscription);
  if (site.network) text += fmt::format(", network: {}", network_of(site));
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
  if (given.cluster.network && !given.cluster.network->site_sizes.empty())
    throw Error(
        with_place(given,
                   "cluster.network.sites: a list has the nodes of one cluster; give a search sites of one size, "
                   "sites: {nodes: 1024, Gbps: 12800, ms: 5}"));
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
