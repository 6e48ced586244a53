// How much of a step's time is lost between the shapes that a calibration samples and those of other steps, if samples
// have no noise: a GPU is replaced by formulas, sampled at the very shapes that `calibrate --device cuda` measures.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>

#include "models/cost/kernel_time.h"
#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"
#include "models/spec/cluster.h"
#include "models/trace/bench_shapes.h"
#include "sim/calibrate/calibration.h"
#include "sim/cost/host_work.h"
#include "sim/runs/gpu_probe.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kWidth = 2;  // bf16

class NoiseFree {
 public:
  // The GPU's kernels take the times of `truth`.
  NoiseFree(Gpu gpu, Profile truth) : gpu_(std::move(gpu)), truth_(std::move(truth)) { sample_all(); }

  // The samples, carried to other shapes by the formulas of `law`; without formulas, by the amount of work.
  Profile calibrated(Profile law) const {
    law.measured = samples_;
    return law;
  }

  // The time of all compute of a step.
  Seconds step(const Plan& plan, const Profile& profile) const {
    Seconds sum = 0;
    for (TaskId t = 0; t < plan.task_count(); ++t) {
      if (!moves(plan.op_of(t))) sum += kernel_time(plan.op_of(t), kWidth, gpu_, profile, "");
    }
    return sum;
  }
  Seconds true_step(const Plan& plan) const { return step(plan, truth_); }

  // The kinds of a plan's tasks on the device of which there is no sample.
  std::set<std::string> unsampled(const Plan& plan) const {
    std::set<std::string> kinds;
    for (const Op& op : plan.ops) {
      if (moves(op) || is_host_work(op) || shape_of(op.work, kWidth).amount <= 0) continue;
      if (!measured_time(samples_, op.work, kWidth)) kinds.insert(shape_of(op.work, kWidth).kind);
    }
    return kinds;
  }

 private:
  void add(MeasuredTimes& to, const Op& op) {
    const WorkShape shape = shape_of(op.work, kWidth);
    const Seconds time = kernel_time(op, kWidth, gpu_, truth_, "");
    if (shape.amount <= 0 || time <= 0 || moves(op)) return;
    const auto [known, fresh] = amounts_.try_emplace({shape.kind, shape.sizes}, shape.amount);
    EXPECT_EQ(known->second, shape.amount) << shape.kind << ": one name for two amounts of work";
    add_samples(to, {.ops = {{shape.kind, {{shape.sizes, shape.amount, time, 0, 12}}}}});
  }

  void sample_all() {
    for (const CalibrationSpec& spec : gpu_calibration_specs(false)) {
      const Plan plan = make_plan(parse_spec(spec.text, spec.name));
      for (const Op& op : plan.ops) add(samples_, op);
    }
    for (const Gemm& product : bench_products(false))
      add(samples_, {.name = "product", .work = product, .precision = Precision::bf16});
    for (FlashAttention attention : bench_attention(false)) {
      for (const Direction direction : {Direction::forward, Direction::backward}) {
        attention.direction = direction;
        add(samples_, {.name = "attention", .work = attention, .precision = Precision::bf16});
      }
    }
  }

  Gpu gpu_;
  Profile truth_;
  MeasuredTimes samples_;
  std::map<std::pair<std::string, std::vector<double>>, double> amounts_;  // by kind and sizes
};

// Errors of all steps of a folder, without sign, ascending.
std::vector<double> errors_of(const NoiseFree& gpu, const Profile& profile, const std::string& folder) {
  std::vector<double> errors;
  for (const auto& file :
       fs::directory_iterator(std::string(ORRERY_SOURCE_DIR) + "/benchmarks/gpu_validation_specs/" + folder)) {
    const Plan plan = make_plan(load_spec(file.path().string()));
    errors.push_back(std::abs(gpu.step(plan, profile) / gpu.true_step(plan) - 1));
  }
  std::sort(errors.begin(), errors.end());
  return errors;
}

std::string text_of(const std::vector<double>& errors) {
  return fmt::format("median {:.2f} %, worst {:.2f} %", 100 * errors[errors.size() / 2], 100 * errors.back());
}

// Every kind of task that the steps to be validated hold is sampled: the formulas time none of them.
TEST(Calibration, SamplesEveryKindOfTask) {
  const Gpu gpu = find_gpu("h100-sxm");
  const NoiseFree device(gpu, find_profile(gpu));
  const std::string folder = std::string(ORRERY_SOURCE_DIR) + "/benchmarks/";
  std::vector<std::pair<std::string, std::vector<std::string>>> steps;
  for (const auto& file : fs::recursive_directory_iterator(folder + "gpu_validation_specs")) {
    if (file.path().extension() == ".yaml") steps.push_back({file.path().string(), {}});
  }
  EXPECT_EQ(steps.size(), 32U);
  for (const char* variant : {"strategy.recompute=none", "strategy.recompute=full", "strategy.global_batch=8"})
    steps.push_back({folder + "pytorch_step.yaml", {variant}});
  for (const auto& [path, overrides] : steps)
    EXPECT_EQ(device.unsampled(make_plan(load_spec(path, overrides))), std::set<std::string>()) << path;
}

// The device is a Hopper GPU; the formulas that carry its samples to other shapes are those of Ampere, whose tiles,
// rates and waves differ, as a real device differs from our formulas.
TEST(Calibration, CarriesSamplesToUnseenSteps) {
  const Gpu gpu = find_gpu("h100-sxm");
  const NoiseFree device(gpu, find_profile(gpu));
  const Profile other = device.calibrated(find_profile(find_gpu("a100-sxm-80gb")));
  const std::vector<double> steps = errors_of(device, other, "one_rank"), parts = errors_of(device, other, "composed"),
                            none = errors_of(device, device.calibrated({}), "one_rank");
  ASSERT_EQ(steps.size(), 20U);
  ASSERT_EQ(parts.size(), 12U);
  fmt::print("one rank: {}; parts of several ranks: {}; one rank without a law: {}\n", text_of(steps), text_of(parts),
             text_of(none));
  EXPECT_LE(steps[steps.size() / 2], 0.007);
  EXPECT_LE(steps.back(), 0.015);
  EXPECT_LE(parts.back(), 0.02);
  EXPECT_LT(steps.back(), none.back());
}

}  // namespace
}  // namespace orrery
