// Runs tests on the null GPU: whatever it complains about, and whatever is left behind, fails the test.
#include <gtest/gtest.h>

#include "tests/exec/cuda/null_gpu/null_gpu.h"

namespace orrery {
namespace {

class Complaints : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { null_gpu::begin(); }
  void OnTestEnd(const testing::TestInfo&) override {
    for (const std::string& what : null_gpu::complaints()) ADD_FAILURE() << "the null GPU complains: " << what;
    for (const std::string& what : null_gpu::left_behind()) ADD_FAILURE() << "left behind: " << what;
  }
};

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new orrery::Complaints);
  return RUN_ALL_TESTS();
}
