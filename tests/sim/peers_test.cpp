#include "sim/peers.h"

#include <gtest/gtest.h>

#include "models/error.h"
#include "tests/sim/thread_peers.h"

namespace orrery {
namespace {

using test::with_peers;

TEST(Peers, AreNoneWithoutALauncher) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) ::unsetenv(name);
  EXPECT_EQ(peers_of_environment(), nullptr);
  ::setenv("PMI_SIZE", "1", 1);
  EXPECT_EQ(peers_of_environment(), nullptr);
  ::unsetenv("PMI_SIZE");
}

// The plugin is beside orrery, not beside the tests.
TEST(Peers, NeedThePluginBesideTheProgram) {
  ::setenv("PMI_SIZE", "3", 1);
  try {
    peers_of_environment();
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("3 processes were started together"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("orrery-peers.so"), std::string::npos) << error.what();
  }
  ::unsetenv("PMI_SIZE");
}

TEST(Peers, FailTogetherWithTheFirstReason) {
  std::vector<std::string> said(3);
  with_peers(3, [&](Peers& peers) {
    try {
      together(&peers, [&] {
        if (peers.rank() > 0) throw Error(peers.rank() == 1 ? "one" : "two", 2);
      });
    } catch (const Error& error) {
      said[static_cast<std::size_t>(peers.rank())] = error.what();
    }
  });
  EXPECT_EQ(said, (std::vector<std::string>{"one", "one", "one"}));
}

}  // namespace
}  // namespace orrery
