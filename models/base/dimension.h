#pragma once

#include <cstddef>
#include <cstdint>

namespace orrery {

// The kind of process group that a collective or transfer runs over (tensor, data, expert, ...), as an index into
// Plan::dimensions, which lists the ranks of every group of that kind.
enum class Dimension : std::uint8_t {
  tensor,
  context,
  expert,
  data,
  replicate,
  pipeline,
  embedding,
  kv,       // ranks of a tensor group that hold the same key/value heads
  ulysses,  // ranks of a context group that exchange heads for positions (DeepSpeed-Ulysses)
  model,
  world,
  expert_tensor,     // ranks that an expert's matrices are cut over
  expert_data,       // ranks that hold the same experts, and shard their optimizer states
  expert_replicate,  // ranks that hold the same shard of experts (hybrid sharding)
  tensor_row,        // on a grid of tensor ranks: ranks that differ only in their position within a row
  tensor_column,     // on a grid of tensor ranks: ranks that differ only in their position within a column
  tensor_depth,      // on a 2.5D or 3D grid of tensor ranks: ranks that differ only in their depth
  vocabulary,        // all ranks of a model replica, if its pipeline stages share the vocabulary
  data_in_node,      // ranks of a data-parallel group on one node, if they hold secondary shards (ZeRO++)
  data_over_nodes,   // ranks of a data-parallel group that have the same position within their nodes
  hand_over          // ranks of the model that trains, and those of a frozen one that send them its output
};

inline constexpr std::size_t kDimensions = 21;

// The sharding of an activation matrix over a grid of tensor ranks (2D, 2.5D or 3D tensor parallelism): its columns are
// split over the group `columns`, its samples over the group tensor_depth, and each of these shares of the samples
// again over the group `rows`. Without a grid each of the three groups has one rank.
struct Side {
  Dimension columns = Dimension::tensor_row, rows = Dimension::tensor_column;
};

}  // namespace orrery
