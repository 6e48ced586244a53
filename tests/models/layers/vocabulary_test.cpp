// Plans of stages that share the vocabulary: the weights that each holds, and the exchanges between all of them.
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "models/layout/placement.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

// Elements of the token-embedding table and the output matrix that a stage holds, and of everything else.
std::pair<std::int64_t, std::int64_t> weights_of(const Plan& plan, std::uint32_t slot) {
  std::pair<std::int64_t, std::int64_t> sums = {0, 0};
  for (const std::uint32_t state : states_of(plan, slot)) {
    for (const PlacedParameter& p : parameters_of(plan, state)) {
      const bool table = p.name == kEmbeddingTable || p.name == "output.weight";
      (table ? sums.first : sums.second) += p.local.out * p.local.in;
    }
  }
  return sums;
}

// Every stage holds V h / p elements of each matrix; a tied matrix is held once, for lookups and for logits.
TEST(Vocabulary, IsSharedByAllStages) {
  for (const bool tied : {false, true}) {
    for (const std::int64_t p : {2, 4}) {
      const std::string model = std::string(test::kSmall) + (tied ? ", tied_embeddings: true" : "");
      const Plan plan =
          make_plan(test::spec_of(model, fmt::format("pipeline: {}, schedule: vocab-1f1b, global_batch: 8", p)));
      for (std::uint32_t s = 0; s < plan.classes.size(); ++s)
        EXPECT_EQ(weights_of(plan, s).first, (tied ? 1 : 2) * 256 * 64 / p) << s;
    }
  }
}

// The paper's figures 4 and 6: of every micro-batch hidden states go round, their gradients and the embeddings come
// together, embeddings' gradients go round; maxima and sums are exchanged. Two barriers move the same.
TEST(Vocabulary, MovesWhatThePaperSays) {
  for (const char* schedule : {"vocab-1f1b", "vocab-1f1b-alg1"}) {
    const std::int64_t p = 4, m = 8, rows = 32, hidden = 64;
    const Spec spec = test::spec_of(test::kSmall, fmt::format("pipeline: {}, schedule: {}, global_batch: {}, "
                                                              "precision: bf16",
                                                              p, schedule, m));
    const Plan plan = make_plan(spec);
    for (const RankClass& slot : plan.classes) {
      std::map<std::pair<CollectiveKind, Bytes>, std::int64_t> count;
      for (TaskId t = slot.begin; t < slot.end; ++t) {
        const auto* c = std::get_if<Collective>(&plan.op_of(t).work);
        if (c != nullptr && c->group != Dimension::model) ++count[{c->kind, c->bytes}];
      }
      const std::map<std::pair<CollectiveKind, Bytes>, std::int64_t> expected = {
          {{CollectiveKind::broadcast, rows * hidden * 2}, 2 * m},
          {{CollectiveKind::reduce, rows * hidden * 2}, 2 * m},
          {{CollectiveKind::all_reduce, rows * 4}, m},
          {{CollectiveKind::all_reduce, rows * 8}, m}};
      EXPECT_EQ(count, expected) << schedule << " " << slot.name;
    }
  }
}

// The order of exchanges cannot deadlock, whatever the sizes (make_plan checks it), also with ZeRO-1, positions,
// dropout, and stages that differ.
TEST(Vocabulary, PlansOfAllSizesEnd) {
  for (const char* schedule : {"vocab-1f1b", "vocab-1f1b-alg1"}) {
    for (const int p : {1, 2, 3, 4, 8}) {
      for (const int m : {1, 3, 8, 17}) {
        for (const char* more : {"", ", sharding: zero1, data: 2", ", recompute: full"}) {
          const bool two = std::string(more).find("data: 2") != std::string::npos;
          const std::string model = std::string(test::kSmall) +
                                    (m % 2 == 1 ? ", positions: learned, dropout: 0.1, tied_embeddings: true" : "");
          const Plan plan = make_plan(test::spec_of(model, fmt::format("pipeline: {}, schedule: {}, global_batch: {}{}",
                                                                       p, schedule, two ? 2 * m : m, more)));
          EXPECT_EQ(plan.classes.size(), static_cast<std::size_t>(p));
        }
      }
    }
  }
}

// The buffer that the backward of a stack's loss writes is as large as a stage's logits, also where the loss is cut
// over stages.
TEST(Vocabulary, KeepsTheCopiesOfTheStacksLoss) {
  const auto copies = [](const std::string& software) {
    const Plan plan = make_plan(test::spec_of(test::kSmall, "pipeline: 4, schedule: vocab-1f1b, global_batch: 4", 32,
                                              "profile: orrery, fused_cross_entropy: false, " + software));
    std::vector<Bytes> found;
    for (const Block& block : plan.blocks) {
      for (const BlockBuffer& slot : block.buffers) {
        if (slot.name.find("log-probabilities' gradient") != std::string::npos) found.push_back(slot.bytes);
      }
    }
    return found;
  };
  const Bytes part = 32 * 256 / 4 * 4;  // each of the two blocks, of the last stage and of the others
  EXPECT_EQ(copies("loss_gradient_copies: 0"), (std::vector<Bytes>{}));
  EXPECT_EQ(copies("loss_gradient_copies: 1"), (std::vector<Bytes>(2, part)));
  EXPECT_EQ(copies("loss_gradient_copies: 1, loss_parallel_copies: 1"), (std::vector<Bytes>(4, part)));
}

// With one barrier the gradient is reduced before any rank knows the gradient of the logits; with two barriers, after.
// Either way the loss is taken once.
TEST(Vocabulary, TakesTheLossOnce) {
  for (const auto& [schedule, combines] : {std::pair{"vocab-1f1b", true}, {"vocab-1f1b-alg1", false}}) {
    const Plan plan =
        make_plan(test::spec_of(test::kSmall, fmt::format("pipeline: 4, schedule: {}, global_batch: 4", schedule)));
    std::int64_t losses = 0, combined = 0;
    for (TaskId t = 0; t < plan.task_count(); ++t) {
      const auto* e = std::get_if<CrossEntropy>(&plan.op_of(t).work);
      losses += e != nullptr && e->part == CrossEntropy::Part::loss ? 1 : 0;
      combined += e != nullptr && e->part == CrossEntropy::Part::combine ? 1 : 0;
    }
    EXPECT_EQ(losses, 4);
    EXPECT_EQ(combined, combines ? 16 : 0);
  }
}

}  // namespace
}  // namespace orrery
