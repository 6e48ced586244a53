#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/layers/block_builder.h"
#include "models/layers/blocks.h"
#include "models/layers/expert_sizes.h"

namespace orrery {

// The parts that layers are made of, each recorded forward with its backward: linear layers cut by columns or rows over
// the tensor group (Shoeybi et al. 2019; with sequence parallelism Korthikanti et al. 2022), norms, attention, MLP,
// loss. A value is a slot; under sequence parallelism slots of norms and residuals hold `local_rows` rows, all other
// slots `rows`.
class LayerBuilder {
 public:
  using Id = BlockBuilder::Id;

  LayerBuilder(const BlockContext& context, const std::string& name, BlockRole role);

  Id activation(const std::string& name, std::int64_t row_count, std::int64_t columns);

  // y = x W^T with W (out, in) cut by columns of the model's matrix: out is what this rank holds. Gathers a sharded x
  // first; backward reduces dx over the tensor group while the weight gradient runs. kv_rows: as in LocalParameter.
  struct ColumnWeight {
    std::string name;
    Cut cut = Cut::rows;
    bool bias = false;
    std::int64_t kv_rows = 0;
    bool wide = false;                   // 16 bits where other products have 8
    Dimension over = Dimension::tensor;  // group whose ranks have the other columns
    bool input_gradient = true;          // false: backward leaves the input gradient to another
  };
  Id column_parallel(const std::string& name, Id x, std::int64_t in, std::int64_t out, const ColumnWeight& weight);
  // y = x W^T with W (out, in) cut by rows: y is a partial sum; reduced over the tensor group if `reduce`.
  // casts_again: backward casts x anew, where products read eight bits.
  Id row_parallel(const std::string& name, Id x, std::int64_t in, std::int64_t out, const std::string& weight,
                  bool reduce, bool casts_again = false);
  // y = x W^T with all of W on every rank, on this rank's local rows; nothing moves.
  Id replicated(const std::string& name, Id x, std::int64_t in, std::int64_t out, const ColumnWeight& weight);
  // Gathers the tensor ranks' local rows on all of them; backward sums what the ranks' heads contribute.
  Id gather_rows(const std::string& name, Id x, std::int64_t columns);
  // Sum over the tensor group: all-reduce, or reduce-scatter to local_rows under sequence parallelism.
  Id reduce_from_tensor(const std::string& name, Id x, std::int64_t row_count, std::int64_t columns);

  // On a grid of tensor ranks, in grid_linear.cpp: rows of the word table by token, and logits of the same table or one
  // that is cut like it.
  Id grid_embedding(const std::string& name, const std::string& table);
  Id grid_logits(const std::string& name, Id x, const std::string& table);

  // Parts of a vocabulary that stages share, in vocabulary.cpp: this stage's rows of the word table by token, zeros for
  // tokens of other stages; its part of the logits of the block's input, and of the loss.
  Id words(Id tokens);
  void logits_part(const std::string& table);

  Id norm(const std::string& name, Id x);
  Id norm(const std::string& name, Id x, std::int64_t columns);
  Id post_norm(const std::string& name, Id x);  // Gemma's norm before the residual; without post_norms x itself
  Id attention(Id x, bool windowed, bool reduce);
  Id mlp(Id x, bool reduce);
  Id experts(Id x, const ExpertSizes& sizes);  // in an MLP's place; on local rows
  // Joins (rows, first) and (rows, second) side by side.
  Id join(const std::string& name, Id a, Id b, std::int64_t row_count, std::int64_t first, std::int64_t second);
  Id sum(const std::string& name, Id a, Id b, std::int64_t row_count);
  // branch: the output of the row-parallel products before it; each adds its bias here, once and not per tensor rank.
  Id residual(const std::string& name, Id x, Id branch, const std::vector<std::string>& products);
  Id dropout(const std::string& name, Id x);
  void scale(const std::string& name, Id x, double factor);                                     // in place
  void soft_cap(const std::string& name, Id x, std::int64_t elements, double cap, bool fused);  // in place
  // Backward of a lookup: rows are added to the table's gradient; where the stack's autograd makes a dense gradient,
  // into a fresh one, which is then added. first: no other op has written the table's gradient in this micro-batch.
  void table_gradient(const std::string& name, Embedding work, const std::vector<Id>& reads, std::int32_t table,
                      bool first);
  Id add_positions(Id x);  // adds learned positions; without them x itself
  // replicas > 0: the logits are those of so many data ranks, one after the other.
  void cross_entropy(Id logits, std::int64_t columns, std::int64_t replicas = 0);
  void gathered_cross_entropy(Id logits, std::int64_t columns);
  void take_tokens(Id tokens);

  BlockBuilder tape;
  Recompute recompute;  // recomputation of this block

 private:
  // A weight or bias with as many elements as the residual stream has columns; every rank has the part for its columns.
  std::int32_t vector(const std::string& name);
  // Linear layers on a grid of tensor ranks, in grid_linear.cpp.
  struct GridMatrix;
  struct GridLinear;
  // Multiplies the panels of a and b into the result or a part of it. first: no panel was multiplied into that result
  // before.
  using PanelProduct = std::function<void(std::int64_t panel, Id a, Id b, Id to, bool first)>;
  Id grid_linear(const std::string& name, Id x, std::int64_t in, std::int64_t out, const ColumnWeight& weight,
                 const Side& from, const Side& to);
  Id grid_product(const GridLinear& l);
  void grid_backward(const GridLinear& l);
  Id panel_of(const GridMatrix& matrix, std::int64_t panel);
  void multiply_panels(const GridMatrix& a, const GridMatrix& b, const GridMatrix& result, const PanelProduct& product);
  void gemm_panels(const std::string& name, const GridMatrix& a, const GridMatrix& b, const GridMatrix& result,
                   const Gemm& gemm);
  void grid_weight_gradient(const std::string& name, const GridMatrix& a, const GridMatrix& b, GridMatrix result,
                            const std::optional<Gemm>& gemm);
  Id with_bias(const std::string& name, Id y, std::int64_t columns, std::int32_t bias);
  // Slots with, for every row of the logits, its label, its maximum, and the sum of its exponents beside the label's
  // logit.
  struct LossRows {
    Id labels, maxima, sums;
  };
  void narrow_cross_entropy(const CrossEntropy& whole, Id logits, const LossRows& of);
  void wide_cross_entropy(const CrossEntropy& whole, Id logits, const LossRows& of);
  struct LogitsPart;
  void exponents(const LogitsPart& part);
  void early_gradient(const LogitsPart& part);
  void exchange_sums(const LogitsPart& part);
  void combine_gradient(const LogitsPart& part);
  void logits_gradient(const LogitsPart& part);
  Id grid_norm(const std::string& name, Id x);
  void product(const std::string& name, const Gemm& forward, const std::vector<Id>& reads, Id y,
               const std::vector<std::int32_t>& weights, std::int32_t bias);
  Id gathered_again(const std::string& name, Id local, Id gathered, std::int64_t in);
  // A weight of a layer's linear parts: one parameter, or the tiles that it is used in one after another.
  std::vector<std::int32_t> tiled_weight(const std::string& name, std::int64_t out, std::int64_t in, Cut cut);
  void input_gradients(const std::string& name, const Gemm& forward, const std::vector<Id>& reads, Id dx,
                       const std::vector<std::int32_t>& weights);
  void weight_gradients(const std::string& name, const Gemm& forward, Id x, Id dy,
                        const std::vector<std::int32_t>& weights);
  void weight_gradient(const std::string& name, const Gemm& forward, Id x, Id dy, std::int32_t weight);
  // fp8: the input of a product is cast with its scale, and transposed where the product wants the other side innermost
  // (Hopper's fp8 products take both operands with k innermost: Transformer Engine). Without fp8 both slots are x
  // itself.
  struct Operands {
    Id rows, columns;
  };
  Operands to_fp8(const std::string& name, Id x, std::int64_t elements, bool transpose);
  Operands input_to_fp8(const std::string& name, Id x, std::int64_t elements, bool keep);
  Id input_columns(const std::string& name, Id x, std::int64_t elements, const Operands& given);
  Id transposed(const std::string& name, Id x, std::int64_t elements);
  std::vector<Id> with_weight(const std::string& name, Id x, std::int32_t weight, const Gemm& forward);
  Bytes operand_width() const { return eight_bit_ ? 1 : c_.width; }
  void tensor_collective(const std::string& name, CollectiveKind kind, Id from, Id to, std::int64_t columns,
                         Bytes width, std::int64_t piece = 0, std::int64_t parts = 1);
  struct GatheredRows {
    Id own, all;            // the same slot where nothing is gathered
    std::vector<Id> reads;  // slots that the product reads, all rows first
  };
  using Product = std::function<void(const Gemm& part, const std::vector<Id>& reads)>;
  void over_gathered(const std::string& name, const GatheredRows& rows, std::int64_t columns, const Gemm& forward,
                     const Product& product);
  void tensor_all_reduce(const std::string& name, Id x, Bytes bytes, Bytes width, bool maximum = false);
  void bias_gradient(const std::string& name, Id dy, std::int64_t row_count, std::int64_t columns,
                     std::int32_t parameter);
  // Inputs of attention: queries and keys, normed and rotated, and the projection whose last columns are the values; or
  // the gradients of these. Both are the same slot where nothing stands between the projection and attention.
  struct Heads {
    Id queries_keys, qkv;

    std::vector<Id> slots() const { return queries_keys == qkv ? std::vector{qkv} : std::vector{queries_keys, qkv}; }
  };
  Heads packed_heads(Id x);
  std::int64_t kv_heads() const { return m_.mla ? heads_ : kv_heads_; }
  std::int64_t value_dim() const { return m_.mla ? m_.mla->v_head_dim : m_.head_dim; }
  Id in_attention_layout(Id qkv, std::int64_t width);
  Heads head_norms(Id qkv);
  void rotate(Id queries_keys);
  // The work of one attention: so many queries of every sample, and so many heads.
  struct AttentionPart {
    std::int64_t query, heads, kv_heads;
  };
  AttentionPart whole_part() const { return {c_.sequence, heads_, kv_heads()}; }
  Heads head_gradients(const Heads& heads, const AttentionPart& part);
  FlashAttention flash_work(const AttentionPart& part, bool windowed) const;
  Id flash_attention(const Heads& heads, const AttentionPart& part, bool windowed);
  bool packs_attention() const;
  Id kept_in_12_bits(Id values, std::int64_t elements);
  // Attention under context parallelism, in context_attention.cpp.
  Id context_attention(const Heads& heads, bool windowed);
  Heads exchange_heads(const Heads& heads);
  Id exchange_back(Id y, const AttentionPart& part);
  Id all_to_all(const std::string& name, Id x, Bytes bytes);
  struct Ring;
  Id ring_attention(const Heads& heads, const AttentionPart& part, bool windowed);
  FlashAttention ring_work(const Ring& ring, std::int64_t hops) const;
  void ring_backward(const Ring& ring, std::int64_t hops);
  Heads latent_query_gradients(const Ring& ring);
  Id gathered_keys(const Ring& ring, const std::string& name);
  Id passed_on(const Ring& ring, const std::string& name, Id from);
  Id added(const Ring& ring, Id a, Id b);
  Id scattered(const Ring& ring, Id whole);
  struct Unfused;
  Unfused unfused_parts(const Heads& heads, const AttentionPart& part, bool windowed);
  Id unfused_attention(const Heads& heads, const AttentionPart& part, bool windowed);
  void unfused_backward(const Unfused& parts);
  // Latent attention: queries, and keys and values packed (LatentHeads).
  Heads latent_heads(Id x);
  Id latent_queries(Id x);
  struct LatentKeys {
    Id compressed, rope;
  };
  LatentKeys latent_keys(Id x);
  struct LatentPair {
    Id keys, values;
  };
  Heads assemble(Id queries, Id key_values, Id rope);
  Heads exchange_latent(const Heads& heads, const AttentionPart& part);
  Id exchange_kind(const std::string& name, Id x, std::int64_t dim);
  LatentPair split_latent(Id packed);
  Id join_latent(const LatentPair& pair, const AttentionPart& part);
  Id feed_forward(const std::string& name, const std::string& weights, Id x, std::int64_t width, bool reduce);
  Id activate(const std::string& name, Id x, std::int64_t width, bool again) {
    return activate(name, {x, {c_.rows, -1}, width, again, {}});
  }
  // Rows of tokens on their way through experts, predicted, and the runtime size that counts them (-1: none).
  struct Rows {
    std::int64_t count = 0;
    std::int32_t size = -1;
  };
  struct Activated {
    Id x;
    Rows rows;
    std::int64_t width;
    bool again;
    std::optional<Id> weights;  // one number for each row
  };
  Id activate(const std::string& name, const Activated& a);
  Id kept_in_fp8(const std::string& name, const Activated& a);
  // Experts, in experts.cpp.
  struct Routed;
  struct Weighted {
    Id rows;
    Id weights;
  };
  Id rows_of(const std::string& name, const Rows& rows, std::int64_t columns, Bytes width);
  Routed route(Id x, const ExpertSizes& sizes);
  void count_tokens(Routed& r);
  Weighted send(Id x, const Routed& r);
  Id combine(Id y, const Routed& r);
  Id exchange(const std::string& name, Id x, std::int64_t columns, Bytes width, const Routed& r, bool back);
  Id over_expert_tensor(const std::string& name, Id x, std::int64_t columns, Bytes width, const Routed& r,
                        bool gathers);
  Weighted arrange(const Weighted& x, const Routed& r);
  Id arrange_back(Id y, const Routed& r);
  Id grouped(const std::string& name, Id x, std::int64_t in, std::int64_t out, const std::string& weight, Cut cut,
             const Routed& r);
  void expert_bias(const std::string& name, Id y, std::int64_t out, Cut cut, const Routed& r,
                   const std::optional<Id>& weights);
  void grouped_weight_gradient(const std::string& name, const GroupedGemm& forward, const std::vector<Id>& reads,
                               std::int32_t weight);
  Id shared_experts(Id x);
  Id gate_rows(const std::string& name, Id x, Id y);
  std::vector<Id> and_counts(std::vector<Id> reads, const Routed& r) const;

  const BlockContext& c_;
  const Model& m_;
  std::int64_t heads_, kv_heads_;  // heads of this rank
  bool eight_bit_;                 // whether products of layers take 8 bits; those of the output stay in 16 bits
  bool dummy_gradients_;           // dummy gradients of the output's weights: Transformer Engine's layers share theirs
  bool overlaps_;                  // products of layers overlap with transfers of the tensor group
  std::int64_t tiles_;             // tiles that weights of a layer are used in
};

}  // namespace orrery
