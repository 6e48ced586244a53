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

// Number of layers of each virtual stage, and index of its first layer; empty: the model cannot be cut so.
struct ModelCut {
  std::vector<std::int64_t> layers, first;
};

// The stages on which the virtual stages of a schedule lie.
struct PlacedChunks {
  Schedule where;
  std::vector<std::vector<std::int64_t>> of_stage;  // [stage]: virtual stages, chunk by chunk
};

// A transfer that nothing runs beside. time: that of the transfer alone; nic, nvlink: the part in which the link would
// be full; pressure: that on kernels (timing.h).
struct MovedUnit {
  Picoseconds time = 0, nic = 0, nvlink = 0;
  double pressure = 0;
};

// Ranks that hold the same weights, on the nodes that they lie on, and what their transfers cost.
struct ReplicaGroup {
  // ranks by node; empty where stages lie differently, and where nothing is known of transfers
  std::vector<int> spread;
  std::int64_t channels = 0;
  std::map<CollectiveKind, double> rates;
  std::map<std::pair<CollectiveKind, Bytes>, MovedUnit> moved;
};

// A class of shardings under which blocks cost the same: a sharding that stands for the class, and whether gradients
// lie on the host.
struct StackKind {
  Sharding sharding = Sharding::none;
  bool host_gradients = false;

  auto operator<=>(const StackKind&) const = default;
};

// Least time of the cells of a group, without the update; least: the fewest elements of any stage.
struct GroupTime {
  Picoseconds time = 0;
  StageWeights least;
};

// Costs that strategies of many layouts share, kept as they are worked out: one cache for each thread. What is kept
// changes no bound.
struct BoundCache {
  BoundCache(const Space& searched, const Profile& measured, StackCosts& shared)
      : space(searched), profile(measured), stacks(shared) {}

  const Space& space;
  const Profile& profile;
  StackCosts& stacks;  // costs of blocks, which all threads share
  KnownOrders orders;
  std::map<std::pair<std::int64_t, std::int64_t>, ModelCut> cuts;  // by stages, and virtual stages of each
  std::map<std::pair<std::int64_t, bool>, std::int64_t> layers_ahead;
  std::map<std::tuple<ChunkPlacement, std::int64_t, std::int64_t, std::int64_t>, PlacedChunks> placed;
  std::map<std::int64_t, Picoseconds> updates;  // time of an update, by elements
  std::map<std::vector<int>, NcclModel> models;
  // Groups by the strides of data, context and pipeline ranks, the size, the degrees of data and context, and whether
  // there is a pipeline.
  std::map<std::array<std::int64_t, 7>, ReplicaGroup> groups;
};

// Costs that all cells of one layout share.
struct LayoutCosts {
  LayoutCosts(BoundCache& shared, const RankLayout& degrees) : cache(shared), layout(degrees) {}

  BoundCache& cache;
  RankLayout layout;
  std::int64_t own_tokens = 0;  // tokens of a rank, where they alone stand for the sequence (rough_bound)
  std::map<std::tuple<std::string_view, StackKind, bool, bool>, const StackCost*> stacks;
  std::map<std::tuple<std::string_view, std::int64_t, StackKind>, GroupTime> groups;
  std::array<std::optional<Picoseconds>, 2> sends;  // send times: across nodes, within a node
  std::optional<std::int64_t> tensor_channels;      // channels of the tensor group
  // bytes of NCCL buffers, by shard group and copies of the model
  std::map<std::pair<std::int64_t, std::int64_t>, Bytes> communicator_bytes;
};

// Blocks of the model where `recompute` runs again. splits: whether backward is split; leaves: whether
// BlockCost::leaves is asked for.
const StackCost& stack_of(LayoutCosts& costs, std::string_view recompute, StackKind kind, bool splits,
                          bool leaves = false);
const ModelCut& cut_of(BoundCache& cache, std::int64_t pipeline, std::int64_t virtual_stages);
const PlacedChunks& chunks_of(BoundCache& cache, const SearchCell& cell);

StackKind stack_kind(const Spec& base, Sharding sharding);
StackKind stack_kind(const Spec& base, const MemoryPlan& memory_plan);
// All kinds that the strategies of a layout may have.
std::vector<StackKind> stack_kinds(const Space& space, const RankLayout& layout);
// Whether gradients are reduced unit by unit.
bool reduces_units(const Spec& base, const MemoryPlan& memory_plan);

}  // namespace orrery
