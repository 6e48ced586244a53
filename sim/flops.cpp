#include "sim/flops.h"

namespace orrery {

double model_flops(const Spec& spec) {
  const Model& m = spec.model;
  double matrices = 0;  // elements that a token is multiplied with
  for (std::int64_t layer = 0; layer < m.layers; ++layer) {
    for (const Parameter& p : layer_parameters(m, layer)) {
      if (p.in == 1) continue;
      const double used = p.experts > 0 ? static_cast<double>(m.moe->top_k) : 1;
      matrices += used * static_cast<double>(p.out) * static_cast<double>(p.in);
    }
  }
  matrices += static_cast<double>(m.vocab) * static_cast<double>(m.hidden);
  const double value = static_cast<double>(m.mla ? m.mla->v_head_dim : m.head_dim);
  const double query = static_cast<double>(m.mla ? m.mla->qk_nope_head_dim + m.mla->qk_rope_head_dim : m.head_dim);
  const double scores = static_cast<double>(m.layers) * static_cast<double>(m.heads) * (query + value) *
                        static_cast<double>(spec.sequence);
  const double tokens = static_cast<double>(spec.strategy.global_batch) * static_cast<double>(spec.sequence);
  return 6 * tokens * (matrices + scores);
}

double recomputed_flops(const Plan& plan) {
  double total = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const Op& op = plan.op_of(t);
    if (!op.recompute) continue;
    double flops = 0;
    if (const auto* g = std::get_if<Gemm>(&op.work)) flops = cost_of(*g, 2).flops;
    if (const auto* a = std::get_if<FlashAttention>(&op.work)) {
      flops = 2.0 * static_cast<double>(a->batch * a->heads * a->query) *
              static_cast<double>(a->key * (a->head_dim + a->value_dim));
    }
    total += flops * static_cast<double>(plan.slots[plan.slot_of(t)].multiplicity);
  }
  return total;
}

}  // namespace orrery
