#include "exec/host/run_state.h"

namespace orrery {

// Returns the number of columns of a head that rotary positions turn.
static std::int64_t rotary_columns(const Model& m) { return m.mla ? m.mla->qk_rope_head_dim : m.head_dim; }

RunState run_state(const Rank& rank, const Text& text, const Training& training) {
  RunState state = {rank, text, training, 0, std::vector<StepLoss>(static_cast<std::size_t>(rank.plan.steps)), {}};
  const Model& m = rank.spec.model;
  const auto& second = rank.spec.second;
  const auto& g = rank.spec.generation;
  if (g) {
    state.generated = std::make_shared<GeneratedState>(
        rank,
        [&text, length = g->input](std::int64_t sequence, std::int64_t first, std::int64_t count, std::int64_t* to) {
          text.copy(sequence, length, {first, count}, 0, to);
        });
  }
  if (m.positions == Positions::rope)
    state.rotary =
        kernels::rotary_table(g ? g->input + g->output : rank.spec.sequence, rotary_columns(m), kRotaryTheta);
  if (second && second->model.positions == Positions::rope)
    state.second_rotary = kernels::rotary_table(rank.spec.sequence, rotary_columns(second->model), kRotaryTheta);
  return state;
}

}  // namespace orrery
