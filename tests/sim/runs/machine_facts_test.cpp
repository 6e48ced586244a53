#include "sim/runs/machine_facts.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "sim/runs/launch.h"

namespace orrery {
namespace {

TEST(MachineFacts, AreThoseOfThisMachine) {
  const MachineFacts f = facts_here();
  EXPECT_GE(f.cores, 1);
  EXPECT_GT(f.room.files, 0);
  EXPECT_FALSE(f.temporary.empty());
  EXPECT_EQ(f.mpirun, find_on_path("mpirun"));
  EXPECT_EQ(f.mpirun.empty(), f.mpi_version.empty());
}

TEST(MachineFacts, ADisplayIsWhatTheEnvironmentNames) {
  ::setenv("WAYLAND_DISPLAY", "wayland-7", 1);
  EXPECT_EQ(facts_here().display, "wayland-7");
  ::unsetenv("WAYLAND_DISPLAY");
  ::setenv("DISPLAY", ":7", 1);
  EXPECT_EQ(facts_here().display, ":7");
  ::unsetenv("DISPLAY");
  EXPECT_EQ(facts_here().display, "");
}

}  // namespace
}  // namespace orrery
