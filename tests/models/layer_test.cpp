// Bytes that a layer keeps between forward and backward, and bytes that it sends over the tensor group, against the
// papers.
#include "models/layers/blocks.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "tests/models/kept.h"

namespace orrery {
namespace {

using test::kept;
using test::spec_of;

// Activations that a layer keeps, by Korthikanti et al. 2022, table 2: GeLU, dropout, f = 4h, as many key/value heads
// as heads, unfused attention.
TEST(Layer, KeepsWhatThePapersSay) {
  for (const auto& [h, a, s, b, t] : std::vector<std::array<std::int64_t, 5>>{{64, 8, 32, 1, 1},
                                                                              {64, 8, 32, 2, 2},
                                                                              {128, 16, 64, 3, 4},
                                                                              {12288, 96, 2048, 1, 8},
                                                                              {20480, 128, 2048, 1, 8}}) {
    const std::string model = fmt::format(
        "name: gpt, layers: 2, hidden: {}, heads: {}, feed_forward: {}, vocab: 512, gated: false, norm: layernorm, "
        "positions: learned, bias: true, dropout: 0.1",
        h, a, 4 * h);
    const auto bytes = [&, b = b, s = s, t = t](const std::string& how) {
      return kept(spec_of(model, fmt::format("tensor: {}, micro_batch: {}, precision: fp16, {}", t, b, how), s)).bytes;
    };
    const std::int64_t sbh = s * b * h, scores = 5 * a * s * s * b;
    const std::string plain = "attention: unfused, sequence_parallel: false";
    const std::string sp = fmt::format("attention: unfused, sequence_parallel: {}", t > 1);
    EXPECT_EQ(bytes(plain), 10 * sbh + 24 * sbh / t + scores / t);
    EXPECT_EQ(bytes(sp), (34 * sbh + scores) / t);
    EXPECT_EQ(bytes(sp + ", recompute: selective"), 34 * sbh / t);
    EXPECT_EQ(bytes(plain + ", recompute: full"), 2 * sbh);
    EXPECT_EQ(bytes(sp + ", recompute: full"), 2 * sbh / t);
    // Flash attention never writes the scores.
    EXPECT_EQ(bytes(fmt::format("attention: flash, sequence_parallel: {}", t > 1)), 34 * sbh / t);
  }
}

// With products overlapped, the same amount is multiplied and sent over the tensor group: gathered rows go round the
// ring in tensor - 1 steps after the rank's own rows; scattered rows go in four parts in forward, whole for an input
// gradient.
TEST(Layer, OverlapMovesAndMultipliesTheSame) {
  for (const char* precision : {"bf16", "fp8"}) {
    const auto ops_of = [&](bool overlap) {
      const Spec spec =
          spec_of("name: llama, layers: 2, hidden: 64, heads: 8, feed_forward: 256, vocab: 512",
                  fmt::format("tensor: 4, precision: {}, overlap: {{tensor: {}}}", precision, overlap), 64);
      std::vector<Op> ops;
      layer_block(BlockContext(spec, row_of(spec.strategy.sharding)), 0, false, ops);
      return ops;
    };
    const auto sums = [](const std::vector<Op>& ops) {
      Bytes sent = 0;
      double flops = 0;
      for (const Op& op : ops) {
        if (std::holds_alternative<Gemm>(op.work)) flops += cost_of(op.work, 2).flops;
        const auto* c = std::get_if<Collective>(&op.work);
        if (c != nullptr) sent += c->kind == CollectiveKind::shift ? c->bytes : c->bytes * 3 / 4;
      }
      return std::pair(sent, flops);
    };
    const std::vector<Op> pieces = ops_of(true);
    EXPECT_EQ(sums(pieces), sums(ops_of(false)));
    std::map<std::string, int> times;
    for (const Op& op : pieces) ++times[op.name];
    EXPECT_EQ(times["qkv"], 4);
    EXPECT_EQ(times["qkv gather"], 3);
    EXPECT_EQ(times["mlp down"], 4);
    EXPECT_EQ(times["mlp down scatter"], 4);
    EXPECT_EQ(times["mlp down gradient gather"], 3);
    EXPECT_EQ(times["mlp up input gradient"], 1);
    EXPECT_EQ(times["mlp up gradient scatter"], 1);
  }
}

// PyTorch's symmetric memory: a rank copies its rows where others can read them, products and scattered rows go in one
// piece for each rank, and what the ranks sent is summed by a kernel of its own.
TEST(Layer, SymmetricMemoryCutsByRankAndSums) {
  const Spec spec = spec_of("name: llama, layers: 2, hidden: 64, heads: 8, feed_forward: 256, vocab: 512",
                            "tensor: 8, overlap: {tensor: true}", 64,
                            "profile: orrery, sequence_copies: true, tensor_overlap: symmetric_memory");
  std::vector<Op> ops;
  layer_block(BlockContext(spec, row_of(spec.strategy.sharding)), 0, false, ops);
  std::map<std::string, int> times;
  for (const Op& op : ops) ++times[op.name];
  EXPECT_EQ(times["qkv gather to symmetric memory"], 1);
  EXPECT_EQ(times["qkv"], 8);
  EXPECT_EQ(times["qkv gather"], 7);
  EXPECT_EQ(times["mlp down"], 8);
  EXPECT_EQ(times["mlp down scatter"], 8);
  EXPECT_EQ(times["mlp down gradient gather to symmetric memory"], 1);
  EXPECT_EQ(times["mlp up gradient scatter copy"], 1);  // not in pieces
  const auto sum = std::ranges::find_if(ops, [](const Op& op) { return op.name == "mlp down sum of parts"; });
  ASSERT_NE(sum, ops.end());
  EXPECT_EQ(cost_of(sum->work, 2).bytes, 64 / 8 * 64 * 2 * (8 + 1));
}

// Separate projections: the same FLOPs in a product for each, and a sum of their input gradients.
TEST(Layer, ProjectionsApartAreProductsOfTheirOwn) {
  for (const bool apart : {false, true}) {
    const Spec spec =
        spec_of("name: llama, layers: 2, hidden: 64, heads: 8, kv_heads: 2, feed_forward: 256, vocab: 512", "tensor: 2",
                64, fmt::format("profile: orrery, separate_projections: {}", apart));
    std::vector<Op> ops;
    layer_block(BlockContext(spec, row_of(spec.strategy.sharding)), 0, false, ops);
    std::map<std::string, std::vector<const Op*>> named;
    for (const Op& op : ops) named[op.name].push_back(&op);
    for (const auto& [name, layers] : std::map<std::string, int>{{"qkv", 3}, {"mlp up", 2}, {"mlp down", 1}}) {
      for (const char* product : {"", " input gradient", " weight gradient"}) {
        ASSERT_EQ(named[name + product].size(), 1) << name << product;
        EXPECT_EQ(kernels_of(named[name + product].front()->work), apart ? layers : 1) << name << product;
      }
      EXPECT_EQ(named[name + " input gradient sum"].size(), apart && layers > 1 ? 1 : 0) << name;
    }
    EXPECT_EQ(std::get<Gemm>(named["qkv"].front()->work).apart_outputs, apart ? 1 * 8 : 0);
  }
}

// torch.compile sums input gradients in the copy that puts each rank's rows side by side.
TEST(Layer, CompiledSumsOfInputGradientsNeedNoCopy) {
  for (const bool compile : {false, true}) {
    const Spec spec = spec_of("name: llama, layers: 2, hidden: 64, heads: 8, feed_forward: 256, vocab: 512",
                              "tensor: 2", 64, fmt::format("profile: torchtitan, compile: {}", compile));
    std::vector<Op> ops;
    layer_block(BlockContext(spec, row_of(spec.strategy.sharding)), 0, false, ops);
    std::map<std::string, int> times;
    for (const Op& op : ops) ++times[op.name];
    EXPECT_EQ(times["mlp up input gradient sum"], times["mlp up gradient scatter"]);
    EXPECT_EQ(times["mlp up gradient scatter copy"], compile ? 0 : 1);
    EXPECT_EQ(times["mlp down scatter copy"], 1);
  }
}

// RMS norm, SwiGLU, no dropout (counted by SimuMax and fitted to 3 % of measured peaks): 8h + 2(q + 2kv) + 2q + 6f
// bytes per token.
TEST(Layer, KeepsWhatLlamaNeeds) {
  for (const int kv : {1, 2, 4, 8}) {
    for (const int t : {1, 2, 4, 8}) {
      const Spec spec = spec_of(
          fmt::format("name: llama, layers: 2, hidden: 64, heads: 8, kv_heads: {}, head_dim: 16, feed_forward: 384, "
                      "vocab: 512",
                      kv),
          fmt::format("tensor: {}, sequence_parallel: {}, micro_batch: 3", t, t > 1), 64);
      const std::int64_t q = 8 * 16 / t, pairs = std::max(1, kv / t) * 16;
      EXPECT_EQ(kept(spec).bytes, 3 * 64 * (8 * 64 / t + 2 * (q + 2 * pairs) + 2 * q + 6 * 384 / t)) << kv << " " << t;
      EXPECT_EQ(kept(spec).statistics, 3 * 64 * (2 * 4 / t + 8 / t * 4));  // two norms, log-sum-exp of every head
    }
  }
}

// Norms of heads keep the projection and the normed queries and keys: values are not copied.
TEST(Layer, KeepsValuesOnce) {
  const std::string model =
      "name: m, layers: 2, hidden: 64, heads: 8, kv_heads: 2, head_dim: 16, feed_forward: 128, "
      "vocab: 64, qk_norm: ";
  for (const char* attention : {"flash", "unfused"}) {
    const auto bytes = [&](bool norm) {
      return kept(spec_of(model + (norm ? "true" : "false"), std::string("attention: ") + attention)).bytes;
    };
    EXPECT_EQ(bytes(true) - bytes(false), 32 * (8 + 2) * 16 * 2) << attention;
  }
}

// Without dropout a layer keeps no masks, which take one byte per element, 2 s b h bytes in all: (34 - 2) s b h bytes
// are left.
TEST(Layer, KeepsNoMasksWithoutDropout) {
  const Spec spec = spec_of(std::string(test::kSmall) + ", gated: false", "micro_batch: 2");
  EXPECT_EQ(kept(spec).bytes, 32 * 32 * 2 * 64);
}

// A layer's block has the weights that the model's count has, whatever switches are on.
TEST(Layer, HasTheWeightsThatAreCounted) {
  constexpr const char* kSwitches[] = {
      "attention_output_bias: true",
      "mlp_bias: true",
      "mlp_bias: true, moe: {experts: 4, top_k: 2, feed_forward: 8, router_bias: true}",
      "qk_norm_all: true",
      "qk_norm_all: true, norm: layernorm",
      "attention_sinks: true",
      "pre_norms: false, post_norms: true",
      "parallel_block: true, parallel_norms: true, mlp_bias: true",
      "norm: layernorm, norm_bias: false",
      "norm: layernorm, norm_bias: false, norm_weight: false, qk_norm: true"};
  for (const char* extra : kSwitches) {
    for (const char* attention : {"flash", "unfused"}) {
      const Spec spec = spec_of(std::string("layers: 2, hidden: 64, heads: 8, kv_heads: 2, head_dim: 16, feed_forward: "
                                            "128, vocab: 64, ") +
                                    extra,
                                std::string("attention: ") + attention);
      std::vector<Op> ops;
      const BlockContext context(spec, row_of(spec.strategy.sharding));
      std::int64_t held = 0, counted = 0;
      for (const LocalParameter& p : layer_block(context, 0, false, ops).parameters) held += p.out * p.in;
      for (const Parameter& p : layer_parameters(spec.model, 0)) counted += elements(p);
      EXPECT_EQ(held, counted) << extra << " " << attention;
    }
  }
}

struct Moved {
  std::map<std::pair<CollectiveKind, Phase>, std::int64_t> count, elements;
};

Moved moved(const Spec& spec) {
  std::vector<Op> ops;
  const BlockContext context(spec, row_of(spec.strategy.sharding));
  const Block block = layer_block(context, 0, spec.strategy.recompute.any(), ops);
  Moved result;
  for (const Op& op : ops) {
    const auto* c = std::get_if<Collective>(&op.work);
    if (c == nullptr) continue;
    EXPECT_EQ(c->group, Dimension::tensor);
    ++result.count[{c->kind, op.phase}];
    result.elements[{c->kind, op.phase}] += c->bytes / c->width;
  }
  EXPECT_EQ(block.forward.size() + block.backward.size(), ops.size());
  return result;
}

// Bytes that one layer's casts and collectives move.
struct Eight {
  double casts = 0;
  Bytes moved = 0;
};

Eight eight_bit(const Spec& spec) {
  std::vector<Op> ops;
  layer_block(BlockContext(spec, row_of(spec.strategy.sharding)), 0, false, ops);
  Eight result;
  for (const Op& op : ops) {
    if (std::holds_alternative<Cast>(op.work)) result.casts += cost_of(op.work, 2).bytes;
    if (const auto* c = std::get_if<Collective>(&op.work)) result.moved += c->bytes;
  }
  return result;
}

// Transformer Engine: what a product reads is cast and transposed in one pass, 2 bytes in and 1 + 1 out, four inputs
// and four output gradients; under sequence parallelism what is gathered travels in 8 bits and is transposed after.
// Gathered weights are cast before each use, others outside the layer.
TEST(Layer, CastsToEightBits) {
  const std::string model = "name: m, layers: 1, hidden: 64, heads: 8, feed_forward: 128, vocab: 64";
  const double rows = 32, inputs = 64 + 64 + 64 + 128, outputs = 192 + 64 + 256 + 64,
               weights = 64 * (192 + 64 + 256 + 128);
  const auto of = [&](const std::string& strategy) { return eight_bit(spec_of(model, strategy)); };
  EXPECT_EQ(of("precision: bf16").casts, 0);
  EXPECT_EQ(of("precision: fp8").casts, rows * 4 * (inputs + outputs));
  EXPECT_EQ(of("precision: fp8, data: 2, sharding: zero3").casts, rows * 4 * (inputs + outputs) + 2 * 3 * weights);
  EXPECT_EQ(of("precision: bf16, tensor: 2, sequence_parallel: true").moved, 10 * 32 * 64 * 2);
  EXPECT_EQ(of("precision: fp8, tensor: 2, sequence_parallel: true").moved, (4 * 2 + 6) * 32 * 64);
}

// Weights that stay are cast once a step, whatever the micro-batches; embedding and output stay in 16 bits.
TEST(Layer, WeightsAreCastOnceAStep) {
  for (const int micro_batches : {1, 3}) {
    const Plan plan = make_plan(
        spec_of(test::kSmall, fmt::format("precision: fp8, global_batch: {}, sharding: zero1", micro_batches)));
    int casts = 0;
    for (TaskId t = 0; t < plan.task_count(); ++t) casts += plan.op_of(t).name == "weights to fp8";
    EXPECT_EQ(casts, 8);
    for (const Op& op : plan.ops) {
      const auto* g = std::get_if<Gemm>(&op.work);
      if (g == nullptr) continue;
      EXPECT_EQ(op.precision, op.name.starts_with("logits") ? Precision::bf16 : Precision::fp8) << op.name;
    }
  }
}

// Shoeybi et al. 2019: two all-reduces forward and two backward. Korthikanti et al. 2022: each becomes a reduce-scatter
// and an all-gather of the same volume, and backward gathers the input of both column-parallel products again.
TEST(Layer, SendsWhatThePapersSay) {
  using enum CollectiveKind;
  constexpr Phase F = Phase::forward, B = Phase::backward;
  for (const int t : {2, 4, 8}) {
    for (const bool pieces : {false, true}) {
      const std::string how =
          fmt::format("tensor: {}, micro_batch: 2, overlap: {{tensor: {}}}, sequence_parallel: ", t, pieces);
      const std::int64_t sbh = 32 * 2 * 64;
      Moved plain = moved(spec_of(test::kSmall, how + "false"));
      EXPECT_EQ((plain.count[{all_reduce, F}]), 2);
      EXPECT_EQ((plain.count[{all_reduce, B}]), 2);
      EXPECT_EQ((plain.elements[{all_reduce, F}]), 2 * sbh);
      EXPECT_EQ((plain.elements[{all_reduce, B}]), 2 * sbh);
      EXPECT_EQ(plain.count.size(), 2U);
      for (const bool regather : {false, true}) {
        Moved sp = moved(
            spec_of(test::kSmall, how + "true", 32, fmt::format("profile: orrery, regather_input: {}", regather)));
        // The rows that products gather themselves go round the ring, each rank's part except its own.
        const std::int64_t gathered = pieces ? 0 : 2, ring = pieces ? 2 * (t - 1) * (sbh / t) : 0;
        EXPECT_EQ((sp.elements[{all_gather, F}]), gathered * sbh);
        EXPECT_EQ((sp.elements[{shift, F}]), ring);
        EXPECT_EQ((sp.elements[{shift, B}]), ring);
        EXPECT_EQ((sp.elements[{reduce_scatter, F}]), 2 * sbh);
        EXPECT_EQ((sp.elements[{all_gather, B}]), (regather ? gathered + 2 : gathered) * sbh);
        EXPECT_EQ((sp.elements[{reduce_scatter, B}]), 2 * sbh);
        if (!pieces) {
          EXPECT_EQ((sp.count[{all_gather, B}]), regather ? 4 : 2);
          EXPECT_EQ((sp.count[{reduce_scatter, F}]), 2);
        }
      }
    }
  }
}

// PyTorch's collectives gather and scatter the first dimension; for another dimension a copy reorders the data, except
// where products in pieces take the parts as they come.
TEST(Layer, SequenceCopiesFollowGathersAndPrecedeScatters) {
  const auto ops_of = [](const char* software, const char* overlap) {
    const Spec spec = spec_of("name: llama, layers: 2, hidden: 64, heads: 8, feed_forward: 256, vocab: 512",
                              fmt::format("tensor: 4, overlap: {{tensor: {}}}", overlap), 64,
                              fmt::format("profile: torchtitan, {}", software));
    std::vector<Op> ops;
    layer_block(BlockContext(spec, row_of(spec.strategy.sharding)), 0, false, ops);
    return ops;
  };
  const std::vector<Op> ops = ops_of("sequence_copies: true", "false");
  std::size_t moved = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const auto* c = std::get_if<Collective>(&ops[i].work);
    if (c == nullptr) continue;
    ++moved;
    const auto* copy = std::get_if<Cast>(&ops[c->kind == CollectiveKind::all_gather ? i + 1 : i - 1].work);
    ASSERT_NE(copy, nullptr) << ops[i].name;
    EXPECT_EQ(copy->elements * c->width, c->bytes) << ops[i].name;
    EXPECT_EQ(copy->from, copy->to);
  }
  EXPECT_EQ(moved, 8);
  EXPECT_EQ(ops.size(), ops_of("sequence_copies: false", "false").size() + moved);
  // Input gradients of qkv and of the MLP's first product are scattered whole, whatever overlaps.
  EXPECT_EQ(ops_of("sequence_copies: true", "true").size(), ops_of("sequence_copies: false", "true").size() + 2);
}

// nanotron multiplies a rank's own rows while the other rows are gathered: the same products in parts, of which only
// the first needs no gathered rows.
TEST(Layer, OwnRowsFirst) {
  const auto products = [](const std::string& software) {
    Spec spec = spec_of(
        "name: gpt, layers: 2, hidden: 64, heads: 8, feed_forward: 256, vocab: 512, gated: false, norm: layernorm, "
        "positions: learned, bias: false",
        "tensor: 4, micro_batch: 1, precision: bf16, sequence_parallel: true", 32);
    spec.software.communication.own_rows_first = software == "own";
    std::vector<Op> ops;
    layer_block(BlockContext(spec, row_of(spec.strategy.sharding)), 0, false, ops);
    std::map<std::string, std::vector<std::int64_t>> rows;
    for (const Op& op : ops) {
      const auto* gemm = std::get_if<Gemm>(&op.work);
      if (gemm && gemm->role != Gemm::Role::weight_gradient) rows[op.name].push_back(gemm->m);
    }
    return rows;
  };
  const auto whole = products("whole"), own = products("own");
  for (const char* name : {"qkv", "mlp up", "attention output input gradient", "mlp down input gradient"}) {
    ASSERT_EQ(own.count(name), 1U) << name;
    EXPECT_EQ(whole.at(name), std::vector<std::int64_t>{32}) << name;
    EXPECT_EQ(own.at(name), (std::vector<std::int64_t>{8, 16, 8})) << name;
  }
  EXPECT_EQ(own.at("qkv input gradient"), std::vector<std::int64_t>{32});
  EXPECT_EQ(own.at("mlp down"), std::vector<std::int64_t>{32});
}

// Megatron-Core's fp8_output_proj: the logits' products read 8-bit operands as a layer's do.
TEST(Layer, LogitsIn8BitsWhereTheStackHasThem) {
  for (const bool narrow : {false, true}) {
    const Plan plan = make_plan(
        spec_of(test::kSmall, "precision: fp8", 32, fmt::format("profile: orrery, eight_bit_output: {}", narrow)));
    for (const Op& op : plan.ops) {
      if (op.name == "logits") {
        EXPECT_EQ(op.precision, narrow ? Precision::fp8 : Precision::bf16);
      }
    }
  }
}

}  // namespace
}  // namespace orrery
