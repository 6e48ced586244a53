#pragma once

#include <cstddef>
#include <cstdint>

namespace orrery {

// The set of ranks that a transfer spans: an index of Plan::dimensions. Groups are lists there, never formulas.
enum class Dimension : std::uint8_t {
  tensor,
  context,
  expert,
  data,
  replicate,
  pipeline,
  embedding,
  kv,       // ranks of a tensor group that hold the same key/value heads
  ulysses,  // ranks of a context group that exchange heads for positions
  model,
  world,
  expert_tensor,     // ranks that an expert's matrices are cut over
  expert_data,       // ranks that hold the same experts, and share their states
  expert_replicate,  // ranks that hold the same shard of experts (hybrid)
  tensor_row,        // on a grid of tensor ranks: ranks that differ in their place in a row alone
  tensor_column,     // ranks that differ in their place in a column alone
  tensor_depth,      // ranks that differ in depth alone
  vocabulary         // ranks of a replica, where stages share the vocabulary
};

inline constexpr std::size_t kDimensions = 18;

// How activations lie on a grid of tensor ranks (strategy.tensor_kind): the columns are cut over one group, the samples
// over tensor_depth and each part of them over another group. Without a grid the groups named here have one rank.
struct Side {
  Dimension columns = Dimension::tensor_row, rows = Dimension::tensor_column;
};

}  // namespace orrery
