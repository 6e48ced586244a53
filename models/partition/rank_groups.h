#pragma once

#include <cstdint>
#include <vector>

#include "models/plan/plan.h"
#include "models/spec/spec.h"

namespace orrery {

// The coordinates of one rank in the parallel degrees. replica: index of the rank among the replicas of its stage
// (Strategy::stage_replicas). place: position in the pipeline, where each replica of a stage counts as one position.
struct Coordinates {
  std::int64_t tensor = 0, context = 0, data = 0, pipeline = 0, replica = 0, place = 0;
};

// Returns the coordinates of every rank, by Strategy::rank_order (innermost first: "tp-cp-ep-dp-pp"; ep lies inside dp
// and is skipped). Throws Error for an order that names a dimension twice or leaves one of degree > 1 out.
std::vector<Coordinates> coordinates(const Strategy& s);

// Returns the dimensions over whose groups tensor parallelism cuts a weight or an activation: the tensor groups, or the
// rows, columns (and depth) of a grid of tensor ranks.
std::vector<Dimension> tensor_axes(const Strategy& s);

// Returns all groups of every dimension, as lists of global ranks in rank order. A rank that has no partner in a
// dimension is alone in its group. Sets of shards: with `hybrid` sharding, shard_group ranks share one set of shards
// and further ranks hold the same shards again; otherwise all ranks with the same weights share one set.
//   tensor: ranks that differ in the tensor coordinate alone
//   pipeline: ranks that differ in the pipeline coordinate alone. All replicas of all stages are in one pipeline
//     group; so are all their tensor ranks, if tensor ranks hold parts of the rows (Strategy::row_parts)
//   context: ranks in different blocks of the ring of sequence blocks: ranks that differ in the context coordinate
//     alone and have the same place in their blocks
//   ulysses: ranks of one block of the ring, which exchange heads
//   data: ranks that share one set of shards of the same weights: they differ in the data and context coordinates.
//     The group has all replicas of a stage, and the stages that hold copies of its weights (model_copies)
//   replicate: with hybrid, ranks that hold the same shard
//   embedding: the first and the last stage of a pipeline group, one replica of each; if the two stages differ in
//     their number of replicas, all ranks of both with the same tensor coordinate
//   vocabulary: all tensor and pipeline ranks of one replica of the model, if stages share the vocabulary
//   kv: neighbours in a tensor group that hold the same key/value heads; their number is kv_copies
//   expert_tensor, expert, expert_data: the ranks of a stage that share one set of shards, numbered in rank order and
//     cut into blocks of expert_tensor * expert ranks (Megatron-Core's second layout of the same ranks, for experts).
//     expert_tensor: expert_tensor neighbours in a block; expert: ranks of a block at the same place among neighbours;
//     expert_data: ranks at the same place of every block, if the model has experts
//   expert_replicate: with hybrid, ranks at the same place of every set of shards, if the model has experts
//   model: ranks over which the gradient norm is summed: all tensor and pipeline ranks of a replica, and with
//     `sharded` all replicas that share one set of shards. A model with experts, whose weights are distributed
//     differently from other weights, or with several copies (model_copies), has all ranks that share one set of shards
//     in this group
//   data_in_node, data_over_nodes: the ranks of a data group on one node, and the ranks at the same place of each of
//     the group's nodes; only if node_ranks, the number of ranks of a node, is not 0
//   world: all ranks
//   hand_over: the rank alone; where a frozen model has ranks of its own, these groups are made of both models' ranks
//     (hand_over.h), as all other groups are of one model's
//   tensor_row, tensor_column, tensor_depth: ranks of a grid that differ in j, i or x alone. In a grid of tensor
//     ranks with sides of q ranks (2d, 2.5d, 3d), the rank at row i and place j of layer x is number (x * q + i) * q +
//     j of its tensor group. The layers of a 2.5d grid hold the same weights, as data ranks do: they are in one data
//     group, and each has a tensor group of its own
std::vector<GroupTable> make_groups(const Strategy& s, bool sharded, bool hybrid, std::int64_t kv_copies = 1,
                                    bool experts = false, std::int64_t node_ranks = 0);

// Returns whether the model that trains, or the frozen one beside it, has experts, for which ranks form other groups.
bool has_experts(const Spec& spec);

// Returns whether the plan must tell ranks with the busiest experts from other ranks. One load for all ranks is enough
// if each expert gets the same number of rows.
bool unevenly_loaded(const Spec& spec);

// Returns whether sharding has no effect: no rank shares its parameters with another rank, and no state is offloaded,
// so that ZeRO's stages give the same plan as `none`. FSDP always has an effect, because it casts its fp32 parameters
// for every use. experts: whether the model has experts, which are sharded over other groups than other weights.
bool shards_nothing(const Strategy& s, bool experts);

}  // namespace orrery
