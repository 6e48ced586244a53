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
//   tensor: ranks that differ in this coordinate only
//   pipeline: ranks that differ in the stage only; all replicas of all stages are in one pipeline group, and also their
//     tensor ranks if these have parts of the rows (Strategy::row_parts)
//   context: ranks of different blocks of the ring, at the same position in their block (without ulysses: all ranks
//     that differ in this coordinate only)
//   ulysses: ranks of one block, which exchange heads
//   data: ranks that share one set of shards (they differ in data and context coordinates; if hybrid, shard_group such
//     ranks), including all replicas of a stage, and the ranks of other stages that hold copies of its weights
//     (model_copies)
//   replicate: if hybrid, ranks that hold the same shard; else each rank alone
//   embedding: the first and the last stage of a pipeline group, one replica of each; all ranks of both stages if their
//     numbers of replicas differ
//   vocabulary: tensor x pipeline if stages share the vocabulary, else each rank alone
//   kv: neighbours in a tensor group that hold the same key/value heads, kv_copies of them
//   expert_tensor, expert, expert_data: the ranks of a stage (if hybrid, those that share one set of shards) are
//     numbered in rank order and cut into blocks of expert_tensor * expert. expert_tensor: neighbours in a block;
//     expert: ranks of a block at the same position among these neighbours; expert_data: ranks at the same position in
//     every block (Megatron-Core's second set of groups over the same ranks, for experts), or each rank alone without
//     experts
//   expert_replicate: if hybrid, ranks at the same position in every set of shards; else each rank alone
//   model: ranks over which the gradient norm is summed: tensor x pipeline, with sharding also the ranks that share
//     shards. All ranks (if hybrid, all that share one set of shards) if a model has experts, which are distributed
//     over other groups than other weights, or if it runs in several copies
//   world: all ranks
//   tensor_row, tensor_column, tensor_depth: ranks of a grid of tensor ranks that differ only in j, i or x. In a grid
//     of side q (2d, 2.5d, 3d), the rank at row i and column j of layer x is number (x * q + i) * q + j of its tensor
//     group. The layers of a 2.5d grid hold the same weights, as data ranks do, so they are in one data group, and each
//     layer has a tensor group of its own
std::vector<GroupTable> make_groups(const Strategy& s, bool sharded, bool hybrid, std::int64_t kv_copies = 1,
                                    bool experts = false);

// Whether sharding has no effect: no rank shares its parameters with another rank, and no state is offloaded, so that
// ZeRO's stages give the same plan as `none`. FSDP always has an effect, because it casts its fp32 parameters for every
// use. experts: the model has experts, which are sharded over other groups than other weights.
bool shards_nothing(const Strategy& s, bool experts);

}  // namespace orrery
