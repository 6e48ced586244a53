// Embedding, output and loss of one rank.
#include "models/layers/blocks.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "tests/models/plans.h"

namespace orrery {
namespace {

struct Made {
  Block block;
  std::vector<Op> ops;

  Bytes moved(CollectiveKind kind) const {
    Bytes sum = 0;
    for (const Op& op : ops) {
      const auto* c = std::get_if<Collective>(&op.work);
      if (c != nullptr && c->kind == kind) sum += c->bytes;
    }
    return sum;
  }
};

Made make(Block (*block)(const BlockContext&, std::vector<Op>&), const Spec& spec) {
  Made made;
  made.block = block(BlockContext(spec, row_of(spec.strategy.sharding)), made.ops);
  return made;
}

// The loss over a divided vocabulary reduces only rows of b s values, one for the row maxima and two for the sums,
// never the b s V logits.
TEST(Blocks, LossReducesRowsAlone) {
  for (const int t : {1, 2, 8}) {
    const Spec spec =
        test::spec_of(test::kSmall, fmt::format("tensor: {}, sequence_parallel: false, micro_batch: 2", t));
    const Made output = make(output_block, spec);
    const Bytes rows = 2 * 32, gradient = rows * 64 * 2;  // the input's gradient is reduced as everywhere
    EXPECT_EQ(output.moved(CollectiveKind::all_reduce), t > 1 ? rows * 4 + rows * 8 + gradient : 0);
    EXPECT_EQ(output.block.parameter_elements, 256 * 64 / t);
  }
}

// The fused loss of flash-attention keeps 16-bit logits and writes their gradient beside them, Transformer Engine's
// writes it over them; other stacks keep an fp32 copy.
TEST(Blocks, FusedLossKeepsWhatItsKernelDoes) {
  const auto bytes = [](const std::string& on) {
    const Made output =
        make(output_block, test::spec_of(test::kSmall, "tensor: 2", 32, "profile: orrery, fused_loss_on: " + on));
    std::map<std::string, Bytes> of;
    for (const BlockBuffer& slot : output.block.buffers) of[slot.name] += slot.bytes;
    return std::vector<Bytes>{of["logits output"], of["fp32 logits"], of["logits gradient"]};
  };
  const Bytes logits = 32 * 128 * 2;
  EXPECT_EQ(bytes("copy"), (std::vector<Bytes>{logits, 2 * logits, logits}));
  EXPECT_EQ(bytes("logits"), (std::vector<Bytes>{logits, 0, logits}));
  EXPECT_EQ(bytes("in_place"), (std::vector<Bytes>{logits, 0, 0}));
  EXPECT_THROW(bytes("paper"), Error);
}

// Megatron-Core's linear layer allocates a new dummy tensor each time that it must hand autograd a weight gradient.
TEST(Blocks, LogitsHaveADummyGradientOfTheirOwn) {
  const auto bytes = [](const std::string& software, const std::string& sharding) {
    const Made output = make(output_block, test::spec_of(test::kSmall, "data: 2, sharding: " + sharding, 32,
                                                         "profile: orrery, dummy_gradients: " + software));
    Bytes sum = 0;
    for (const BlockBuffer& slot : output.block.buffers) sum += slot.name == "dummy gradient" ? slot.bytes : 0;
    return sum;
  };
  EXPECT_EQ(bytes("true", "none"), 256 * 64 * 2);
  EXPECT_EQ(bytes("false", "none"), 0);
  EXPECT_EQ(bytes("true", "fsdp"), 0);
}

// No op reads the dummy gradient, so it keeps no weight gradient among those that other ops wait for.
TEST(Blocks, LogitsWithADummyGradientStillWait) {
  const Plan plan = make_plan(test::spec_of(test::kSmall, "pipeline: 2, global_batch: 4, schedule: zb-h1", 32,
                                            "profile: orrery, dummy_gradients: true"));
  int found = 0;
  for (const Op& op : plan.ops) {
    if (op.name != "logits weight gradient") continue;
    ++found;
    EXPECT_EQ(op.phase, Phase::weight_gradient);
  }
  EXPECT_GT(found, 0);
}

// The gradient is that of the reported loss: further predictions have the same weight in both.
TEST(Blocks, LossAndItsGradientWeighPredictionsAlike) {
  const Spec spec = test::spec_of(std::string(test::kSmall) + ", mtp_layers: 2", "tensor: 2");
  int parts = 0;
  for (const Op& op : make(output_block, spec).ops) {
    const auto* c = std::get_if<CrossEntropy>(&op.work);
    if (c == nullptr) continue;
    ++parts;
    EXPECT_EQ(c->predictions, 3) << op.name;
    EXPECT_EQ(c->parts, 2) << op.name;
  }
  EXPECT_EQ(parts, 4);
}

// Lookups are summed over the tensor group: whole, or scattered under sequence parallelism.
TEST(Blocks, EmbeddingSumsLookups) {
  for (const int t : {1, 2, 4}) {
    for (const bool sp : {false, true}) {
      const Spec spec = test::spec_of(std::string(test::kSmall) + ", positions: learned",
                                      fmt::format("tensor: {}, sequence_parallel: {}", t, sp && t > 1));
      const Made made = make(embedding_block, spec);
      const Bytes all = 32 * 64 * 2;
      EXPECT_EQ(made.moved(CollectiveKind::all_reduce), t > 1 && !sp ? all : 0);
      EXPECT_EQ(made.moved(CollectiveKind::reduce_scatter), t > 1 && sp ? all : 0);
      EXPECT_EQ(made.moved(CollectiveKind::all_gather), t > 1 && sp ? all : 0);  // gathers the gradient
      EXPECT_EQ(made.block.parameter_elements, 256 * 64 / t + 32 * 64);
    }
  }
}

// A rank's weights in a list of (scope, slot) operands, by index.
std::set<std::int32_t> named(const std::vector<Op>& ops, const std::vector<std::uint32_t>& pass, bool gradients,
                             bool written) {
  std::set<std::int32_t> result;
  for (const std::uint32_t op : pass) {
    for (const Operand& o : ops[op].operands) {
      const bool gradient =
          (o.scope == Scope::unit && o.slot == kUnitGradient) || (o.scope == Scope::state && o.slot == kGradients);
      const bool weight =
          (o.scope == Scope::unit && o.slot == kGathered) || (o.scope == Scope::state && o.slot == kParameters);
      if (!(gradients ? gradient : weight)) continue;
      EXPECT_GE(o.parameter, 0) << ops[op].name;
      EXPECT_EQ(o.access != Access::read, written) << ops[op].name;
      result.insert(o.parameter);
    }
  }
  return result;
}

// Forward names every weight, bias, norm weight and position table that it reads, and backward every one whose gradient
// it writes.
TEST(Blocks, OpsNameTheirWeights) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Plan plan = make_plan(test::random_spec(seed, test::kAllShardings, test::Drawn::plain));
    for (const Block& block : plan.blocks) {
      std::set<std::int32_t> all;
      for (std::size_t p = 0; p < block.parameters.size(); ++p) all.insert(static_cast<std::int32_t>(p));
      EXPECT_EQ(named(plan.ops, block.forward, false, false), all) << seed << " " << block.name;
      EXPECT_EQ(named(plan.ops, block.backward, true, true), all) << seed << " " << block.name;
    }
    if (HasFailure()) return;
  }
}

// Gemma multiplies embeddings, and Gemma 2 caps logits and scores; with flash attention inside its kernel.
TEST(Blocks, Gemma) {
  const auto elements = [](const Spec& spec, Direction direction) {
    std::int64_t sum = 0;
    const Plan plan = make_plan(spec);
    for (TaskId t = 0; t < plan.task_count(); ++t) {
      const auto* cap = std::get_if<SoftCap>(&plan.op_of(t).work);
      if (cap != nullptr && cap->direction == direction) sum += cap->elements;
    }
    return sum;
  };
  const std::string capped = std::string(test::kSmall) + ", logit_softcap: 30, attention_softcap: 50";
  for (const Direction d : {Direction::forward, Direction::backward}) {
    EXPECT_EQ(elements(test::spec_of(test::kSmall, "attention: unfused"), d), 0);
    EXPECT_EQ(elements(test::spec_of(capped, "attention: flash"), d), 32 * 256);
    EXPECT_EQ(elements(test::spec_of(capped, "attention: unfused, tensor: 2"), d), (32 * 256 + 8 * 8 * 32 * 32) / 2);
  }
  const Made made = make(embedding_block, test::spec_of(std::string(test::kSmall) + ", scaled_embedding: true",
                                                        "tensor: 2, sequence_parallel: true"));
  int scaled = 0;
  for (const Op& op : made.ops) {
    if (const auto* m = std::get_if<Multiply>(&op.work)) {
      EXPECT_EQ(m->elements, 32 * 64 / 2);
      EXPECT_EQ(m->factor, 8);
      ++scaled;
    }
  }
  EXPECT_EQ(scaled, 2);
}

// The vocabulary is padded to a multiple of the profile's value times the tensor degree.
TEST(Blocks, VocabularyIsPadded) {
  for (const auto& [vocab, multiple, t, padded] : std::vector<std::array<std::int64_t, 4>>{
           {50257, 128, 1, 50304}, {50257, 128, 8, 51200}, {256, 1, 2, 256}, {257, 1, 2, 258}}) {
    const Spec spec =
        test::spec_of(fmt::format("name: m, layers: 1, hidden: 64, heads: 8, feed_forward: 64, vocab: {}", vocab),
                      fmt::format("tensor: {}", t), 32, fmt::format("profile: orrery, vocab_multiple: {}", multiple));
    EXPECT_EQ(BlockContext(spec, row_of(Sharding::none)).padded_vocab, padded);
  }
}

// Blackwell's products with one scale a tensor take operands of either layout, so that Transformer Engine keeps no
// transposed copies there; scales of blocks, torchao's casts and Hopper need them.
TEST(Blocks, TransposesEightBitOperandsWhereProductsNeedIt) {
  const auto transposes = [](const std::string& node, const std::string& software, const std::string& precision) {
    const Plan plan = make_plan(parse_spec(
        fmt::format("model: {{{}}}\nsequence: 32\ncluster: {{node: {}, nodes: 1}}\nsoftware: {{{}}}\nstrategy: "
                    "{{data: 1, tensor: 2, sequence_parallel: true, precision: {}}}\n",
                    test::kSmall, node, software, precision),
        "test"));
    return std::any_of(plan.ops.begin(), plan.ops.end(), [](const Op& op) {
      const auto* cast = std::get_if<Cast>(&op.work);
      return cast != nullptr && (cast->transpose || op.name.ends_with(" transpose"));
    });
  };
  EXPECT_FALSE(transposes("dgx-b200", "profile: megatron-core", "fp8"));
  EXPECT_TRUE(transposes("dgx-b200", "profile: megatron-core", "mxfp8"));
  EXPECT_TRUE(transposes("dgx-b200", "profile: torchtitan", "fp8"));
  EXPECT_TRUE(transposes("dgx-h100", "profile: megatron-core", "fp8"));
}

}  // namespace
}  // namespace orrery
