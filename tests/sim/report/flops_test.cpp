// Floating-point operations: the papers' closed form, and a plan's own products against it.
#include "sim/report/flops.h"

#include <gtest/gtest.h>

#include "models/generation/generation_plan.h"
#include "models/load/load_spec.h"
#include "tests/models/plans.h"
#include "tests/models/vision_specs.h"

namespace orrery {
namespace {

using test::spec_of;

// Narayanan et al. 2021: 72 B L s h^2 (1 + s/(6h) + V/(12 L h)).
TEST(Flops, ClosedFormOfGpt) {
  for (const double layers : {2, 24, 96}) {
    for (const double h : {64, 1024, 12288}) {
      for (const double s : {32, 2048}) {
        for (const double vocab : {256, 51200}) {
          const Spec spec = spec_of(
              fmt::format("name: gpt, layers: {}, hidden: {}, heads: 8, feed_forward: {}, vocab: {}, gated: false, "
                          "norm: layernorm, bias: true, positions: learned",
                          layers, h, 4 * h, vocab),
              "global_batch: 6", static_cast<std::int64_t>(s));
          EXPECT_NEAR(model_flops(spec, AttentionPairs::full) /
                          (72 * 6 * layers * s * h * h * (1 + s / (6 * h) + vocab / (12 * layers * h))),
                      1, 1e-12);
        }
      }
    }
  }
}

struct Products {
  double linear = 0, attention = 0;
};

Products products(const Plan& plan, bool recomputed) {
  Products sum;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const Op& op = plan.op_of(t);
    if (op.recompute != recomputed) continue;
    const double ranks = static_cast<double>(plan.classes[plan.slot_of(t)].multiplicity);
    const double flops = cost_of(op.work, 2).flops * ranks;
    if (const auto* g = std::get_if<Gemm>(&op.work)) {
      const bool pairs = g->heads > 0;
      (pairs ? sum.attention : sum.linear) += flops;
    }
    if (std::holds_alternative<FlashAttention>(op.work)) sum.attention += flops;
  }
  return sum;
}

// Every product of forward and backward over all ranks, once: unfused attention over the full square; flash attention
// over half of it (causal), with a backward of two and a half forwards.
TEST(Flops, PlansDoWhatTheModelNeeds) {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Spec spec = test::random_spec(seed, test::kAllShardings, test::Drawn::plain);
    const Model& m = spec.model;
    const Strategy& s = spec.strategy;
    const bool padded = BlockContext(spec, row_of(s.sharding)).padded_vocab != m.vocab;
    if (padded || s.tensor > m.kv_heads || m.sliding_window) continue;
    const Products done = products(make_plan(spec), false);
    const double square = 12.0 * static_cast<double>(m.layers * s.global_batch * spec.sequence * spec.sequence) *
                          static_cast<double>(m.heads * m.head_dim);
    EXPECT_NEAR(done.linear / (model_flops(spec, AttentionPairs::full) - square), 1, 1e-9) << seed;
    EXPECT_NEAR(done.attention / square, s.attention == Attention::flash ? 3.5 / 6 : 1, 1e-9) << seed;
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

// Full recomputation adds one forward of the layers; selective the attention core of the forward alone.
TEST(Flops, Recomputation) {
  for (const char* attention : {"flash", "unfused"}) {
    for (const int tensor : {1, 4}) {
      const auto flops = [&](const char* recompute) {
        const Spec spec = spec_of(test::kSmall, fmt::format("tensor: {}, pipeline: 2, global_batch: 4, attention: {}, "
                                                            "recompute: {}",
                                                            tensor, attention, recompute));
        return recomputed_flops(make_plan(spec), spec, AttentionPairs::full);
      };
      const double core = 4.0 * 8 * 4 * 32 * 32 * 64;
      const double linear = 2.0 * 8 * 4 * 32 * (4 * 64 * 64 + 3 * 64 * 256);
      EXPECT_EQ(flops("none"), 0);
      EXPECT_EQ(flops("selective"), core);
      EXPECT_EQ(flops("full"), core + linear);
      EXPECT_EQ(flops("[mlp]"), 2.0 * 8 * 4 * 32 * 3 * 64 * 256);
      EXPECT_EQ(flops("[norm, activation]"), 0);
    }
  }
}

// Patches attend to all patches: the encoder's attention that runs again counts whole, fused or not.
TEST(Flops, RecomputedPatchesSeeAllPatches) {
  const auto flops = [](const char* attention) {
    const Spec spec = test::seeing(fmt::format("global_batch: 4, attention: {}, recompute: selective", attention));
    const Spec text =
        test::spec_of(test::kSmall, fmt::format("global_batch: 4, attention: {}, recompute: selective", attention));
    return recomputed_flops(make_plan(spec), spec, AttentionPairs::masked) -
           recomputed_flops(make_plan(text), text, AttentionPairs::masked);
  };
  const double scores = 4.0 * 4 * 2 * 2 * 16 * 16 * 32;  // samples, images, layers, pairs of patches, columns
  EXPECT_DOUBLE_EQ(flops("flash"), scores);
  EXPECT_DOUBLE_EQ(flops("unfused"), scores);
}

// A causal query sees s (s + 1) / 2 of s x s pairs on average, one with a window w at most w keys; layers without the
// window see all. The loop counts pair by pair.
TEST(Flops, CountWhatTheMaskNeeds) {
  for (const std::int64_t sequence : {1, 5, 64, 100}) {
    for (const std::int64_t window : {1, 3, 64, 1000}) {
      for (const std::int64_t every : {1, 2}) {
        const std::string plain = "name: m, layers: 4, hidden: 64, heads: 4, feed_forward: 128, vocab: 256";
        const Spec whole = spec_of(plain, "global_batch: 2", sequence);
        const Spec banded = spec_of(plain + fmt::format(", sliding_window: {{window: {}, every: {}}}", window, every),
                                    "global_batch: 2", sequence);
        double pairs = 0;
        for (std::int64_t layer = 0; layer < 4; ++layer) {
          const bool band = every == 1 || (layer + 1) % every != 0;
          for (std::int64_t q = 0; q < sequence; ++q) {
            for (std::int64_t k = 0; k <= q; ++k) pairs += !band || q - k < window ? 1 : 0;
          }
        }
        const double square = 6.0 * 2 * 64 * 2 * 4 * static_cast<double>(sequence * sequence);
        const double rest = model_flops(whole, AttentionPairs::full) - square;
        EXPECT_NEAR(model_flops(banded, AttentionPairs::masked) / (rest + 6.0 * 2 * 64 * 2 * pairs), 1, 1e-12);
        EXPECT_EQ(model_flops(banded, AttentionPairs::full), model_flops(whole, AttentionPairs::full));
      }
    }
  }
}

// DeepSeek-V3's modules: each a layer, the join of two hidden states, and the output matrix once more.
TEST(Flops, FurtherPredictionsCountWhole) {
  const std::string model = "name: m, layers: 4, hidden: 64, heads: 4, feed_forward: 128, vocab: 256";
  const auto flops = [&](const std::string& more) {
    return model_flops(spec_of(model + more, "global_batch: 2", 32), AttentionPairs::full);
  };
  const double tokens = 2 * 32, layer = 4 * 64 * 64 + 3 * 64 * 128 + 2 * 64 * 32;
  EXPECT_NEAR((flops(", mtp_layers: 1") - flops("")) / (6 * tokens * (layer + 2 * 64 * 64 + 64 * 256)), 1, 1e-12);
}

// DeepSeek-V4's parts by hand: low-rank queries, one key, grouped outputs, compressors with two or one products of
// `runs` keys each, an index in one layer, the weights of four streams before every branch and the head, and a
// prediction whose layer has a window alone, with a projection of the hidden states in every stream.
TEST(Flops, CompressedAttentionAndStreamsAreCountedByHand) {
  const Spec spec = test::spec_of(
      "name: v4, layers: 3, hidden: 48, heads: 8, kv_heads: 1, head_dim: 16, vocab: 256, feed_forward: 64, "
      "layer_kinds: [windowed, compressed_sparse, heavily_compressed], compressed_attention: {q_lora_rank: 24, "
      "rope_head_dim: 4, window: 8, heavy_rate: 16, output_groups: 4, output_rank: 12}, indexer: {heads: 4, head_dim: "
      "8, top_k: 6}, hyper_connections: 4, mtp_layers: 1",
      "global_batch: 2", 64);
  constexpr double kBase = 48 * 24 + 24 * 128 + 48 * 16 + 128 * 12 + 48 * 48, kMlp = 3 * 48 * 64;
  constexpr double kWeights = 2 * 24 * 4 * 48, kHead = 4 * 4 * 48;
  constexpr double kSparse = 2 * 48 * 2 * 16 + 24 * 32 + 2 * 48 * 2 * 8 + 48 * 4, kHeavy = 2 * 48 * 16;
  constexpr double kModel = 3 * (kBase + kMlp + kWeights) + kSparse + kHeavy + kHead + 256 * 48;
  constexpr double kPrediction = kBase + kMlp + kWeights + kHead + (1 + 4) * 48 * 48 + 256 * 48;
  double window = 0, sparse = 0, heavy = 0, indexed = 0;
  for (int t = 1; t <= 64; ++t) {
    window += std::min(t, 8);
    sparse += std::min(t / 4, 6);
    heavy += t / 16;
    indexed += t / 4;
  }
  const double scores = 8 * 2 * 16 * (4 * window + sparse + heavy) + indexed * 4 * 8 / 3;
  for (const AttentionPairs pairs : {AttentionPairs::masked, AttentionPairs::full})
    EXPECT_DOUBLE_EQ(model_flops(spec, pairs), 6 * 2 * (64 * (kModel + kPrediction) + scores));
}

Spec generating_spec(const std::string& generate, const std::string& strategy, std::int64_t gpus) {
  return parse_spec(fmt::format("{{model: {{name: m, layers: 4, hidden: 64, heads: 8, kv_heads: 4, feed_forward: 192, "
                                "vocab: 1024}}, generate: {{{}}}, cluster: {{node: dgx-h100, nodes: 1}}, gpus: {}, "
                                "software: vllm, strategy: {{{}}}}}",
                                generate, gpus, strategy),
                    "g.yaml");
}

// A pass of generated text: every product of its plan over all ranks, and attention to what is cached too. The first
// pass's attention counts half of the square, and the model's pairs are s (s + 1) / 2.
TEST(Flops, PassesOfGeneratedTextDoWhatTheirPlansDo) {
  for (const char* strategy : {"tensor: 1, data: 1", "tensor: 4, data: 1", "tensor: 2, pipeline: 2"}) {
    const Spec spec =
        generating_spec("batch: 6, input: 96, output: 40, chunk: 96", strategy, strategy[8] == '1' ? 1 : 4);
    for (const GenerationPass& pass : generation_passes(*spec.generation)) {
      const Spec of = spec_of_pass(spec, pass);
      const Products done = products(make_plan(of), false);
      const double attention = done.attention * (pass.cached == 0 ? 97.0 / 96 : 1);
      EXPECT_NEAR((done.linear + attention) / model_flops(of, AttentionPairs::masked), 1, 1e-9) << pass.cached;
    }
  }
}

TEST(Flops, ChunksOfAPromptAddUpToIt) {
  for (const std::string model : {"llama-3.1-8b", "deepseek-v3", "glm-5", "gemma-2-9b", "qwen3.5-397b-a17b"}) {
    const auto prompt = [&](std::int64_t chunk) {
      Spec spec =
          parse_spec(fmt::format("{{model: {}, generate: {{batch: 2, input: 8200, chunk: {}}}, cluster: {{node: "
                                 "dgx-h100, nodes: 1}}, gpus: 8, strategy: {{tensor: 8, data: 1}}}}",
                                 model, chunk),
                     "g.yaml");
      double sum = 0;
      for (const GenerationPass& pass : generation_passes(*spec.generation))
        sum += model_flops(spec_of_pass(spec, pass), AttentionPairs::masked);
      return sum;
    };
    for (const std::int64_t chunk : {1000, 3000, 8192}) EXPECT_NEAR(prompt(chunk) / prompt(0), 1, 1e-12) << model;
  }
}

// A further token in the cache is one more pair a head and layer: 4 x 64 operations in each of 4 layers.
TEST(Flops, PassesOfOneTokenGrowWithTheContext) {
  const Spec spec = generating_spec("batch: 6, input: 96, output: 40", "tensor: 1, data: 1", 1);
  const auto flops = [&](std::int64_t cached) {
    return model_flops(spec_of_pass(spec, {1, cached}), AttentionPairs::masked);
  };
  EXPECT_DOUBLE_EQ(flops(106) - flops(96), 6.0 * 10 * 4 * 4 * 64);
}

}  // namespace
}  // namespace orrery
