#include "sim/runs/processes.h"
#include "tests/temporary_folder.h"

#include <unistd.h>

#include <chrono>
#include <fstream>

#include <gtest/gtest.h>

namespace orrery {
namespace {

bool alive(pid_t pid) { return ::kill(pid, 0) == 0; }

pid_t pid_in(const std::string& path) {
  for (pid_t pid = 0;;) {
    if (std::ifstream(path) >> pid) return pid;
    ::usleep(1000);
  }
}

void start_shell(ProcessTree& tree, const std::string& script, const std::string& log = "/dev/null") {
  tree.start({"/bin/sh", "-c", script}, {"GIVEN=yes"}, log);
}

std::optional<int> status_of(const std::string& script) {
  const HeldSignals signals;
  ProcessTree tree(signals);
  start_shell(tree, script);
  for (int i = 0; i < 100 && !tree.status(); ++i) tree.wait(0.05);
  return tree.status();
}

TEST(ProcessTree, TellsHowItsProgramEnded) {
  EXPECT_EQ(status_of("exit 0"), 0);
  EXPECT_EQ(status_of("exit 7"), 7);
  EXPECT_EQ(status_of("kill -9 $$"), 128 + SIGKILL);
  EXPECT_EQ(status_of("test \"$GIVEN\" = yes"), 0);
}

// Neither a stopped grandchild nor an orphan in a session of its own is left.
TEST(ProcessTree, TakesEverythingAlong) {
  const test::TemporaryFolder folder;
  const std::string orphan = folder.path("orphan"), stopped = folder.path("stopped");
  pid_t first = 0, second = 0;
  {
    const HeldSignals signals;
    ProcessTree tree(signals);
    start_shell(tree, "(setsid sh -c 'echo $$ > " + orphan + "; sleep 100' &); sh -c 'echo $$ > " + stopped +
                          "; kill -STOP $$; sleep 100' & sleep 100");
    first = pid_in(orphan);
    second = pid_in(stopped);
    EXPECT_TRUE(alive(first));
    EXPECT_TRUE(alive(second));
  }
  EXPECT_FALSE(alive(first));
  EXPECT_FALSE(alive(second));
}

TEST(ProcessTree, AnInterruptArrivesInWait) {
  const HeldSignals signals;
  ProcessTree tree(signals);
  start_shell(tree, "sleep 100");
  ::kill(::getpid(), SIGTERM);
  try {
    for (int i = 0; i < 100; ++i) tree.wait(0.1);
    ADD_FAILURE() << "not interrupted";
  } catch (const Interrupted& stop) {
    EXPECT_EQ(stop.signal, SIGTERM);
  }
}

}  // namespace
}  // namespace orrery
