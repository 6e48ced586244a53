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

// How a model is cut into virtual stages: for each virtual stage, its number of layers and the index of its first
// layer. Both arrays are empty if the model cannot be cut into that many virtual stages.
struct ModelCut {
  std::vector<std::int64_t> layers, first;
};

// Which pipeline stage runs each virtual stage of a schedule.
struct PlacedChunks {
  Schedule where;
  // For each pipeline stage and each of the stage's chunks: the index of the virtual stage that the chunk computes.
  std::vector<std::vector<std::int64_t>> of_stage;
};

// The cost of transferring a unit (a layer's weights or gradients). time: picoseconds when nothing else runs; nic,
// nvlink: picoseconds for which the transfer would need that link's full bandwidth; pressure: how much longer kernels
// take that run beside the transfer, as a share of their time alone (0.1: 10 % longer).
struct MovedUnit {
  Picoseconds time = 0, nic = 0, nvlink = 0;
  double pressure = 0;
};

// The ranks that hold the same weights (data and context ranks), how many of them are on each node, and their transfer
// costs.
struct ReplicaGroup {
  // For each node, the number of ranks on it that hold the same weights; empty where this differs from stage to stage,
  // and where no transfer costs are known.
  std::vector<int> spread;
  std::int64_t channels = 0;
  std::map<CollectiveKind, double> rates;
  std::map<std::pair<CollectiveKind, Bytes>, MovedUnit> moved;
};

// A class of shardings (ZeRO stages) with which a layer costs the same. sharding: one of them, which stands for all;
// host_gradients: whether gradients are on the host.
struct ShardingClass {
  Sharding sharding = Sharding::none;
  bool host_gradients = false;

  auto operator<=>(const ShardingClass&) const = default;
};

// Figures that hold for all strategies that differ only in recomputation, offloaded activations, overlaps and order of
// ranks (a group; docs/model.md). time: lower bound of the step time without the optimizer update; least: the fewest
// weights of any stage.
struct GroupTime {
  Picoseconds time = 0;
  StageWeights least;
};

// Costs that strategies with different parallel degrees have in common, computed once and kept. Each thread has a cache
// of its own. The cache changes no result.
struct BoundCache {
  BoundCache(const Space& searched, const Profile& measured, ModelCostCache& shared)
      : space(searched), profile(measured), stacks(shared) {}

  const Space& space;
  const Profile& profile;
  ModelCostCache& stacks;  // cache of the costs of blocks, which all threads share
  KnownOrders orders;
  // Cuts of the model, and of the frozen one beside it, into virtual stages, by (number of stages, number of virtual
  // stages on each stage).
  std::map<std::pair<std::int64_t, std::int64_t>, ModelCut> cuts, second_cuts;
  std::map<std::pair<std::int64_t, bool>, std::int64_t> layers_ahead;
  std::map<std::tuple<ChunkPlacement, std::int64_t, std::int64_t, std::int64_t>, PlacedChunks> placed;
  std::map<std::int64_t, Picoseconds> updates;  // time of an optimizer update, by number of updated weights
  std::map<std::vector<int>, NcclModel> models;
  // Groups of ranks that hold the same weights, by a key: the strides (distances in rank numbers) of data, context and
  // pipeline ranks, the number of the group's ranks on one stage, the degrees of data and context, the number of stages
  // (0 where it makes no difference), and whether two copies of the model share gradients.
  std::map<std::array<std::int64_t, 8>, ReplicaGroup> groups;
};

// Costs that all strategies of one RankLayout (parallel degrees and micro-batch size) share.
struct LayoutCosts {
  LayoutCosts(BoundCache& shared, const RankLayout& degrees) : cache(shared), layout(degrees) {}

  BoundCache& cache;
  RankLayout layout;
  std::int64_t own_tokens = 0;  // rough_bound() counts attention among this many tokens only; 0: among all
  std::map<std::tuple<std::string_view, ShardingClass, bool, bool>, const ModelCost*> stacks;
  std::map<std::tuple<std::string_view, std::int64_t, ShardingClass>, GroupTime> groups;
  std::array<std::optional<Picoseconds>, 2> sends;  // time of a send between stages: [0] across nodes, [1] within one
  std::optional<std::int64_t> tensor_channels;      // number of NCCL channels of the tensor group
  // Bytes of NCCL's buffers, by size of the shard group and number of copies of the model.
  std::map<std::pair<std::int64_t, std::int64_t>, Bytes> communicator_bytes;
};

// The costs of the model's blocks (layers, embedding, output). recompute: the parts of a layer that run again in
// backward; splits: whether the schedule splits backward into input and weight gradients; leaves: whether to find the
// bytes of activations that can be offloaded (BlockCost::leaves).
const ModelCost& model_cost_of(LayoutCosts& costs, std::string_view recompute, ShardingClass kind, bool splits,
                               bool leaves = false);
const ModelCut& cut_of(BoundCache& cache, std::int64_t pipeline, std::int64_t virtual_stages);
// The cut of the frozen model beside the one that trains.
const ModelCut& second_cut_of(BoundCache& cache, std::int64_t pipeline, std::int64_t virtual_stages);
const PlacedChunks& chunks_of(BoundCache& cache, const SearchCell& cell);

ShardingClass sharding_class(const Spec& base, Sharding sharding);
ShardingClass sharding_class(const Spec& base, const MemoryPlan& memory_plan);
// Lists the classes of shardings (ZeRO stages) with which a layer costs the same, of the shardings that strategies with
// these parallel degrees may have.
std::vector<ShardingClass> sharding_classes(const Space& space, const RankLayout& layout);
// Whether gradients are reduced unit by unit (a unit: the parameters of an FSDP unit, or of a layer under ZeRO-3).
bool reduces_units(const Spec& base, const MemoryPlan& memory_plan);

}  // namespace orrery
