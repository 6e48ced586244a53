#include "sim/kernels/kernel_errors.h"

#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/cost/kernel_time.h"
#include "models/cost/nccl/model.h"

namespace orrery {
namespace {

// Products that take `slower` times what is predicted of a GPU.
void add_products(KernelRows& rows, const std::string& name, double slower) {
  const Gpu gpu = find_gpu(name);
  const Profile profile = find_profile(gpu);
  for (std::uint64_t n = 1; n <= 40; ++n) {
    KernelRow row{.gpu = name, .kind = "gemm", .framework = "made", .precision = "bfloat16"};
    Op op;
    op.work = Gemm{.m = 4096, .n = static_cast<std::int64_t>(256 * n), .k = 4096, .result_bytes = 2};
    op.precision = Precision::bf16;
    row.measured = slower * kernel_time(op, 2, gpu, profile, "");
    row.ops = {op};
    row.shapes = n;
    rows.rows.push_back(row);
  }
}

TEST(KernelErrors, ALevelIsFoundAndTakenAway) {
  KernelRows rows;
  add_products(rows, "h100-sxm", 0.8);
  add_products(rows, "a100-sxm-80gb", 1.25);
  add_products(rows, "b200", 1);
  rows.rows.push_back({.gpu = "no-such-gpu", .kind = "gemm"});
  const KernelReport report = predict_kernels(rows, {});
  ASSERT_EQ(report.errors.size(), 3U);
  EXPECT_EQ(report.not_covered.at("no-such-gpu: a GPU without built-in kernel times"), 1);
  for (const KernelErrors& e : report.errors) {
    const double level = e.gpu == "h100-sxm" ? 1.25 : e.gpu == "b200" ? 1 : 0.8;
    EXPECT_NEAR(e.level, level, 1e-9) << e.gpu;
    EXPECT_NEAR(e.error, std::abs(level - 1), 1e-9);
    EXPECT_NEAR(e.swept, 0, 1e-9);
    EXPECT_EQ(e.rows, 40);
  }
  // The level of the other two is one of theirs, by which the kernels of this GPU are then off.
  EXPECT_NEAR(report.errors[0].unseen, std::abs(0.8 / 1.25 - 1), 1e-9);  // a100, after h100's or b200's
  const auto parsed = nlohmann::json::parse(kernels_json(report));
  EXPECT_EQ(parsed["kernels"].size(), 3U);
  EXPECT_NE(kernels_text(report, {}).find("h100-sxm"), std::string::npos);
}

// A collective of GPUs of one node takes what its kernel takes in a node that is known.
TEST(KernelErrors, CollectivesAreByTheModelOfNccl) {
  const NcclModel model = nccl_model(nccl_topology(find_cluster("dgx-h100", 1), 1, 8));
  const NcclChoice choice = nccl_choose(model, CollectiveKind::all_reduce, Bytes{1} << 30);
  const Seconds known = nccl_kernel(model, CollectiveKind::all_reduce, choice, Bytes{1} << 30);
  Op op;
  op.work = Collective{.kind = CollectiveKind::all_reduce, .bytes = Bytes{1} << 30};
  KernelRows rows;
  rows.rows.push_back({.gpu = "h100-sxm",
                       .kind = "all_reduce",
                       .framework = "nccl",
                       .precision = "half",
                       .ops = {op},
                       .ranks = 8,
                       .nccl_minor = 28,
                       .measured = known / 1.1});
  EXPECT_NEAR(predict_kernels(rows, {}).errors.at(0).level, 1.1, 1e-3);
}

// A time that is not a number would end sorting in undefined ways.
TEST(KernelErrors, TimesThatAreNoNumbersAreNotCovered) {
  KernelRows rows;
  add_products(rows, "h100-sxm", 1);
  for (std::size_t i = 0; i < rows.rows.size(); i += 3) {
    rows.rows[i].ops[0].work = FlashAttention{.batch = 1, .heads = 1, .kv_heads = 1};  // of no tokens
    rows.rows[i].ops[0].precision = Precision::bf16;
  }
  const KernelReport report = predict_kernels(rows, {});
  for (const KernelErrors& e : report.errors) EXPECT_TRUE(std::isfinite(e.error) && std::isfinite(e.level));
  EXPECT_EQ(report.not_covered.at("h100-sxm: no finite time is predicted"), 14);
}

// One group of shapes tells nothing about groups that its level does not come from.
TEST(KernelErrors, WithoutOtherShapesNothingIsJudged) {
  KernelRows rows;
  add_products(rows, "h100-sxm", 0.8);
  rows.rows.resize(1);
  const KernelReport report = predict_kernels(rows, {});
  EXPECT_NEAR(report.errors.at(0).level, 1.25, 1e-9);
  EXPECT_LT(report.errors[0].swept, 0);
  EXPECT_TRUE(nlohmann::json::parse(kernels_json(report))["kernels"][0]["median_error_swept"].is_null());
}

}  // namespace
}  // namespace orrery
