// `orrery calibrate --device cuda` around a stand-in for orrery-rank-cuda, some of whose runs fail.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/cost/profile.h"
#include "sim/cli/commands.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

constexpr char kBench[] =
    R"({"measured": {"ops": [{"kind": "gemm/output", "samples": [{"sizes": [1, 2, 3], "amount": 12, "us": 7, )"
    R"("spread": 0, "count": 12}]}], "transfers": [], "issue_us": 0, "gap_us": 0, "transfer_start_us": 0, )"
    R"("wake_us": 0, "step_us": 0, "compute_slowdown": 1, "transfer_slowdown": 1}})";

class CommandCalibrate : public testing::Test {
 protected:
  // fails: text in a spec whose run fails.
  void program(const std::string& fails) {
    const std::string path = folder_.path() + "/program";
    std::ofstream(path) << "#!/bin/bash\n"
                           "case $1 in\n"
                           "  --describe) echo 'device: NVIDIA H100'; exit ;;\n"
                        << "  --bench) echo '" << kBench << "' > $2; exit ;;\n"
                        << "esac\n"
                           "if grep -q '"
                        << fails << "' \"$2\"; then export FAKE_FAULT='0 0 0 fail'; fi\n"
                        << "[[ -e " << kernels() << " ]] || exit 9\n"
                        << "exec " << ORRERY_FAKE_RANK << " \"$@\"\n";
    ::chmod(path.c_str(), S_IRWXU);
    ::setenv("ORRERY_RANK", path.c_str(), 1);
  }
  void TearDown() override { ::unsetenv("ORRERY_RANK"); }

  std::string out() const { return folder_.path() + "/gpu.json"; }
  std::string kernels() const { return folder_.path() + "/gpu.kernels.json"; }
  Outcome calibrate() const {
    return calibrate_command({.out = out(), .device = "cuda", .quick = true, .noise = 1e9},
                             {.progress = [](std::string_view) {}});
  }

  test::TemporaryFolder folder_;
};

// The file of single kernels is written before the first run begins: the stand-in would not run without it.
TEST_F(CommandCalibrate, ASpecThatFailsIsLeftOut) {
  program("hidden: 2560");
  const Outcome outcome = calibrate();
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find("failed: llama: hidden 2560, 8192 tokens: rank 0: device: out of memory\n"),
            std::string::npos)
      << outcome.text;
  const Profile profile = load_profile(out());
  EXPECT_GT(profile.measured.ops.size(), 5U);
  EXPECT_NE(fingerprint_of(profile, "specs"), "");
}

TEST_F(CommandCalibrate, AllThatIsWellIsNotRemarkedOn) {
  program("nothing of the kind");
  const Outcome outcome = calibrate();
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.text.find("failed"), std::string::npos);
  EXPECT_EQ(fingerprint_of(load_profile(out()), "specs"), "");
}

TEST_F(CommandCalibrate, EndsWhereNothingCanBeMeasured) {
  program("calibration");
  EXPECT_THROW(calibrate(), Error);
  EXPECT_EQ(::access(kernels().c_str(), R_OK), 0);
  EXPECT_NE(::access(out().c_str(), R_OK), 0);
}

}  // namespace
}  // namespace orrery
