#include "exec/host/run_state.h"

namespace orrery {

RunState run_state(const Rank& rank, const Text& text, const Training& training) {
  RunState state = {rank, text, training, 0, std::vector<StepLoss>(static_cast<std::size_t>(rank.plan.steps)), {}};
  const Model& m = rank.spec.model;
  if (m.positions == Positions::rope)
    state.rotary =
        kernels::rotary_table(rank.spec.sequence, m.mla ? m.mla->qk_rope_head_dim : m.head_dim, kRotaryTheta);
  return state;
}

}  // namespace orrery
