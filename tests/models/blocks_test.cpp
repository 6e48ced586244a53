// Embedding, output and loss of one rank.
#include "models/blocks.h"

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

// b s values travel for the row maxima and two for the sums, never the b s V logits.
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
      EXPECT_EQ(made.moved(CollectiveKind::all_gather), t > 1 && sp ? all : 0);  // of the gradient
      EXPECT_EQ(made.block.parameter_elements, 256 * 64 / t + 32 * 64);
    }
  }
}

// The vocabulary is padded to a multiple of what the profile asks times the tensor degree.
TEST(Blocks, VocabularyIsPadded) {
  for (const auto& [vocab, multiple, t, padded] : std::vector<std::array<std::int64_t, 4>>{
           {50257, 128, 1, 50304}, {50257, 128, 8, 51200}, {256, 1, 2, 256}, {257, 1, 2, 258}}) {
    const Spec spec =
        test::spec_of(fmt::format("name: m, layers: 1, hidden: 64, heads: 8, feed_forward: 64, vocab: {}", vocab),
                      fmt::format("tensor: {}", t), 32, fmt::format("profile: orrery, vocab_multiple: {}", multiple));
    EXPECT_EQ(BlockContext(spec, row_of(Sharding::none)).padded_vocab, padded);
  }
}

}  // namespace
}  // namespace orrery
