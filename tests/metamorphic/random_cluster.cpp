#include "models/base/data.h"
#include "tests/metamorphic/random_spec.h"

namespace orrery::test {
namespace {

const Json kHost = {{"dram_GiB", 1024}, {"dram_GBps", 200}};
const Json kNvme = {{"TB", 30}, {"read_GBps", 20}, {"write_GBps", 10}};

std::vector<std::string> predicted_gpus() {
  std::vector<std::string> ids;
  for (const std::string_view id : data_names("gpus")) {
    if (is_predicted(find_gpu(id))) ids.emplace_back(id);
  }
  return ids;
}

std::vector<std::string> predicted_nodes() {
  std::vector<std::string> ids;
  for (const std::string_view id : data_names("nodes")) {
    if (is_predicted(find_cluster(id, 1).gpu)) ids.emplace_back(id);
  }
  return ids;
}

Json random_torus(Draw& draw, std::int64_t nodes) {
  const Json shape = nodes % 2 == 0 ? Json::array({nodes / 2, 2}) : Json::array({nodes});
  return {{"kind", "torus"}, {"torus", {{"shape", shape}, {"wraps", draw.chance(.5)}}}};
}

// Two switches beside each other, and a third one beyond both.
Json random_graph(Draw& draw, std::int64_t nodes, int nics) {
  const std::int64_t first = nodes / 2;
  const auto on = [&](int number) { return Json(std::vector<int>(static_cast<std::size_t>(nics), number)); };
  Json list = Json::array({Json::object({{"nodes", nodes - first}, {"switches", on(0)}})});
  if (first > 0) list.push_back(Json::object({{"nodes", first}, {"switches", on(1)}}));
  const Json cables = {{0, 2, draw.of({1, 8}), 400}, {1, 2, draw.of({1, 8}), 100}};
  return {{"kind", "graph"}, {"graph", Json::object({{"switches", 3}, {"cables", cables}, {"nodes", list}})}};
}

// Adds what is above the leaves, and who else loads it.
void add_above_leaves(Draw& draw, Json& n) {
  const bool plus = n["kind"] == "dragonfly+", groups = plus || n["kind"] == "dragonfly";
  if (groups) n["groups"] = {{"leaves", 2}, {"links", draw.of({1, 4})}};
  if (plus) n["groups"]["spines"] = draw.of({1, 2});
  if (n["kind"] == "dragonfly" && n["routing"]["kind"] == "pinned") n["routing"]["kind"] = "adaptive";
  if (!groups && draw.chance(.3)) n["spine"] = {{"leaves", 2}, {"ratio", 4}};
  if (n.contains("spine") && draw.chance(.3))
    n["spine"] = Json::array({n["spine"], Json::object({{"leaves", 4}, {"ratio", 2}})});
  if (draw.chance(.2)) n["latency_us"] = draw.of({0.5, 5.0});
  if (!draw.chance(.2)) return;
  n["neighbours"] = {{"load", 0.3}, {"burst_ms", draw.of({0.0, 1.0})}};
  n["neighbours"]["where"] = groups || n.contains("spine") ? draw.of({"leaf", "spine", "everywhere"}) : "leaf";
}

Json random_network(Draw& draw, std::int64_t nodes, int nics) {
  if (draw.chance(.15)) return random_torus(draw, nodes);
  if (draw.chance(.15)) return random_graph(draw, nodes, nics);
  Json n = {
      {"leaf", {{"nodes", draw.of({1, 2, 4})}, {"uplinks", draw.of({1, 4, 16})}}},
      {"kind", draw.of({"rails", "fat-tree", "rail-only", "dragonfly", "dragonfly+"})},
      {"routing", {{"kind", draw.of({"adaptive", "ecmp", "d-mod-k", "pinned"})}, {"queue_pairs", draw.of({1, 4})}}},
      {"placement", draw.of({"contiguous", "contiguous", "scattered", "random"})}};
  if (draw.chance(.3)) {
    n["planes"] = draw.of({2, 4});
    n["routing"]["planes"] = draw.of({"even", "hashed"});
  }
  if (draw.chance(.1)) n["node_names"] = "a[0-" + std::to_string(nodes) + "],-,b";
  if (draw.chance(.3)) n["sites"] = {{"nodes", 2}, {"Gbps", 400}, {"ms", 1}};
  if (draw.chance(.3)) n["faults"] = Json::array({Json::object({{"node", 0}, {"Gbps", 25}})});
  if (n.contains("planes") && draw.chance(.3))
    n["faults"] = Json::array({draw.of<Json>({Json::object({{"plane", 1}}), Json::object({{"plane", 1}, {"node", 0}}),
                                              Json::object({{"plane", 0}, {"leaf", 0}})})});
  add_above_leaves(draw, n);
  if (!n.contains("sites") && nodes > 1 && draw.chance(.2)) {
    const Json link = {{"0", {{"Gbps", 400}, {"ms", 1}}}};
    n["sites"] = Json::array({Json::object({{"nodes", 1}}), Json::object({{"nodes", nodes - 1}, {"to", link}})});
  }
  if (!n.contains("faults") && draw.chance(.2))
    n["faults"] = Json::array({draw.of<Json>({Json::object({{"node", 0}, {"nic", 0}, {"Gbps", 25}}),
                                              Json::object({{"leaf", 0}, {"link", 0}, {"Gbps", 5}}),
                                              Json::object({{"node", 0}, {"down", {120, 180}}})})});
  if (draw.chance(.2)) n["efficiency"] = draw.of({0.5, 0.9});
  if (draw.chance(.2)) n["incast"] = {{"senders", draw.of({1, 8})}, {"share", 0.5}};
  return n;
}

}  // namespace

bool is_predicted(const Gpu& gpu) {
  return !gpu.uncalibrated && gpu.architecture != Architecture::other && gpu.memory_bytes > 0;
}

Cluster cluster_of(const Json& cluster) {
  if (cluster.is_string()) return find_cluster(cluster.get<std::string>(), 1);
  Cluster c;
  if (cluster.contains("node")) c = find_cluster(cluster["node"].get<std::string>(), 1);
  if (cluster.contains("gpu")) c.gpu = find_gpu(cluster["gpu"].get<std::string>());
  c.gpus_per_node = cluster.value("gpus_per_node", c.gpus_per_node);
  return c;
}

Json random_cluster(Draw& draw, std::int64_t gpus) {
  static const std::vector<std::string> kGpus = predicted_gpus(), kNodes = predicted_nodes();
  Json c;
  if (draw.chance(.7)) {
    c["node"] = draw.from(kNodes);
    if (draw.chance(.2)) c["nic_Gbps"] = draw.of({25, 100, 400});
  } else {
    const int size = draw.of({4, 8});
    c = {{"gpu", draw.from(kGpus)},
         {"gpus_per_node", size},
         {"nics", draw.of({1, 2, size})},
         {"nic_Gbps", draw.of({25, 100, 200, 400})},
         {"fabric", draw.of({"infiniband", "roce", "ethernet", "efa", "omni-path"})}};
    if (draw.chance(.2)) c["nvlink_domain"] = draw.of({1, 2, 4});
  }
  c["nodes"] = ceil_div(gpus, cluster_of(c).gpus_per_node);
  c["host"] = kHost;
  c["nvme"] = kNvme;
  if (draw.chance(.05)) c["oversubscription"] = {{"above_gpus", 16}, {"ratio", 4}};
  if (draw.chance(.06))
    c["stragglers"] = draw.of<Json>({Json::array({Json::object({{"rank", 0}, {"slowdown", 1.3}})}),
                                     Json::object({{"share", 0.2}, {"slowdown", 1.2}})});
  if (draw.chance(.08))
    c["network"] = random_network(draw, c["nodes"].get<std::int64_t>(), c.value("nics", cluster_of(c).nics));
  const bool pods = c.contains("network") && !c.contains("oversubscription") && draw.chance(.2);
  if (pods) c["network"]["pods"] = {{"gpus", 16}, {"ratio", 2}};
  if (draw.chance(.05)) c["variation"] = {{"gpus", 0.04}, {"kernels", draw.of({0.0, 0.03})}};
  return c;
}

}  // namespace orrery::test
