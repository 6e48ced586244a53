// Every spec of the repository that is meant for a GPU, checked without a GPU: it plans, GPU ranks execute it, there is
// text for a sample, and the kernels take its shapes.
#include <cstdio>
#include <filesystem>
#include <memory>
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

// PyTorch's step, which ours is held against, is given the same tokens, also where the text is too short by itself.
TEST(GpuSpecs, PyTorchTakesTheSameTokens) {
  struct Sample {
    std::int64_t number, sequence, vocabulary;
  };
  for (const Sample& s : {Sample{0, 4096, 32000}, {1, 4096, 32000}, {7, 64, 40}, {2, 8192, 50}}) {
    const std::string command = fmt::format("python3 " ORRERY_SOURCE_DIR "/benchmarks/our_tokens.py {} {} {}", s.number,
                                            s.sequence, s.vocabulary);
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
    ASSERT_NE(pipe, nullptr);
    std::vector<std::int64_t> theirs;
    for (long token = 0; std::fscanf(pipe.get(), "%ld", &token) == 1;) theirs.push_back(token);
    Spec spec;
    spec.model.vocab = s.vocabulary;
    spec.sequence = s.sequence;
    const Text text = text_of({}, spec, kText);
    std::vector<std::int64_t> tokens(static_cast<std::size_t>(s.sequence)), labels = tokens;
    text.copy(s.number, s.sequence, {0, s.sequence}, 0, tokens.data());
    text.copy(s.number, s.sequence, {0, s.sequence}, 1, labels.data());
    ASSERT_EQ(theirs.size(), tokens.size() + 1);
    EXPECT_EQ(std::vector(theirs.begin(), theirs.end() - 1), tokens);
    EXPECT_EQ(std::vector(theirs.begin() + 1, theirs.end()), labels);
  }
}

}  // namespace
}  // namespace orrery
