#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "models/layers/placement.h"
#include "models/plan/plan.h"
#include "models/spec/sequence.h"
#include "models/spec/spec.h"

namespace orrery {

// A rank's position in one of its groups.
struct Seat {
  std::int64_t index = 0, size = 1;
};

// One rank of a job: the spec, the rank's own plan and its seats in the groups. None of it changes during a run.
struct Rank {
  Rank(const Spec& spec, const Plan& folded, std::int64_t number);

  const Seat& seat(Dimension d) const { return seats[static_cast<std::size_t>(d)]; }
  GroupList::Group group(Dimension d) const;
  // Bytes of an element of a state or unit buffer.
  Bytes state_width(std::uint16_t slot) const;
  Bytes unit_width(std::uint16_t slot) const;

  const Spec& spec;
  std::int64_t number = 0;
  Plan plan;  // instantiate(folded, number): has one slot
  std::vector<Seat> seats;
  std::int64_t replica = 0;       // number of the data-parallel replica, which decides its share of the batch
  std::int64_t first_sample = 0;  // first of this rank's samples, where the replicas of a stage share a micro-batch
  std::int64_t samples = 1;
  std::int64_t context = 0;           // the rank's place in the context group, block after block
  std::vector<SequencePart> parts;    // positions of the rank's tokens, in the order of their rows
  std::vector<std::uint32_t> states;  // state frames by chunk
  std::map<std::uint32_t, std::vector<PlacedParameter>> parameters;  // by state frame
  std::map<std::uint32_t, std::vector<Piece>> pieces;                // by state frame
  std::map<std::uint32_t, std::vector<Piece>> unit_pieces;  // by unit frame: this rank's pieces of the unit's regions
};

}  // namespace orrery
