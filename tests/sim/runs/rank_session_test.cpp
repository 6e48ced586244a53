// A program that runs several jobs, played by scripts.
#include "sim/runs/rank_session.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "tests/sim/jobs_script.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

class Session : public testing::Test {
 protected:
  // The program leaves a file for each job that says which process was told of it, named by the job's first word.
  void SetUp() override {
    const std::string path = folder_.path() + "/program";
    std::ofstream(path) << test::kJobsScript << "echo \"saying $1\"\n[[ $1 == fail ]] && exit 7\necho $PPID > "
                        << folder_.path() << "/part; mv " << folder_.path() << "/part " << folder_.path() << "/$1\n";
    ::chmod(path.c_str(), S_IRWXU);
    ::setenv("ORRERY_RANK", path.c_str(), 1);
  }
  void TearDown() override { ::unsetenv("ORRERY_RANK"); }

  // Gives a job, waits until it or the process has ended, and returns the process that ran it; 0: none did.
  int run(RankSession& session, const std::string& word) const {
    ProcessTree& tree = session.give({word, "and spaces"});
    const std::string path = folder_.path() + '/' + word;
    while (!tree.status() && !std::filesystem::exists(path)) tree.wait(kLook);
    int process = 0;
    std::ifstream(path) >> process;
    return process;
  }

  test::TemporaryFolder folder_;
};

TEST_F(Session, OneProcessRunsAllJobs) {
  RankSession session;
  const int first = run(session, "one");
  EXPECT_GT(first, 0);
  EXPECT_EQ(run(session, "two"), first);
  session.end();
  session.end();  // nothing is left to end
}

TEST_F(Session, AJobThatFailsEndsTheProcessAndTheNextBeginsAnother) {
  RankSession session;
  const int first = run(session, "one");
  EXPECT_EQ(run(session, "fail"), 0);
  const int next = run(session, "two");
  EXPECT_GT(next, 0);
  EXPECT_NE(next, first);
  session.end();
}

TEST_F(Session, AProcessThatEndsBadlyAfterItsJobsIsTold) {
  RankSession session;
  run(session, "fail");
  try {
    session.end();
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("ended with status 7: saying fail"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace orrery
