#include "models/cost/kernel_time.h"

#include <cmath>
#include <fstream>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/spec/cluster.h"

namespace orrery {
namespace {

class KernelTime : public ::testing::Test {
 protected:
  static Op op(Work work, Precision precision = Precision::bf16) {
    return {.name = "op", .work = std::move(work), .precision = precision};
  }
  Seconds time(const Work& work, std::string_view attention = "fa2") const {
    return kernel_time(op(work), 2, gpu, profile, attention);
  }
  static Gemm gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) {
    return {.m = m, .n = n, .k = k, .batch = batch};
  }

  Gpu gpu = find_gpu("h100-sxm");
  Profile profile = find_profile(gpu);
};

TEST_F(KernelTime, ProductsNeverGetFasterWithSize) {
  std::mt19937_64 random(7);
  const auto draw = [&] { return static_cast<std::int64_t>(std::exp(static_cast<double>(random() % 1000) / 100)) + 1; };
  for (int i = 0; i < 3000; ++i) {
    const Gemm g = gemm(draw(), draw(), draw(), 1 + static_cast<std::int64_t>(random() % 4));
    const Seconds t = time(g);
    for (std::int64_t Gemm::*side : {&Gemm::m, &Gemm::n, &Gemm::k, &Gemm::batch}) {
      Gemm larger = g;
      larger.*side += 1 + draw();
      ASSERT_GE(time(larger), t) << g.m << " x " << g.n << " x " << g.k << " x " << g.batch;
    }
  }
}

// Tiles are computed in waves: on 132 multiprocessors one tile more than a full wave costs another step; further tiles
// in that wave cost only their smoothed share.
TEST_F(KernelTime, WavesShowAtTheEdges) {
  profile.gemm.tiles = {{128, 128, 0.8}};
  profile.gemm.smoothing = profile.gemm.exposed_result = 0;
  profile.memory.start_us = 1000;  // cutting along k is not worth it
  gpu.memory_GBps = 1e6;           // and memory is no limit
  const auto tiles = [&](std::int64_t n) { return kernel_time(op(gemm(128 * n, 128, 512)), 2, gpu, profile, "fa2"); };
  EXPECT_DOUBLE_EQ(tiles(1), tiles(132));
  EXPECT_DOUBLE_EQ(tiles(133), 2 * tiles(132));
  EXPECT_DOUBLE_EQ(tiles(133), tiles(264));
  profile.gemm.smoothing = 1;
  EXPECT_DOUBLE_EQ(tiles(198), 1.5 * tiles(132));
}

// On Hopper, a tile's result is stored after its products are done, also for sums that accumulate; on
// Blackwell, results are stored from tensor memory during the next tile's products.
TEST_F(KernelTime, ResultsLeaveAfterTheProducts) {
  Gemm g = {.m = 8192, .n = 8192, .k = 4096, .role = Gemm::Role::weight_gradient, .result_bytes = 4};
  const auto sums_cost = [&](const char* name) {
    const Gpu on = find_gpu(name);
    g.accumulate = false;
    const Seconds fresh = kernel_time(op(g), 2, on, find_profile(on), "fa2");
    g.accumulate = true;
    return kernel_time(op(g), 2, on, find_profile(on), "fa2") - fresh;
  };
  const double bytes = 8192.0 * 8192 * 4, rate = gpu.memory_GBps * 1e9 * profile.memory.fraction;
  EXPECT_GT(profile.gemm.exposed_result, 0);
  EXPECT_NEAR(sums_cost("h100-sxm"), profile.gemm.exposed_result * bytes / rate, 1e-9);
  EXPECT_EQ(sums_cost("b200"), 0);
}

// The pieces of a product run side by side, so that the waves of thread blocks are those of the whole product.
TEST_F(KernelTime, APieceTakesItsPartOfTheWholeProduct) {
  Gemm piece = gemm(1024, 2560, 8192);
  EXPECT_GT(4 * time(piece), 1.2 * time(gemm(4096, 2560, 8192)));
  piece.pieces = 4;
  EXPECT_DOUBLE_EQ(4 * time(piece), time(gemm(4096, 2560, 8192)));
}

TEST_F(KernelTime, ExpertsProductsHaveARateOfTheirOwn) {
  profile.gemm.prologue_us = profile.gemm.exposed_result = 0;
  const GroupedGemm experts = {.groups = 8, .rows = 65536, .out = 4096, .in = 4096};
  const Seconds whole = time(experts);
  profile.gemm.grouped_fraction = 0.5;
  EXPECT_DOUBLE_EQ(time(experts), 2 * whole);
}

TEST_F(KernelTime, LargeProductsTendToTheirEfficiencyAndThinOnesToMemory) {
  const double peak = peak_flops(gpu, Precision::bf16);
  const std::int64_t n = 32768;
  const double result = 2.0 * std::pow(static_cast<double>(n), 2) / (gpu.memory_GBps * 1e9 * profile.memory.fraction);
  const double products = time(gemm(n, n, n)) - profile.gemm.exposed_result * result;
  const double rate = 2.0 * std::pow(static_cast<double>(n), 3) / products;
  EXPECT_NEAR(rate / peak, profile.gemm.tiles.front().efficiency, 0.01);
  const double bytes = 2.0 * (65536.0 * 65536 + 2 * 65536);
  EXPECT_NEAR(time(gemm(1, 65536, 65536)), bytes / (gpu.memory_GBps * 1e9 * profile.memory.fraction), 1e-5);
}

TEST_F(KernelTime, ElementwiseKernelsMoveAtMemorySpeed) {
  const Seconds t = time(Add{1 << 30});
  const double bytes = 3.0 * (1 << 30) * 2;
  EXPECT_NEAR(bytes / t / 1e9, gpu.memory_GBps * profile.memory.fraction, 5);
  EXPECT_GE(time(Add{1}), profile.memory.start_us * 1e-6);
}

TEST_F(KernelTime, AttentionKernelByNameElseTheFirst) {
  FlashAttention a{
      .batch = 2, .heads = 16, .kv_heads = 16, .query = 4096, .key = 4096, .head_dim = 128, .value_dim = 128};
  EXPECT_LT(time(a, "cudnn"), time(a, "fa2"));
  EXPECT_EQ(time(a, "unheard of"), time(a, profile.attention.front().name));
  const Seconds forward = time(a);
  a.direction = Direction::backward;
  EXPECT_GT(time(a), 2 * forward);
}

TEST_F(KernelTime, RandomNumbersSlowAFastAttentionKernel) {
  FlashAttention a = {
      .batch = 1, .heads = 32, .kv_heads = 32, .query = 8192, .key = 8192, .head_dim = 128, .value_dim = 128};
  const Seconds plain = time(a, "cudnn"), slow_kernel = time(a, "fa2");
  a.drops = true;
  EXPECT_NEAR(time(a, "cudnn") / plain, 1 / 0.8, 0.01);
  EXPECT_EQ(time(a, "fa2"), slow_kernel);
  a.direction = Direction::backward;
  const Seconds dropping = time(a, "cudnn");
  a.drops = false;
  EXPECT_NEAR(dropping / time(a, "cudnn"), 1 / 0.65, 0.01);
}

// A profile whose only sample of each work took `slower` times what the formulas say of it.
class SampledKernelTime : public KernelTime {
 protected:
  void sample(const Work& work, double slower) {
    const WorkShape shape = shape_of(work, 2);
    const Seconds seconds = slower * kernel_time(op(work), 2, gpu, find_profile(gpu), "cudnn");
    profile.measured.ops.push_back({shape.kind, {{shape.sizes, shape.amount, seconds}}});
  }
  // The time of a work over what the formulas say of it.
  double ratio(const Work& work) const {
    return time(work, "cudnn") / kernel_time(op(work), 2, gpu, find_profile(gpu), "cudnn");
  }
};

TEST_F(SampledKernelTime, PiecesAndDropoutCostWhatTheFormulasSayOfThem) {
  Gemm product = gemm(4096, 2560, 8192);
  FlashAttention attention = {
      .batch = 1, .heads = 32, .kv_heads = 32, .query = 8192, .key = 8192, .head_dim = 128, .value_dim = 128};
  sample(product, 1.25);
  sample(attention, 1.5);
  product.m = 1024;
  product.pieces = 4;
  attention.drops = true;
  EXPECT_NEAR(ratio(product), 1.25, 1e-9);
  EXPECT_NEAR(ratio(attention), 1.5, 1e-9);
}

TEST_F(SampledKernelTime, AttentionWithoutAnyVisibleKeyTakesItsStart) {
  FlashAttention attention = {
      .batch = 1, .heads = 32, .kv_heads = 32, .query = 8192, .key = 8192, .head_dim = 128, .value_dim = 128};
  sample(attention, 1.5);
  attention.pairs = 0;
  const Seconds taken = time(attention, "cudnn");
  EXPECT_GE(taken, 0);
  EXPECT_LT(taken, 1e-4);
}

TEST_F(SampledKernelTime, SamplesWithOtherSizesAreNoSamples) {
  const Gemm product = gemm(4096, 2560, 8192);
  sample(product, 1.25);
  profile.measured.ops.front().samples.front().sizes.pop_back();
  EXPECT_NEAR(ratio(product), 1, 1e-9);
}

TEST_F(KernelTime, HeadsBetweenThoseMeasuredLieBetween) {
  const AttentionKernel& k = find_attention(profile, "fa2");
  EXPECT_EQ(head_of(k, 32).forward_fraction, head_of(k, 64).forward_fraction);
  EXPECT_NEAR(head_of(k, 96).forward_fraction, (head_of(k, 64).forward_fraction + head_of(k, 128).forward_fraction) / 2,
              1e-12);
  EXPECT_EQ(head_of(k, 256).forward_fraction, head_of(k, 128).forward_fraction);
}

// Rates that others measured (tests/data/kernel_measurements.json, each row with its source).
class Measured : public ::testing::Test {
 protected:
  Measured() {
    std::ifstream in(std::string(ORRERY_SOURCE_DIR) + "/tests/data/kernel_measurements.json");
    for (const nlohmann::json& row : nlohmann::json::parse(in)) rows[row.at("id")] = row;
  }

  static Seconds time(const std::string& gpu, const Work& work, std::string_view attention) {
    const Gpu g = find_gpu(gpu);
    return kernel_time({.name = "op", .work = work}, 2, g, find_profile(g), attention);
  }

  // The largest |predicted / measured - 1| over a line of the table: 16k tokens, hidden 2048, causal.
  double worst(const std::string& id, const std::string& line, const std::string& gpu, std::int64_t head,
               std::string_view kernel, bool both) const {
    double most = 0;
    const nlohmann::json& row = rows.at(id);
    for (const nlohmann::json& values : row.at("rows")) {
      if (values[0] != line) continue;
      for (std::size_t i = 1; i < values.size(); ++i) {
        const auto s = row.at("columns")[i].get<std::int64_t>();
        FlashAttention a{.batch = 16384 / s,
                         .heads = 2048 / head,
                         .kv_heads = 2048 / head,
                         .query = s,
                         .key = s,
                         .head_dim = head,
                         .value_dim = head};
        double flops = cost_of(a, 2).flops;
        Seconds t = time(gpu, a, kernel);
        if (both) {
          a.direction = Direction::backward;
          flops += cost_of(a, 2).flops;
          t += time(gpu, a, kernel);
        }
        const double error = flops / t / (values[i].get<double>() * 1e12) - 1;
        most = std::max(most, std::abs(error));
      }
    }
    RecordProperty(id + " " + line, std::to_string(most));
    std::printf("  %-18s %-6s worst error %4.1f %%\n", id.c_str(), line.c_str(), 100 * most);
    return most;
  }

  std::map<std::string, nlohmann::json> rows;
};

TEST_F(Measured, FlashAttention) {
  EXPECT_LT(worst("fa2_a100_c64", "FA2", "a100-sxm-80gb", 64, "fa2", true), 0.02);
  EXPECT_LT(worst("fa2_a100_c128", "FA2", "a100-sxm-80gb", 128, "fa2", true), 0.02);
  EXPECT_LT(worst("fa2_a100_c64", "FA1", "a100-sxm-80gb", 64, "fa1", true), 0.06);
  EXPECT_LT(worst("fa2_a100_c128", "FA1", "a100-sxm-80gb", 128, "fa1", true), 0.06);
  EXPECT_LT(worst("fa2_h100_c64", "FA2", "h100-sxm", 64, "fa2", true), 0.02);
  EXPECT_LT(worst("fa2_h100_c128", "FA2", "h100-sxm", 128, "fa2", true), 0.02);
  EXPECT_LT(worst("fa3_h100_fwd_c64", "FA2", "h100-sxm", 64, "fa2", false), 0.04);
  EXPECT_LT(worst("fa3_h100_fwd_c128", "FA2", "h100-sxm", 128, "fa2", false), 0.04);
}

// In training steps cuDNN's kernels were seen 18 % slower than in the charts' short bursts; the profile holds the
// former.
TEST_F(Measured, CudnnInStepsIsSlowerThanInBursts) {
  EXPECT_LT(worst("fa3_h100_fwd_c64", "cuDNN", "h100-sxm", 64, "cudnn", false), 0.22);
  EXPECT_LT(worst("fa3_h100_fwd_c128", "cuDNN", "h100-sxm", 128, "cudnn", false), 0.22);
  EXPECT_LT(worst("fa3_h100_fwd_c256", "cuDNN", "h100-sxm", 256, "cudnn", false), 0.22);
}

// cuDNN's own benchmark on GB200 (NVIDIA/cudnn-frontend, results/gpt_oss of 2026-08-13: two sequences of 4,096 tokens,
// 128 heads of 64, a window of 128 keys): 0.207 ms forward and 0.458 backward, half of the FLOP/s of whole attention.
TEST_F(Measured, WindowsOfFewKeysOnBlackwell) {
  FlashAttention a{.batch = 2,
                   .heads = 128,
                   .kv_heads = 128,
                   .query = 4096,
                   .key = 4096,
                   .head_dim = 64,
                   .value_dim = 64,
                   .window = 128};
  EXPECT_NEAR(time("gb200", a, "cudnn"), 207e-6, 0.06 * 207e-6);
  a.direction = Direction::backward;
  EXPECT_NEAR(time("gb200", a, "cudnn"), 458e-6, 0.06 * 458e-6);
}

// Products as in training steps (0.80 of peak in a tile) against the best that cuBLAS reached alone: never faster by
// more than a reading error, slower by at most a quarter.
TEST_F(Measured, Products) {
  for (const nlohmann::json& row : rows.at("a100_cublas_square").at("rows")) {
    const auto n = row[0].get<std::int64_t>();
    if (n < 2048) continue;  // takes 24 us there, of which the launch is an unknown part
    const double flops = 2.0 * std::pow(static_cast<double>(n), 3);
    const double error =
        flops / time("a100-sxm-80gb", Gemm{.m = n, .n = n, .k = n}, "") / (row[1].get<double>() * 1e12) - 1;
    std::printf("  a100 %lld cubed: %+.1f %%\n", static_cast<long long>(n), 100 * error);
    EXPECT_LT(error, 0.25);
    EXPECT_GT(error, -0.25);
  }
  for (const nlohmann::json& row : rows.at("mamf").at("rows")) {
    const bool a100 = row[1] == "NVIDIA A100 SXM";
    // shapes from the table's column best_MxNxK
    Gemm g{.m = a100 ? 1024 : 2048, .n = a100 ? 10240 : 2048, .k = a100 ? 5120 : 13312};
    const double flops = cost_of(g, 2).flops;
    const double error = flops / time(a100 ? "a100-sxm-80gb" : "h100-sxm", g, "") / (row[2].get<double>() * 1e12) - 1;
    std::printf("  %s best product: %+.1f %%\n", row[1].get<std::string>().c_str(), 100 * error);
    EXPECT_LT(error, 0.02);
    EXPECT_GT(error, -0.25);
  }
}

// One kernel for all experts has the rate of a single product; ops within other kernels take no time.
TEST_F(KernelTime, OneGroupedKernelReachesTheRateOfAProduct) {
  GroupedGemm experts = {.groups = 8, .rows = 65536, .out = 4096, .in = 4096};
  profile.gemm.grouped_fraction = 1;
  const Seconds whole = time(experts);
  profile.gemm.grouped_fraction = 0.5;
  experts.one_kernel = true;
  EXPECT_DOUBLE_EQ(time(experts), whole);
  Op inside = op(Add{1 << 20});
  inside.within = true;
  EXPECT_EQ(kernel_time(inside, 2, gpu, profile, "fa2"), 0);
}

// Under a power limit products of 8 bits keep a higher clock than those of 16.
TEST_F(KernelTime, NarrowProductsGainUnderThePowerLimit) {
  const Gemm g = gemm(16384, 16384, 16384);
  const Seconds wide = time(g), narrow = kernel_time(op(g, Precision::fp8), 2, gpu, profile, "fa2");
  profile.gemm.prologue_us = 0;
  profile.gemm.narrow_gain = 1.25;
  EXPECT_LT(kernel_time(op(g, Precision::fp8), 2, gpu, profile, "fa2"), narrow / 1.2);
  EXPECT_NEAR(time(g) / wide, 1, 0.02);
}

// Blackwell Ultra's four bits reach a smaller part of their peak than GB200's; its eight bits do not.
TEST_F(KernelTime, FourBitsReachAPartOfAPeakAboveTwice) {
  gpu = find_gpu("gb300");
  profile = find_profile(gpu);
  const Gemm g = gemm(32768, 32768, 32768);
  const auto in = [&](Precision p) { return kernel_time(op(g, p), 2, gpu, profile, "cudnn"); };
  const Seconds four = in(Precision::nvfp4), eight = in(Precision::mxfp8);
  EXPECT_LT(profile.gemm.four_bit_part, 1);
  EXPECT_NEAR(eight / four, profile.gemm.four_bit_part * gpu.tflops.at("fp4") / gpu.tflops.at("fp8"), 0.15);
  const double part = profile.gemm.four_bit_part;
  profile.gemm.four_bit_part = 1;
  EXPECT_NEAR(in(Precision::nvfp4) / four, part, 0.05);
  EXPECT_EQ(in(Precision::mxfp8), eight);
  EXPECT_EQ(find_profile(find_gpu("gb200")).gemm.four_bit_part, 1);
}

// A kernel of sparse attention fills its tile of 64 heads on Hopper and of 128 on Blackwell, however few the rank has;
// in training it does not.
TEST_F(KernelTime, SparseAttentionFillsTilesOfHeads) {
  FlashAttention a = {.batch = 1, .heads = 8, .kv_heads = 1, .query = 4096, .key = 4096};
  a.head_dim = 576;
  a.value_dim = 512;
  a.chosen = 2048;
  const auto with = [&](std::int64_t heads) {
    a.heads = heads;
    return time(a);
  };
  EXPECT_LT(with(8), 0.2 * with(64));
  profile.generates = true;
  EXPECT_EQ(with(8), with(64));
  EXPECT_LT(with(64), 0.6 * with(65));
  gpu.compute_capability = 103;
  EXPECT_EQ(with(8), with(128));
}

// Linear layers with the same input have a product each, one after another.
TEST_F(KernelTime, ProductsApartTakeTheSumOfTheirTimes) {
  for (const auto& [role, outputs] :
       {std::pair(Gemm::Role::output, &Gemm::n), std::pair(Gemm::Role::input_gradient, &Gemm::k),
        std::pair(Gemm::Role::weight_gradient, &Gemm::m)}) {
    Gemm all = gemm(4096, 4096, 4096), first = all, other = all;
    all.role = first.role = other.role = role;
    all.*outputs = 4096 + 2 * 512;
    all.apart = 3;
    all.apart_outputs = 512;
    other.*outputs = 512;
    EXPECT_DOUBLE_EQ(time(all), time(first) + 2 * time(other));
  }
}

TEST_F(KernelTime, AttentionGainsIn8Bits) {
  FlashAttention a{
      .batch = 1, .heads = 32, .kv_heads = 32, .query = 8192, .key = 8192, .head_dim = 128, .value_dim = 128};
  const Seconds wide = time(a);
  for (AttentionHead& h : profile.attention.front().heads) h.eight_bit_gain = {1.25, 1.5, 1.125, 0.75};
  const auto in = [&](Precision p) { return kernel_time(op(a, p), 2, gpu, profile, "fa2"); };
  EXPECT_EQ(time(a), wide);
  a.eight_bit = true;
  EXPECT_NEAR(wide / in(Precision::fp8), 1.25, 0.01);
  EXPECT_NEAR(wide / in(Precision::mxfp8), 1.125, 0.01);
  a.eight_bit = false;
  a.direction = Direction::backward;
  const Seconds wide_backward = time(a);
  a.eight_bit = true;
  EXPECT_NEAR(wide_backward / in(Precision::nvfp4), 1.5, 0.01);
  EXPECT_NEAR(wide_backward / in(Precision::mxfp8), 0.75, 0.01);
}

// Backward in 8 bits computes the keys before a sliding window too.
TEST_F(KernelTime, BackwardIn8BitsSkipsNoKeysBeforeAWindow) {
  FlashAttention a{
      .batch = 1, .heads = 32, .kv_heads = 32, .query = 8192, .key = 8192, .head_dim = 128, .value_dim = 128};
  a.direction = Direction::backward;
  const Seconds all = time(a);
  a.window = 128;
  EXPECT_LT(time(a), all / 4);
  a.eight_bit = true;
  EXPECT_EQ(time(a), all);
  a.direction = Direction::forward;
  EXPECT_LT(time(a), all / 4);
}

}  // namespace
}  // namespace orrery
