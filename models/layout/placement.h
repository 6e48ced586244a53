#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/plan/plan.h"
#include "models/spec/spec.h"

namespace orrery {

// A weight and its place in the flat buffers of a chunk (the layers that a stage runs in one go).
struct PlacedParameter {
  std::string name;      // "layer 3 attention.qkv.weight"; the same on every rank that holds the weight
  LocalParameter local;  // the weight's shape and cut on this rank
  // index of the weight's first element in the chunk's flat buffers, or of its first unit (Plan::frozen_width) in the
  // buffer of frozen weights
  std::int64_t first = 0;
  bool copy = false;      // whether an earlier stage of the same replica holds the same weight (tied output)
  bool of_layer = false;  // whether the weight belongs to a layer

  bool layer_matrix() const { return of_layer && local.in > 1; }  // whether Muon orthogonalizes the weight
};

// Returns every trained weight (or if `frozen`, every frozen weight) of a chunk once, in the order of the chunk's flat
// buffers. state: id of the instance of buffers (frame) that holds the chunk's weights and optimizer states.
std::vector<PlacedParameter> parameters_of(const Plan& plan, std::uint32_t state, bool frozen = false);

// A contiguous range of a chunk's flat buffers that one collective cuts over the ranks with the same weights: member i
// of n owns the elements [i c, (i + 1) c) of the range with c = ceil(elements / n), or fewer at the end of the range.
// In a rank's buffer of shards the parts that it owns lie one after another, each padded to c elements.
struct Piece {
  std::int64_t first = 0, elements = 0;  // first element of the range in the flat buffers, and its length
  std::int64_t owned_first = 0, owned = 0;
  std::int64_t shard_first = 0;
  // id of the buffers (frame) of the sharding unit that the range belongs to; kNone if the range is a gradient bucket
  std::uint32_t unit = kNone;
  std::int64_t ranks = 1;  // number of ranks over which the range is cut
};

// Returns whether the ranks of this class update weights: replicas of torch's DataParallel and workers of a parameter
// server do not.
bool updates(const Plan& plan, const RankClass& slot);

// Returns the ranges (Piece) of a chunk's weights from each of which a rank updates its own part, in the order of the
// flat buffers. The ranges are sharding units or gradient buckets; if nothing is sharded, the complete chunk is one
// range. Weights that only this rank holds are a range of their own. The list is empty if another rank makes all
// updates.
std::vector<Piece> pieces_of(const Plan& plan, std::uint32_t state, std::int64_t rank);

// Returns the ranges (Piece) of a chunk's weights of each of which a rank keeps a part in its secondary shard, which
// the ranks of its node share (ZeRO++). The list is empty if there are no secondary shards.
std::vector<Piece> secondary_pieces_of(const Plan& plan, std::uint32_t state, std::int64_t rank);

// Returns the ranges (Piece) of a chunk's frozen weights of each of which a rank owns a shard, in the order of the
// frozen weights' buffer, if frozen weights are gathered unit by unit; their elements are units of Plan::frozen_width
// bytes. The list is empty if no frozen weights are gathered.
std::vector<Piece> frozen_pieces_of(const Plan& plan, std::uint32_t state, std::int64_t rank);

// Returns the state frames (buffers with a chunk's weights and optimizer states) of a class of ranks, in the order of
// its chunks.
std::vector<std::uint32_t> states_of(const Plan& plan, std::uint32_t slot);

// Returns the number, in the uncut weight, of a row that tensor rank `rank` of `ranks` holds as row number `index` of
// its part (with Cut::columns: of a column). With Cut::heads the rows of q, k and v follow each other; if there are
// fewer key/value heads than ranks, several ranks hold the same head.
std::int64_t uncut_index(const Model& model, const LocalParameter& p, std::int64_t index, std::int64_t rank,
                         std::int64_t ranks);

// The position of a row in the matrices of a rank's experts, which lie one after another: the expert's number among the
// rank's experts, and the row's index in that expert's matrix. For other weights the expert is 0 and the row's index is
// unchanged.
struct ExpertRow {
  LocalParameter one;  // the part of the parameter that belongs to one expert
  std::int64_t expert = 0, row = 0;
};
ExpertRow expert_row(const LocalParameter& p, std::int64_t index);

// A section of a weight's rows that one rank holds, with its position in the uncut weight: the rows of q, k or v (cut
// by heads), of the gate or up projection (each a half of the matrix), or a section from LocalParameter::sections. A
// weight that is cut in another way is one section.
struct SectionRows {
  std::int64_t rows = 0, uncut_rows = 0, uncut_first = 0;
};
// Returns the sections (rows of one packed matrix, such as q) of the part of a weight that tensor rank `rank` of
// `ranks` holds, in the order of the rows.
std::vector<SectionRows> section_rows(const Model& model, const LocalParameter& p, std::int64_t rank,
                                      std::int64_t ranks);

// The numbers of outputs and inputs of a weight before it is cut over ranks.
struct UncutShape {
  std::int64_t out = 0, in = 0;
};
UncutShape uncut_shape(const Model& model, const LocalParameter& p, std::int64_t ranks);

}  // namespace orrery
