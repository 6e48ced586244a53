#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/plan/plan.h"
#include "models/spec/spec.h"

namespace orrery {

// A weight in a chunk's flat buffers.
struct PlacedParameter {
  std::string name;        // "layer 3 attention.qkv.weight"; the same wherever the weight is held
  LocalParameter local;    // shape on this rank
  std::int64_t first = 0;  // element of the chunk's flat buffers
  bool copy = false;       // a copy of a weight that an earlier stage of the same replica holds too (tied output)
};

// Every weight that trains, or every frozen one, of the chunk with state frame `state`, once each, in the order of the
// chunk's flat buffers.
std::vector<PlacedParameter> parameters_of(const Plan& plan, std::uint32_t state, bool frozen = false);

// A run of a chunk's flat buffers that one collective cuts over the ranks with the same weights: member i of n owns
// elements [i c, (i + 1) c) of it, c = ceil(elements / n), as far as they exist. In shards the owned parts follow each
// other, each padded to c elements.
struct Piece {
  std::int64_t first = 0, elements = 0;  // the run of elements
  std::int64_t owned_first = 0, owned = 0;
  std::int64_t shard_first = 0;
  std::uint32_t unit = kNone;  // the unit frame that the piece belongs to, where units are cut; else kNone, a bucket
};

// Whether the ranks of a slot update weights: not DataParallel's replicas, nor a parameter server's workers.
bool updates(const Plan& plan, const RankClass& slot);

// The pieces that a rank updates: pieces of units or of buckets, in the order of the flat buffers. If nothing is
// sharded all of the chunk is one piece, as are weights that the rank alone holds; if another rank makes all updates
// there are none.
std::vector<Piece> pieces_of(const Plan& plan, std::uint32_t state, std::int64_t rank);

// The rank's shards of frozen weights, unit by unit in the order of their buffer; all of them where they are whole.
std::vector<Piece> frozen_pieces_of(const Plan& plan, std::uint32_t state, std::int64_t rank);

// State frames of a slot, in the order of its chunks.
std::vector<std::uint32_t> states_of(const Plan& plan, std::uint32_t slot);

// The row of the uncut weight that is row `index` on tensor rank `rank` of `ranks` (column for Cut::columns). With
// Cut::heads the rows of q, k and v follow each other; if there are fewer key/value heads than ranks, several ranks
// hold the same one.
std::int64_t uncut_index(const Model& model, const LocalParameter& p, std::int64_t index, std::int64_t rank,
                         std::int64_t ranks);

// The number of the rank's expert that a row belongs to, as experts' matrices lie one after another, and the row within
// that expert's matrix; 0 and the row itself for other weights.
struct ExpertRow {
  LocalParameter one;  // the parameter of one expert
  std::int64_t expert = 0, row = 0;
};
ExpertRow expert_row(const LocalParameter& p, std::int64_t index);

// Shape of the uncut weight.
struct UncutShape {
  std::int64_t out = 0, in = 0;
};
UncutShape uncut_shape(const Model& model, const LocalParameter& p, std::int64_t ranks);

}  // namespace orrery
