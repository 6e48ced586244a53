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
  ulysses,  // ranks of a context group that exchange heads for positions (Ulysses)
  model,
  world,
  expert_tensor,     // ranks that an expert's matrices are cut over
  expert_data,       // ranks that hold the same experts, and shard their optimizer states
  expert_replicate,  // ranks that hold the same shard of experts (hybrid sharding)
  tensor_row,        // on a grid of tensor ranks: ranks that differ only in their position within a row
  tensor_column,     // on such a grid: ranks that differ only in their position within a column
  tensor_depth,      // on such a grid: ranks that differ only in their depth
  vocabulary,        // all ranks of a model replica, if its pipeline stages share the vocabulary
  data_in_node,      // ranks of a data group on one node, if they hold secondary shards (ZeRO++)
  data_over_nodes    // ranks of a data group that have the same position within their nodes
};

inline constexpr std::size_t kDimensions = 20;

// How an activation matrix is sharded over a grid of tensor ranks (strategy.tensor_kind): its columns over the group
// `columns`, its samples over tensor_depth, and each of these parts of the samples over the group `rows`. Without a
// grid these groups have one rank each.
struct Side {
  Dimension columns = Dimension::tensor_row, rows = Dimension::tensor_column;
};

}  // namespace orrery
