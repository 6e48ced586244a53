#include "exec/host/hand_over.h"

#include "models/partition/hand_over.h"

namespace orrery {

// The numbers of rows that are not cut by columns fill half of their buffer.
void prepare_hand_over(const Rank& rank, const Collective& work, const Launch& launch, CollectiveCall& call) {
  const Argument& buffer = launch.arguments.front();
  const bool sends = buffer.operand.access == Access::read;
  call.in = call.out = buffer.data + work.first * work.width;
  const std::int64_t elements = buffer.bytes / work.width / (work.columns_cut ? 1 : 2);
  const std::int64_t first_sender = sends ? rank.first_rank() : rank.spec.strategy.gpus();
  for (const std::int32_t member : rank.group(work.group)) {
    const bool meets = sends != (member >= first_sender);
    const HandedPart part = meets ? handed_part(rank.spec, sends ? rank.number : member, sends ? member : rank.number,
                                                elements, work.columns_cut)
                                  : HandedPart{};
    call.counts.push_back(sends ? part.elements : 0);
    call.places.push_back(sends ? part.in_sender : 0);
    call.received.push_back(sends ? 0 : part.elements);
    call.received_places.push_back(sends ? 0 : part.in_receiver);
  }
}

}  // namespace orrery
