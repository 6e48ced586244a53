#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "kernels/common/float16.h"
#include "models/layout/placement.h"
#include "models/layout/uncut_place.h"
#include "models/plan/plan.h"
#include "models/spec/sequence.h"
#include "models/spec/spec.h"

namespace orrery {

// One rank of a job: the spec, the rank's own plan, and the rank's index in each process group. Constant during a run.
// If a second model has ranks of its own, the spec is that of the model whose parts the rank holds (spec_of_rank()).
struct Rank {
  Rank(const Spec& spec, const Plan& folded, std::int64_t number);

  // Returns the number of the first rank that holds parts of the same model.
  std::int64_t first_rank() const;
  const GroupPosition& position_in(Dimension d) const { return positions[static_cast<std::size_t>(d)]; }
  GroupList::Group group(Dimension d) const;
  // Return the bytes of one element: state_width() for a buffer of weights, gradients or optimizer states, unit_width()
  // for a buffer of a unit (parameters that are gathered together).
  Bytes state_width(std::uint16_t slot) const;
  Bytes unit_width(std::uint16_t slot) const;
  // Returns the range of a unit's weights that this rank keeps in its secondary shard (ZeRO++). unit: id of the frame
  // (set of buffers) of the unit.
  Piece secondary_piece(std::uint32_t unit) const;
  kernels::Format16 format16() const;  // returns the format of all 16-bit numbers: fp16 or bf16

  const Spec& spec;
  std::int64_t number = 0;
  Plan plan;  // the plan of this rank alone, made from the plan that has one rank per class of like ranks
  std::vector<GroupPosition> positions;
  // Index of the rank's data-parallel replica, which determines the samples that the rank trains on.
  std::int64_t replica = 0;
  // Index, in the micro-batch, of this rank's first sample, if the replicas of a stage share a micro-batch; else 0.
  std::int64_t first_sample = 0;
  std::int64_t samples = 1;
  // The rank's index in its context-parallel group. With ring attention and Ulysses together, ranks of one Ulysses
  // group have consecutive indices.
  std::int64_t context = 0;
  // ranges of sequence positions that the rank's tokens have, in the order of the rank's rows
  std::vector<SequencePart> parts;
  // for each chunk of layers, the id of its state frame (the buffers of its weights and optimizer states)
  std::vector<std::uint32_t> states;
  // These maps have, as key, the id of a chunk's state frame (the buffers of the weights and optimizer states of a
  // chunk of layers). parameters: the weights that train; pieces: the ranges of them that this rank owns. frozen,
  // frozen_pieces: the same for weights that do not train, counted in units of Plan::frozen_width bytes.
  std::map<std::uint32_t, std::vector<PlacedParameter>> parameters;
  std::map<std::uint32_t, std::vector<Piece>> pieces;
  std::map<std::uint32_t, std::vector<PlacedParameter>> frozen;
  std::map<std::uint32_t, std::vector<Piece>> frozen_pieces;
  // For each unit (parameters that are gathered together), by the id of its frame (its set of buffers): the ranges of
  // its weights that this rank owns.
  std::map<std::uint32_t, std::vector<Piece>> unit_pieces;
  // Returns the ranges of a unit's frozen weights that this rank owns, by the id of the unit's frame.
  std::vector<Piece> frozen_pieces_of_unit(std::uint32_t unit) const;
};

}  // namespace orrery
