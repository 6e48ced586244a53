#pragma once

#include "exec/host/op_call.h"
#include "exec/host/stored_weights.h"
#include "exec/host/values.h"
#include "kernels/common/matrix.h"
#include "models/layers/blocks.h"

namespace orrery {

// A task that the calling thread runs, with its operands as arrays of floats.
struct CpuCall : OpCall {
  using OpCall::OpCall;

  // Views an operand as activations, whose elements have Plan::element_bytes bytes.
  Values read(const Argument& a, std::int64_t n) const { return view(a, n, Values::Mode::read); }
  Values write(const Argument& a, std::int64_t n) const { return view(a, n, Values::Mode::write); }
  Values update(const Argument& a, std::int64_t n) const { return view(a, n, Values::Mode::update); }
  Values view(const Argument& a, std::int64_t n, Values::Mode mode) const {
    return {a.data, n, rank.plan.element_bytes, rank.format16(), mode};
  }
  // Views an operand as weights or their gradients, which have as many bytes per element as their buffer says.
  // Weights that are stored in few bits are widened.
  Values weight(const Argument& a) const {
    const LocalParameter* p = a.operand.parameter < 0 ? nullptr : &parameter(a);
    if (p != nullptr && p->frozen && p->format.narrow()) return Values(widened_weight(*p, a.data));
    return whole(a, Values::Mode::read);
  }
  const LocalParameter& parameter(const Argument& a) const {
    return rank.plan.blocks[frame.block].parameters[static_cast<std::size_t>(a.operand.parameter)];
  }
  Values gradient(const Argument& a) const { return whole(a, Values::Mode::update); }
  Values whole(const Argument& a, Values::Mode mode) const {
    return {a.data, a.bytes / a.width, a.width, rank.format16(), mode};
  }

  // Returns the factor by which the gradient of one token's loss is multiplied: one over the number of tokens, in fp16
  // training times the loss scale.
  float loss_factor() const {
    const float* scale = rank_number(kLossScale);
    return token_factor(*this) * (scale == nullptr ? 1 : *scale);
  }

  static std::int32_t* whole_numbers(const Argument& a) { return reinterpret_cast<std::int32_t*>(a.data); }
  // Returns the number of rows in an operand whose rows have `columns` activations.
  std::int64_t rows_in(const Argument& a, std::int64_t columns) const {
    return a.bytes / (columns * rank.plan.element_bytes);
  }

  // Returns the gradient of the token-embedding table. If the modelled framework's autograd first makes a separate
  // dense gradient of the table, to be added to the table's gradient later, returns that dense gradient.
  Values table_gradient(std::int64_t n) const {
    if (!gradients.empty()) return gradient(gradients[0]);
    return updates[0].operand.part == Part::tied ? gradient(word_table(*this, updates[0])) : update(updates[0], n);
  }
};

// Functions that run ops of which there is one per step, defined in host_step.cpp.
void run_cast(const CpuCall& c, const Cast& work);
void run_accumulate(const CpuCall& c, const Accumulate& work);
void run_squared_norm(const CpuCall& c, const SquaredNorm& work);
void run_multiply(const CpuCall& c, const Multiply& work);
void run_update(const CpuCall& c, const Update& work);
// Functions that run the losses that read two models, defined in exec/cpu/second_model.cpp.
void run_distillation(const CpuCall& c, const Distillation& work);
void run_feature_loss(const CpuCall& c, const FeatureLoss& work);
void run_preference(const CpuCall& c, const Preference& work);
// Returns the factor by which an op multiplies gradients: 1 / loss scale if the op reads the loss scale, times the clip
// coefficient if it reads the gradient norm.
double gradient_factor(const CpuCall& c);
// Returns `n` elements of a flat buffer of a chunk's states, from element `first` on, as floats.
inline Values state_values(const CpuCall& c, const Argument& a, std::int64_t first, std::int64_t n, Values::Mode mode) {
  return {a.data + first * a.width, n, a.width, c.rank.format16(), mode};
}
// Functions that run Muon's update, defined in muon_step.cpp.
void run_momentum(const CpuCall& c);
void run_move_directions(const CpuCall& c, const MoveDirections& work);
void run_orthogonalize(const CpuCall& c, const Orthogonalize& work);
void run_muon_update(const CpuCall& c, const kernels::UpdateStep& step);
// Functions that run Adafactor's update, defined in adafactor_step.cpp.
void run_line_sums(const CpuCall& c);
void run_update_norms(const CpuCall& c);
void run_adafactor_update(const CpuCall& c, std::int64_t number);
// Runs norms, defined in exec/cpu/norm.cpp.
void run_norm(const CpuCall& c, const Normalize& work);
// Functions that run matrix products, defined in exec/cpu/products.cpp.
void run_product(const CpuCall& c, const Gemm& work);
// Functions that run attention, defined in exec/cpu/attention.cpp.
void run_attention(const CpuCall& c, const FlashAttention& work);
void run_move_heads(const CpuCall& c, const MoveHeads& work);
// Functions that run a generation's attention and fill its cache, defined in exec/cpu/cached_attention.cpp and
// exec/cpu/cached_rows.cpp.
void run_cached_attention(const CpuCall& c, const FlashAttention& work);
void run_store_keys(const CpuCall& c);
// Functions that run a generation's sparse attention, defined in exec/cpu/indexed_attention.cpp.
void run_index_scores(const CpuCall& c, const IndexScores& work);
void run_indexed_attention(const CpuCall& c, const FlashAttention& work);
void run_store_index_keys(const CpuCall& c);
// Functions that choose and keep the tokens of a generation, defined in exec/cpu/generated_tokens.cpp.
void run_token_choice(const CpuCall& c, const CrossEntropy& work);
void run_pass_cast(const CpuCall& c, const Cast& work);
// Functions that run mixture-of-experts ops, defined in exec/cpu/experts.cpp.
void run_gate(const CpuCall& c, const Gate& work);
void run_permute(const CpuCall& c, const Permute& work);
void run_sigmoid_gate(const CpuCall& c, const SigmoidGate& work);
void run_sort(const CpuCall& c, const SortChunks& work);
void run_grouped(const CpuCall& c, const GroupedGemm& work);
void run_grouped_bias(const CpuCall& c, const GroupedBias& work);
// Functions that run multi-head latent attention, defined in exec/cpu/latent.cpp.
void run_latent_attention(const CpuCall& c, const FlashAttention& work);
void run_latent_heads(const CpuCall& c, const LatentHeads& work);
// Functions that run layers with a recurrence, defined in exec/cpu/recurrence.cpp.
void run_convolution(const CpuCall& c, const Convolution& work);
void run_scan(const CpuCall& c, const Scan& work);
void run_gated_norm(const CpuCall& c, const GatedNorm& work);

// Functions that convert numbers to and from formats of few bits, defined in exec/cpu/narrow.cpp.
void run_quantize(const CpuCall& c, const Quantize& work);
void run_dequantize(const CpuCall& c, const Dequantize& work);
void run_fake_quantize(const CpuCall& c, const FakeQuantize& work);

}  // namespace orrery
