// Pictures as files.
#include "sim/picture/picture.h"

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "sim/predict/predict.h"
#include "tests/models/plans.h"
#include "tests/models/vision_specs.h"
#include "tests/picture_checks.h"

namespace orrery {
namespace {

void expect_right(const Spec& spec) {
  const Prediction p = predict(spec);
  const std::string svg = picture(spec, p.plan, p.report);
  EXPECT_EQ(svg, picture(spec, p.plan, p.report));
  const test::PictureChecks checks(svg, p.plan, p.report);
  for (const std::string& wrong : checks.wrong()) ADD_FAILURE() << wrong;
}

TEST(Picture, HoldsToThePlanForAnySpec) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    expect_right(test::random_spec(seed));
  }
}

TEST(Picture, DrawsEveryKindOfLayout) {
  const std::string grid = "layers: 2, hidden: 64, heads: 8, vocab: 256, feed_forward: 128, gated: false";
  const std::string moe =
      "name: moe, layers: 4, hidden: 64, heads: 8, head_dim: 8, feed_forward: 256, vocab: 256, moe: {experts: 8, "
      "top_k: 2, feed_forward: 64}";
  for (const auto& [model, strategy] : std::vector<std::pair<std::string, std::string>>{
           {test::kSmall, "tensor: 2, pipeline: 2, data: 2, global_batch: 4"},
           {test::kSmall, "data: 16, sharding: fsdp, global_batch: 16"},
           {test::kSmall, "data: 4, sharding: zero3, offload: {tiling: 2}, global_batch: 4"},
           {test::kSmall, "tensor: 8, pipeline: 8, data: 16, global_batch: 128"},
           {test::kSmall, "pipeline: 4, schedule: chimera, global_batch: 4"},
           {test::kSmall, "pipeline: 4, schedule: vocab-1f1b, global_batch: 4"},
           {test::kSmall, "context: 4, context_kind: ulysses, data: 2, global_batch: 2"},
           {test::kSmall, "data: 4, sharding: data-parallel, global_batch: 4"},
           {test::kSmall,
            "data: 4, sharding: parameter-server, parameter_server: {servers: 2}, global_batch: 4, clip: 0"},
           {grid, "tensor: 4, tensor_kind: 2d, micro_batch: 8, global_batch: 8"},
           {grid, "tensor: 8, tensor_kind: 2.5d, micro_batch: 8, global_batch: 8"},
           {grid, "tensor: 8, tensor_kind: 3d, micro_batch: 8, global_batch: 8"},
           {moe, "tensor: 2, data: 4, expert: 4, expert_tensor: 2, sharding: zero1, global_batch: 4"},
           {"deepseek-v2-lite", "pipeline: 3, data: 64, expert: 64, sharding: zero1, global_batch: 192"},
           {"deepseek-v4-flash", "data: 64, expert: 64, sharding: zero3, global_batch: 64"}}) {
    SCOPED_TRACE(strategy);
    expect_right(test::spec_of(model, strategy, 256));
  }
  expect_right(test::seeing("tensor: 2, pipeline: 2, data: 2, global_batch: 4"));
}

// A model's name may be any text.
TEST(Picture, NamesAreQuoted) {
  Spec spec = test::spec_of(test::kSmall, "global_batch: 1");
  spec.model.name = "a <b> & \"c\" " + std::string(300, 'W');
  expect_right(spec);
}

TEST(Picture, NamesOfFilesAreSvg) {
  for (const char* good : {"a.svg", "folder/b.svg.gz", "/dev/stdout"}) EXPECT_NO_THROW(check_picture_name(good));
  for (const char* bad : {"a.png", "svg", "a.svg.txt", "."}) EXPECT_THROW(check_picture_name(bad), Error);
}

// The checks themselves find what is wrong: a picture that is cut off, lacks a rank, or has a text over another one.
TEST(Picture, ChecksFindWhatIsWrong) {
  const Spec spec = test::spec_of(test::kSmall, "tensor: 2, data: 2, global_batch: 2");
  const Prediction p = predict(spec);
  const std::string svg = picture(spec, p.plan, p.report);
  const auto wrong = [&](const std::string& from, const std::string& to) {
    std::string changed = svg;
    const std::size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
    return test::PictureChecks(changed, p.plan, p.report).wrong().size();
  };
  EXPECT_EQ(test::PictureChecks(svg, p.plan, p.report).wrong().size(), 0U);
  EXPECT_GT(wrong("</svg>", ""), 0U);
  EXPECT_GT(wrong("class=\"rank\" data-rank=\"1\"", "class=\"rank\" data-rank=\"0\""), 0U);
  EXPECT_GT(wrong("data-ranks=\"0 1\"", "data-ranks=\"0\""), 0U);
  EXPECT_GT(wrong(">rank 0</text>", ">rank 0 and a long text beside it</text>"), 0U);
  EXPECT_GT(wrong("class=\"part\"", "class=\"other\""), 0U);
}

// A second model on ranks of its own is not drawn, but what its ranks send each other is told.
TEST(Picture, SaysWhichRanksItLeavesOut) {
  const Spec spec = parse_spec(
      "{model: gpt2, teacher: gpt2, workload: distill, sequence: 256, distill: {gpus: 2, strategy: {tensor: 2}}, "
      "cluster: {node: dgx-a100, nodes: 1}, gpus: 6, strategy: {data: 4, global_batch: 8}}",
      "spec.yaml");
  expect_right(spec);
  const Prediction p = predict(spec);
  const std::string svg = picture(spec, p.plan, p.report);
  EXPECT_NE(svg.find("between ranks of the frozen model, which are not shown"), std::string::npos);
  EXPECT_EQ(svg.find("groups of 0 ranks"), std::string::npos);
}

}  // namespace
}  // namespace orrery
