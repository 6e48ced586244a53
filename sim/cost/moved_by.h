#pragma once

#include "models/plan/op.h"

namespace orrery {

// Returns the copy to one other rank that a piece of a collective by copy engines is (PyTorch's symmetric memory:
// _pipelined_produce_and_all2all). Of a reduce-scatter, whose parts are summed afterwards, one of all ranks' pieces
// stays on its rank.
inline Collective one_copy(Collective c, std::int64_t ranks) {
  if (c.kind == CollectiveKind::reduce_scatter) c.bytes = c.bytes * (ranks - 1) / ranks;
  c.kind = CollectiveKind::shift;
  return c;
}

// Returns the bytes of an all-to-all among `ranks` ranks in which each sends as many bytes to others as the busiest
// rank of a hand-over (Collective::sent) sends or receives: an all-to-all keeps one of `ranks` pieces where it is.
inline Bytes exchanged_bytes(const Collective& c, std::int64_t ranks) { return c.bytes * ranks / (ranks - 1); }

// Returns whether a collective that adds arrays is made of copies and sums by Orrery's own algorithms, not by NCCL.
inline bool sums_by_moves(const Collective& c) {
  const bool adds = c.kind == CollectiveKind::all_reduce || c.kind == CollectiveKind::reduce_scatter ||
                    c.kind == CollectiveKind::reduce;
  return adds && c.algorithm != "library" && c.algorithm != kUserBuffers && c.algorithm != kCopyEngines;
}

}  // namespace orrery
