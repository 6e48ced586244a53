// Work of single ops: closed forms of the products, and properties that hold for all of them.
#include "models/plan/op.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(Op, Products) {
  const Cost plain = cost_of(Gemm{.m = 3, .n = 5, .k = 7}, 2);
  EXPECT_EQ(plain.flops, 2 * 3 * 5 * 7);
  EXPECT_EQ(plain.bytes, (3 * 7 + 5 * 7 + 3 * 5) * 2);
  const Cost batch = cost_of(Gemm{.m = 3, .n = 5, .k = 7, .batch = 4}, 2);
  EXPECT_EQ(batch.flops, 4 * plain.flops);
  EXPECT_EQ(batch.bytes, 4 * plain.bytes);
  // An accumulated result is read and written in its own width.
  EXPECT_EQ(cost_of(Gemm{.m = 3, .n = 5, .k = 7, .accumulate = true, .result_bytes = 4}, 2).bytes,
            (3 * 7 + 5 * 7) * 2 + 2 * 3 * 5 * 4);
}

// Causal attention does half of the square; a window of w reads at most w keys; backward is two and a half forwards.
TEST(Op, Attention) {
  for (const std::int64_t s : {64, 1024, 8192}) {
    FlashAttention a = {.batch = 2, .heads = 8, .kv_heads = 2, .query = s, .key = s, .head_dim = 16, .value_dim = 16};
    const double full = 4.0 * 2 * 8 * 16 * static_cast<double>(s) * static_cast<double>(s);
    EXPECT_EQ(cost_of(a, 2).flops, full / 2);
    a.window = s;
    EXPECT_EQ(cost_of(a, 2).flops, full / 2);
    a.window = 1;
    EXPECT_NEAR(cost_of(a, 2).flops / (full / static_cast<double>(s)), 1, 1.0 / 64);
    double before = 0;
    for (a.window = 1; a.window <= s; a.window *= 2) {
      EXPECT_GT(cost_of(a, 2).flops, before);
      before = cost_of(a, 2).flops;
    }
    const double forward = cost_of(a, 2).flops;
    a.direction = Direction::backward;
    EXPECT_EQ(cost_of(a, 2).flops, 2.5 * forward);
  }
}

// Adam on fp32 states with 16-bit weights: 4 + 4 + 8 read, 4 + 8 + 2 written, a parameter.
TEST(Op, Update) {
  EXPECT_EQ(cost_of(Update{.elements = 10}, 2).bytes, 10 * (4 + 2 * 4 + 2 * 2 * 4 + 2));
  EXPECT_EQ(cost_of(Update{.elements = 10, .moments = 0}, 2).bytes, 10 * (4 + 2 * 4 + 2));
  EXPECT_EQ(cost_of(Update{.elements = 10, .master = 0, .forward = 4}, 4).bytes, 10 * (4 + 2 * 4 + 2 * 2 * 4));
}

// Fusing never moves more bytes nor launches more kernels, and twice the rows are twice the work. Rows in pieces: first
// the sums, then the normalisation; fused, x is read once more, and so is dy in backward.
TEST(Op, NormsOfPiecesCostAPassMore) {
  for (const Direction d : {Direction::forward, Direction::backward}) {
    for (const bool fused : {false, true}) {
      const auto part = [&](Normalize::Part p) { return Normalize{8, 16, true, fused, d, p, 2}; };
      const Cost whole = cost_of(part(Normalize::Part::whole), 2), sums = cost_of(part(Normalize::Part::sums), 2),
                 rest = cost_of(part(Normalize::Part::finish), 2);
      const bool forward = d == Direction::forward;
      EXPECT_EQ(sums.bytes + rest.bytes, whole.bytes + (fused ? (forward ? 1 : 2) * 8 * 16 * 2 : 0));
      EXPECT_EQ(sums.flops + rest.flops, whole.flops);
      EXPECT_EQ(kernels_of(part(Normalize::Part::sums)) + kernels_of(part(Normalize::Part::finish)),
                kernels_of(part(Normalize::Part::whole)) + (fused ? 1 : 0));
    }
  }
}

TEST(Op, FusionSaves) {
  for (const Direction d : {Direction::forward, Direction::backward}) {
    for (const bool flag : {false, true}) {
      const std::vector<std::array<Work, 3>> table = {
          {Softmax{8, 16, flag, true, d}, Softmax{8, 16, flag, false, d}, Softmax{16, 16, flag, true, d}},
          {Normalize{8, 16, flag, true, d}, Normalize{8, 16, flag, false, d}, Normalize{16, 16, flag, true, d}},
          {Rotary{8, 16, 8, true, d}, Rotary{8, 16, 8, false, d}, Rotary{16, 16, 8, true, d}},
          {Activation{8, 16, flag, true, d}, Activation{8, 16, flag, false, d}, Activation{16, 16, flag, true, d}},
          {Residual{8, 16, true, true, flag, true, d}, Residual{8, 16, true, true, flag, false, d},
           Residual{16, 16, true, true, flag, true, d}},
          {CrossEntropy{8, 16, CrossEntropy::Part::exponent, true},
           CrossEntropy{8, 16, CrossEntropy::Part::exponent, false},
           CrossEntropy{16, 16, CrossEntropy::Part::exponent, true}}};
      for (const auto& [fused, apart, twice] : table) {
        EXPECT_LE(cost_of(fused, 2).bytes, cost_of(apart, 2).bytes) << fused.index();
        EXPECT_LE(kernels_of(fused), kernels_of(apart)) << fused.index();
        EXPECT_EQ(cost_of(twice, 2).bytes, 2 * cost_of(fused, 2).bytes) << fused.index();
        EXPECT_EQ(cost_of(twice, 2).flops, 2 * cost_of(fused, 2).flops) << fused.index();
      }
    }
  }
}

// A library launches the products of all experts in one call; without fusing, each operation is called separately.
TEST(Op, CallsOfTheFramework) {
  EXPECT_EQ(calls_of(GroupedGemm{.groups = 16}), 1);
  EXPECT_EQ(kernels_of(GroupedGemm{.groups = 16}), 16);
  EXPECT_EQ(calls_of(FlashAttention{.direction = Direction::backward}), 1);
  EXPECT_EQ(calls_of(Normalize{.fused = true, .direction = Direction::backward}), 1);
  EXPECT_EQ(calls_of(Normalize{.fused = false}), 6);
  EXPECT_EQ(calls_of(Wait{}), 0);
}

// Two metrics compute the loss again: logits are cast to fp32 and log-probabilities written.
TEST(Op, MetricsReadTheLogitsAgain) {
  CrossEntropy loss{.rows = 100, .columns = 1000, .part = CrossEntropy::Part::loss};
  const double plain = cost_of(loss, 2).bytes;
  loss.metrics = 2;
  EXPECT_EQ(cost_of(loss, 2).bytes - plain, 2 * 100 * 1000 * (2 + 4 + 4 + 4));
}

// A bias times the router's weight is eager operations in fp32, 28 bytes an element and 40 in backward; a plain one is
// read and written.
TEST(Op, WeightedBiasesOfExpertsAreEager) {
  GroupedBias bias = {.groups = 4, .rows = 1024, .columns = 512};
  EXPECT_EQ(cost_of(bias, 2).bytes, 2.0 * 1024 * 512 * 2);
  bias.weighted = true;
  EXPECT_EQ(cost_of(bias, 2).bytes, 28.0 * 1024 * 512);
  bias.direction = Direction::backward;
  EXPECT_EQ(cost_of(bias, 2).bytes, 40.0 * 1024 * 512);
}

// Eager clamps of gates (one bound) and of what they gate (two): each half is read and written, then both are joined;
// backward makes masks of bytes: 8 bytes of a gate and 14 of a value in 16 bits, and 4 bytes of each to join them.
TEST(Op, ClampsApartAreEager) {
  Clamp clamp = {.rows = 1024, .columns = 512, .limit = 7};
  EXPECT_EQ(cost_of(clamp, 2).bytes, 16.0 * 1024 * 512);
  EXPECT_EQ(kernels_of(clamp), 3);
  clamp.direction = Direction::backward;
  EXPECT_EQ(cost_of(clamp, 2).bytes, (8.0 + 14 + 2 * 4) * 1024 * 512);
  EXPECT_EQ(kernels_of(clamp), 9);
}

// Conversions to few bits read every number and write codes and scales, of each run by itself; sums read all summands.
TEST(Op, ConversionsToFewBitsMoveCodesAndScales) {
  const NarrowFormat format = {NarrowKind::int4, 64};
  const double piece = 50 + 4 * 2;  // 100 codes of half a byte, two scales
  const Quantize to = {.format = format, .elements = 300, .pieces = 3, .wide = 2};
  EXPECT_EQ(cost_of(to, 2).bytes, 2 * 300 + 3 * piece);
  EXPECT_EQ(cost_of(to, 2).flops, 0);
  const Quantize sum = {.format = format, .elements = 300, .pieces = 3, .wide = 2, .summands = 4};
  EXPECT_EQ(cost_of(sum, 2).bytes, (4 + 1) * 3 * piece);
  EXPECT_EQ(cost_of(sum, 2).flops, 4 * 300);
  const Dequantize from = {.format = format, .elements = 300, .pieces = 3, .wide = 2};
  EXPECT_EQ(cost_of(from, 2).bytes, cost_of(to, 2).bytes);
  const Dequantize adds = {.format = format, .elements = 100, .wide = 4, .summands = 2, .adds = true};
  EXPECT_EQ(cost_of(adds, 2).bytes, 2 * piece + 2 * 4 * 100);
  EXPECT_EQ(cost_of(adds, 2).flops, 2 * 100);
  EXPECT_EQ(kernels_of(adds), 1);
}

}  // namespace
}  // namespace orrery
