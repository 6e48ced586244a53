#pragma once

#include <cstdint>

#include "models/plan/plan.h"
#include "models/spec/spec.h"

namespace orrery {

// How the output of a frozen model on ranks of its own (SecondModel) gets to the ranks of the model that trains. The
// output of a micro-batch of all data ranks is a matrix of tokens by columns of the vocabulary. Data ranks of either
// model divide the tokens, sample by sample, tensor ranks the columns, and one of the degrees divides the other in both
// directions. So either a sender has parts for several receivers, or a receiver takes parts from several senders, in
// equal parts; the numbers below say of how many.
//   senders_by_tensor, senders_by_data      ranks of the frozen model that send to one rank
//   receivers_by_tensor, receivers_by_data  ranks that one rank of the frozen model sends to
struct HandOver {
  std::int64_t senders_by_tensor = 1, senders_by_data = 1, receivers_by_tensor = 1, receivers_by_data = 1;

  std::int64_t senders() const { return senders_by_tensor * senders_by_data; }
  std::int64_t receivers() const { return receivers_by_tensor * receivers_by_data; }
};
// Returns the numbers for a spec whose second model has ranks of its own, or for the spec of these (second_spec()).
HandOver hand_over_of(const Spec& spec);

// Returns the groups of both models' ranks, those of the frozen model after the others: the last stages' ranks that
// meet in the transfers of the output, and every other rank alone.
GroupTable hand_over_groups(const Spec& spec);

// The part of the output that one rank of the frozen model sends to one rank of the model that trains: its first
// element in the buffer of either, and its number of elements. The sender's buffer holds the columns of one receiver
// after those of another, and the receiver's those of one sender after those of another (MoveHeads).
struct HandedPart {
  std::int64_t in_sender = 0, in_receiver = 0, elements = 0;
};
// Returns the part that passes between two ranks of a group. spec: as for hand_over_of(); sender, receiver: numbers of
// ranks in the job; elements: those of the sender's buffer for the spec of the frozen model's ranks, else those of the
// receiver's; columns_cut: as in Collective.
HandedPart handed_part(const Spec& spec, std::int64_t sender, std::int64_t receiver, std::int64_t elements,
                       bool columns_cut);

}  // namespace orrery
