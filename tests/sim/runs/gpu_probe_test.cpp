#include "sim/runs/gpu_probe.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "tests/sim/jobs_script.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

OpSample sample(std::vector<double> sizes, Seconds seconds) { return {std::move(sizes), 1, seconds, 0, 4}; }

// Measured times of a plan's own tasks stay; times of single kernels fill the gaps.
TEST(GpuProbe, SamplesOfOtherSizesAreAdded) {
  MeasuredTimes times, more;
  times.ops = {{"gemm/output", {sample({2, 2, 2}, 1)}}};
  more.ops = {{"gemm/output", {sample({2, 2, 2}, 9), sample({1, 2, 2}, 3)}}, {"attention/forward", {sample({4}, 5)}}};
  add_samples(times, more);
  ASSERT_EQ(times.ops.size(), 2U);
  EXPECT_EQ(times.ops[0].kind, "attention/forward");
  ASSERT_EQ(times.ops[1].samples.size(), 2U);
  EXPECT_EQ(times.ops[1].samples[0].seconds, 3);
  EXPECT_EQ(times.ops[1].samples[1].seconds, 1);
}

class Program : public testing::Test {
 protected:
  void program(const std::string& script) {
    const std::string path = folder_.path() + "/program";
    std::ofstream(path) << test::kJobsScript << script;
    ::chmod(path.c_str(), S_IRWXU);
    ::setenv("ORRERY_RANK", path.c_str(), 1);
  }
  void TearDown() override { ::unsetenv("ORRERY_RANK"); }

  test::TemporaryFolder folder_;
};

TEST_F(Program, TellsWhatGpuThereIsAndHowFastItsKernelsAre) {
  program(
      "echo '{\"fingerprint\": {\"device\": \"NVIDIA H100\", \"driver\": \"13.0\"}, "
      "\"conditions\": {\"samples\": 9, \"sm_MHz\": [1500, 1740, 1980], \"power_W\": 690}, "
      "\"measured\": {\"ops\": [{\"kind\": \"gemm/output\", \"samples\": [{\"sizes\": [1, 2, 3], \"amount\": 12, "
      "\"us\": 7, \"spread\": 0, \"count\": 12}]}], \"transfers\": [], \"issue_us\": 0, \"gap_us\": 0, "
      "\"transfer_start_us\": 0, \"wake_us\": 0, \"step_us\": 0, \"compute_slowdown\": 1, "
      "\"transfer_slowdown\": 1}}' > $2.part; mv $2.part $2\n");
  RankSession session;
  const GpuProbe probe = probe_gpu(session, folder_.path(), true);
  session.end();
  ASSERT_EQ(probe.fingerprint.size(), 2U);
  EXPECT_EQ(probe.fingerprint[0].second, "NVIDIA H100");
  EXPECT_EQ(probe.conditions.sm_MHz, 1740);
  ASSERT_EQ(probe.kernels.ops.size(), 1U);
  EXPECT_NEAR(probe.kernels.ops[0].samples[0].seconds, 7e-6, 1e-12);
}

TEST_F(Program, ThatFindsNoGpuSaysSo) {
  program("echo 'orrery-rank-cuda: no GPU: none' >&2; exit 1\n");
  try {
    RankSession session;
    probe_gpu(session, folder_.path(), true);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "orrery-rank-cuda: no GPU: none");
    EXPECT_EQ(error.exit_code, 1);
  }
}

TEST_F(Program, ThatHangsIsEnded) {
  program("sleep 100\n");
  RankSession session;
  try {
    probe_gpu(session, folder_.path(), true, 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "the GPU's kernels hang: they are not measured after 1 s; run again");
  }
  session.end();  // nothing is left to end
}

}  // namespace
}  // namespace orrery
