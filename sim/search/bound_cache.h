#pragma once

#include <array>
#include <compare>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "models/cost/nccl/model.h"
#include "sim/search/cell.h"
#include "sim/search/costs.h"
#include "sim/search/order.h"

namespace orrery {

// The number of layers of each virtual stage, and the index of its first layer; empty: the model cannot be cut into so
// many.
struct ModelCut {
  std::vector<std::int64_t> layers, first;
};

// The pipeline stage on which each virtual stage of a schedule is.
struct PlacedChunks {
  Schedule where;
  // for each pipeline stage and each of its chunks, the index of the virtual stage
  std::vector<std::vector<std::int64_t>> of_stage;
};

// The cost of the transfer of a unit (a layer's weights or gradients). time: its time when nothing else runs; nic,
// nvlink: time in which it would use the full bandwidth of that link; pressure: added time of kernels that run at the
// same time, as a share of their time alone (timing.h).
struct MovedUnit {
  Picoseconds time = 0, nic = 0, nvlink = 0;
  double pressure = 0;
};

// The ranks that hold the same weights, the number of them on each node, and the costs of their transfers.
struct ReplicaGroup {
  // Number of these ranks on each node; empty where this differs from stage to stage, and where no costs of transfers
  // are known.
  std::vector<int> spread;
  std::int64_t channels = 0;
  std::map<CollectiveKind, double> rates;
  std::map<std::pair<CollectiveKind, Bytes>, MovedUnit> moved;
};

// A class of shardings (ZeRO stages) that cost the same for a layer: one sharding that stands for the class, and
// whether gradients are on the host.
struct StackKind {
  Sharding sharding = Sharding::none;
  bool host_gradients = false;

  auto operator<=>(const StackKind&) const = default;
};

// time: the least step time, without the update, of any of the strategies that differ only in recomputation, offloaded
// activations, overlaps and order of ranks (a group; docs/model.md). least: the fewest weights of any stage.
struct GroupTime {
  Picoseconds time = 0;
  StageWeights least;
};

// Costs that strategies with different parallel degrees share, kept once they have been computed. Each thread has a
// cache of its own. The cache changes no result.
struct BoundCache {
  BoundCache(const Space& searched, const Profile& measured, StackCosts& shared)
      : space(searched), profile(measured), stacks(shared) {}

  const Space& space;
  const Profile& profile;
  StackCosts& stacks;  // costs of blocks, which all threads share
  KnownOrders orders;
  // cuts of the model; the key is the number of stages and of virtual stages on each
  std::map<std::pair<std::int64_t, std::int64_t>, ModelCut> cuts;
  std::map<std::pair<std::int64_t, bool>, std::int64_t> layers_ahead;
  std::map<std::tuple<ChunkPlacement, std::int64_t, std::int64_t, std::int64_t>, PlacedChunks> placed;
  std::map<std::int64_t, Picoseconds> updates;  // for each number of elements, the time of an optimizer update
  std::map<std::vector<int>, NcclModel> models;
  // Groups of replicas by a key: the strides of data, context and pipeline ranks, the number of ranks of one stage, the
  // degrees of data and context, the number of stages (0 where it makes no difference), and whether two copies of the
  // model share gradients.
  std::map<std::array<std::int64_t, 8>, ReplicaGroup> groups;
};

// Costs that all strategies of one RankLayout (parallel degrees and micro-batch size) share.
struct LayoutCosts {
  LayoutCosts(BoundCache& shared, const RankLayout& degrees) : cache(shared), layout(degrees) {}

  BoundCache& cache;
  RankLayout layout;
  std::int64_t own_tokens = 0;  // number of tokens to which attention is limited in rough_bound(); 0: all
  std::map<std::tuple<std::string_view, StackKind, bool, bool>, const StackCost*> stacks;
  std::map<std::tuple<std::string_view, std::int64_t, StackKind>, GroupTime> groups;
  std::array<std::optional<Picoseconds>, 2> sends;  // time of a send: [0] between nodes, [1] within a node
  std::optional<std::int64_t> tensor_channels;      // number of NCCL channels of the tensor group
  // Bytes of NCCL's buffers, by size of the shard group and number of copies of the model.
  std::map<std::pair<std::int64_t, std::int64_t>, Bytes> communicator_bytes;
};

// Costs of the model's blocks where `recompute` names the parts of a layer that run again in backward. splits: whether
// the schedule splits backward in two; leaves: whether to find the bytes of activations that can be offloaded
// (BlockCost::leaves).
const StackCost& stack_of(LayoutCosts& costs, std::string_view recompute, StackKind kind, bool splits,
                          bool leaves = false);
const ModelCut& cut_of(BoundCache& cache, std::int64_t pipeline, std::int64_t virtual_stages);
const PlacedChunks& chunks_of(BoundCache& cache, const SearchCell& cell);

StackKind stack_kind(const Spec& base, Sharding sharding);
StackKind stack_kind(const Spec& base, const MemoryPlan& memory_plan);
// All classes of shardings that cost the same for a layer, among the shardings that strategies with these parallel
// degrees may have.
std::vector<StackKind> stack_kinds(const Space& space, const RankLayout& layout);
// Whether gradients are reduced unit by unit (an FSDP unit, a layer under ZeRO-3).
bool reduces_units(const Spec& base, const MemoryPlan& memory_plan);

}  // namespace orrery
