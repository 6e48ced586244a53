// Every spec of the repository that is meant for a GPU, checked without a GPU: it plans, GPU ranks execute it, there is
// text for a sample, and the kernels take its shapes.
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "exec/host/execute.h"
#include "exec/program/rank_program.h"
#include "exec/program/text_data.h"
#include "kernels/cuda/attention_limits.h"
#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"
#include "sim/calibrate/calibration.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

struct AttentionFits {
  bool sixteen_bits;

  void operator()(const FlashAttention& a) const {
    EXPECT_TRUE(kernels::cuda::takes_head_dim(a.head_dim, sixteen_bits)) << a.head_dim;
    EXPECT_EQ(a.value_dim, a.head_dim);
    EXPECT_EQ(a.heads % a.kv_heads, 0);
  }
  template <class Other>
  void operator()(const Other&) const {}
};

void expect_runs_on_a_gpu(const Spec& spec) {
  check_executable(spec, "GPU");
  const Plan plan = make_plan(spec);
  EXPECT_NO_THROW(text_of({}, spec, kText));
  for (const Op& op : plan.ops) std::visit(AttentionFits{plan.element_bytes < 4}, op.work);
}

TEST(GpuSpecs, OfCalibrationRun) {
  for (const bool quick : {false, true}) {
    for (const CalibrationSpec& c : gpu_calibration_specs(quick)) {
      SCOPED_TRACE(c.name);
      EXPECT_NO_THROW(expect_runs_on_a_gpu(parse_spec(c.text, "calibration.yaml")));
    }
  }
}

// Between narrow models and what tensor parallelism leaves of wide ones: head_dims 64 and 128, as in the models people
// train.
TEST(GpuSpecs, OfCalibrationHaveHeadsOfModels) {
  std::set<std::int64_t> sizes;
  for (const CalibrationSpec& c : gpu_calibration_specs(false))
    sizes.insert(parse_spec(c.text, "calibration.yaml").model.head_dim);
  EXPECT_EQ(sizes, (std::set<std::int64_t>{64, 128}));
}

TEST(GpuSpecs, OfValidationRun) {
  std::vector<std::string> paths = {ORRERY_SOURCE_DIR "/benchmarks/pytorch_step.yaml"};
  for (const auto& entry : fs::recursive_directory_iterator(ORRERY_SOURCE_DIR "/benchmarks/gpu_validation_specs")) {
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path().string());
  }
  EXPECT_GE(paths.size(), 33U);
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    EXPECT_NO_THROW(expect_runs_on_a_gpu(load_spec(path, {})));
  }
}

}  // namespace
}  // namespace orrery
