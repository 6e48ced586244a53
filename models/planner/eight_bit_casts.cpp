#include "models/planner/eight_bit_casts.h"

namespace orrery {

void EightBitCasts::before_block(const Pass& pass) {
  const Chunk& chunk = chunks_[pass.action.chunk];
  if (!pass.forward() || pass.action.micro_batch != chunk.first_micro_batch) return;
  const Entry& entry = chunk.entries[pass.entry()];
  const std::int64_t elements = eight_bit_elements(spec_, plan_.blocks[entry.block]);
  if (elements == 0) return;
  plan_.frames[entry.unit].unit = entry.unit;
  plan_.frames[entry.unit].state = chunk.state;
  const Op cast = {
      .name = "weights to fp8",
      .work = Cast{elements, context_.width, 1, transposes_eight_bit(spec_)},
      .optimizer = true,
      .operands = {{Scope::state, Access::read, kParameters, -1}, {Scope::state, Access::write, kEightBit, -1}}};
  writer_.emit(cast, entry.unit);
}

}  // namespace orrery
