#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/memory_tier.h"
#include "models/base/precision.h"
#include "models/base/units.h"
#include "models/spec/network.h"
#include "models/spec/variation.h"

namespace orrery {

enum class Architecture : std::uint8_t { volta, ampere, ada, hopper, blackwell, cdna2, cdna3, cdna4, other };
enum class Fabric : std::uint8_t { infiniband, roce, efa, omni_path, ethernet };

// A GPU product, as models/data/gpus/<id>.json describes it. Peak rates are for dense matrices; bandwidths are per
// direction.
struct Gpu {
  std::string id;
  std::string name;
  Architecture architecture = Architecture::other;
  int compute_capability = 0;  // compute capability times ten, e.g. 80, 90, 100
  // peak rates of matrix products, in TFLOP/s, by format: "fp32", "tf32", "fp16", "bf16", "fp8", "fp4"
  std::map<std::string, double> tflops;
  Bytes memory_bytes = 0;  // bytes of device memory that the driver reports
  double memory_GBps = 0;
  double l2_MB = 0;
  int sms = 0;
  int nvlink_links = 0;
  double nvlink_GBps = 0;  // rate of all links to other GPUs together: NVLink, or AMD's xGMI
  // The rate that a transfer reaches on the link between two GPUs, GB/s, where every pair of GPUs of a node has a link
  // of its own (AMD's xGMI); 0: a switch joins the links, so that any pair can use the complete nvlink_GBps.
  double link_GBps = 0;
  // number of GPUs that NVLink can connect: 2 = bridged pairs, 0 = all that the node's switches connect
  int nvlink_reach = 0;
  double pcie_GBps = 0;
  double tdp_W = 0;
  // Whether no measured step of this GPU was used to make its predictions better (AMD), or its communication is not
  // modelled (TPU); reports then say so.
  bool uncalibrated = false;
};

// Returns the peak rate of matrix products in a precision, in FLOP/s. Throws Error if the GPU does not support the
// precision.
double peak_flops(const Gpu& gpu, Precision p);

struct Host {
  Bytes dram_bytes = 0;
  double dram_GBps = 0;
};

// A memory tier behind the hosts (disks): its bytes and rates on one node.
struct Store {
  Bytes bytes = 0;
  double read_GBps = 0;
  double write_GBps = 0;
};

// A slow rank: its compute takes `slowdown` times as long as that of other ranks.
struct Straggler {
  std::int64_t rank = 0;
  double slowdown = 1;
};

// The mean number of hours between two failures of one node: Llama 3 405B had 419 unexpected interruptions in 54 days
// on 2,048 nodes of eight GPUs (arXiv 2407.21783, section 3.3.4).
inline constexpr double kNodeHoursBetweenFailures = 54.0 * 24 * 2048 / 419;

struct Failures {
  double node_mtbf_hours = kNodeHoursBetweenFailures;  // mean hours between failures of one node, 0 = never
  double restart_s = 0;                                // seconds that a restart takes, 0 = not known
  // number of steps between checkpoints; 0 = the interval with which the least time is lost to checkpoints and restarts
  std::int64_t checkpoint_every = 0;
  double detect_s = 0;       // seconds from a failure until it is noticed
  std::int64_t spares = -1;  // number of nodes that stand in for broken ones; -1: always enough
  double repair_hours = 24;  // hours until a broken node can be used again
};

// A cluster of equal machines (nodes). Ranks fill one node before the next.
struct Cluster {
  std::string node_id;  // name of the node, "dgx-h100"; "" if the spec describes the node itself
  Gpu gpu;
  int gpus_per_node = 8;
  std::int64_t nodes = 1;
  int nics = 8;
  double nic_Gbps = 0;
  Fabric fabric = Fabric::infiniband;
  int nvlink_domain = 0;  // number of GPUs that reach each other over NVLink; may span several nodes (NVL72)
  // whether the hosts have AMD processors: NCCL's tuning constants differ for Intel and AMD hosts
  bool amd_cpu = false;
  int gpus_per_pcie_switch = 1;
  // number of GPUs in a job above which the network is oversubscribed; 0 = never
  std::int64_t oversubscribed_above_gpus = 0;
  double oversubscription = 1;
  std::optional<Network> network;  // leaf switches and their uplinks; none: no uplink is short or hashed
  std::optional<Host> host;
  // capacity and bandwidths of each memory tier, indexed by index_of(tier); only tiers behind the host, such as disks,
  // have a value
  std::array<std::optional<Store>, kTiers> stores;
  std::optional<Store> storage;  // storage that all nodes share
  // whether it is reached over the NICs and switches of the training's transfers; else over a network of its own
  bool storage_on_backend = false;
  double power_kW = 0;  // power draw of a node, kW
  std::vector<Straggler> stragglers;
  // every rank that is not in `stragglers` is slow with probability straggler_share, drawn with the spec's seed; its
  // compute then takes straggler_slowdown times as long
  double straggler_share = 0, straggler_slowdown = 1;
  std::optional<Failures> failures;
  std::optional<Variation> variation;  // how GPUs and kernels differ; none: as the profile's figures have it
};

std::int64_t gpus_of(const Cluster& c);

// Returns the capacity and the bandwidths of a memory tier behind the host; nullopt if the cluster does not describe
// the tier.
inline const std::optional<Store>& store_of(const Cluster& c, MemoryTier tier) { return c.stores[index_of(tier)]; }

// These functions return built-in GPUs and nodes by name, and throw Error listing the known names if there is none. The
// node `localhost` has 0 GPUs, which stands for as many ranks as a spec asks for.
Gpu find_gpu(std::string_view id);                                // reads models/data/gpus/<id>.json
Cluster find_cluster(std::string_view node, std::int64_t nodes);  // reads models/data/nodes/<id>.json

inline bool is_amd(const Gpu& gpu) {
  return gpu.architecture >= Architecture::cdna2 && gpu.architecture <= Architecture::cdna4;
}

// Returns the rate at which one GPU can send to one other GPU of its node over NVLink or xGMI, GB/s.
inline double pair_GBps(const Gpu& gpu) { return gpu.link_GBps > 0 ? gpu.link_GBps : gpu.nvlink_GBps; }

// Returns the number of GPUs that reach each other over NVLink if n GPUs share a node: n, 2 (a bridged pair), or none.
int default_nvlink_domain(const Gpu& gpu, int gpus_per_node);

// Returns the number of GPUs that a job has in each NVLink domain. If domains span nodes, a job that needs more than
// one domain gets the same number of nodes in each domain, the largest such number that is more than half a domain
// (Slurm's --segment; NVIDIA's recipes ask for the largest divisor of the number of nodes up to 18: 64 nodes of 4 GPUs
// lie in four racks of 16, not in three of 18 and one of 10); if there is no such number, the job fills one domain
// after the other.
int nvlink_part(const Cluster& c);

Fabric find_fabric(std::string_view name);  // throws Error listing the known names
std::string_view name_of(Fabric f);
std::string_view name_of(Architecture a);

// Returns the rate of the links of a torus that states none, Gbps each way: a node's NICs are divided among its links.
double usual_Gbps(const Cluster& cluster, const Torus& torus);

}  // namespace orrery
