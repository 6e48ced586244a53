#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/precision.h"
#include "models/base/units.h"

namespace orrery {

enum class Architecture : std::uint8_t { volta, ampere, ada, hopper, blackwell, other };
enum class Fabric : std::uint8_t { infiniband, roce, efa, omni_path, ethernet };

// One kind of GPU, from models/data/gpus/<id>.json. Peaks are dense; bandwidths are per direction.
struct Gpu {
  std::string id;
  std::string name;
  Architecture architecture = Architecture::other;
  int compute_capability = 0;            // e.g. 80, 90, 100
  std::map<std::string, double> tflops;  // peaks by kind: "fp32", "tf32", "fp16", "bf16", "fp8", "fp4"
  Bytes memory_bytes = 0;                // bytes that the driver reports
  double memory_GBps = 0;
  double l2_MB = 0;
  int sms = 0;
  int nvlink_links = 0;
  double nvlink_GBps = 0;
  int nvlink_reach = 0;  // GPUs that NVLink can connect: 2 = bridged pairs, 0 = what the node's switches allow
  double pcie_GBps = 0;
  double tdp_W = 0;
  bool uncalibrated = false;  // no communication model was validated for it (AMD, TPU): results are marked so
};

// Peak of matrix products in a precision, flop/s. Throws Error if the part does not have it.
double peak_flops(const Gpu& gpu, Precision p);

struct Host {
  Bytes dram_bytes = 0;
  double dram_GBps = 0;
};

struct Nvme {
  Bytes bytes = 0;
  double read_GBps = 0;
  double write_GBps = 0;
};

// A rank whose compute takes slowdown times as long.
struct Straggler {
  std::int64_t rank = 0;
  double slowdown = 1;
};

// Mean hours between two failures of one node: Llama 3 405B had 419 unexpected interruptions in 54 days on 2,048 nodes
// of eight GPUs (arXiv 2407.21783, section 3.3.4).
inline constexpr double kNodeHoursBetweenFailures = 54.0 * 24 * 2048 / 419;

struct Failures {
  double node_mtbf_hours = kNodeHoursBetweenFailures;  // mean time between failures of one node, 0 = never
  double restart_s = 0;                                // seconds that a restart takes, 0 = not known
  std::int64_t checkpoint_every = 0;                   // steps between checkpoints, 0 = as often as loses least
};

// One kind of machine, and how many there are. Ranks fill one node before the next.
struct Cluster {
  std::string node_id;  // "dgx-h100", or "" for one given by its parts
  Gpu gpu;
  int gpus_per_node = 8;
  std::int64_t nodes = 1;
  int nics = 8;
  double nic_Gbps = 0;
  Fabric fabric = Fabric::infiniband;
  int nvlink_domain = 0;  // GPUs that reach each other over NVLink; may exceed a node (NVL72)
  bool amd_cpu = false;   // NCCL's tables differ for Intel and AMD hosts
  int gpus_per_pcie_switch = 1;
  std::int64_t oversubscribed_above_gpus = 0;  // GPUs above which the network is oversubscribed, 0 = never
  double oversubscription = 1;
  std::optional<Host> host;
  std::optional<Nvme> nvme;
  double power_kW = 0;  // power of a node
  std::vector<Straggler> stragglers;
  // Apart from the named stragglers, every rank is slow with this probability, drawn with the spec's seed.
  double straggler_share = 0, straggler_slowdown = 1;
  std::optional<Failures> failures;
};

std::int64_t gpus_of(const Cluster& c);

// Finders of built-in parts. They throw Error listing the known ids. The node `localhost` has 0 GPUs, which stands for
// as many ranks as a spec asks for.
Gpu find_gpu(std::string_view id);                                // models/data/gpus/<id>.json
Cluster find_cluster(std::string_view node, std::int64_t nodes);  // models/data/nodes/<id>.json

// The number of GPUs that reach each other over NVLink when n of them share a node: n, 2 (a bridged pair), or none.
int default_nvlink_domain(const Gpu& gpu, int gpus_per_node);

// The number of GPUs that a job has in each NVLink domain. If domains span nodes, a job in more than one domain gets
// equal parts of domains, the largest of more than half a domain (Slurm's --segment; NVIDIA's recipes ask for the
// largest divisor of the nodes up to 18: 64 nodes of 4 GPUs lie in four racks of 16, not in three of 18 and one of 10);
// otherwise the job fills one domain after the other.
int nvlink_part(const Cluster& c);

Fabric find_fabric(std::string_view name);  // throws Error listing the known names
std::string_view name_of(Fabric f);
std::string_view name_of(Architecture a);

}  // namespace orrery
