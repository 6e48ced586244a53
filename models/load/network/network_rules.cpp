// This file has the rules that a cluster.network must keep beside those of its single keys, and reads the file that it
// names.
#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "models/base/data.h"
#include "models/base/input_file.h"
#include "models/load/network/network.h"
#include "models/load/reader.h"

namespace orrery {
namespace {

// Puts the keys of a map over those of another, and maps in it alike.
void put_over(SpecNode& all, const SpecNode& over) {
  for (std::size_t i = 0; i < over.keys.size(); ++i) {
    SpecNode& item = all.insert(over.keys[i]);
    const bool maps = item.kind == SpecNode::Kind::map && over.items[i].kind == SpecNode::Kind::map;
    if (maps)
      put_over(item, over.items[i]);
    else
      item = over.items[i];
  }
}

void move_to_line(SpecNode& node, int line) {
  node.line = line;
  for (SpecNode& item : node.items) move_to_line(item, line);
}

// Refuses a file of another cluster: one that states fewer nodes than the spec has, or other NICs or GPUs of a node. A
// job may have a part of the nodes.
void check_cluster_of_file(const SpecNode& root, const SpecNode& named, const SpecReader& reader, const Cluster& c,
                           const std::string& path) {
  const SpecNode* cluster = root.find("cluster");
  if (cluster == nullptr) return;
  const std::pair<std::string_view, std::int64_t> facts[] = {
      {"nodes", c.nodes}, {"nics", c.nics}, {"gpus_per_node", c.gpus_per_node}};
  for (const auto& [key, own] : facts) {
    const SpecNode* stated = cluster->find(key);
    if (stated == nullptr || stated->text == fmt::format("{}", own)) continue;
    if (key == "nodes" && std::strtoll(stated->text.c_str(), nullptr, 10) > own) continue;
    reader.fail(named, "cluster.network.file",
                fmt::format("{} is of a cluster with {}: {}, the spec has {}; set cluster.{}={}{}, or import the "
                            "spec's own cluster",
                            path, key, stated->text, own, key, stated->text,
                            key == "nodes" ? " (and gpus to those of the job)" : ""));
  }
}

// Puts the keys that are given over those of the network in a file. Values of the file have the line at which the file
// is named, which messages then give.
SpecNode put_over_file(const SpecNode& root, const SpecNode& named, const SpecNode& given, const SpecSection& cluster,
                       const std::string& path) {
  const SpecNode* in_file =
      root.find("cluster") != nullptr ? root.find("cluster")->find("network") : root.find("network");
  if (in_file == nullptr || in_file->kind != SpecNode::Kind::map)
    cluster.reader().fail(named, "cluster.network.file", fmt::format("{} has no network", path));
  SpecNode all = *in_file;
  move_to_line(all, named.line);
  if (given.kind == SpecNode::Kind::map) put_over(all, given);
  return all;
}

}  // namespace

SpecNode network_with_base(const SpecSection& cluster, const SpecNode& network, const Cluster& c) {
  const bool word = network.kind == SpecNode::Kind::scalar;
  const SpecNode* name = word ? &network : network.find("name");
  if (name != nullptr && !word && network.find("file") != nullptr)
    cluster.reader().fail(*name, "cluster.network.name", "a file is given too; leave one of them out");
  if (name != nullptr && name->kind == SpecNode::Kind::scalar) {
    const std::string path = fmt::format("networks/{}.json", name->text);
    const SpecNode root =
        cluster.located(*name, "network.name", [&] { return parse_tree(std::string(data_file(path)), path); });
    return put_over_file(root, *name, network, cluster, path);
  }
  const SpecNode* file = network.find("file");
  if (file == nullptr || file->kind != SpecNode::Kind::scalar) return network;
  const std::string path = beside(cluster.reader().path, file->text);
  const SpecNode root = parse_tree(read_input(path, kMostSettings), path);
  check_cluster_of_file(root, *file, cluster.reader(), c, path);
  return put_over_file(root, *file, network, cluster, path);
}

static Broken job_node_rules(const Spec& spec) {
  const Cluster& c = spec.cluster;
  if (c.network->placement != Placement::listed) return {};
  const std::int64_t needed = ceil_div(spec.gpus, c.gpus_per_node);
  std::set<std::int64_t> seen;
  for (const std::int64_t node : c.network->job_nodes) {
    if (node < 0 || node >= c.nodes)
      return broken("cluster.network.job_nodes", "cluster.network.job_nodes: node {} is not one of {}", node, c.nodes);
    if (!seen.insert(node).second)
      return broken("cluster.network.job_nodes", "cluster.network.job_nodes: node {} is listed twice", node);
  }
  if (c.nvlink_domain > c.gpus_per_node)
    return broken("cluster.network.job_nodes",
                  "cluster.network.job_nodes: a list cannot part the nodes of NVLink domains");
  if (std::ssize(c.network->job_nodes) < needed)
    return broken("cluster.network.job_nodes", "cluster.network.job_nodes: {} nodes are listed, {} GPUs need {}",
                  c.network->job_nodes.size(), spec.gpus, needed);
  return {};
}

static Broken torus_rules(const Cluster& c) {
  const Network& n = *c.network;
  if (n.kind != NetworkKind::torus) return {};
  if (n.torus.shape.empty()) return broken("cluster.network.torus.shape", "cluster.network.torus.shape: it is empty");
  std::int64_t nodes = 1;
  for (const std::int64_t along : n.torus.shape) {
    if (along < 1 || along > kMostRanks)
      return broken("cluster.network.torus.shape", "cluster.network.torus.shape: {} is no number of nodes", along);
    nodes *= along;
    if (nodes > c.nodes) break;
  }
  if (nodes != c.nodes)
    return broken("cluster.network.torus.shape", "cluster.network.torus.shape: it has {} nodes, the cluster {}",
                  nodes > c.nodes ? std::string("more") : fmt::format("{}", nodes), c.nodes);
  if (!(n.torus.Gbps > 0))
    return broken("cluster.network.torus.Gbps", "cluster.network.torus.Gbps: {} is no rate of a link", n.torus.Gbps);
  if (c.nvlink_domain > c.gpus_per_node)
    return broken("cluster.network.kind", "cluster.network.kind: torus cannot join nodes of larger NVLink domains");
  return {};
}

static Broken flap_rules(const Network& n) {
  const double every = n.flap_every_s, down = n.flap_down_s;
  if (!(every >= 0 && down >= 0))
    return broken("cluster.network.flaps", "cluster.network.flaps: {} and {} s are no times", every, down);
  if (down > kMostResends * kResend_s)
    return broken("cluster.network.flaps.down_s",
                  "cluster.network.flaps.down_s: after {:.3g} s a job's transfers fail; count such outages in "
                  "cluster.failures",
                  kMostResends * kResend_s);
  return {};
}

// Transfers go on over the planes that two nodes have in common. Nodes that no fault names are like the others.
static Broken plane_rules(const Network& n) {
  std::set<std::int64_t> nodes = {0};
  for (const LinkFault& f : n.faults)
    nodes.insert(f.node >= 0 ? f.node : std::max<std::int64_t>(0, f.leaf) * n.leaf_nodes);
  if (common_planes(n, nodes, true) > 0) return {};
  return broken("cluster.network.faults", "cluster.network.faults: two nodes have none of {} planes left", n.planes);
}

Broken network_rules(const Spec& spec) {
  if (!spec.cluster.network) return {};
  const Network& n = *spec.cluster.network;
  if (const Broken wrong = flap_rules(n); !wrong.key.empty()) return wrong;
  if (const Broken wrong = plane_rules(n); !wrong.key.empty()) return wrong;
  if (n.leaf_nodes > 0 && !(n.leaf_Gbps > 0))
    return broken("cluster.network.leaf.Gbps", "cluster.network.leaf.Gbps: {} is no rate of a link", n.leaf_Gbps);
  if (!(n.load >= 0 && n.load < 1))
    return broken("cluster.network.load", "cluster.network.load: {} is no share from 0 to below 1", n.load);
  if (!(n.efficiency > 0 && n.efficiency <= 1))
    return broken("cluster.network.efficiency", "cluster.network.efficiency: {} is no share above 0 and up to 1",
                  n.efficiency);
  if (!(n.incast_share > 0 && n.incast_share <= 1))
    return broken("cluster.network.incast.share", "cluster.network.incast.share: {} is no share above 0 and up to 1",
                  n.incast_share);
  if (!(n.fault_share >= 0 && n.fault_share <= 1))
    return broken("cluster.network.faults.share", "cluster.network.faults.share: {} is no share", n.fault_share);
  if (n.fault_share > 0 && !(n.fault_Gbps > 0 && n.fault_Gbps <= spec.cluster.nic_Gbps))
    return broken("cluster.network.faults.Gbps", "cluster.network.faults.Gbps: {} is no rate up to a NIC's",
                  n.fault_Gbps);
  if (n.placement == Placement::scattered && n.leaf_nodes == 0)
    return broken("cluster.network.placement", "cluster.network.placement: scattered needs cluster.network.leaf");
  const Cluster& c = spec.cluster;
  if (const Broken wrong = torus_rules(c); !wrong.key.empty()) return wrong;
  if (const Broken wrong = spine_rules(n); !wrong.key.empty()) return wrong;
  if (const Broken wrong = site_rules(c); !wrong.key.empty()) return wrong;
  if (c.nvlink_domain > c.gpus_per_node) {
    if (n.placement == Placement::scattered && n.leaf_nodes * c.gpus_per_node % c.nvlink_domain != 0)
      return broken("cluster.network.placement",
                    "cluster.network.placement: scattered needs leaves of whole NVLink domains; {} nodes are none",
                    n.leaf_nodes);
  }
  return job_node_rules(spec);
}

}  // namespace orrery
