#include "models/spec/cluster.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/base/names.h"
#include "models/base/once_by_name.h"

namespace orrery {
namespace {

using nlohmann::json;

constexpr Named<Architecture> kArchitectures[] = {
    {"volta", Architecture::volta},   {"ampere", Architecture::ampere},       {"ada", Architecture::ada},
    {"hopper", Architecture::hopper}, {"blackwell", Architecture::blackwell}, {"cdna2", Architecture::cdna2},
    {"cdna3", Architecture::cdna3},   {"cdna4", Architecture::cdna4},         {"other", Architecture::other}};

constexpr Named<Fabric> kFabrics[] = {{"infiniband", Fabric::infiniband},
                                      {"roce", Fabric::roce},
                                      {"efa", Fabric::efa},
                                      {"omni-path", Fabric::omni_path},
                                      {"ethernet", Fabric::ethernet}};

// Returns the key under which a GPU's data file states the peak rate of a precision.
std::string_view peak_key(Precision p) {
  switch (p) {
    case Precision::fp32:
      return "fp32";
    case Precision::tf32:
      return "tf32";
    case Precision::fp16:
      return "fp16";
    case Precision::bf16:
      return "bf16";
    case Precision::fp8:
    case Precision::mxfp8:
      return "fp8";
    case Precision::nvfp4:
      return "fp4";
    case Precision::int8:
      return "int8";
    case Precision::int4:
      return "int4";
  }
  return "";
}

// Returns a data file, which is parsed once.
const json& read(std::string_view folder, std::string_view what, std::string_view id) {
  const std::vector<std::string_view> known = data_names(folder);
  if (std::find(known.begin(), known.end(), id) == known.end()) throw Error(unknown_name(what, id, known));
  static OnceByName<json> files;
  const std::string path = fmt::format("{}/{}.json", folder, id);
  return files.of(path, [&] { return json::parse(data_file(path)); });
}

Bytes scaled(const json& value, double unit) { return static_cast<Bytes>(value.get<double>() * unit + 0.5); }

void read_parts(const json& j, Cluster& c) {
  if (j.contains("host")) {
    const json& h = j["host"];
    c.host = Host{scaled(h["dram_GiB"], 1024.0 * 1024.0 * 1024.0), h["dram_GBps"].get<double>()};
  }
  for (const MemoryTier tier : kTiersBeyond) {
    if (!behind_host(tier) || !j.contains(row_of(tier).name)) continue;
    const json& n = j[std::string(row_of(tier).name)];
    c.stores[index_of(tier)] =
        Store{scaled(n["TB"], 1e12), n["read_GBps"].get<double>(), n["write_GBps"].get<double>()};
  }
  if (j.contains("pcie")) {
    c.gpus_per_pcie_switch = j["pcie"]["gpus_per_switch"].get<int>();
  }
}

}  // namespace

double peak_flops(const Gpu& gpu, Precision p) {
  const auto found = gpu.tflops.find(std::string(peak_key(p)));
  if (found != gpu.tflops.end()) return found->second * 1e12;
  std::vector<std::string_view> known;
  for (const auto& [kind, tflops] : gpu.tflops) known.push_back(kind);
  throw Error(fmt::format("{}: no peak for {} is known; it has {}", gpu.id, name_of(p), fmt::join(known, ", ")));
}

std::int64_t gpus_of(const Cluster& c) { return c.nodes * c.gpus_per_node; }

Gpu find_gpu(std::string_view id) {
  const json& j = read("gpus", "gpu", id);
  Gpu gpu;
  gpu.id = id;
  gpu.name = j["name"].get<std::string>();
  gpu.architecture = find_named(kArchitectures, "architecture", j["architecture"].get<std::string>());
  gpu.compute_capability = j["compute_capability"].get<int>();
  gpu.tflops = j["tflops"].get<std::map<std::string, double>>();
  gpu.memory_bytes = j["memory_bytes"].get<Bytes>();
  gpu.memory_GBps = j["memory_GBps"].get<double>();
  gpu.l2_MB = j["l2_MB"].get<double>();
  gpu.sms = j["sms"].get<int>();
  gpu.nvlink_links = j["nvlink_links"].get<int>();
  gpu.nvlink_GBps = j["nvlink_GBps"].get<double>();
  gpu.link_GBps = j.value("link_GBps", 0.0);
  gpu.nvlink_reach = j.value("nvlink_reach", 0);
  gpu.pcie_GBps = j["pcie_GBps"].get<double>();
  gpu.tdp_W = j["tdp_W"].get<double>();
  gpu.uncalibrated = j.value("uncalibrated", false);
  return gpu;
}

Cluster find_cluster(std::string_view node, std::int64_t nodes) {
  const json& j = read("nodes", "node", node);
  Cluster c;
  c.node_id = node;
  c.gpu = find_gpu(j["gpu"].get<std::string>());
  c.gpus_per_node = j["gpus_per_node"].get<int>();
  c.nodes = nodes;
  c.nics = j["nics"].get<int>();
  c.nic_Gbps = j["nic_Gbps"].get<double>();
  c.fabric = find_fabric(j["fabric"].get<std::string>());
  c.nvlink_domain = j["nvlink_domain"].get<int>();
  c.amd_cpu = j["amd_cpu"].get<bool>();
  c.power_kW = j.value("power_kW", 0.0);
  read_parts(j, c);
  return c;
}

int default_nvlink_domain(const Gpu& gpu, int gpus_per_node) {
  if (gpu.nvlink_GBps <= 0) return 0;
  return gpu.nvlink_reach > 0 ? std::min(gpu.nvlink_reach, gpus_per_node) : gpus_per_node;
}

int nvlink_part(const Cluster& c) {
  if (c.nvlink_domain <= c.gpus_per_node || c.gpus_per_node <= 0) return c.nvlink_domain;
  const std::int64_t most = c.nvlink_domain / c.gpus_per_node;
  for (std::int64_t nodes = most; 2 * nodes > most; --nodes) {
    if (c.nodes % nodes == 0) return static_cast<int>(nodes) * c.gpus_per_node;
  }
  return c.nvlink_domain;
}

Fabric find_fabric(std::string_view name) { return find_named(kFabrics, "fabric", name); }
std::string_view name_of(Fabric f) { return name_in(kFabrics, f); }
std::string_view name_of(Architecture a) { return name_in(kArchitectures, a); }

double usual_Gbps(const Cluster& c, const Torus& torus) {
  return c.nics * c.nic_Gbps / (2 * std::max<double>(1, static_cast<double>(torus.shape.size())));
}

}  // namespace orrery
