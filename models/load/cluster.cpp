#include "models/load/reader.h"

namespace orrery {
namespace {

constexpr double kTB = 1e12;

constexpr SpecKey kClusterKeys[] = {
    {"node", "built-in node (orrery list clusters); localhost: this machine", "dgx-h100", "name"},
    {"nodes", "nodes of the cluster", "8"},
    {"gpu", "GPU of a node that is given by its parts (orrery list gpus)", "h100-sxm", "name", "the node's"},
    {"gpus_per_node", "GPUs of a node", "8", "", "the node's, or 8"},
    {"nics", "network interfaces of a node", "8"},
    {"nic_Gbps", "rate of one interface, each way", "400"},
    {"fabric", "kind of network", "roce", "infiniband | roce | efa | omni-path | ethernet"},
    {"nvlink_domain", "GPUs that reach each other over NVLink", "72"},
    {"amd_cpu", "hosts have AMD processors", "true"},
    {"oversubscription", "larger jobs share the network's upper links", "{above_gpus: 3072, ratio: 7}"},
    {"network", "leaf switches and their links to the spine, or the name of a built-in network",
     "{leaf: {nodes: 32, uplinks: 32, Gbps: 400}}", "name | map", "none"},
    {"host", "memory of a node's host", "{dram_GiB: 2048, dram_GBps: 400}"},
    {"nvme", "disks of a node", "{TB: 30, read_GBps: 25, write_GBps: 20}"},
    {"storage", "storage that all nodes share", "{TB: 1000, read_GBps: 400, write_GBps: 200}"},
    {"pcie", "GPUs and their PCIe switches", "{gpus_per_switch: 2}"},
    {"power_kW", "power of a node", "10.2"},
    {"stragglers", "ranks whose compute is slow, by name or by share", "[{rank: 5, slowdown: 1.2}]",
     "list of maps, or a map", "none"},
    {"failures", "failures of nodes, for goodput and search", "{restart_s: 300}"},
    {"variation", "how GPUs and kernels of one kind differ; asks for quantiles of the step", "{gpus: 0.03}"},
};
constexpr SpecKey kOversubscriptionKeys[] = {
    {"above_gpus", "GPUs of a job from which on it holds; 0: never", "3072"},
    {"ratio", "rate below over rate above", "7"},
};
constexpr SpecKey kHostKeys[] = {
    {"cpu", "name of the processor; AMD's are told by it", "AMD EPYC 9654"},
    {"dram_GiB", "memory", "2048"},
    {"dram_GBps", "rate of the memory", "400"},
};
constexpr SpecKey kStoreKeys[] = {
    {"TB", "size", "30"},
    {"read_GBps", "rate of reading", "25"},
    {"write_GBps", "rate of writing", "20"},
};
constexpr SpecKey kStorageKeys[] = {
    {"TB", "size", "30"},
    {"GBps", "rate of reading and of writing", "200"},
    {"read_GBps", "rate of reading", "400", "", "GBps"},
    {"write_GBps", "rate of writing", "200", "", "GBps"},
    {"path", "whether it is reached over a network of its own, or over the NICs and switches of the training",
     "backend", "frontend | backend"},
};
constexpr std::string_view kStoragePaths[] = {"frontend", "backend"};
constexpr SpecKey kPcieKeys[] = {
    {"gpus_per_switch", "GPUs that share a PCIe switch", "2"},
};
constexpr SpecKey kStragglerKeys[] = {
    {"rank", "a slow rank", "5"},
    {"slowdown", "factor on the time of the rank's compute", "1.2"},
};
constexpr SpecKey kStragglerShareKeys[] = {
    {"share", "share of ranks that are slow, drawn by the seed", "0.1"},
    {"slowdown", "factor on the time of a slow rank's compute", "1.2"},
};
constexpr SpecKey kVariationKeys[] = {
    {"gpus",
     "standard deviation of products and attention from GPU to GPU, a share of their time; 0: that of the GPU's "
     "profile",
     "0.03"},
    {"kernels", "standard deviation of a kernel from run to run, a share of its time", "0.02"},
};
constexpr SpecKey kFailureKeys[] = {
    {"node_mtbf_hours", "mean time between failures of a node", "50000"},
    {"restart_s", "time of a restart; 0: not known", "300"},
    {"checkpoint_every", "steps between checkpoints; 0: as often as loses least", "500"},
    {"detect_s", "time until a failure is noticed, for run-length", "600"},
    {"spares", "nodes that stand in for broken ones; -1: always enough", "16"},
    {"repair_hours", "time until a broken node can be used again", "24"},
};

// Reads a size that users write in the unit that the key's name ends with, such as GiB, and that the program stores in
// bytes. unit: number of bytes in that unit.
void take_bytes(const SpecSection& section, std::string_view key, Bytes& bytes, double unit, std::string_view from) {
  double value = static_cast<double>(bytes) / unit;
  section.take(key, value, from);
  if (!(value >= 0 && value < 1e6)) {
    section.reader().fail(*section.find(key), section.name(key), fmt::format("{} is not a sensible size", value));
  }
  bytes = static_cast<Bytes>(value * unit + 0.5);
}

void read_host(const SpecSection& cluster, Cluster& c, std::string_view from) {
  const SpecNode* node = cluster.find("host");
  if (node == nullptr && !c.host) return;
  Host host = c.host.value_or(Host{});
  const SpecSection section(cluster.reader(), node, "cluster.host", kHostKeys);
  std::string cpu;
  if (section.take("cpu", cpu, from))
    c.amd_cpu = cpu.find("AMD") != std::string::npos || cpu.find("EPYC") != std::string::npos;
  take_bytes(section, "dram_GiB", host.dram_bytes, kGiB, from);
  section.take("dram_GBps", host.dram_GBps, from);
  c.host = host;
}

void read_store(const SpecSection& cluster, std::string_view name, std::optional<Store>& store, std::string_view from) {
  const SpecNode* node = cluster.find(name);
  if (node == nullptr && !store) return;
  if (!store) store.emplace();
  const SpecSection section(cluster.reader(), node, fmt::format("cluster.{}", name), kStoreKeys);
  take_bytes(section, "TB", store->bytes, kTB, from);
  section.take("read_GBps", store->read_GBps, from);
  section.take("write_GBps", store->write_GBps, from);
}

void read_storage(const SpecSection& cluster, Cluster& c) {
  const SpecNode* node = cluster.find("storage");
  if (node == nullptr) return;
  Store& store = c.storage.emplace();
  const SpecSection section(cluster.reader(), node, "cluster.storage", kStorageKeys);
  take_bytes(section, "TB", store.bytes, kTB, "default");
  double both = 0;
  section.take("GBps", both);
  store.read_GBps = store.write_GBps = both;
  section.take("read_GBps", store.read_GBps, "GBps");
  section.take("write_GBps", store.write_GBps, "GBps");
  std::string path = "frontend";
  section.take_word("path", path, kStoragePaths);
  c.storage_on_backend = path == "backend";
  const bool links = c.network && (c.network->kind == NetworkKind::torus || c.network->kind == NetworkKind::graph);
  if (c.storage_on_backend && links)
    cluster.reader().fail(*node, "cluster.storage.path",
                          "storage on the links of a torus or a graph is not built yet; choose frontend");
}

void read_wiring(const SpecSection& cluster, Cluster& c, std::string_view from) {
  const SpecSection pcie(cluster.reader(), cluster.find("pcie"), "cluster.pcie", kPcieKeys);
  pcie.take("gpus_per_switch", c.gpus_per_pcie_switch, from);
  const SpecSection over(cluster.reader(), cluster.find("oversubscription"), "cluster.oversubscription",
                         kOversubscriptionKeys);
  over.take("above_gpus", c.oversubscribed_above_gpus, from);
  over.take("ratio", c.oversubscription, from);
}

void read_stragglers(const SpecSection& cluster, const SpecNode& node, Cluster& c) {
  if (node.kind == SpecNode::Kind::map) {
    const SpecSection share(cluster.reader(), &node, "cluster.stragglers", kStragglerShareKeys);
    share.take("share", c.straggler_share);
    if (!share.take("slowdown", c.straggler_slowdown) && c.straggler_share > 0)
      share.reader().fail(node, share.name("slowdown"), "missing: how much slower these ranks are, such as 1.2");
    return;
  }
  if (node.kind != SpecNode::Kind::list) {
    cluster.reader().fail(node, "cluster.stragglers",
                          "a list [{rank: 5, slowdown: 1.2}], or {share: 0.1, slowdown: 1.2}, is needed here");
  }
  for (const SpecNode& item : node.items) {
    const SpecSection section(cluster.reader(), &item, "cluster.stragglers", kStragglerKeys);
    Straggler& straggler = c.stragglers.emplace_back();
    section.take("rank", straggler.rank);
    section.take("slowdown", straggler.slowdown);
  }
}

void read_troubles(const SpecSection& cluster, Cluster& c) {
  if (const SpecNode* node = cluster.find("stragglers"); node != nullptr) read_stragglers(cluster, *node, c);
  if (const SpecNode* node = cluster.find("failures"); node != nullptr) {
    const SpecSection section(cluster.reader(), node, "cluster.failures", kFailureKeys);
    Failures& failures = c.failures.emplace();
    section.take("node_mtbf_hours", failures.node_mtbf_hours);
    section.take("restart_s", failures.restart_s);
    section.take("checkpoint_every", failures.checkpoint_every);
    section.take("detect_s", failures.detect_s);
    section.take("spares", failures.spares);
    section.take("repair_hours", failures.repair_hours);
  }
  if (const SpecNode* node = cluster.find("variation"); node != nullptr) {
    const SpecSection section(cluster.reader(), node, "cluster.variation", kVariationKeys);
    Variation& variation = c.variation.emplace();
    section.take("gpus", variation.gpus);
    section.take("kernels", variation.kernels);
  }
}

// Returns the built-in type of node (machine) that the spec names, or an empty cluster whose parts the spec must
// describe.
Cluster read_base(const SpecSection& section, const SpecNode& at, std::string& from) {
  const SpecNode* node = section.find("node");
  if (node != nullptr) {
    std::string id;
    section.take("node", id);
    from = "node " + id;
    return section.located(*node, "node", [&] { return find_cluster(id, 1); });
  }
  if (section.find("gpu") == nullptr) {
    section.reader().fail(at, "cluster", "missing: node (a built-in one), or gpu with its parts");
  }
  return Cluster{};
}

void take_gpu(const SpecSection& section, Cluster& c, std::string_view from) {
  const auto find = [](std::string_view id) { return find_gpu(id); };
  section.take_named(
      "gpu", c.gpu, find, [](const Gpu& gpu) { return gpu.id; }, from);
}

}  // namespace

Cluster read_cluster(SpecReader& reader, const SpecNode* node) {
  if (node == nullptr)
    throw Error(fmt::format("{}: cluster: missing; {{node: dgx-h100, nodes: 1}} or its parts", reader.path));
  const SpecSection section(reader, node, "cluster", kClusterKeys, "node");
  std::string from = "default";
  Cluster c = read_base(section, *node, from);
  const bool parts = c.node_id.empty();
  section.take_count("nodes", c.nodes, kMostRanks);
  take_gpu(section, c, from);
  std::int64_t gpus_per_node = c.gpus_per_node;
  section.take_count("gpus_per_node", gpus_per_node, kMostRanks, from);
  c.gpus_per_node = static_cast<int>(gpus_per_node);
  if (parts) c.nics = c.gpus_per_node;
  section.take("nics", c.nics, parts ? "one per GPU" : from);
  section.take("nic_Gbps", c.nic_Gbps, from);
  section.take_named(
      "fabric", c.fabric, find_fabric, [](Fabric f) { return name_of(f); }, from);
  if (parts) c.nvlink_domain = default_nvlink_domain(c.gpu, c.gpus_per_node);
  section.take("nvlink_domain", c.nvlink_domain, parts ? "the GPUs of a node" : from);
  read_host(section, c, from);
  section.take("amd_cpu", c.amd_cpu, from);
  section.take("power_kW", c.power_kW, from);
  read_wiring(section, c, from);
  read_network(section, c);
  for (const MemoryTier tier : kTiersBeyond) {
    if (behind_host(tier)) read_store(section, row_of(tier).name, c.stores[index_of(tier)], from);
  }
  read_storage(section, c);
  read_troubles(section, c);
  return c;
}

}  // namespace orrery
