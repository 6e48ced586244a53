#pragma once

#include <cstdint>
#include <vector>

#include "models/plan/plan.h"
#include "models/spec/spec.h"

namespace orrery {

// Coordinates of one rank in the parallel degrees: also the index among the replicas of its stage
// (Strategy::stage_replicas), and its position in the pipeline (`place`), where each replica of a stage counts as one
// position.
struct Coordinates {
  std::int64_t tensor = 0, context = 0, data = 0, pipeline = 0, replica = 0, place = 0;
};

// The coordinates of every rank, by Strategy::rank_order (innermost first: "tp-cp-ep-dp-pp"; ep lies inside dp and is
// skipped). Throws Error for an order that names a dimension twice or leaves one of degree > 1 out.
std::vector<Coordinates> coordinates(const Strategy& s);

// The dimensions over whose groups tensor parallelism cuts a weight or an activation: the tensor groups, or those of a
// grid of tensor ranks.
std::vector<Dimension> tensor_axes(const Strategy& s);

// All groups of every dimension, as lists of global ranks in rank order:
//   tensor, pipeline: ranks that differ in that coordinate alone; all replicas of all stages are in one pipeline group,
//     and their tensor ranks where those have parts of the rows (Strategy::row_parts)
//   context: ranks of different blocks of the ring (all that differ in that coordinate alone, but for ulysses);
//   ulysses: neighbours in it that exchange heads, those of one block
//   data: ranks that share one set of shards (data and context coordinates; shard_group of them when hybrid), all
//     replicas of a stage, and those of the stages too that have copies of its weights (model_copies)
//   replicate: ranks that hold the same shard (hybrid), else alone
//   embedding: first and last stage of a pipeline group, a replica of each; all ranks of both where they have not as
//     many replicas
//   vocabulary: tensor x pipeline where stages share the vocabulary, else alone
//   kv: neighbours in a tensor group that hold the same key/value heads, as many as a head has copies
//   expert_tensor, expert, expert_data: the ranks of a stage (hybrid: those of it that share shards), numbered in rank
//     order and cut into blocks of expert_tensor * expert: neighbours in a block, ranks of a block at the same place
//     among neighbours, and ranks at the same place of every block (Megatron-Core's second layout of the same ranks,
//     for experts); expert_data: alone without experts
//   expert_replicate: ranks at the same place of every set of shards (hybrid), else alone
//   model: ranks among which the gradient norm is summed: tensor x pipeline, and the shards' group when sharded;
//     everybody where a model has experts, whose weights are spread otherwise than the rest (hybrid: all that share
//     shards), or runs in several copies
//   data_in_node, data_over_nodes: ranks of a data group on one node, and those at the same place of each of its nodes;
//     alone where `node_ranks` is 0
//   world: everybody
//   tensor_row, tensor_column, tensor_depth: ranks of a grid that differ in j, i or x alone. In a grid of tensor ranks,
//     q to a side (2d, 2.5d, 3d), the rank at row i and place j of layer x is number (x * q + i) * q + j of its tensor
//     group. The layers of a 2.5d grid hold the same weights, as data ranks do: they are in one data group, and each
//     has a tensor group of its own
std::vector<GroupTable> make_groups(const Strategy& s, bool sharded, bool hybrid, std::int64_t kv_copies = 1,
                                    bool experts = false, std::int64_t node_ranks = 0);

// Whether sharding has no effect: no rank shares its parameters with another rank, and no state is offloaded, so that
// ZeRO's stages give the same plan as `none`. FSDP always has an effect, because it casts its fp32 parameters for every
// use. experts: the model has experts, which are sharded over other groups than other weights.
bool shards_nothing(const Strategy& s, bool experts);

}  // namespace orrery
