// Casts of products' operands to 8 and 4 bits, by the recipe of their scales.
#include "models/layers/layer_tape.h"

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "models/layers/blocks.h"

#include "tests/models/kept.h"

namespace orrery {
namespace {

using test::spec_of;

Plan plan_with(const std::string& precision, const std::string& software, const std::string& layout = "") {
  return make_plan(spec_of(test::kSmall, "precision: " + precision + layout, 32, software));
}

std::int64_t casts(const Plan& plan, const std::string& end) {
  std::int64_t n = 0;
  for (TaskId t = 0; t < plan.classes[0].end; ++t) {
    const Op& op = plan.op_of(t);
    n += std::holds_alternative<Cast>(op.work) && op.name.ends_with(end) ? 1 : 0;
  }
  return n;
}

// torchao's rowwise scales: rows are gathered in 16 bits and cast afterwards, rows and columns apart.
TEST(LayerTape, RowwiseScalesGatherIn16Bits) {
  const auto moved = [](const char* software) {
    const Plan plan =
        make_plan(spec_of(test::kSmall, "precision: fp8, tensor: 2, sequence_parallel: true", 32, software));
    Bytes bytes = 0;
    for (TaskId t = 0; t < plan.classes[0].end; ++t) {
      const auto* c = std::get_if<Collective>(&plan.op_of(t).work);
      if (c != nullptr && c->kind == CollectiveKind::all_gather &&
          plan.op_of(t).name.find("ather") != std::string::npos)
        bytes += c->group == Dimension::tensor ? c->bytes : 0;
    }
    return bytes;
  };
  const Bytes narrow = moved("profile: orrery"), wide = moved("profile: orrery, rowwise_scales: true");
  EXPECT_GT(wide, narrow * 3 / 2);
}

// A scale for each row: columns are transposed before they are cast, and backward's results are multiplied by scales.
TEST(LayerTape, RowwiseScalesCastColumnsApart) {
  const Plan tensor = plan_with("fp8", "profile: orrery"),
             rows = plan_with("fp8", "profile: orrery, rowwise_scales: true");
  EXPECT_EQ(casts(tensor, "columns to fp8"), 0);
  EXPECT_GT(casts(rows, "columns to fp8"), 0);
  EXPECT_EQ(casts(rows, "input gradient scale"), casts(rows, "gradient to fp8"));
  EXPECT_EQ(casts(tensor, " scale"), 0);
  const char* fsdp = ", data: 2, sharding: fsdp";
  for (const Plan& plan : {rows, plan_with("fp8", "profile: torchtitan, rowwise_scales: true", fsdp)}) {
    EXPECT_GT(casts(plan, "input gradient scale"), 0);
    EXPECT_EQ(casts(plan, "weight gradient scale"), casts(plan, "input gradient scale"));
  }
}

// Current scaling finds the largest magnitude of what no norm or activation wrote: attention's output, and the
// gradients of the outputs of products other than the one before the activation. Delayed scaling has no such pass.
TEST(LayerTape, CurrentScalesTakeAPassWhereNoKernelFindsThem) {
  const Plan delayed = plan_with("fp8", "profile: orrery"),
             current = plan_with("fp8", "profile: orrery, current_scales: true");
  EXPECT_EQ(casts(delayed, "largest magnitude"), 0);
  EXPECT_GT(casts(current, "attention output input largest magnitude"), 0);
  EXPECT_EQ(casts(current, "qkv input largest magnitude"), 0);
  EXPECT_EQ(casts(current, "mlp down input largest magnitude"), 0);
  EXPECT_EQ(casts(current, "mlp up gradient largest magnitude"), 0);
  EXPECT_GT(casts(current, "mlp down gradient largest magnitude"), 0);
}

// nvfp4 has a scale for the whole tensor too, whatever the stack.
TEST(LayerTape, FourBitsTakeAPassForTheTensorsScale) {
  const auto plan_in = [](Precision precision) {
    Spec spec = spec_of(test::kSmall, "precision: fp8", 32, "profile: orrery");
    spec.cluster.gpu = find_gpu("b200");
    spec.strategy.precision = precision;
    return make_plan(spec);
  };
  EXPECT_GT(casts(plan_in(Precision::nvfp4), "qkv input largest magnitude"), 0);
  EXPECT_EQ(casts(plan_in(Precision::mxfp8), "largest magnitude"), 0);
}

}  // namespace
}  // namespace orrery
